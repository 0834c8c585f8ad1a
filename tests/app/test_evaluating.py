"""The Evaluate page on the demo: a run over a few labelled questions, in every view."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from labelled_demo import put_labelled

from ragfilter.evaluate.query_records import measure
from ragfilter.ingest import bundled
from ragfilter.model import User
from ragfilter.ui import resources
from ragfilter.ui.kit import measuring

pytestmark = pytest.mark.model

FEW, MANY = 4, 10


@pytest.fixture
def page(open_page: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The Evaluate page with the query set few: questions of the demo with their labels."""
    monkeypatch.setattr("ragfilter.evaluate.frame.RESAMPLES", 99)
    page = open_page({"collection": "demo", "profile": "adaptive-gap"}, workspace=workspace, on="evaluate")
    put_labelled(resources.open_resources().bench.labels, "few", [*bundled.qrels("demo")][-FEW:])
    return page.run()


@pytest.fixture
def measured(page: Any) -> Any:
    page.session.query_set = "few"
    return page.run().press("evaluate")


def test_the_sets_are_offered_and_nothing_is_measured_yet(page: Any) -> None:
    options = page.at.selectbox(key="query-set-box").options
    count = options[0].removeprefix("demo · ")
    # Only labelled questions count.
    assert page.at.button(key="evaluate").label == f"Measure {count} questions"
    assert [option.partition(" ")[0] for option in options] == ["demo", "few", "labelled", "asked"]
    page.at.selectbox(key="query-set-box").set_value("asked")
    page.run()
    assert any("has no query set 'asked' with questions" in text for text in page.html)
    assert page.at.button(key="evaluate").disabled
    page.at.selectbox(key="query-set-box").set_value("demo")
    assert not any("this one lacks" in text for text in page.run().html)
    resources.open_resources().bench.labels.add("demo", [("Who bakes?", "attack-matrix-clerics-ac-7", 2)], who="me")
    assert any("The set labelled has 1 question that this one lacks" in text for text in page.run().html)


def test_a_run_shows_its_rows_best_first_and_every_view(measured: Any) -> None:
    page = measured
    table = page.at.dataframe[0].value
    names = list(table["settings"])
    assert names[-1] == "oracle (knows the labels)"
    assert names[0].startswith("▲ ")
    assert any(name.endswith("● current settings and 4 more") for name in names)
    names = [name.removeprefix("▲ ").removeprefix("● ") for name in names if not name.endswith(" more")]
    ending = " keep the same chunks."
    shared = [text.removesuffix(ending) for text in page.html if text.endswith(ending)]
    # They keep what their profile keeps.
    assert any({"current settings", "gap", "adaptive-gap"} <= {*text.split(" = ")} for text in shared)
    every = [each for name in (*names, *shared) for each in name.split(" = ")]
    assert len({*every}) == len(every)
    assert {"otsu", "full", "query-must", "unfiltered", "best fixed k"} <= {*every}
    assert sorted(table["F1"][:-1], reverse=True) == list(table["F1"][:-1])
    assert any("show no clear difference from the best fixed k" in text for text in page.html)
    assert set(table["95% interval"]) == {"–"}
    assert any("otsu the split into a near and a far class" in text for text in page.html)
    page.at.toggle(key="all-figures").set_value(True)
    page.at.selectbox(key="measure").set_value("tokens")
    table = page.run().at.dataframe[0].value
    assert sorted(table["tokens"][:-1]) == list(table["tokens"][:-1])
    assert table["ms"].isna().sum() == 3
    page.choose("view", "Layers")
    assert list(page.at.dataframe[0].value["layer"]) == ["Cutoff", "Cutoff"]
    assert any("The judge, which calls an LLM" in text for text in page.html)
    page.choose("view", "Plots")
    page.choose("view", "Questions")
    every = page.at.dataframe[0].value
    assert len(every) == FEW
    page.choose("query-filter", "changed")
    changed = every[every["ΔF1"] != 0]
    assert 0 < len(changed) < FEW
    assert list(page.at.dataframe[0].value["question"]) == list(changed["question"])
    page.choose("view", "Comparison")
    made = page.downloads[f"ragfilter-run-{page.session.run}.html"]()
    assert "otsu" in made
    assert f"{page.at.dataframe[0].value['F1'].iloc[0]:.3f}" in made
    # Another user sees the run only if nothing is hidden.
    before, page.session.user = page.session.user, User(1, ("treasury",))
    assert not page.run().at.dataframe
    assert page.switch("clearance", False).at.dataframe
    page.session.user = before
    page.switch("clearance", True).press("evaluate-compare")
    assert page.session.compared == {"a": "unfiltered", "b": f"run-{page.session.run}", "set": "few"}


def test_the_page_measures_by_itself_where_nothing_was_measured(
    open_page: Any, copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_page({"collection": "demo", "profile": "unfiltered"}, workspace=copy_demo(), on="evaluate")
    put_labelled(resources.open_resources().bench.labels, "few", [*bundled.qrels("demo")][:2])
    page.session.query_set = "few"
    assert not page.run().at.dataframe
    monkeypatch.setattr("ragfilter.ui.evaluate.page.UNASKED", FEW)
    page.at.toggle(key="sets-open").set_value(True)
    page.run().at.toggle(key="sets-open").set_value(False)
    assert not resources.open_resources().bench.runs.saved()
    assert list(page.run().at.dataframe[0].value["settings"])[-1].startswith("oracle")
    # Each set is measured, one after the other.
    job = resources.open_resources().jobs.start(
        None, ("run", page.session.run), lambda job: job.stop.wait(), again=True
    )
    begun, begin = [], measuring.begin

    def recorded(*args: Any, **named: Any) -> Any:
        begun.append(job.done)
        return begin(*args, **named)

    monkeypatch.setattr(measuring, "begin", recorded)
    put_labelled(resources.open_resources().bench.labels, "other", [*bundled.qrels("demo")][2:4])
    page.session.query_set = "other"
    threading.Timer(0.5, job.stop.set).start()
    assert page.run().at.dataframe
    assert begun == [True]
    assert [run.plan.query_set for run in resources.open_resources().bench.runs.saved()] == ["other", "few"]


def test_the_shown_run_is_of_the_chosen_set_even_if_that_was_removed(measured: Any) -> None:
    def shown(name: str) -> int:
        measured.at.selectbox(key="query-set-box").set_value(name)
        return len(measured.run().at.dataframe)

    assert (shown("demo"), shown("few")) == (0, 1)
    measured.at.toggle(key="with-llm").set_value(True)
    assert not measured.run().at.dataframe
    measured.at.toggle(key="with-llm").set_value(False)
    # A renamed set keeps its runs.
    run = measured.session.run
    measured.at.toggle(key="sets-open").set_value(True)
    next(box for box in measured.run().at.text_input if box.label == "Name of the set").set_value("fewer")
    measured.press("set-save").at.toggle(key="sets-open").set_value(False)
    assert measured.run().at.dataframe
    assert (measured.at.selectbox(key="query-set-box").value, measured.session.run) == ("fewer", run)
    assert resources.open_resources().bench.runs.get(run).plan.query_set == "fewer"
    resources.open_resources().bench.labels.remove_set("demo", "fewer")
    assert measured.run().at.selectbox(key="query-set-box").value == "demo"
    assert shown("") == 1
    assert "fewer" in measured.at.selectbox(key="run-box").options[0]
    assert len([text for text in measured.html if "has no query set 'fewer' with questions" in text]) == 1
    measured.at.toggle(key="sets-open").set_value(True)
    assert not measured.run().errors
    assert measured.at.text_area


def test_a_stopped_run_says_how_far_it_came_and_goes_on(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = threading.Event()

    def one(*args: Any, **named: Any) -> Iterator[Any]:
        """Really measures, but stops after the first question."""
        for record in measure(*args, **named):
            yield record
            if not first.is_set():
                first.set()
                return

    monkeypatch.setattr("ragfilter.evaluate.measured_runs.measure", one)
    page.at.selectbox(key="query-set-box").set_value("few")
    page.slide("cutoff.max_results", 7).press("evaluate")
    assert any("1 of 4 questions measured. Measure continues" in text for text in page.html)
    number = page.session.run
    page.press("evaluate")
    assert page.session.run == number
    assert not any("questions measured. Measure continues" in text for text in page.html)
    # A question opens with the settings of the run.
    page.choose("view", "Questions").slide("cutoff.max_results", 3)
    table = page.at.dataframe[0]
    question = table.value["question"].iloc[1]
    page.at.session_state[table.key] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    page.run()
    assert page.changes == {"cutoff.max_results": 7}
    assert page.at.text_input(key="question").value.startswith(question.removesuffix("…"))


def test_of_one_question_nothing_is_held_out_and_an_unfinished_run_of_files_is_not_shown_first(page: Any) -> None:
    book = resources.open_resources().bench.labels
    book.put_set("demo", "one", dict([*book.queries("demo", "few").items()][:1]))
    page.run().at.selectbox(key="query-set-box").set_value("one")
    page.run().press("evaluate")
    assert not any("best fixed k" in name for name in page.at.dataframe[0].value["settings"])
    assert any("there is no best fixed k" in text for text in page.html)
    plots = page.choose("view", "Plots")
    assert any("without a label were relevant" in text for text in plots.html)
    assert any("on these same questions: precision" in text for text in plots.html)
    runs = resources.open_resources().bench.runs
    plan = runs.get(page.session.run).plan
    of_files = runs.begin(replace(plan, query_set="q.jsonl, labels of r.tsv"), who="ann")
    page.session.query_set = None
    assert page.run().at.selectbox(key="query-set-box").value == "demo"
    page.at.selectbox(key="query-set-box").set_value("")
    assert any("No question in this run" in text for text in page.run().html)
    assert not any("Press Measure" in text or "no query set" in text for text in page.html)
    assert page.at.selectbox(key="run-box").options[0].startswith(f"{of_files.id} · q.jsonl, labels of r.tsv · ")


def test_a_run_says_what_moved_since_the_one_before(page: Any) -> None:
    runs = resources.open_resources().bench.runs
    put_labelled(resources.open_resources().bench.labels, "many", [*bundled.qrels("demo")][:MANY])
    page.run().at.selectbox(key="query-set-box").set_value("many")
    page.run().press("evaluate")
    assert not any("Since run" in text for text in page.html)
    before = runs.get(page.session.run)
    later = runs.begin(replace(before.plan, model="another"), who="ann")
    for each in runs.records(before.id):
        runs.keep(later.id, each["id"], {**each, "nearness": each["nearness"] + 0.3})
    page.session.run = later.id
    told = f"Since run {before.id}: the corpus or the model moved: best distance ÷ background"
    assert any(told in text for text in page.run().html)
