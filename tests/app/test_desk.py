"""The desk: limits named, changes tried and reverted, links and files with all settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.basics.files import TextFiles
from ragfilter.settings import config
from ragfilter.ui.inspect.curve_panel import PREFIX, SECOND
from ragfilter.ui.kit.controls import setting_key as key

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
MATRIX = "attack-matrix-clerics-ac-7"


def test_a_settings_file_is_taken_whole_or_not_at_all(open_page: Callable[..., Any]) -> None:
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


def test_every_page_leads_to_the_next_step_and_the_tour_is_ticked_off(open_page: Callable[..., Any]) -> None:
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
        assert {"Labels included", "Guard"} <= {each.strip() for each in page.html}
        assert [each.label for each in page.at.button if each.key == "path-next"] == [following] * bool(following)
        assert ("path-Tune" in page.buttons) is (name != "tune")
        assert "help-button" in page.buttons
    assert any("Now: Measure" in each for each in page.html)


def test_settings_saved_under_a_name_are_loaded_and_forgotten(
    open_page: Callable[..., Any], demo_page_workspace: Path
) -> None:
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


def test_a_widget_starts_with_the_value_that_was_set_elsewhere(open_page: Callable[..., Any]) -> None:
    page = open_page({"profile": "full", "q": CLERIC}).run()
    name, twin = key("cutoff.max_results"), key("cutoff.max_results", PREFIX)
    assert page.at.toggle(key=key("query_must.enabled")).proto.default is True
    assert page.at.slider(key=name).key == name
    page.at.slider(key=twin).set_value(7)
    page.run()
    # The one that was moved stays; the other one is replaced, so that nothing has to be written
    # into a widget that the browser shows.
    assert page.at.slider(key=twin).key == twin
    assert page.at.slider(key=name).key == f"{name}--1"
    assert list(page.at.slider(key=name).proto.default) == [7]
    page.press("undo")
    assert page.at.slider(key=twin).key == f"{twin}--1"
    assert {page.at.slider(key=each).value for each in (name, twin)} == {15}


def test_what_is_pruned_is_struck_with_value_and_limit(open_page: Callable[..., Any]) -> None:
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


def test_the_curve_is_drawn_beside_that_of_another_score(open_page: Callable[..., Any]) -> None:
    page = open_page({"profile": "full", "retrieval.lexical": "true", "q": CLERIC, "panel": "Curve"})
    box = page.at.selectbox(key=SECOND)
    assert {"fused", "lexical"} <= {*box.options}
    box.set_value("fused")
    assert page.run().at.selectbox(key=SECOND).value == "fused"
