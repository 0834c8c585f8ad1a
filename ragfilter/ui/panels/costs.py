"""What a layer costs, where it acts, and why the layers stand in the order in which they do.

Source: docs/design.md#forecast.
"""

from __future__ import annotations

from ragfilter.model import LayerName
from ragfilter.settings.schema import Settings

ORDER = (
    "Each layer acts on what the one above let through. Clearance comes first, so that nothing "
    "hidden reaches a model. Rules come before distances: a chunk that the question rules out "
    "should not shape the curve. What costs more comes later, where fewer chunks are left: free "
    "layers replay in milliseconds, a local model takes tenths of a second a question, an LLM "
    "takes seconds and tokens and is asked by its button only."
)
FREE, STORE, LOCAL, LLM = "free", "store query", "local model", "LLM call"
HELP = {
    FREE: "Free: decided in milliseconds, no store and no model is asked.",
    STORE: "Costs one store query a side, made with the question; moving its controls is free.",
    LOCAL: "Runs a model on this machine where first results are poor; its scores are remembered.",
    LLM: "Costs one call of the LLM, only when its button is pressed; the answer is remembered.",
}


def word(name: LayerName, settings: Settings) -> str:
    """What the layer costs, in a word or two."""
    if name == "quality":
        return FREE if settings.quality.reranker == "none" else LOCAL
    return {"entities": STORE, "judge": LLM}.get(name, FREE)


def told(name: LayerName, settings: Settings) -> str:
    """The same in a sentence."""
    return HELP[word(name, settings)]
