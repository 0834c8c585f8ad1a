"""`import ragfilter as rf`: what comes back, and copies of it."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from test_front_door import DOCS, GAP, QUERY, Reversed
from test_no_leak import everything

import ragfilter as rf
from ragfilter.library.batch import encode


def secretive() -> rf.Result:
    docs = [{**doc, "clearance": i, "author": "x"} for i, doc in enumerate(DOCS)]
    docs[1]["department"] = "ops"
    user = rf.User(level=2, departments=("ops", "hr"))
    return rf.Filter("full")(QUERY, docs, GAP, metric="cosine", user=user)


def test_a_result_is_read_as_its_user(snapshot: SnapshotAssertion) -> None:
    result = secretive()
    assert repr(result) == snapshot
    document = result.to_dict()
    assert document["kept"] == ["troll-0", "troll-1", "troll-2"]
    assert document["hits"][0]["text"] == "Trolls, part 0."
    assert document["hits"][0]["metadata"] == {"author": "x"}
    assert {d["layer"] for d in document["decisions"]} >= {"clearance", "query_must", "cutoff"}
    assert "troll-3" not in str(document)
    assert list(result.to_frame()["id"]) == document["kept"]
    assert "Trolls, part 2." in result.context.text
    assert result.prompt()[1].content.endswith(QUERY)
    with pytest.raises(rf.RagfilterError, match="no chunk 'troll-4' among the hits"):
        result.explain("troll-4")


def test_a_result_is_a_sequence_with_the_objects_that_were_passed() -> None:
    result = rf.Filter("adaptive-gap")(QUERY, DOCS, GAP, metric="l2")
    kept = [hit.id for hit in result]
    assert (result[0].id, result[-1].id, len(result)) == (kept[0], kept[3], 4)
    assert [hit.id for hit in result[1:3]] == kept[1:3]
    assert [hit.id for hit in reversed(result)] == kept[::-1]
    assert result[1] in result
    with pytest.raises(IndexError):
        result[4]
    assert [hit.doc for hit in result] == DOCS[:4]
    assert [row.doc for row in result.dropped] == DOCS[4:]
    assert [hit.doc for hit in result.hits] == DOCS


def test_the_weakest_chunks_can_be_in_the_middle() -> None:
    """Liu et al., Lost in the Middle, 2023."""
    for kept, order in [(0, []), (1, [1]), (2, [1, 2]), (3, [1, 3, 2]), (4, [1, 3, 4, 2]), (5, [1, 3, 5, 4, 2])]:
        settings = rf.Settings(cutoff={"strategy": "fixed", "max_results": 9, "min_results": 0})
        result = rf.Filter(settings)(QUERY, DOCS[:kept], GAP[:kept], metric="l2")
        plain, other = (result.prompt(reorder=reorder) for reorder in (False, True))
        blocks = re.findall(r"<chunk (\d)>\nTitle: Troll (\d)", other[1].content)
        assert [int(number) for number, _ in blocks] == order
        # Each keeps its number, so that [n] is the n-th of the context.
        assert all(int(number) == int(title) + 1 for number, title in blocks), kept
        assert sorted(plain[1].content.split("\n")) == sorted(other[1].content.split("\n")), kept


def test_a_reference_to_what_is_hidden_is_in_no_part_of_a_result() -> None:
    for passed in [False, True]:
        docs: list[dict[str, Any]] = [{"id": "a", "text": "open", "refs": ["secret-7", "b"]}]
        docs += [{"id": "b", "text": "open too"}]
        docs += [{"id": "secret-7", "text": "hush", "clearance": 9}] if passed else []
        result = rf.Filter("full")(QUERY, docs)
        assert [hit.chunk.refs for hit in result] == [("b",), ()], passed
        assert "secret-7" not in "\n".join(everything(result)), passed


OPEN = [{"id": "x", "text": "open"}, {"id": "y", "text": "open too"}]
SCORES = [0.2, 0.25]


@pytest.mark.parametrize(
    ("doc", "score"),
    [
        ({"id": "x"}, 0.1),
        ({"id": "c"}, 0.1),
        ({"id": "c"}, 9.0),
        ({"id": "c"}, math.nan),
        ({"id": "c"}, None),
        ({"id": "c", "query_must": {"contain_none_of": "zz"}}, 0.3),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_hidden_document_changes_nothing(doc: dict[str, Any], score: float | None, first: bool) -> None:
    hidden = {"text": "secret", "clearance": 9, **doc}
    docs = [hidden, *OPEN] if first else [*OPEN, hidden]
    scores = [score, *SCORES] if first else [*SCORES, score]
    flt = rf.Filter("full")
    made = flt(QUERY, docs, scores, metric="cosine")  # type: ignore[arg-type]
    alone = flt(QUERY, OPEN, SCORES, metric="cosine")
    assert [*everything(replace(made, traces=()))] == [*everything(replace(alone, traces=()))]
    assert [replace(trace, ms=0.0) for trace in made.traces] == [replace(trace, ms=0.0) for trace in alone.traces]


def test_each_side_is_searched_among_all_that_was_passed() -> None:
    titles = [f"Garden {n}" for n in range(120)] + ["VS Code", "Vim"]
    docs = [{"id": title, "title": title, "text": "About it."} for title in titles]
    distances = [0.2 + n / 1000 for n in range(len(docs))]
    found = rf.Filter("full")("VS Code vs Vim", docs, distances, metric="cosine")
    step = next(trace for trace in found.traces if trace.layer == "entities")
    pinned = {each.chunk_id for each in step.decisions if each.outcome == "pinned"}
    assert pinned == {"VS Code", "Vim"}


def test_what_fell_says_why(snapshot: SnapshotAssertion) -> None:
    rule = '{"contain": "dragon"}'
    docs = [DOCS[0], {**DOCS[1], "query_must": rule}, *DOCS[2:]]
    result = rf.Filter("full")(QUERY, docs, GAP, metric="cosine")
    fell = [(row.title, row.layer) for row in result.dropped]
    assert fell == [("Troll 1", "query_must"), ("Troll 4", "cutoff")]
    told = result.explain("troll-1").splitlines()
    assert told[0].startswith("Troll 1 (troll-1): dropped by query_must; ")
    assert told[1] == snapshot
    assert bool(rf.Filter("full")(QUERY, []))


# --- models


POOR = (1.30, 1.35, 1.40, 1.45, 1.50)


def test_a_layer_says_what_it_lacks_and_takes_what_it_is_given() -> None:
    settings = rf.Settings().with_values({"quality.enabled": True, "cutoff.enabled": False})
    without = rf.Filter(settings)(QUERY, DOCS, POOR, metric="l2")
    assert [need.kind for need in without.needs] == ["rerank"]
    result = rf.Filter(settings, reranker=Reversed())(QUERY, DOCS, POOR, metric="l2")
    assert [hit.id for hit in result] == ["troll-4", "troll-3", "troll-2"]
    assert result.needs == ()


@pytest.mark.parametrize("given", [{"reranker": 3}, {"judge": object()}, {"settings": None}])
def test_what_is_no_model_or_settings_is_refused_at_the_door(given: dict[str, Any]) -> None:
    with pytest.raises(rf.RagfilterError, match="Pass"):
        rf.Filter(**given)


# --- copies


def copies(value: Any) -> list[Any]:
    return [pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)]


def errors(kind: type[rf.RagfilterError] = rf.RagfilterError) -> list[type[rf.RagfilterError]]:
    """The errors of the library; the service has one of its own."""
    own = [each for each in kind.__subclasses__() if each.__module__ == kind.__module__]
    return [kind, *(each for below in own for each in errors(below))]


def test_every_error_can_be_copied() -> None:
    assert len(errors()) > 10
    for kind in errors():
        more = {"ChatError": {"kind": "timeout", "retry_after": 7.0}, "RuleError": {"place": "a[1]"}}
        error = kind("It broke.", remedy="Mend it.", **more.get(kind.__name__, {}))
        for made in copies(error):
            assert type(made) is kind
            assert (str(made), made.args, vars(made)) == (str(error), error.args, vars(error))
            assert getattr(made, "msg", "") == getattr(error, "msg", "")


@pytest.mark.slow
def test_many_questions_are_decided_in_other_processes_as_in_this_one() -> None:
    flt, user = rf.Filter("full"), rf.User(1)
    scored = [(doc, score) for doc, score in zip(DOCS, GAP, strict=True)]
    queries = [f"How strong is troll {i}?" for i in range(20)]
    made = flt.batch(queries, [scored] * 20, metric="cosine", user=user)
    alone = [flt(query, scored, metric="cosine", user=user) for query in queries]
    assert repr(made[0]) == repr(alone[0])
    assert copies(made[1]) == [alone[1]] * 3
    assert not hasattr(made[2], "other")
    assert [result.to_dict()["hits"] for result in made] == [result.to_dict()["hits"] for result in alone]
    assert all(hit.doc["id"] == hit.id for result in made for hit in result)
    # What only `copyreg` knows how to write.
    pattern = {"text": "Trolls.", "pattern": re.compile("x+")}
    assert flt.batch([QUERY], [[pattern]])[0][0].doc == pattern
    with pytest.raises(rf.RagfilterError, match="query is empty"):
        flt.batch([""], [scored], metric="cosine")


def test_a_packed_result_is_decoded_once_for_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = rf.Result.from_bytes(encode(rf.Filter("full")(QUERY, DOCS, GAP, metric="cosine")))
    decoded: list[float] = []
    loads = pickle.loads

    def slowly(content: bytes) -> Any:
        decoded.append(time.monotonic())
        time.sleep(0.05)
        return loads(content)

    monkeypatch.setattr(pickle, "loads", slowly)
    with ThreadPoolExecutor(4) as pool:
        kept = list(pool.map(lambda _: packed.kept, range(4)))
    assert len(decoded) == 1
    assert all(each is packed.kept for each in kept)


@pytest.mark.model
def test_a_workspace_is_searched(copy_demo: Callable[[], Path]) -> None:
    question = "What monster is more powerful, a hill giant or a troll?"
    with rf.open_workspace(copy_demo()) as ws:
        assert list(ws) == ["demo"]
        result = ws["demo"].search(question, "full", user=rf.User(level=1))
        again = asyncio.run(ws["demo"].asearch(question, rf.Filter("full"), user=rf.User(level=1)))
        assert {"monster-hill-giant", "monster-troll"} <= {hit.id for hit in result}
        assert [hit.id for hit in result] == [hit.id for hit in again]
        with pytest.raises(rf.RagfilterError, match="no collection 'x'"):
            ws["x"]
        with pytest.raises(rf.RagfilterError, match="user is 'bob'"):
            ws["demo"].search(question, user="bob")  # type: ignore[arg-type]
        lacking = ws["demo"].search(question, "llm-filter")
        assert [need.kind for need in lacking.needs] == ["judge"]
        assert max(len(repr(ws)), len(repr(rf.Settings()))) < 200
        assert repr(ws["demo"]) == "<Collection: demo>"
