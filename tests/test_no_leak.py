"""No text, title or id of a chunk that is hidden from a user reaches a reranker, an LLM, a prompt, an answer, an
expansion or an export made as that user: captured at the ports, over random chunks, references, users and settings."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from stores import large

from ragfilter.answer.answer import AnswerStream
from ragfilter.answer.context_packing import pack
from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import PoolCompleter, search_and_filter
from ragfilter.engine.pool import unfiltered
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError, ModelError
from ragfilter.judge.call import JudgementCache
from ragfilter.layers import cutoff, layer
from ragfilter.layers.references import preview_expansion
from ragfilter.library.result import to_result
from ragfilter.model import Chunk, PoolResult, Space, User
from ragfilter.protocols import Delta, Message, Vectors, Where
from ragfilter.results.document import document, trace_text
from ragfilter.results.rows import csv, references, rows
from ragfilter.results.summary import summary
from ragfilter.results.verdicts import forecast, verdict_rows
from ragfilter.settings.schema import Settings

N = 10
ACTIONS = ("KEEP", "EXPAND_1", "EXPAND_3", "EXPAND_5", "DISCARD")
QUERIES = ("what does it need?", "chunk one vs chunk two", "compare cleric and wizard")


def names_of(number: int) -> tuple[str, str, str]:
    return f"id{number:02d}z", f"title{number:02d}z", f"text{number:02d}z"


@dataclass
class Ports:
    """Every port of one user, and all text that was sent through them."""

    all: dict[str, Chunk]
    distances: Mapping[str, float]
    says: random.Random
    rerank_fails: bool = False
    out: list[str] = field(default_factory=list)
    given: Mapping[str, tuple[object, object]] = field(default_factory=dict)
    """Clearance and department of each chunk, as they were given."""

    name = "memory"
    space: Space = "l2"
    version = "1"

    def count(self) -> int:
        return len(self.all)

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        shift = float(np.atleast_2d(vector)[0, 0])
        there = [
            chunk
            for chunk in self.all.values()
            if (ids is None or chunk.id in ids) and (where is None or admits(where, chunk))
        ]
        pairs = [(c.id, (self.distances[c.id] + shift) % 1.4) for c in there]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))[:n]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.all[i] for i in ids if i in self.all}

    def catalogue(self) -> dict[str, Chunk]:
        bare = {"text": "", "title": "", "loaded": False}
        return {i: Chunk(**{**as_dict(c), **bare}) for i, c in self.all.items()}

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.out += texts
        return np.array([[len(text) % 7 / 10, 1.0] for text in texts], dtype=np.float32)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.out += [query, *texts]
        if self.rerank_fails:
            raise ModelError("no such model", remedy="Choose another.")
        return [self.says.random() for _ in texts]

    def stream(
        self, messages: Sequence[Message], *, timeout_s: float, schema: Mapping[str, object] | None = None
    ) -> Iterator[Delta]:
        self.out += [message.content for message in messages]
        if schema is None:
            yield Delta("It needs this [1], and that [2].")
            return
        # A judge that decides about every chunk that exists, asked about or not.
        for chunk_id in self.all:
            yield Delta(f"{chunk_id} -> {self.says.choice(ACTIONS)}\n")

    def backends(self) -> Backends:
        return Backends(self, self, lambda _: self, self, JudgementCache())


def as_dict(chunk: Chunk) -> dict[str, Any]:
    return {name: getattr(chunk, name) for name in Chunk.__slots__}


def admits(where: Where, chunk: Chunk) -> bool:
    if where.sources is not None and chunk.source not in where.sources:
        return False
    return where.user is None or sees(where.user, chunk)


def allowed(user: User, clearance: object, department: object) -> bool:
    """The rule, written independently of the product: a true whole number up to the user's level,
    and no department or one of theirs. Everything else is hidden."""
    if type(clearance) is not int or not 0 <= clearance <= user.level:
        return False
    return department is None or (isinstance(department, str) and department in user.departments)


def sees(user: User, chunk: Chunk) -> bool:
    return allowed(user, chunk.clearance, chunk.department)


STRANGE_CLEARANCES: tuple[Any, ...] = (
    None,
    True,
    False,
    -1,
    2**63,
    10**400,
    0.0,
    1.5,
    nan,
    inf,
    "",
    "0",
    "top",
    b"0",
    [0],
    {},
    np.int64(0),
    np.bool_(False),
    np.float64(0),
    np.array(0),
)
STRANGE_DEPARTMENTS: tuple[Any, ...] = (
    0,
    False,
    nan,
    b"ops",
    ["ops"],
    ("ops",),
    {"ops"},
    np.array(["ops"]),
    np.int64(1),
    "OPS",
    "ops\0",
)
"""Clearances and departments that admit no user, whatever their level and departments."""


users = st.builds(User, st.integers(0, 2), st.sampled_from([(), ("ops",), ("ops", "hr"), ("it", "ops", "law")]))


clearances = st.sampled_from([0, 0, 1, 2]) | st.sampled_from(STRANGE_CLEARANCES)
departments = st.sampled_from([None, None, "ops", "hr"]) | st.sampled_from(STRANGE_DEPARTMENTS)


@pytest.fixture(scope="module", autouse=True)
def background_of_few() -> Iterator[None]:
    """A few hits are enough to know a background."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (layer, cutoff):
            patch.setattr(module, "BACKGROUND_FROM", 4)
        yield


@st.composite
def worlds(draw: st.DrawFn) -> Ports:
    ids = [names_of(number)[0] for number in range(N)]
    chunks, given = {}, dict[str, tuple[object, object]]()
    for number in range(N):
        chunk_id, title, text = names_of(number)
        given[chunk_id] = (draw(clearances), draw(departments))
        chunks[chunk_id] = Chunk(
            chunk_id,
            f"{text} says what a cleric needs.",
            draw(st.sampled_from([title, f"{title} wizard", "Manual"])),
            type="rule",
            source=draw(st.sampled_from(["a.json", "b.json", ""])),
            refs=tuple(draw(st.lists(st.sampled_from([*ids, "gone"]), max_size=4, unique=True))),
            clearance=given[chunk_id][0],
            department=given[chunk_id][1],
            rule=draw(st.sampled_from([None, None, '{"contain": "cleric"}', "broken"])),
        )
    distances = draw(
        st.lists(st.floats(0.0, 1.4, allow_nan=False), min_size=N, max_size=N).map(
            lambda values: dict(zip(ids, values, strict=True))
        )
    )
    seed, fails = draw(st.integers(0, 9999)), draw(st.booleans())
    return Ports(chunks, distances, random.Random(seed), fails, given=given)


@st.composite
def choices(draw: st.DrawFn) -> dict[str, Any]:
    """Any settings, for a user who is named: with the switch of clearance on or off."""
    switches = ("query_must", "entities", "words", "quality", "cutoff", "diversity", "judge")
    values: dict[str, Any] = {f"{name}.enabled": draw(st.booleans()) for name in switches}
    return values | {
        "clearance.enabled": draw(st.booleans()),
        "retrieval.k": draw(st.integers(1, 20)),
        "retrieval.pool_size": draw(st.integers(10, 20)),
        "retrieval.source_pattern": draw(st.sampled_from(["", "", "a.json", "*.json"])),
        "retrieval.lexical": draw(st.booleans()),
        "cutoff.score": draw(st.sampled_from(["", "fused", "lexical"])),
        "query_must.pin": draw(st.booleans()),
        "quality.mode": draw(st.sampled_from(["when_poor", "always"])),
        "quality.good_by": draw(st.sampled_from(["similarity", "background"])),
        "quality.reranker": draw(st.sampled_from(["late_interaction", "none"])),
        "quality.score_threshold": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "quality.reranker_threshold": 0.0,
        "cutoff.strategy": draw(st.sampled_from(["gap", "relative", "otsu"])),
        "cutoff.max_results": 20,
        "judge.max_chunks": draw(st.integers(1, 20)),
        "judge.min_relevance": draw(st.sampled_from([0.0, 0.3])),
        "judge.prompt": draw(st.sampled_from(["default", "strict", "terse"])),
        "judge.max_prompt_tokens": draw(st.sampled_from([400, 2000])),
        "judge.max_expansion": draw(st.integers(1, 10)),
        "context.max_context_tokens": draw(st.sampled_from([100, 4000])),
    }


EXPORTS: dict[str, Callable[[PoolResult], str]] = {
    "csv": lambda result: csv(rows(result), references(result)),
    "document": lambda result: json.dumps(document(result, references=True)),
    "trace": trace_text,
    "summary": lambda result: repr((summary(result), result.message)),
    "verdicts": lambda result: repr(verdict_rows(result)),
    "judgement": lambda result: repr((result.judgement, forecast(result))),
    "context": lambda result: pack(result.kept, result.settings).text,
    "unfiltered": lambda result: repr([hit.id for hit in unfiltered(result.pool, result.settings, result.user)]),
}
"""Everything that a page or command shows or saves as the user of a result."""


def everything(value: object) -> Iterator[str]:
    """Every leaf that can be read in a value, through fields, mappings and lists, except the
    objects that the caller passed (`doc`)."""
    if is_dataclass(value):
        for each in fields(value):
            if each.name != "doc":
                yield from everything(getattr(value, each.name))
    elif isinstance(value, Mapping):
        yield from everything([*value.items()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from everything(item)
    else:
        yield repr(value)


def handed(result: PoolResult) -> str:
    """Everything that the library returns to its caller, who is the user."""
    return "\n".join(everything(to_result(result, 0)))


def exports(result: PoolResult) -> str:
    return "\n".join(export(result) for export in EXPORTS.values())


def check(hidden: Sequence[str], text: str) -> None:
    found = [name for name in hidden if name in text]
    assert not found, f"{found} leaked"


def hidden_names(ports: Ports, user: User) -> list[str]:
    return [
        name
        for number, (clearance, department) in enumerate(ports.given.values())
        if not allowed(user, clearance, department)
        for name in names_of(number)
    ]


@pytest.mark.slow
@examples(max_examples=100)
@given(worlds(), choices(), users, st.sampled_from(QUERIES), st.booleans())
def test_what_a_user_may_not_see_leaves_by_no_port(
    ports: Ports, values: dict[str, Any], user: User, query: str, pushed: bool
) -> None:
    settings = Settings().with_values(values)
    hidden = hidden_names(ports, user)
    try:
        backends = ports.backends()
        result = search_and_filter(query, settings, large(backends) if pushed else backends, user)
    except InputError as error:
        check(hidden, str(error))
        return
    for chat in (None, ports):
        made = AnswerStream(query, pack(result.kept, settings), chat, ports, timeout_s=1).read()
        ports.out += [made.text, repr(made.prompt)]
    previews = {i: preview_expansion(i, ports, settings, user, query=query) for i in ports.all}
    for number, (chunk_id, preview) in enumerate(previews.items()):
        # The requested id is named, but what it leads to must not be.
        there = set(names_of(number)) if chunk_id in str(preview) else set()
        check([name for name in hidden if name not in there], "\n".join(everything([*preview.values()])))
        if chunk_id in hidden:
            assert set(preview.values()) == {()}
    check(hidden, "\n".join(ports.out))
    check(hidden, exports(result))
    check(hidden, handed(result))
    check(hidden, repr([(j.asked, j.left_out, j.remarks) for j in result.pool.judgements]))


@pytest.mark.slow
@examples(max_examples=60)
@given(worlds(), choices(), users, st.sampled_from(QUERIES))
def test_viewing_an_operators_pool_as_a_user_names_nothing_hidden(
    ports: Ports, values: dict[str, Any], user: User, query: str
) -> None:
    """A pool gathered, reranked and judged without clearance, then viewed as a user."""
    settings = Settings().with_values(values | {"retrieval.source_pattern": ""})
    operator = settings.with_values({"clearance.enabled": False})
    backends = ports.backends()
    pool = search_and_filter(query, operator, backends).pool
    ports.out.clear()
    hidden = hidden_names(ports, user)
    result = replay(pool, settings, user)
    check(hidden, exports(result))
    for _ in range(3):
        pool = PoolCompleter(settings, backends, user).complete(pool, result.needs)
        result = replay(pool, settings, user)
    check(hidden, exports(result))
    check(hidden, handed(result))
    check(hidden, "\n".join(ports.out))


@examples(max_examples=30)
@given(worlds(), choices(), users, st.sampled_from(QUERIES))
def test_pushed_down_the_store_gives_no_hidden_text_at_all(
    ports: Ports, values: dict[str, Any], user: User, query: str
) -> None:
    settings = Settings().with_values(values | {"retrieval.source_pattern": ""})
    result = search_and_filter(query, settings, large(ports.backends()), user)
    for hit in (*result.pool.hits, *result.pool.reachable):
        assert sees(user, hit.chunk) or not hit.chunk.loaded


@pytest.mark.parametrize("port", ["reranker", "judge", "answer", "export", "reference"])
def test_without_clearance_everything_gets_out_so_that_the_laws_above_can_fail(port: str) -> None:
    ids = [names_of(number)[0] for number in range(N)]
    chunks = {i: Chunk(i, names_of(n)[2], names_of(n)[1], refs=(ids[n - 1],), clearance=2) for n, i in enumerate(ids)}
    distances = {i: 0.05 * n for n, i in enumerate(ids)}
    ports = Ports(chunks, distances, random.Random(0))
    values: dict[str, Any] = {"cutoff.enabled": False, "retrieval.k": N}
    values |= {"judge.enabled": True} if port == "judge" else {}
    if port == "reranker":
        values |= {"quality.enabled": True, "quality.mode": "always", "quality.max_top_k": N}
    settings = Settings().with_values(values)
    result = search_and_filter("what?", settings, ports.backends())
    if port == "answer":
        AnswerStream("what?", pack(result.kept, settings), ports, ports, timeout_s=1).read()
    text = "\n".join(ports.out)
    if port == "export":
        text = exports(result)
    if port == "reference":
        text = json.dumps(document(result, references=True)["hits"][3]["refs"])
    wanted = names_of(2) if port in ("judge", "export") else names_of(2)[2:]
    assert all(name in text for name in ((ids[2],) if port == "reference" else wanted))


def test_a_reference_to_what_is_hidden_is_not_in_the_judges_prompt() -> None:
    chunks = {
        "open": Chunk("open", "t", refs=("secret", "gone", "other")),
        "secret": Chunk("secret", "t", clearance=2),
        "other": Chunk("other", "t"),
    }
    ports = Ports(chunks, {"open": 0.1, "secret": 0.2, "other": 0.3}, random.Random(1))
    on = {"judge.enabled": True, "cutoff.enabled": False}
    prompts = []
    for clearance in (True, False):
        ports.out.clear()
        settings = Settings().with_values(on | {"clearance.enabled": clearance})
        pool = gather("q", settings, ports.backends())
        PoolCompleter(settings, ports.backends()).complete(pool, replay(pool, settings).needs)
        prompts.append("\n".join(ports.out))
    assert "references: other\n" in prompts[0]
    assert "references: secret, gone, other\n" in prompts[1]
