"""Every layer's switch: when on, the layer acts and says so; when off, it does not run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.layers.registry import SWITCHES
from ragfilter.results.rows import rows
from ragfilter.ui.kit.controls import setting_key as key

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
OWLBEARS = "Tell me about owlbears"
CASES = {
    "clearance": ("adaptive-gap", "Which treasure maps are false?"),
    "query_must": ("query-must", CLERIC),
    "entities": ("adaptive-gap+entities", "hill giant vs troll"),
    "quality": ("adaptive-retrieval", OWLBEARS),
    "cutoff": ("adaptive-gap", OWLBEARS),
}


@pytest.mark.parametrize("layer", CASES)
def test_a_switch_brings_its_layer_in_and_takes_it_out(open_page: Any, library: Callable[..., Any], layer: str) -> None:
    profile, question = CASES[layer]
    page = open_page({"profile": profile, f"{layer}.enabled": "true", "q": question})
    shown = {}
    for on in (True, False):
        if not on:
            page.switch(layer, False)
        result = library(question, profile, {f"{layer}.enabled": on})
        assert sorted(page.kept) == sorted(hit.id for hit in result.kept)
        # A pool gathered for a user is larger by the chunks hidden from them.
        seen = len(page.rows) if layer == "clearance" and not on else len(rows(result))
        assert page.strip.startswith(f"{len(result.kept)} kept of {seen} retrieved")
        assert (layer in page.funnel) is on
        shown[on] = list(page.at.dataframe[0].value.itertuples(index=False, name=None))
    assert str(shown[True]) != str(shown[False])
    assert layer in page.switch(layer, True).funnel


def test_off_a_layer_shows_no_controls_and_on_it_does(open_page: Any) -> None:
    page = open_page({"profile": "full"})
    own = {
        "query_must": key("query_must.max_rounds"),
        "entities": key("entities.per_entity"),
        "words": key("words.weight"),
        "quality": key("quality.background_share"),
        "cutoff": key("cutoff.max_results"),
    }
    for layer, control in own.items():
        assert control in {slider.key.partition("--")[0] for slider in page.at.slider}
        page.switch(layer, False)
        assert control not in {slider.key.partition("--")[0] for slider in page.at.slider}
    assert page.changes == {f"{layer}.enabled": False for layer in own}
    page.press("reset")
    assert page.changes == {}
    assert all(page.at.toggle(key=key(f"{layer}.enabled")).value for layer in own)


def test_each_strategy_acts_and_shows_what_it_uses(open_page: Any, library: Callable[..., Any]) -> None:
    page, prefix = open_page({"profile": "adaptive-gap", "q": OWLBEARS}), key("cutoff.")
    for strategy, controls in (
        ("fixed", {"max_results"}),
        ("adaptive_k", {"max_results", "min_results", "b_extra", "tail"}),
        ("relative", {"max_results", "min_results", "relative_offset"}),
    ):
        page.select("cutoff.strategy", strategy)
        shown = {s.key.partition("--")[0] for s in page.at.slider}
        assert {name.removeprefix(prefix) for name in shown if name.startswith(prefix)} == controls
        result = library(OWLBEARS, "adaptive-gap", {"cutoff.strategy": strategy})
        assert page.kept == [hit.id for hit in result.kept]
    page.select("cutoff.strategy", "gap").select("cutoff.strategy", "calibrated")
    assert page.changes == {}
    assert any("“Suggest settings” on Tune learns the strategy calibrated" in text for text in page.html)


def test_another_profile_keeps_what_was_tuned_by_hand_and_undo_goes_back(open_page: Any) -> None:
    page = open_page({"profile": "adaptive-gap", "q": OWLBEARS}).slide("cutoff.max_results", 2)
    assert len(page.kept) == 2
    page.at.selectbox(key="profile-box").set_value("query-must")
    page.run()
    assert page.changes == {"cutoff.max_results": 2}
    assert page.at.query_params["profile"] == "query-must"
    assert len(page.kept) == 15
    page.press("reset")
    assert page.changes == {}
    page.press("undo").press("undo")
    assert page.at.selectbox(key="profile-box").value == "adaptive-gap"
    assert page.changes == {"cutoff.max_results": 2}
    page.press("undo")
    assert page.changes == {}
    assert "undo" not in page.buttons
    page.press("redo").press("redo").press("redo")
    assert page.at.query_params["profile"] == "query-must"
    assert page.changes == {}
    assert "redo" not in page.buttons


def test_each_layer_says_in_a_word_what_it_did_and_the_idle_ones_are_folded(
    open_page: Any, snapshot: SnapshotAssertion
) -> None:
    page = open_page({"profile": "full", "q": CLERIC})
    assert said(page) == {name: "off" for name in SWITCHES if name != "clearance"} | {
        "query_must": "−83",
        "entities": "",
        "words": "sorts",
        "quality": "−108",
        "cutoff": "−7",
        "context": "fits",
    }
    page.session.open_lines -= {"idle", "cutoff"}
    page.run()
    assert [*said(page)] == ["query_must", "words", "quality", "cutoff", "context"]
    assert page.at.button(key="line-idle").label == snapshot
    # The controls of a closed line are not drawn; what was changed is marked, and not folded.
    assert key("cutoff.max_results") not in {slider.key for slider in page.at.slider}
    page.switch("cutoff", False)
    assert page.at.button(key="line-cutoff").label == "**● Cutoff** off"
    # It holds for the next question too, whose result says so and has the way back.
    page.ask(OWLBEARS)
    assert any("1 setting changed" in each for each in page.html)
    assert "Cutoff" in page.at.button(key="reset").help
    page.press("reset")
    assert "reset" not in page.buttons


def said(page: Any) -> dict[str, str]:
    """The effect of each layer, as its line states it."""
    found = {each.key: each.label.rpartition("** ")[2] for each in page.at.button}
    return {
        k.removeprefix("line-"): v
        for k, v in found.items()
        if k and k.startswith("line-") and k not in ("line-idle", "line-settings")
    }
