"""Text from outside is shown literally on every page except Inspect, which has its own file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from acting import active
from hostile import CANARY, CHUNKS, HOSTILE, IDS, NAME, build
from test_collections import indexed

from ragfilter.rules import edits
from ragfilter.ui import resources
from ragfilter.ui.evaluate.page import PARTS as EVALUATE_PARTS
from ragfilter.ui.evaluate.page import TABS
from ragfilter.ui.rules.page import PARTS

pytestmark = pytest.mark.model

QUESTIONS = {f"{i} {text}": f"What is in the vault? {text}" for i, text in enumerate(HOSTILE[:6])}
SET = HOSTILE[0]
NEW = HOSTILE[5]
"""A set that only `compare` measures: otherwise, Compare would find an existing run."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def page(open_page: Any, workspace: Path, few_candidates: None) -> Any:
    """A session on a collection whose labels, query sets, rules and editors are hostile too, and
    that shows every chunk."""
    # Some of the chunks' clearances cannot be read.
    page = open_page({"profile": "query-must"}, workspace=workspace).switch("clearance", False)
    bench = resources.open_resources().bench
    if SET not in bench.labels.sets(NAME):
        bench.labels.put_set(NAME, SET, QUESTIONS)
        bench.labels.put_set(NAME, NEW, dict(list(QUESTIONS.items())[:2]))
        labels = [(q, c.id, i % 2) for q in QUESTIONS.values() for i, c in enumerate(CHUNKS[:9])]
        bench.labels.add(NAME, labels, who=HOSTILE[1])
        for chunk_id, text in zip(IDS, HOSTILE, strict=True):
            rule = json.dumps({"contain_one_of": [[text, "the vault"]]})
            store = bench.collection(NAME)
            edits.save(store, bench.journal, chunk_id=chunk_id, rule=rule, expected=None, who=HOSTILE[1])
    return page


def rules(page: Any) -> Iterator[Any]:
    yield page.run()
    # All are listed, and tests/ui/test_prose.py has each text.
    for chunk_id in IDS[::5]:
        page.session.rules.chunk = chunk_id
        yield page.run()
    for part in PARTS:
        yield page.choose("rules-part", part).run()
        if part == "Findings":
            yield page.press("findings-families").run()
        if part == "Tester":
            page.at.text_area(key="tester-text").set_value("\n".join(QUESTIONS.values()))
            yield page.run()
        if part == "Files":
            lines = [f'{{"id": "{HOSTILE[0]} zqx", "query_must": {{"{HOSTILE[1]}": 1}}}}', HOSTILE[2]]
            file = (f"{HOSTILE[0]}.jsonl", "\n".join(lines).encode(), "text/plain")
            page.at.file_uploader(key="files-file").set_value(file)
            yield page.run()
        if part == "History":
            (frame,) = [f.value for f in page.at.dataframe if "who" in f.value]
            page.at.session_state["history-open"] = int(frame["edit"][0])
            yield page.run()


def evaluate(page: Any) -> Iterator[Any]:
    page.at.selectbox(key="query-set-box").set_value(SET)
    yield page.run()
    yield page.press("evaluate")
    for view in TABS:
        yield page.choose("view", view)
    page.at.toggle(key="sets-open").set_value(True)
    for part in EVALUATE_PARTS:
        yield page.run().choose("sets-part", part)


def tune(page: Any) -> Iterator[Any]:
    page.at.selectbox(key="query-set-box").set_value(SET)
    page.at.session_state["by-hand"] = True
    yield page.run()
    yield page.press("map")
    yield page.press("suggest")


def compare(page: Any) -> Iterator[Any]:
    page.at.text_input(key="question").set_value(f"What is in the vault? {HOSTILE[0]}")
    yield page.press("ask-button")
    reports = [each() for name, each in page.downloads.items() if name.endswith(".html")]
    assert CANARY in reports[-1]
    for step in ("Answers", "Settings"):
        yield page.choose("compare-step", step)
    page.at.selectbox(key="compare-over").set_value(NEW)
    yield page.run()
    yield page.press("compare-measure")


def collections(page: Any) -> Iterator[Any]:
    lines = [json.dumps({"id": i, "text": t, "page": t}) for i, t in zip(IDS, HOSTILE, strict=True)]
    page.at.file_uploader[0].set_value(
        [
            *((f"{text}.md", f"# {text}\n\n{text}".encode(), "text/plain") for text in HOSTILE[:4]),
            *((f"{text[:40]}.txt", b"\xff", "text/plain") for text in HOSTILE if "/" not in text),
            ("zqx.jsonl", "\n".join(lines).encode(), "text/plain"),
        ]
    )
    yield page.run()
    page.at.selectbox(key="manage-name").set_value(NAME)
    yield page.run()
    page.at.text_input(key="upload-name").set_value("zqx-files")
    yield indexed(page.run().press("index"))
    assert any("left out" in box.label for box in page.at.expander)


WALKS = rules, evaluate, tune, compare, collections


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__name__)
def test_text_from_outside_does_nothing(page: Any, walk: Callable[[Any], Iterator[Any]]) -> None:
    page.at.switch_page(f"pages/{walk.__name__}.py")
    seen = 0
    for each in walk(page.run()):
        assert active(each) == []
        seen += CANARY in each.sent
    assert seen > 1


def test_the_stage_does_nothing_with_it(open_page: Any, workspace: Path) -> None:
    asked = {"profile": "query-must", "q": f"What is in the vault? {HOSTILE[0]}", "present": "true"}
    page = open_page(asked, workspace=workspace)
    assert active(page) == []
    assert CANARY in page.sent
