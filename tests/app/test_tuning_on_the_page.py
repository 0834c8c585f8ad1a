"""The Tune page on the demo: a suggestion, and the map for exploring by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from labelled_demo import put_labelled

from ragfilter.evaluate.maps import make as make_map
from ragfilter.ingest import bundled
from ragfilter.settings.schema import TunedOn
from ragfilter.stores.label_book import ASKED
from ragfilter.ui import jobs, resources
from ragfilter.ui.jobs import Job
from ragfilter.ui.tune import tuning_map

pytestmark = pytest.mark.model

FEW = 6
OF_ANOTHER_MODEL = {
    "cutoff.strategy": "gap",
    "cutoff.gap_threshold": 0.9,
    "cutoff.limits": "lexical=40",
    "cutoff.tuned_on": TunedOn(
        collection="demo",
        embedder="other",
        space="l2",
        reranker="",
        labels="",
        queries=20,
        date="2026-11-25",
        strategy="gap",
        values={"cutoff.gap_threshold": 0.9},
        quantiles={"cutoff.gap_threshold": 0.99},
    ).json_text,
}


@pytest.fixture
def page(open_page: Any, workspace: Path, few_candidates: None) -> Any:
    page = open_page({"collection": "demo", "profile": "adaptive-gap"}, workspace=workspace, on="tune")
    put_labelled(resources.open_resources().bench.labels, "few", [*bundled.qrels("demo")][-FEW:])
    page.session.query_set = "few"
    return page.run()


def strip(page: Any) -> str:
    return " ".join(text for text in page.html if "Current" in text)


def test_a_suggestion_says_what_changes_and_names_the_profile_once_applied(page: Any) -> None:
    place = page.at.selectbox(key="profile-box").options.index("adaptive-gap")
    page.press("suggest")
    table = page.at.dataframe[0].value
    assert list(table["settings"]) == ["Before: adaptive-gap", "After (held out)"]
    assert table["F1"].is_monotonic_increasing
    assert page.at.button(key="apply-tuning").label == "Apply"
    assert any("No question would keep fewer relevant chunks than before" in text for text in page.html)
    page.at.selectbox(key="tuned-strategy").select("otsu")
    page.run()
    assert any("Strategy: gap → otsu" in text for text in page.html)
    # Its F1 is lower here.
    assert page.at.button(key="apply-tuning").label == "Apply anyway"
    page.press("apply-tuning")
    assert page.changes["cutoff.strategy"] == "otsu"
    assert "apply-tuning" not in page.buttons
    for words in ("These are the current settings", "Strategy: gap → otsu", "the previous settings (adaptive-gap)"):
        assert any(words in text for text in page.html)
    # The suggestion stays, with the figures of the previous settings.
    assert list(page.at.dataframe[0].value["F1"][:1]) == list(table["F1"][:1])
    (profile,) = (box for box in page.at.selectbox if box.label == "Profile")
    assert profile.options[place] == "tuned on demo"
    assert any(f"{date.today().isoformat()}, from " in text for text in page.html)
    page.press("undo")
    (profile,) = (box for box in page.at.selectbox if box.label == "Profile")
    assert profile.options[place] == "adaptive-gap"


def test_what_tuning_and_recalibrating_need_is_said(page: Any) -> None:
    page.session.changes = {"judge.enabled": True}
    page.run()
    assert any("The judge is on" in text for text in page.html)
    assert page.at.button(key="suggest").disabled
    page.session.changes, page.session.query_set = {}, ASKED
    assert page.run().at.button(key="suggest").disabled
    assert "map" not in page.buttons
    page.press("tune-label")
    assert page.session.labelling
    for changes, said in (({}, "No labels chose these thresholds"), (OF_ANOTHER_MODEL, "works best with labelled")):
        page.session.changes = changes
        page.at.switch_page("pages/collections.py")
        page.run().press("manage-recalibrate")
        assert any(said in text for text in page.html)
        assert "tune-label" in page.buttons


def test_settings_of_another_model_are_recalibrated_where_they_are_refused(page: Any) -> None:
    page.session.changes = OF_ANOTHER_MODEL
    page.at.switch_page("pages/evaluate.py")
    assert "run-recalibrate" in page.run().press("evaluate").buttons
    page.at.switch_page("pages/inspect.py")
    page.run().press("problem-recalibrate")
    table = page.at.dataframe[0].value
    assert list(table) == ["", "before (not held out)", "after (held out)", "difference"]
    assert list(table[""]) == ["F1", "recall", "tokens"]
    words = " ".join(page.html)
    assert "tuned on demo (other, l2), not with all-MiniLM-L6-v2, l2. Recalibrate" in words
    assert "stay as they were set by hand: lexical=40" in words
    # Too few questions for an interval.
    assert "may be worse than the old ones" in words
    assert "apply-tuning" not in page.buttons


def test_without_labels_thresholds_are_carried_over_by_the_questions_asked(page: Any) -> None:
    page.session.changes, page.session.query_set = OF_ANOTHER_MODEL, ASKED
    for question in [*bundled.queries("demo").values()][:FEW]:
        resources.open_resources().bench.labels.remember("demo", question)
    page.run().press("recalibrate")
    assert "This is a guess" in " ".join(page.html)
    page.press("apply-tuning")
    assert TunedOn.model_validate(page.changes["cutoff.tuned_on"]).guess
    assert page.changes["cutoff.gap_threshold"] != 0.9


def test_a_stopped_map_is_begun_again_and_its_best_place_used(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*given: Any, progress: Callable[[int, int], None]) -> None:
        while True:
            progress(1, 2)
            sleep(0.01)

    until_done = jobs.until_done

    def stop(job: Job[Any], key: str, what: str, **more: Any) -> None:
        if key == "mapping":
            job.stop.set()
        until_done(job, key, what, **more)

    with monkeypatch.context() as patch:
        patch.setattr(tuning_map, "make", endless)
        patch.setattr(jobs, "until_done", stop)
        open_map(page).press("map")
        assert any("The map was stopped" in text for text in page.html)
    # It stays so until the map is requested.
    assert any("The map was stopped" in text for text in page.run().html)
    page.press("map")
    assert "Current: Gap threshold 0.100" in strip(page)
    page.press("map")
    assert "Current: Gap threshold 0.100, Distance offset 0.400" in strip(page)
    assert any(f"Only {FEW} questions have a chunk labelled relevant" in text for text in page.html)
    page.press("map-best")
    assert any("questions change" in text for text in page.html)
    assert "map-best" not in page.buttons
    assert any("tuned on these same labels" in text for text in page.html)
    # The place is the best on these very questions, so it is not a candidate.
    page.press("suggest")
    assert any("The previous settings were chosen on labels" in text for text in page.html)


def open_map(page: Any) -> Any:
    page.at.session_state["by-hand"] = True
    return page.run()


def test_a_map_is_remembered(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, str]] = []

    def make(pools: Any, qrels: Any, settings: Any, user: Any, x: str, y: str, **more: Any) -> Any:
        made.append((x, y))
        return make_map(pools, qrels, settings, user, x, y, **more)

    monkeypatch.setattr(tuning_map, "make", make)
    open_map(page).at.selectbox(key="map-x").set_value("cutoff.max_results")
    page.at.selectbox(key="map-y").set_value("")
    page.run().press("map")
    assert "Current: Max results 5 " in strip(page)
    assert made.pop() == ("cutoff.max_results", "")
    made.clear()
    # Neither another figure nor a click on the map replays it.
    page.at.selectbox(key="map-measure").set_value("recall")
    assert "recall" in strip(page.run())
    page.press("map-best")
    assert "Current: Max results 5 " not in strip(page)
    assert made == []
    # Its list ends with the settings that it led to.
    none = "These settings were not chosen on the map"
    assert not any(none in text for text in page.html)
    page.slide("cutoff.gap_threshold", 0.3)
    assert any(none in text for text in page.html)
