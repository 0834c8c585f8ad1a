"""The desk: limits named, changes tried and reverted, links and files with all settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragfilter.basics.files import TextFiles
from ragfilter.settings import config
from ragfilter.ui.inspect.curve_panel import PREFIX, SECOND
from ragfilter.ui.kit.controls import DEPARTMENTS, LEVEL
from ragfilter.ui.kit.controls import setting_key as key

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-7"
OWLBEARS = "Tell me about owlbears"
OPEN = {"open": "tuning,evidence"}


def test_a_settings_file_is_taken_whole_or_not_at_all(open_page: Any) -> None:
    page = open_page({"profile": "adaptive-gap", "cutoff.max_results": "7"})
    uploader = page.at.file_uploader(key="settings-file")
    good = b'profile = "query-must"\n[retrieval]\nk = 9\n'
    uploader.set_value(("ours.toml", good, "application/toml"))
    page.run()
    assert page.session.profile == "query-must"
    assert page.changes == {"retrieval.k": 9}
    bad = b"[cutoff]\nmax_results = 3\ngap_threshold = 9\n"
    page.at.file_uploader(key="settings-file").set_value(("bad.toml", bad, "application/toml"))
    page.run()
    assert page.changes == {"retrieval.k": 9}
    assert len(page.warnings) == 1
    assert "bad.toml" in page.warnings[0].replace("\\", "")
    page.press("undo")
    assert page.changes == {"cutoff.max_results": 7}
    # A file that names no profile changes the current one.
    none = b"[cutoff]\nmax_results = 4\n"
    page.at.file_uploader(key="settings-file").set_value(("none.toml", none, "application/toml"))
    page.run()
    assert page.session.profile == "adaptive-gap"
    assert page.changes == {"cutoff.max_results": 4}


def test_every_page_leads_to_the_next_step_and_the_tour_is_ticked_off(open_page: Any) -> None:
    page = open_page({"q": CLERIC, "profile": "full"})
    assert page.session.tour is None
    page.press("help-button").press("tour-begin")
    assert page.session.tour == [False] * 3
    page.open_chunk(MATRIX)
    page.switch("query_must", False).switch("quality", False).switch("cutoff", False).slide("retrieval.k", 4)
    assert page.session.tour == [True] * 3
    assert page.press("tour-end").session.tour is None
    for name, following in (("inspect", "Next: Measure"), ("tune", "Next: Measure"), ("evaluate", "")):
        page.at.switch_page(f"pages/{name}.py")
        page.run()
        # The demo is labelled, but nothing was measured.
        assert {"✓ Label", "Guard"} <= {each.strip() for each in page.html}
        assert [each.label for each in page.at.button if each.key == "path-next"] == [following] * bool(following)
        assert ("path-Tune" in page.buttons) is (name != "tune")
        assert "help-button" in page.buttons
    assert any("Now: Measure" in each for each in page.html)


def test_settings_saved_under_a_name_are_loaded_and_forgotten(open_page: Any, demo_page_workspace: Path) -> None:
    page = open_page({"profile": "adaptive-gap", "cutoff.max_results": "7"})
    page.at.text_input(key="settings-name").set_value("../strict")
    page.press("save-as-button")
    assert "is not a valid name for saved settings" in page.warnings[0]
    page.at.text_input(key="settings-name").set_value("strict")
    page.press("save-as-button")
    assert not page.warnings
    files = TextFiles(demo_page_workspace)
    kept = config.load(file=config.find_saved(files, "strict"), environ={})
    assert (kept.profile, kept.settings.cutoff.max_results) == ("adaptive-gap", 7)
    page.press("reset")
    assert page.changes == {}
    # Another session finds it too.
    other = open_page({"profile": "full"})
    other.press("load-saved")
    assert other.session.profile == "adaptive-gap"
    assert other.changes == {"cutoff.max_results": 7}
    other.press("undo")
    assert other.session.profile == "full"
    other.press("delete-saved")
    assert "load-saved" not in other.buttons
    # Settings deleted in the meantime are reported, and nothing is lost.
    page.press("load-saved")
    assert "No settings are saved under" in page.warnings[0]


def test_a_widget_starts_with_the_value_that_was_set_elsewhere(open_page: Any) -> None:
    page = open_page({"profile": "full", "retrieval.lexical": "true", "q": CLERIC}).run()
    # The curve is drawn beside that of another score.
    box = page.at.selectbox(key=SECOND)
    assert {"fused", "lexical"} <= {*box.options}
    box.set_value("fused")
    name, twin = key("cutoff.max_results"), key("cutoff.max_results", PREFIX)
    assert page.at.toggle(key=key("query_must.enabled")).proto.default is True
    assert page.at.slider(key=name).key == name
    page.at.slider(key=twin).set_value(7)
    page.run()
    # The one that was moved stays; the other one is replaced, so that nothing has to be written
    # into a widget that the browser shows.
    assert page.at.selectbox(key=SECOND).value == "fused"
    assert page.at.slider(key=twin).key == twin
    assert page.at.slider(key=name).key == f"{name}--1"
    assert list(page.at.slider(key=name).proto.default) == [7]
    page.press("undo")
    assert page.at.slider(key=twin).key == f"{twin}--1"
    assert {page.at.slider(key=each).value for each in (name, twin)} == {15}


def test_what_is_pruned_is_struck_with_value_and_limit(open_page: Any) -> None:
    link = {"profile": "full", "prune.enabled": "true", "prune.share": "0.9", "q": "Tell me of owlbears"}
    page = open_page({**link, "present": "true"})
    # The first step has one stack, since nothing is dropped yet.
    assert " ".join(page.html).count("[1] ● Owlbear ") == 1
    page.at.button(key="scene-flip").click()
    page.run()
    assert " ".join(page.html).count("[1] ● Owlbear ") == 2
    assert "rf-pruned" not in " ".join(page.html)
    page.at.toggle(key="show-pruned").set_value(True)
    shown = " ".join(page.run().html)
    assert re.search(r"0\.\d{3} (<|&lt;) 0\.\d{3}", shown)


def test_a_link_brings_back_what_was_shared(open_page: Any) -> None:
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


def test_what_a_link_gets_wrong_is_named_in_one_message_and_the_rest_is_used(open_page: Any) -> None:
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


def test_the_environment_is_where_every_profile_begins(open_page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
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
