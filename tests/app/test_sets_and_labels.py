"""Questions and labels on Evaluate: sets edited, imported, removed; disagreements; an LLM's labels
after their estimated cost."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import Handler, Serve
from test_judging_on_the_page import stop_the_app

from ragfilter.errors import StoreError
from ragfilter.stores.label_book import LabelBook, query_id, quotation_of
from ragfilter.stores.relabel import add_spans
from ragfilter.ui import resources
from ragfilter.ui.kit import grid

pytestmark = pytest.mark.model

MINE = {"q1": "What is a beholder?", "q2": "Tell me about owlbears", "q3": "How big is a giant?"}


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Any:
    """The questions and labels of the set mine, on the Evaluate page."""
    page = open_page({"collection": "demo", "profile": "adaptive-gap"}, workspace=workspace, on="evaluate")
    book().put_set("demo", "mine", MINE)
    page.session.query_set = "mine"
    page.at.toggle(key="sets-open").set_value(True)
    return page.run()


def book() -> LabelBook:
    return resources.open_resources().bench.labels


def text(page: Any) -> Any:
    return next(area for area in page.at.text_area if area.label == "Questions, one per line")


def name(page: Any) -> Any:
    return next(box for box in page.at.text_input if box.label == "Name of the set")


def file(page: Any, label: str) -> Any:
    return next(box for box in page.at.file_uploader if box.label == label)


def test_questions_are_added_reworded_and_removed_and_the_set_is_renamed(page: Any) -> None:
    assert text(page).value.splitlines() == list(MINE.values())
    text(page).set_value("Tell me about owlbears\n\nWhat is a beholder, then?\nTell me about owlbears")
    name(page).set_value("ours")
    page.press("set-save")
    sets = book().sets("demo")
    assert "mine" not in sets
    assert book().queries("demo", "ours") == {
        "q2": "Tell me about owlbears",
        query_id("What is a beholder, then?"): "What is a beholder, then?",
    }
    assert page.at.selectbox(key="query-set-box").value == "ours"
    name(page).set_value("demo")
    page.press("set-save")
    assert any("There is already a set 'demo'" in text for text in page.warnings)
    assert "ours" in book().sets("demo")
    page.press("set-remove")
    assert "ours" not in book().sets("demo")


def test_a_set_that_another_session_changed_is_not_replaced_and_one_that_is_always_there_is_copied(page: Any) -> None:
    for question in ("Who bakes?", "Tell me about owlbears"):
        book().remember("demo", question)
    page.run().press("set-from-history")
    assert text(page).value.splitlines() == [*MINE.values(), "Who bakes?"]
    assert list(book().queries("demo", "mine").values()) == list(MINE.values())
    page.at.selectbox(key="query-set-box").set_value("asked")
    page.run()
    assert page.at.button(key="set-save").disabled
    assert page.at.button(key="set-remove").disabled
    name(page).set_value("history")
    page.run().press("set-save")
    assert list(book().queries("demo", "history").values()) == ["Who bakes?", "Tell me about owlbears"]
    # Another session changes the set.
    page.at.selectbox(key="query-set-box").set_value("mine")
    page.run()
    theirs = {**MINE, "q4": "Who bakes?"}
    book().put_set("demo", "mine", theirs)
    text(page).set_value("What is a lich?")
    page.press("set-save")
    assert any("Somebody else has changed the query set 'mine'" in said for said in page.warnings)
    assert book().queries("demo", "mine") == theirs
    assert text(page).value == "What is a lich?"
    name(page).set_value("lich")
    page.press("set-save")
    assert any("it is kept beside 'lich'" in said for said in page.warnings)
    assert list(book().queries("demo", "lich").values()) == ["What is a lich?"]
    assert book().queries("demo", "mine") == theirs


def test_questions_asked_on_inspect_are_kept_unless_history_is_off(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    book().remember("demo", "Who bakes?")
    page.at.toggle(key="history-box").set_value(False)
    page.run()
    assert book().queries("demo", "asked") == {}
    page.at.switch_page("pages/inspect.py")
    page.run().ask("Who rows?")
    assert book().queries("demo", "asked") == {}
    page.at.switch_page("pages/evaluate.py")
    # A switch that cannot be flipped says so, and stays as it is.
    with monkeypatch.context() as patched:

        def fails(*_: object) -> None:
            raise StoreError("The labels cannot be written.", remedy="Free some space.")

        patched.setattr(LabelBook, "record_history", fails)
        page.run().at.toggle(key="history-box").set_value(True)
        page.run()
    assert any("The labels cannot be written." in each for each in page.html)
    assert page.run().at.toggle(key="history-box").value is False
    page.at.toggle(key="history-box").set_value(True)
    page.run()
    assert book().records_history("demo")
    page.at.switch_page("pages/inspect.py")
    page.run().ask("Who rows?")
    assert [*book().queries("demo", "asked").values()] == ["Who rows?"]


def test_a_set_and_its_labels_come_from_files(page: Any) -> None:
    chunk = next(iter(resources.open_resources().bench.collection("demo").catalogue()))
    questions, qrels = file(page, "From a file"), file(page, "With its labels")
    labels = f"b1\t{chunk}\t2\nb1\t{chunk}\t2\nb9\t{chunk}\t1\n"
    labels += f"b1\tgone\t1\nb3\t{chunk}\t0\nb3\tgone\t1\n"
    questions.set_value(("bakery.csv", b"question,id\nwho bakes?,b1\nwho rows?,b2\nwho?,b3\n", "text/csv"))
    qrels.set_value(("bakery.tsv", labels.encode(), "text/plain"))
    page.run().press("set-import")
    assert book().queries("demo", "bakery") == {"b1": "who bakes?", "b2": "who rows?", "b3": "who?"}
    [label, _] = book().standing("demo", "who bakes?")
    assert (label.chunk_id, label.grade, label.who) == (chunk, 2, "bakery.tsv")
    assert any("1 labelled id is not in the collection, such as 'gone'" in each for each in page.warnings)
    warned = " ".join(page.warnings)
    assert "bakery.tsv repeats 1 label, the first in line 2; each counts once" in warned
    assert "bakery.tsv has labels for 1 query not in bakery.csv, such as 'b9'" in warned
    # Users who cannot see everything do not learn which labelled chunks are missing.
    assert "gone" not in " ".join(page.run().html)
    notes = " ".join(page.switch("clearance", False).html)
    assert "1 question skipped: no labels" in notes
    assert "1 labelled chunk left out, such as gone: not in the collection" in notes
    assert "1 question skipped: no relevant chunk left" in notes


def test_disagreements_are_listed_and_labels_without_a_chunk_settled_by_a_click(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = resources.open_resources().bench.collection("demo")
    first = next(iter(store.catalogue()))
    question = MINE["q2"]
    book().label("demo", question, [first], 2, who="ann")
    page.choose("sets-part", "Labels")
    assert any("No two people disagree" in text for text in page.html)
    book().label("demo", question, [first], 0, who="bob")
    page.run()
    [row] = page.at.dataframe[0].value.to_dict("records")
    said = "; ".join(label.words for label in book().standing("demo", question))
    assert (row["question"], row["said"]) == (question, said)
    # A label whose chunk is gone is settled by a click.
    chunk = store.chunks([first]).popitem()[1]
    assert not any("They do not count" in text for text in page.html)
    gone = replace(quotation_of(chunk), quote="Nobody sings in this castle at all.")
    spans = [(MINE["q3"], 2, quotation_of(chunk)), (MINE["q3"], 1, gone)]
    add_spans(book(), "demo", [chunk, replace(chunk, id="twin")], spans, who="ann")
    assert any("They do not count" in text for text in page.run().html)
    rows = next(each.value for each in page.at.dataframe if "judged" in each.value)
    assert next(iter(rows["chunk"])) == chunk.name
    clicks = iter([0])
    monkeypatch.setattr(
        grid, "draw_clickable", lambda *_, name, **__: next(clicks, None) if name == "lost-labels" else None
    )
    page.run()
    assert len(book().standing("demo", MINE["q3"])) == 2
    page.switch("clearance", False).press("remove-gone")
    assert [each.chunk_id for each in book().standing("demo", MINE["q3"])] == [chunk.id]
    assert not any("They do not count" in text for text in page.html)


def test_an_llm_labels_after_its_cost_is_said(
    open_page: Any, workspace: Path, opened: dict[str, Any], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One process owns a workspace, and with an LLM it is another deployment.
    stop_the_app(opened)
    llm = serve(keep_the_first)
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_MODEL", "labeller")
    page = open_page({"collection": "demo", "profile": "adaptive-gap"}, workspace=workspace, on="evaluate")
    book().put_set("demo", "one", {"q2": MINE["q2"]})
    page.session.query_set = "one"
    page.at.toggle(key="sets-open").set_value(True)
    page.run().choose("sets-part", "Labels")
    before = len(book().standing("demo", MINE["q2"]))
    page.press("propose-cost")
    assert any("1 question, " in words and "calls, about " in words for words in page.html)
    assert llm.asked == []
    page.press("propose")
    labels = book().standing("demo", MINE["q2"])
    made = [label for label in labels if label.made_by == "llm"]
    assert len(made) == len(labels) - before >= 10
    assert {label.who for label in made} == {"labeller"}
    assert sum(label.grade == 2 for label in made) == len(llm.asked)
    assert "labeller (LLM)" in " ".join(page.html)
    assert not any("LLM labels count here" in words for words in page.html)
    page.at.toggle(key="with-llm").set_value(True)
    assert any("LLM labels count here" in words for words in page.run().html)
    stop_the_app(opened)


def keep_the_first(handler: Handler, body: dict[str, Any]) -> None:
    asked = re.findall(r"^id: (.*)$", body["messages"][-1]["content"], re.MULTILINE)
    lines = [f"{i} -> {'DISCARD' if place else 'KEEP'}" for place, i in enumerate(asked)]
    handler.start()
    handler.piece("\n".join(lines))
    handler.piece(None, "stop")
    handler.event("[DONE]")
