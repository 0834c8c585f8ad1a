"""The address bar contains question and settings: a new session shows the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragfilter.ui.kit.controls import DEPARTMENTS, LEVEL
from ragfilter.ui.kit.controls import setting_key as key

pytestmark = pytest.mark.model

OWLBEARS = "Tell me about owlbears"
OPEN = {"open": "tuning,evidence"}


def test_a_link_brings_back_what_was_shared(open_page: Callable[..., Any]) -> None:
    first = open_page({"profile": "adaptive-gap+entities"}).ask("hill giant vs troll")
    first.slide("cutoff.max_results", 7).slide("cutoff.gap_threshold", 0.315)
    first.switch("quality", True).choose("set-quality-mode", "always")
    first.at.multiselect(key=DEPARTMENTS).set_value(["referee & co=1", "ops"])
    first.at.slider(key=LEVEL).set_value(2)
    first.run().slide("confidence.large_gap", 0.25)
    link = dict(first.at.query_params)
    assert link == {
        "q": "hill giant vs troll",
        "collection": "demo",
        "profile": "adaptive-gap+entities",
        "level": "2",
        "departments": "ops,referee & co=1",
        "confidence.large_gap": "0.25",
        "cutoff.gap_threshold": "0.315",
        "cutoff.max_results": "7",
        "quality.enabled": "true",
        "quality.mode": "always",
        "unscored": "true",
        **OPEN,
    }
    second = open_page(link)
    assert second.kept == first.kept
    assert second.changes == first.changes
    assert second.at.query_params == link
    assert second.at.slider(key=key("cutoff.gap_threshold")).value == 0.315
    # The newly enabled quality layer's rerank scores are fetched only by its button.
    assert "need-rerank" in second.buttons
    first.press("need-rerank")
    scored = dict(first.at.query_params)
    assert scored == {name: value for name, value in link.items() if name != "unscored"}
    third = open_page(scored)
    assert third.kept == first.kept
    assert "need-rerank" not in third.buttons


def test_what_a_link_gets_wrong_is_named_in_one_message_and_the_rest_is_used(open_page: Callable[..., Any]) -> None:
    bad = {"cutoff.gap_threshold": "nan", "cutoff.strategy": "x", "nonsense": "1", "level": "-1", "collection": "y"}
    named = ["'nan'", "'x'", "no setting 'nonsense'", "level '-1'", "no collection 'y'"]
    good = {"q": OWLBEARS, "profile": "adaptive-gap", "cutoff.max_results": "3"}
    page = open_page(good | bad)
    assert len(page.warnings) == 1
    said = page.warnings[0].replace("\\", "")
    assert [words for words in named if words not in said] == []
    assert page.changes == {"cutoff.max_results": 3}
    assert page.kept == ["monster-owlbear", "monster-owlbear-lair", "monster-owl"]
    assert open_page({"profile": "best"}).at.query_params["profile"] == "full"
    # Rejected values leave the address bar, and the message is shown once.
    assert page.at.query_params == good | OPEN | {"collection": "demo"}
    assert page.run().warnings == []
    # A value beyond its slider widens it.
    page = open_page({**good, "cutoff.gap_threshold": "3.5", "places": "3-20", "view": "nobody"})
    slider = page.at.slider(key=key("cutoff.gap_threshold"))
    assert (slider.value, slider.max, page.warnings) == (3.5, 3.5, [])
    # Invalid ranges and views are ignored; a copied link holds the valid ones.
    assert (page.session.window, page.session.operator) == ("Around the cut", False)
    page = open_page(good | {"places": "All", "view": "operator"})
    assert (page.session.window, page.at.button_group(key="view-as").value) == ("All", "Operator")
    assert (page.link["places"], page.link["view"]) == ("All", "operator")


def test_the_environment_is_where_every_profile_begins(
    open_page: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIN_TOP_K", "7")
    monkeypatch.setenv("RAGFILTER_CUTOFF__MAX_RESULTS", "9")
    ours = {"quality.min_top_k": 7, "cutoff.max_results": 9}
    page = open_page({})
    assert page.changes == ours
    assert "reset" not in page.buttons
    page.at.selectbox(key="profile-box").set_value("adaptive-gap")
    assert page.run().changes == ours
    page.slide("cutoff.max_results", 4)
    assert page.changes == {**ours, "cutoff.max_results": 4}
    assert "Max results 4" in page.at.button(key="reset").help
    assert page.press("reset").changes == ours
    # A link that names a profile is self-contained.
    page = open_page({"profile": "full"})
    assert page.changes == {}
    # The target of a reset is named; otherwise, the difference from the profile would seem wrong.
    assert page.at.button(key="back-set-quality-min_top_k").label == "7 (MIN_TOP_K)"
