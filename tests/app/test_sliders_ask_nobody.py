"""Moving any slider on a gathered question calls neither store nor model: calls are counted. Only Answer embeds the
sentences of chunks that are new in the prompt. A reranker that timed out is called again only by its button."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from calibrations import calibration
from waiting import SILENT_S

from ragfilter.errors import ModelError
from ragfilter.models.rerankers import CrossEncoderReranker, LateInteraction
from ragfilter.settings.schema import fields
from ragfilter.ui.kit.controls import LEVEL
from ragfilter.ui.kit.controls import setting_key as key
from ragfilter.ui.session.state import PANELS

pytestmark = pytest.mark.model
CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
CALIBRATION = calibration(
    collection="demo",
    embedder="all-MiniLM-L6-v2",
    relevant=30,
    depth=50,
    intercept=0.0,
    weights={"way": -8.0},
    keeps={"0.9": 0.1},
)
SETUPS = {
    "full": {"profile": "full"},
    "jumps": {"profile": "adaptive-gap", "cutoff.strategy": "autocut", "diversity.enabled": "true"},
    "tail": {"profile": "adaptive-gap", "cutoff.strategy": "adaptive_k"},
    "distances": {"profile": "adaptive-retrieval", "cutoff.enabled": "true"},
    "recall": {
        "profile": "adaptive-gap",
        "cutoff.strategy": "calibrated",
        "cutoff.target": "recall",
        "cutoff.calibration": CALIBRATION.json_text,
    },
    "judge": {"profile": "llm-filter"},
    "http": {"profile": "adaptive-retrieval", "quality.reranker": "http", "prune.enabled": "true"},
}
"""Together, these show a slider for every numeric setting and for the user's level."""
QUESTION = "Is there any spaceship in this book?"
LINK = {"profile": "adaptive-retrieval", "quality.mode": "always", "quality.reranker_timeout_ms": "500"}


def move(page: Any, sliders: list[str]) -> None:
    """Move each slider to another place in its range. They go back in the next run, so that the others are tried on the
    result of the question."""
    before: dict[str, Any] = {}
    for slider in sliders:
        # At its end, the target recall would need more labels.
        share = 0.0 if slider.endswith("recall") else 1.0
        widget = page.at.slider(key=slider)
        before[slider] = widget.value
        steps = int(share * (widget.max - widget.min) / widget.step)
        values = [type(widget.value)(widget.min + n * widget.step) for n in (steps, 1, 0)]
        widget.set_value(next(v for v in values if v != widget.value))
    page.run()
    for slider, value in before.items():
        assert page.at.slider(key=slider).value != value, f"{slider} did not move"
        page.at.slider(key=slider).set_value(value)


def test_no_slider_switch_choice_or_view_asks_store_or_model(
    open_page: Any, calls: Counter[str], monkeypatch: pytest.MonkeyPatch, dead_url: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", dead_url)
    every: set[str] = set()
    for turn, (setup, params) in enumerate(SETUPS.items()):
        page = open_page(params | {"q": CLERIC})
        every |= (shown := {s.key.partition("--")[0] for s in page.at.slider})
        # A slider below the curve is not there under every value of the others.
        alone, together = (sorted(s for s in shown if s.startswith("cut-") is below) for below in (True, False))
        page.edit_rule("attack-matrix-clerics-ac-7")
        calls.clear()
        # Each setup has two of the panels, and half of the sliders in each.
        for half in (0, 1):
            panel = PANELS[(2 * turn + half) % len(PANELS)]
            page.at.button_group(key="panel-box").set_value(panel)
            for moved in (together[half::2], *([slider] for slider in alone[half::2])):
                move(page, moved)
                if panel == "Answer":
                    del calls["BundledEmbedder.embed"]
                assert not calls, f"{setup}: {moved} in {panel}: {dict(calls)}"
        if setup == "full":
            for on in (False, True):
                for layer in ("clearance", "query_must", "quality"):
                    page.at.toggle(key=key(f"{layer}.enabled")).set_value(on)
                page.run()
            page.select("cutoff.strategy", "autocut")
            page.choose("view-as", "Operator").press("fold").press("reset")
            assert not calls
    every = {name for name in every if not name.startswith("cut-")}
    assert every == {LEVEL, *(key(f.path) for f in fields() if f.value_type in (int, float))}


def test_the_counter_moves_when_something_is_asked(open_page: Any, calls: Counter[str]) -> None:
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


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until this event is set, a reranker hangs."""
    over = threading.Event()
    score = LateInteraction.score

    def late(self: LateInteraction, query: str, texts: Any) -> list[float]:
        over.wait(SILENT_S)
        return score(self, query, texts)

    monkeypatch.setattr(LateInteraction, "score", late)
    yield over
    over.set()


def test_scores_that_came_too_late_can_be_asked_for_again(
    slow: threading.Event, open_page: Any, calls: Counter[str]
) -> None:
    page = open_page(LINK | {"q": QUESTION})
    # A second session asks the store for no pool that is there.
    asked = calls["ChromaCollection.nearest"]
    other = open_page(LINK | {"q": QUESTION})
    assert calls["ChromaCollection.nearest"] == asked > 0
    assert other.kept == page.kept
    assert calls["LateInteraction.score"] == 2
    slow.set()
    for each in (page, other.run()):
        assert each.at.button(key="need-rerank").label.startswith("Score again: ")
    # A longer timeout causes no call either.
    calls.clear()
    page.slide("quality.reranker_timeout_ms", 60_000)
    assert not calls
    page.press("need-rerank")
    assert "need-rerank" not in page.buttons
    assert {row["outcome"] for row in page.rows if row["place"]} <= {"kept"}
    assert "need-rerank" not in other.run().buttons


def gone(self: CrossEncoderReranker) -> NoReturn:
    raise ModelError("The cross-encoder is not here.", remedy="Choose another.")


def test_a_reranker_that_cannot_be_had_is_not_offered_again(open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Importing torch takes seconds.
    monkeypatch.setattr(CrossEncoderReranker, "_load", gone)
    cross = {"quality.reranker": "cross_encoder", "quality.reranker_model": "nobody/no-such-model"}
    page = open_page({**LINK, "quality.reranker_timeout_ms": "60000", **cross, "q": QUESTION})
    assert "need-rerank" not in page.buttons
    (told,) = [warning.value for warning in page.at.warning]
    assert "The reranker cross-encoder failed" in told
    # Another one is available, and only its scores are shown.
    page.at.selectbox(key="set-quality-reranker").set_value("late_interaction")
    page.run().press("need-rerank")
    assert not page.at.warning
    assert any(row["rerank_score"] for row in page.rows)
