"""What a layer costs, where it acts, and why the layers are in this order.

Source: docs/design.md#forecast.
"""

from __future__ import annotations

from ragfilter.layers.base import Cost

ORDER = (
    "Each layer works on what the one above lets through. Clearance comes first so that nothing "
    "hidden reaches a model. Rules come before distances so that chunks which the question rules "
    "out do not shape the curve. Expensive layers come later, when fewer chunks are left: free "
    "layers replay in milliseconds, a local model takes tenths of a second per question, and an "
    "LLM takes seconds and tokens and is asked only by its button."
)
HELP: dict[Cost, str] = {
    "free": "Free: decided in milliseconds, without the store or a model.",
    "store query": "Costs one store query per side when the question is asked; its controls are "
    "free.",
    "local model": "Runs a model on this machine if the first results are poor. Its scores are "
    "cached.",
    "LLM call": "Costs one LLM call, only when its button is pressed. The answer is cached.",
}
"""What each cost means, in a sentence."""
