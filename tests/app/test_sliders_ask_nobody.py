"""Moving any slider on a gathered question calls neither store nor model: calls are counted. Only
Answer embeds the sentences of chunks that are new in the prompt, after everything else is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from ragfilter.settings.learned import Calibration
from ragfilter.settings.schema import fields
from ragfilter.ui.kit.sidebar import key
from ragfilter.ui.kit.view_as import LEVEL
from ragfilter.ui.session.state import PANELS

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
CALIBRATION = Calibration(
    collection="demo", embedder="all-MiniLM-L6-v2", space="l2", reranker="", labels="", queries=20,
    relevant=30, date="", depth=50, intercept=0.0, weights={"way": -8.0}, keeps={"0.9": 0.1},
)  # fmt: skip
SETUPS = {
    "full": {"profile": "full"},
    "jumps": {"profile": "adaptive-gap", "cutoff.strategy": "autocut",
              "diversity.enabled": "true"},
    "tail": {"profile": "adaptive-gap", "cutoff.strategy": "adaptive_k"},
    "distances": {"profile": "adaptive-retrieval", "cutoff.enabled": "true"},
    "recall": {"profile": "adaptive-gap", "cutoff.strategy": "calibrated",
               "cutoff.target": "recall", "cutoff.calibration": CALIBRATION.json_text},
    "judge": {"profile": "llm-filter"},
    "http": {"profile": "adaptive-retrieval", "quality.reranker": "http", "prune.enabled": "true"},
}  # fmt: skip
"""Together these show a slider for every setting that is a number, and the user's level."""


def move(page: Any, slider: str, share: float) -> None:
    """Move a slider to `share` of its range, or to near its beginning. It goes back in the next
    run, so that every slider is tried on the result of the question."""
    widget = page.at.slider(key=slider)
    before = widget.value
    steps = int(share * (widget.max - widget.min) / widget.step)
    values = [type(before)(widget.min + n * widget.step) for n in (steps, 1, 0)]
    widget.set_value(next(v for v in values if v != before))
    page.run()
    assert page.at.slider(key=slider).value != before, f"{slider} did not move"
    page.at.slider(key=slider).set_value(before)


@pytest.mark.parametrize("setup", SETUPS)
def test_no_slider_asks_store_or_model(
    open_page: Callable[..., Any],
    calls: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    dead_url: str,
    setup: str,
) -> None:
    if setup == "judge":
        monkeypatch.setenv("OPENAI_BASE_URL", dead_url)
    page = open_page(SETUPS[setup]).ask(CLERIC)
    page.edit_rule("attack-matrix-clerics-ac-7")
    sliders = sorted(s.key.partition("--")[0] for s in page.at.slider)
    assert len(sliders) > 5
    calls.clear()
    # Every panel next to a sixth of the sliders, another sixth in every setup.
    first = [*SETUPS].index(setup)
    for turn, panel in enumerate(PANELS):
        page.choose("panel-box", panel)
        for n in range((first + turn) % len(PANELS), len(sliders), len(PANELS)):
            move(page, sliders[n], (1.0, 0.0, 0.5)[n % 3])
            if panel == "Answer":
                del calls["BundledEmbedder.embed"]
            assert not calls, f"{sliders[n]} in {panel}: {dict(calls)}"
        page.run()
        assert not calls


def test_together_these_are_the_sliders_of_every_number(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, dead_url: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", dead_url)
    shown = {
        s.key.partition("--")[0] for params in SETUPS.values() for s in open_page(params).at.slider
    }
    shown = {name for name in shown if not name.startswith("tune-")}
    assert shown == {LEVEL, *(key(f.path) for f in fields() if f.value_type in (int, float))}


def test_switches_choices_and_views_ask_nobody_either(
    open_page: Callable[..., Any], calls: Counter[str]
) -> None:
    page = open_page({"profile": "full"}).ask(CLERIC).choose("panel-box", "Prompt")
    calls.clear()
    for layer in ("clearance", "query_must", "entities", "words", "quality", "cutoff"):
        page.switch(layer, False)
        page.switch(layer, True)
    for strategy in ("autocut", "adaptive_k", "gap", "fixed"):
        page.select("cutoff.strategy", strategy)
    for view in ("Operator", "User"):
        page.choose("view-as", view)
    for window in ("First 50", "All", "Around the cut"):
        page.choose("window-box", window)
    page.press("reset")
    assert not calls


def test_the_counter_moves_when_something_is_asked(
    open_page: Callable[..., Any], calls: Counter[str]
) -> None:
    page = open_page({"profile": "adaptive-retrieval"})
    calls.clear()
    page.ask("Is there any starship in this book?")
    assert calls["ChromaCollection.nearest"] >= 1
    assert calls["ChromaCollection.chunks"] >= 1
    assert calls["BundledEmbedder.embed"] >= 1
    assert calls["LateInteraction.score"] == 1
    page.slide("retrieval.pool_size", 300)
    calls.clear()
    page.press("gather-again")
    assert calls["ChromaCollection.nearest"] >= 1
    assert "300 retrieved" in page.strip
