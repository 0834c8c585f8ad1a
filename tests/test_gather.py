"""gather against a real Chroma: the re-query loop, k reached, and what a slider may not ask."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragfilter.adapters.chroma import ChromaStore, Row
from ragfilter.adapters.rerankers import CrossEncoderReranker
from ragfilter.config import load
from ragfilter.errors import InputError, ModelError
from ragfilter.fulfil import fulfil, unfailed
from ragfilter.gather import gather, run
from ragfilter.judgements import Judgements
from ragfilter.judging import without
from ragfilter.pipeline import replay, unfiltered
from ragfilter.ports import Delta, Message, Progress, Vectors, Where
from ragfilter.rules.match import RuleBook
from ragfilter.settings import Settings
from ragfilter.sources import Sources
from ragfilter.types import Chunk, Rounds

N = 60
DIMENSION = 8
TERMS = ["cleric", "druid", "armor class 6", "ac 6", "wizard", "10", "troll"]
QUERY_MUST = load(profile="query-must", environ={}).settings


class OneVector:
    """An embedder at the port: the query's vector is given, so that no model is needed."""

    name = "given"

    def __init__(self, vectors: Mapping[str, Vectors], default: Vectors) -> None:
        self.vectors = vectors
        self.default = default

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        return np.stack([self.vectors.get(text, self.default) for text in texts])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    store = ChromaStore.folder(tmp_path_factory.mktemp("chroma"))
    yield store
    store.close()


def unit(rng: np.random.Generator, n: int) -> Vectors:
    vectors = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def filled(store: ChromaStore, rules: Sequence[str | None], seed: int) -> tuple[Any, Vectors]:
    """A raw collection that holds its ids in the metadata too, as the literal loop needs."""
    rng = np.random.default_rng(seed)
    client = store.client
    if "loop" in [c.name for c in client.list_collections()]:
        client.delete_collection("loop")
    raw = client.create_collection(
        "loop", configuration={"hnsw": {"space": "l2"}}, embedding_function=None
    )
    metadatas = [
        {"id": f"c{i}", **({"query_must": rule} if rule else {})} for i, rule in enumerate(rules)
    ]
    raw.add(
        ids=[f"c{i}" for i in range(len(rules))],
        embeddings=unit(rng, len(rules)),
        documents=[f"text {i}" for i in range(len(rules))],
        metadatas=metadatas,
    )
    return raw, unit(rng, 1)[0]


def literal_loop(
    raw: Any, vector: Vectors, passes: Mapping[str, bool], k: int, max_rounds: int
) -> list[tuple[set[str], set[str], set[str]]]:
    """The source's loop against the store: ask, exclude everything seen, ask again."""
    seen: list[str] = []
    kept = 0
    rounds = []
    while len(rounds) < max_rounds:
        where = {"id": {"$nin": seen}} if seen else None
        found = raw.query(query_embeddings=[vector], n_results=k, where=where)["ids"][0]
        if not found:
            break
        ok = {i for i in found if passes[i]}
        rounds.append((set(found), set(found) - ok, ok))
        seen += found
        kept += len(ok)
        if kept >= k or len(ok) == len(found):
            break
    return rounds


rules = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {},
        optional={
            "contain_one_of": st.lists(
                st.lists(st.sampled_from(TERMS), min_size=1, max_size=3), min_size=1, max_size=2
            ),
            "contain_all_of": st.lists(st.sampled_from(TERMS), min_size=1, max_size=2),
            "contain": st.sampled_from(TERMS),
            "contain_none_of": st.lists(st.sampled_from(TERMS), min_size=1, max_size=2),
            "match": st.sampled_from(["word", "substring"]),
        },
    ).map(json.dumps),
)
queries = st.lists(st.sampled_from([*TERMS, "a 7th level", "needs"]), min_size=1, max_size=4)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(rules, min_size=N, max_size=N),
    queries.map(" ".join),
    st.integers(1, 15),
    st.integers(1, 5),
    st.integers(0, 1000),
)
def test_the_replayed_rounds_equal_the_real_loop(
    store: ChromaStore,
    chunk_rules: list[str | None],
    query: str,
    k: int,
    max_rounds: int,
    seed: int,
) -> None:
    raw, vector = filled(store, chunk_rules, seed)
    scan = RuleBook([r for r in chunk_rules if r]).scan(query)
    passes = {f"c{i}": scan.passes(rule) for i, rule in enumerate(chunk_rules)}
    chosen = QUERY_MUST.with_values({"retrieval.k": k, "query_must.max_rounds": max_rounds})
    sources = Sources(store.collection("loop"), OneVector({}, vector))
    result = replay(gather(query, chosen, sources), chosen)
    detail = result.trace("query_must").detail
    assert isinstance(detail, Rounds)
    replayed = [(set(r.retrieved), set(r.excluded), set(r.kept)) for r in detail.rounds]
    assert replayed == literal_loop(raw, vector, passes, k, max_rounds)

    # and beyond the loop: k clean chunks wherever there are k, the nearest ones, each once
    nearest = raw.query(query_embeddings=[vector], n_results=N)["ids"][0]
    clean = [i for i in nearest if passes[i]]
    assert [hit.id for hit in result.kept] == clean[:k]


def many(store: ChromaStore, n: int, every: int) -> tuple[Any, Vectors]:
    """`n` chunks of which only every `every`-th has a rule that the query "cleric" meets."""
    met, unmet = '{"contain":"cleric"}', '{"contain":"x"}'
    return filled(store, [unmet if i % every else met for i in range(n)], 5)


@pytest.mark.parametrize(("every", "store_calls"), [(3, 2), (10, 4), (100, 6), (1000, 6)])
def test_k_is_reached_however_selective_the_rules(
    store: ChromaStore, every: int, store_calls: int
) -> None:
    raw, vector = many(store, 3000, every)
    chosen = QUERY_MUST.with_values({"retrieval.pool_size": 100})
    pool = gather("cleric", chosen, Sources(store.collection("loop"), OneVector({}, vector)))
    kept = [hit.id for hit in replay(pool, chosen).kept]
    clean = [f"c{i}" for i in range(0, 3000, every)]
    exact = raw.query(query_embeddings=[vector], ids=clean, n_results=min(15, len(clean)))
    assert kept == exact["ids"][0]
    assert pool.queries == store_calls


class Counting:
    """A collection at the port that counts what is asked of it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.calls.append(name)
        return getattr(self.inner, name)


def test_no_setting_needs_the_store_again(store: ChromaStore) -> None:
    _, vector = filled(store, [None, '{"contain":"cleric"}', '{"contain":"troll"}'] * 20, 3)
    counting = Counting(store.collection("loop"))
    chosen = load(profile="full", environ={}).settings
    pool = gather("cleric vs troll", chosen, Sources(counting, OneVector({}, vector)))
    asked = len(counting.calls)
    for path, value in [
        ("cutoff.gap_threshold", 0.2),
        ("cutoff.max_results", 50),
        ("cutoff.strategy", "autocut"),
        ("query_must.enabled", False),
        ("entities.per_entity", 50),
        ("entities.enabled", False),
        ("clearance.enabled", False),
        ("quality.enabled", False),
        ("retrieval.k", 50),
    ]:
        assert replay(pool, chosen.with_values({path: value})).hits
    assert len(counting.calls) == asked


def test_both_sides_of_a_comparison_get_their_own_retrieval(store: ChromaStore) -> None:
    rng = np.random.default_rng(9)
    vectors = unit(rng, 400)
    collection = store.create("giants", embedder="given")
    collection.write(
        [Row(Chunk(f"c{i}", "some text", f"Title {i}"), v) for i, v in enumerate(vectors)]
        + [Row(Chunk("troll", "It regenerates.", "Troll"), -vectors[0])]
    )
    # the query is near c0; the troll lies at the far end, beyond the pool
    embedder = OneVector({"troll": -vectors[0]}, vectors[0])
    chosen = load(profile="adaptive-gap+entities", environ={}).settings
    chosen = chosen.with_values({"retrieval.pool_size": 50})
    pool = gather("title 0 vs troll", chosen, Sources(collection, embedder))
    assert [e.name for e in pool.entities] == ["title 0", "troll"]
    troll = next(hit for hit in pool.hits if hit.id == "troll")
    assert troll.found_by == "entity:troll"
    assert troll.distance == pytest.approx(4.0, abs=1e-4)
    assert {"c0", "troll"} <= {hit.id for hit in replay(pool, chosen).kept}


@pytest.mark.parametrize(
    ("query", "level", "sides"),
    [
        ("ogre or troll", 2, ["ogre", "troll"]),
        ("ogre or troll", 1, []),  # the user may not see that there is a chunk called Troll
        ("ogre or magic", 2, []),  # nothing is called Magic
        ("ogre or troll vs magic", 2, ["ogre or troll", "magic"]),
    ],
)
def test_x_or_y_compares_only_what_chunks_are_called(
    store: ChromaStore, query: str, level: int, sides: list[str]
) -> None:
    vectors = unit(np.random.default_rng(9), 4)
    name = f"{query}-{level}".replace(" ", "-")
    collection = store.create(name, embedder="given")
    titled = [("ogre", "Ogre", 0), ("troll", "Troll", 2), ("spell", "White Magic", 0)]
    collection.write(
        [
            Row(Chunk(i, "some text", title, clearance=needed), vector)
            for (i, title, needed), vector in zip(titled, vectors, strict=False)
        ]
    )
    chosen = load(profile="adaptive-gap+entities", environ={}).settings
    chosen = chosen.with_values({"clearance.enabled": True, "clearance.level": level})
    pool = gather(query, chosen, Sources(collection, OneVector({}, vectors[0])))
    assert [entity.name for entity in pool.entities] == sides


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_query_is_refused(store: ChromaStore, query: str) -> None:
    _, vector = filled(store, [None], 1)
    with pytest.raises(InputError, match="empty"):
        gather(query, Settings(), Sources(store.collection("loop"), OneVector({}, vector)))


@pytest.mark.parametrize("query", ["\udcff\udcfe", "a troll \ud800"])
def test_a_query_that_is_not_utf8_is_refused(store: ChromaStore, query: str) -> None:
    _, vector = filled(store, [None], 1)
    with pytest.raises(InputError, match="not UTF-8"):
        gather(query, Settings(), Sources(store.collection("loop"), OneVector({}, vector)))


class Scores:
    name = "late_interaction"

    def __init__(self, error: bool = False) -> None:
        self.error = error
        self.seen: list[str] = []

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.seen += texts
        if self.error:
            raise ModelError("no such model", remedy="Choose another.")
        return [0.9 if "7" in text else 0.1 for text in texts]


RERANK = load(profile="adaptive-retrieval", environ={}).settings.with_values(
    {"quality.score_threshold": 1.0, "quality.max_top_k": 50}
)


def test_run_fulfils_a_rerank_need(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    scores = Scores()
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: scores)
    chosen = RERANK.with_values({"clearance.enabled": False})
    result = run("q", chosen, sources)
    assert result.needs == ()
    assert [hit.chunk.text for hit in result.kept] == ["text 7"]


def test_a_failing_reranker_is_a_fallback_not_an_error(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: Scores(True))
    result = run("q", RERANK.with_values({"clearance.enabled": False}), sources)
    assert result.status == "low_quality_results"
    assert "no such model" in result.trace("quality").note


CROSS = RERANK.with_values(
    {"clearance.enabled": False, "quality.reranker": "cross_encoder", "quality.max_top_k": 10}
)


def test_a_real_cross_encoder_puts_the_hits_in_its_order(
    store: ChromaStore, cross_encoders: Path
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    model = CrossEncoderReranker(str(cross_encoders / "one"))
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: model)
    result = run("the owl", CROSS.with_values({"quality.reranker_threshold": 0.0}), sources)
    texts = [f"text {i}" for i in range(10)]
    expected = dict(zip(texts, model.score("the owl", texts), strict=True))
    found = {hit.chunk.text: hit.rerank_score for hit in result.hits}
    assert found == pytest.approx(expected, abs=1e-6)
    kept = [hit.rerank_score or 0.0 for hit in result.kept]
    assert kept == sorted(found.values(), reverse=True)[:3]  # type: ignore[type-var]
    assert result.needs == ()


@pytest.mark.parametrize(
    ("name", "timeout_s", "says"),
    [
        ("nowhere", 300.0, "cannot be loaded"),
        ("headless", 300.0, "not a cross-encoder"),
        ("three", 300.0, "3 scores a text"),
        ("one", 0.0, "no answer within 0 s"),
    ],
)
def test_a_cross_encoder_that_fails_is_a_visible_fallback(
    name: str, timeout_s: float, says: str, store: ChromaStore, cross_encoders: Path
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    model = CrossEncoderReranker(str(cross_encoders / name), load_timeout_s=timeout_s)
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: model)
    settings = CROSS.with_values({"quality.mode": "always", "quality.score_threshold": 0.0})
    result = run("the owl", settings, sources)
    trace = result.trace("quality")
    assert says in trace.note
    assert trace.note.endswith("looked further by distance instead")
    # The nearest three, as without a reranker, each marked.
    assert [hit.rank for hit in result.kept] == [1, 2, 3]
    kept = [d for d in trace.decisions if d.outcome != "dropped"]
    assert [(d.outcome, says in d.reason) for d in kept] == [("fallback", True)] * 3


class Hanging:
    """A reranker whose scores do not come."""

    name = "hanging"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.over = threading.Event()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.asked.set()
        self.over.wait(60)
        return [0.9] * len(texts)


class Odd:
    """A reranker of the user's own that does not keep to the protocol."""

    name = "odd"

    def __init__(self, score: Callable[[int], list[float]]) -> None:
        self.made = score

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return self.made(len(texts))


@pytest.mark.parametrize(
    ("score", "says"),
    [
        (lambda n: [0.5] * (n - 1), "odd gave no finite score for each of 10 chunks"),
        (lambda n: [math.nan] * n, "odd gave no finite score for each of 10 chunks"),
        (lambda n: [1 / 0], "the reranker failed (ZeroDivisionError)"),
    ],
    ids=["too few", "nan", "crash"],
)
def test_an_odd_reranker_is_a_visible_fallback(
    score: Callable[[int], list[float]], says: str, store: ChromaStore
) -> None:
    _, vector = filled(store, [None] * 10, 4)
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: Odd(score))
    settings = CROSS.with_values({"quality.mode": "always", "quality.score_threshold": 0.0})
    result = run("the owl", settings, sources)
    assert says in result.trace("quality").note
    assert [hit.rank for hit in result.kept] == [1, 2, 3]


def test_scores_that_do_not_come_in_time_are_a_visible_fallback(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    hanging = Hanging()
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: hanging)
    values = {"quality.mode": "always", "quality.score_threshold": 0.0}
    settings = CROSS.with_values({**values, "quality.reranker_timeout_ms": 200})
    started = perf_counter()
    result = run("the owl", settings, sources)
    hanging.over.set()
    assert hanging.asked.is_set()
    assert perf_counter() - started < 20
    assert result.trace("quality").note == (
        "cross_encoder failed (no answer within 0.2 s); looked further by distance instead"
    )
    assert [hit.rank for hit in result.kept] == [1, 2, 3]


def test_a_failed_reranker_leaves_no_scores_of_another_behind(store: ChromaStore) -> None:
    _, vector = filled(store, [None] * 10, 4)
    sources = Sources(store.collection("loop"), OneVector({}, vector), lambda _: Scores())
    first = run("q", RERANK.with_values({"clearance.enabled": False}), sources)
    assert any(hit.rerank_score for hit in first.pool.hits)
    failing = replace(sources, reranker=lambda _: Scores(True))
    needs = replay(first.pool, CROSS).needs
    failed = fulfil(first.pool, needs, CROSS, failing)
    assert [hit.rerank_score for hit in failed.hits] == [None] * 10
    # Back at the first reranker, its failure is not that of the other: it is asked again.
    assert [need.kind for need in replay(failed, RERANK).needs] == ["rerank"]


def test_push_down_and_memory_agree(store: ChromaStore) -> None:
    rng = np.random.default_rng(2)
    vectors = unit(rng, 200)
    if "secrets" in [info.name for info in store.collections()]:
        store.delete("secrets")
    collection = store.create("secrets", embedder="given")
    collection.write(
        [
            Row(
                Chunk(f"c{i}", "t", clearance=i % 4, department="referee" if i % 3 == 0 else None),
                v,
            )
            for i, v in enumerate(vectors)
        ]
    )
    sources = Sources(collection, OneVector({}, vectors[0]))
    for level, department in [(0, ""), (1, ""), (2, "referee"), (3, "other"), (3, "referee")]:
        chosen = Settings().with_values(
            {
                "clearance.enabled": True,
                "clearance.level": level,
                "clearance.department": department,
                "cutoff.enabled": False,
            }
        )
        pushed = run("q", chosen, sources, push_down=True)
        memory = run("q", chosen, sources, push_down=False)
        assert [h.id for h in pushed.kept] == [h.id for h in memory.kept]
        assert pushed.status == memory.status == "ok"
        where = Where(level, department)
        seen = {i for i, _ in collection.nearest(vectors[0], 200, where=where)}
        assert {h.id for h in pushed.pool.hits} <= seen


def test_push_down_still_says_that_the_clearance_is_insufficient(store: ChromaStore) -> None:
    if "vault" in [info.name for info in store.collections()]:
        store.delete("vault")
    vectors = unit(np.random.default_rng(2), 5)
    collection = store.create("vault", embedder="given")
    collection.write(
        [Row(Chunk(f"c{i}", "hush", clearance=i + 1), v) for i, v in enumerate(vectors)]
    )
    chosen = Settings().with_values({"clearance.enabled": True})
    sources = Sources(collection, OneVector({}, vectors[0]))
    result = run("q", chosen, sources, push_down=True)
    assert result.status == "insufficient_clearance"
    assert "5" in result.message
    assert {hit.chunk.text for hit in result.pool.hits} == {""}


# -- only some files -------------------------------------------------------------------------------

FILES = ("apis/display.yaml", "apis/dsp.yaml", "notes.md")


def of_files(store: ChromaStore, name: str, n: int = 300) -> tuple[Sources, list[Chunk]]:
    if name in [info.name for info in store.collections()]:
        store.delete(name)
    vectors = unit(np.random.default_rng(4), n)
    chunks = [
        Chunk(
            f"c{i}",
            "text",
            source=FILES[i % 3],
            clearance=1 if i % 4 == 0 else 0,
            rule='{"contain": "cleric"}' if i % 2 else None,
        )
        for i in range(n)
    ]
    collection = store.create(name, embedder="given")
    collection.write([Row(chunk, vector) for chunk, vector in zip(chunks, vectors, strict=True)])
    return Sources(collection, OneVector({}, vectors[0])), chunks


@pytest.mark.parametrize("pattern", ["display", "*.yaml", "notes.md", "APIS/*", "", "  "])
@pytest.mark.parametrize("push_down", [False, True])
def test_a_file_pattern_limits_the_search_itself(
    store: ChromaStore, pattern: str, push_down: bool
) -> None:
    sources, chunks = of_files(store, "files")
    plain = Settings().with_values({"retrieval.k": 40, "cutoff.enabled": False})
    plain = plain.with_values({"clearance.enabled": True, "retrieval.pool_size": 20})
    chosen = plain.with_values({"retrieval.source_pattern": pattern})
    result = run("q", chosen, sources, push_down=push_down)
    fits = {
        "display": FILES[:1], "*.yaml": FILES[:2], "notes.md": FILES[2:], "APIS/*": FILES[:2],
    }.get(pattern, FILES)  # fmt: skip
    nearest = run("q", plain.with_values({"retrieval.k": 200}), sources).kept
    visible = {c.id for c in chunks if c.clearance == 0}
    expected = [h.id for h in nearest if h.chunk.source in fits and h.id in visible]
    assert [hit.id for hit in result.kept] == expected[:40]
    assert len(result.kept) == 40
    assert {hit.chunk.source for hit in result.pool.hits} <= set(fits)
    assert result.pool.source_pattern == pattern


def test_a_pattern_with_few_chunks_asks_the_store_once(store: ChromaStore) -> None:
    sources, _ = of_files(store, "files", n=60)
    chosen = QUERY_MUST.with_values({"retrieval.source_pattern": "dsp"})
    pool = gather("cleric", chosen, sources)
    assert (len(pool.hits), pool.queries) == (20, 1)


def test_rules_and_pattern_together_still_reach_k(store: ChromaStore) -> None:
    sources, _ = of_files(store, "files", n=3000)
    chosen = QUERY_MUST.with_values(
        {"retrieval.source_pattern": "dsp", "retrieval.pool_size": 10, "retrieval.k": 120}
    )
    kept = run("troll", chosen, sources).kept
    assert len(kept) == 120
    assert {(hit.chunk.source, hit.chunk.rule) for hit in kept} == {("apis/dsp.yaml", None)}


def test_both_sides_of_a_comparison_keep_to_the_pattern(store: ChromaStore) -> None:
    sources, _ = of_files(store, "files")
    chosen = load(profile="adaptive-gap+entities", environ={}).settings
    chosen = chosen.with_values({"retrieval.source_pattern": "notes"})
    result = run("hill giant vs troll", chosen, sources)
    assert {hit.chunk.source for hit in result.hits} == {"notes.md"}


def test_a_wider_pool_is_narrowed_by_replay_and_nothing_is_asked(store: ChromaStore) -> None:
    sources, _ = of_files(store, "files")
    wide = Settings().with_values({"cutoff.enabled": False, "retrieval.pool_size": 300})
    pool = gather("q", wide, sources)
    for pattern in ("display", "*.md", ""):
        chosen = wide.with_values({"retrieval.source_pattern": pattern})
        narrow = gather("q", chosen, sources)
        replayed = replay(pool, chosen)
        assert [h.id for h in replayed.kept] == [h.id for h in replay(narrow, chosen).kept]
        plain = [[hit.id for hit in unfiltered(p, chosen)] for p in (pool, narrow)]
        assert plain[0] == plain[1]
    assert replay(pool, wide.with_values({"retrieval.source_pattern": "zz"})).kept == ()


def test_a_pattern_that_matches_nothing_names_the_files_that_may_be_named(
    store: ChromaStore,
) -> None:
    sources, _ = of_files(store, "files", n=9)
    sources.collection.write(  # type: ignore[attr-defined]
        [
            Row(
                Chunk("x", "t", source="secret.md", clearance=4),
                unit(np.random.default_rng(1), 1)[0],
            )
        ]
    )
    chosen = Settings().with_values({"retrieval.source_pattern": "*.pdf"})
    with pytest.raises(InputError) as refused:
        gather("q", chosen, sources)
    assert str(refused.value) == (
        "No file of the collection 'files' matches '*.pdf'. "
        "There are: apis/display.yaml, apis/dsp.yaml, notes.md, secret.md."
    )
    with pytest.raises(InputError) as refused:
        gather("q", chosen.with_values({"clearance.enabled": True}), sources)
    assert "secret" not in str(refused.value)


def test_nothing_accessible_in_these_files_is_said_with_its_level(store: ChromaStore) -> None:
    sources, _ = of_files(store, "files", n=9)
    sources.collection.write(  # type: ignore[attr-defined]
        [
            Row(
                Chunk("x", "t", source="secret.md", clearance=4),
                unit(np.random.default_rng(1), 1)[0],
            )
        ]
    )
    chosen = Settings().with_values(
        {"retrieval.source_pattern": "secret", "clearance.enabled": True}
    )
    for push_down in (True, False):
        result = run("q", chosen, sources, push_down=push_down)
        assert (result.status, len(result.hits)) == ("insufficient_clearance", 1)
        assert "4" in result.message


# -- the judge -------------------------------------------------------------------------------------


class Judging:
    """A judge at the port: says of every chunk what `said` holds, counts what it is asked."""

    name = "scripted"

    def __init__(self, **said: str) -> None:
        self.said = said
        self.asked: list[str] = []

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.asked.append(messages[-1].content)
        yield Delta("\n".join(f"{i} -> {action}" for i, action in self.said.items()))


LLM = load(profile="llm-filter", environ={}).settings.with_values({"judge.max_chunks": 2})


def linked(store: ChromaStore, **more: dict[str, Any]) -> tuple[Sources, Vectors]:
    """root and other near the query; s1 … s5 far from it, each referring to the next."""
    if "linked" in [info.name for info in store.collections()]:
        store.delete("linked")
    near = unit(np.random.default_rng(6), 1)[0]
    rows = {
        "root": {"refs": ("s1", "gone", "root")},
        "other": {},
        **{f"s{n}": {"refs": (f"s{n + 1}",)} for n in range(1, 6)},
    }
    side = unit(np.random.default_rng(7), len(rows))
    collection = store.create("linked", embedder="given")
    collection.write(
        [
            Row(
                Chunk(i, f"text of {i}", f"Title of {i}", **{**fields, **more.get(i, {})}),  # type: ignore[arg-type]
                near if i in ("root", "other") else (-near + 0.1 * vector).astype(np.float32),
            )
            for (i, fields), vector in zip(rows.items(), side, strict=True)
        ]
    )
    return Sources(collection, OneVector({}, near)), near


@pytest.mark.parametrize(
    ("action", "kept"),
    [
        ("KEEP", ["root"]),
        ("EXPAND_1", ["root", "s1"]),
        ("EXPAND_3", ["root", "s1", "s2", "s3"]),
        ("EXPAND_5", ["root", "s1", "s2", "s3", "s4", "s5"]),
    ],
)
def test_an_expansion_brings_whole_chunks_from_the_store(
    store: ChromaStore, action: str, kept: list[str]
) -> None:
    sources, _ = linked(store)
    chat = Judging(root=action)
    result = run("q", LLM, replace(sources, chat=chat))
    assert [hit.id for hit in result.kept] == kept
    assert [hit.chunk.text for hit in result.kept] == [f"text of {i}" for i in kept]
    # The far ones are not similar enough to be shown, and are brought all the same.
    assert "id: root\n" in chat.asked[0]
    assert "id: s1\n" not in chat.asked[0]


def test_expansion_reaches_what_the_pool_does_not_hold(store: ChromaStore) -> None:
    sources, near = linked(store)
    n = 500
    vectors = (near + 0.05 * unit(np.random.default_rng(8), n)).astype(np.float32)
    sources.collection.write(  # type: ignore[attr-defined]
        [Row(Chunk(f"f{i}", "filler"), vector) for i, vector in enumerate(vectors)]
    )
    chosen = LLM.with_values({"retrieval.pool_size": 10})
    result = run("q", chosen, replace(sources, chat=Judging(root="EXPAND_5")))
    pooled = {hit.id for hit in result.pool.hits}
    assert not pooled & {"s1", "s2", "s3", "s4", "s5"}
    assert [hit.id for hit in result.kept] == ["root", "s1", "s2", "s3", "s4", "s5"]
    brought = result.kept[1:]
    assert [(h.rank, h.found_by) for h in brought] == [(0, "expansion:root")] * 5
    assert all(3.5 < h.distance < 4.5 for h in brought)


def test_clearance_in_an_expansion_with_and_without_push_down(store: ChromaStore) -> None:
    sources, _ = linked(store, s2={"clearance": 3})
    judged = replace(sources, chat=Judging(root="EXPAND_5"))
    user = LLM.with_values({"clearance.enabled": True, "clearance.level": 1})
    for push_down in (True, False):
        result = run("q", user, judged, push_down=push_down)
        assert [hit.id for hit in result.kept] == ["root", "s1"]
    pushed = run("q", user, judged, push_down=True).pool
    assert "text of s2" not in str(pushed)
    # Not pushed down, another view of the same pool needs nobody.
    pool = run("q", user, judged, push_down=False).pool
    cleared = replay(pool, user.with_values({"clearance.level": 3}))
    assert [hit.id for hit in cleared.kept] == ["root", "s1", "s2", "s3", "s4", "s5"]


def test_the_expansion_limit_is_a_slider_too(store: ChromaStore) -> None:
    sources, _ = linked(store)
    chosen = LLM.with_values({"judge.max_expansion": 1})
    pool = run("q", chosen, replace(sources, chat=Judging(root="EXPAND_5"))).pool
    assert [hit.id for hit in replay(pool, chosen).kept] == ["root", "s1"]
    wider = replay(pool, chosen.with_values({"judge.max_expansion": 4}))
    assert [hit.id for hit in wider.kept] == ["root", "s1", "s2", "s3", "s4"]


def test_the_file_pattern_limits_the_search_and_not_the_references(store: ChromaStore) -> None:
    sources, _ = linked(store, root={"source": "api.yaml"}, s1={"source": "models.yaml"})
    chosen = LLM.with_values({"retrieval.source_pattern": "api.yaml"})
    result = run("q", chosen, replace(sources, chat=Judging(root="EXPAND_1")))
    assert [(h.id, h.chunk.source) for h in result.kept] == [
        ("root", "api.yaml"),
        ("s1", "models.yaml"),
    ]


def test_the_judge_is_asked_once_for_the_same_question(store: ChromaStore) -> None:
    sources, _ = linked(store)
    chat, remembered = Judging(root="KEEP"), Judgements()
    judged = replace(sources, chat=chat, judgements=remembered)
    first, again = run("q", LLM, judged), run("q", LLM, judged)
    assert (len(chat.asked), len(remembered)) == (1, 1)
    assert first == again
    assert again.judgement is not None
    assert again.judgement.cached
    run("another", LLM, judged)
    run("q", LLM.with_values({"judge.prompt": "terse"}), judged)
    assert len(chat.asked) == 3
    run("q", LLM, replace(judged, judgements=None))
    assert len(chat.asked) == 4


def test_another_prompt_needs_another_verdict(store: ChromaStore) -> None:
    sources, _ = linked(store)
    pool = run("q", LLM, replace(sources, chat=Judging(root="KEEP"))).pool
    assert replay(pool, LLM).needs == ()
    changed = replay(pool, LLM.with_values({"judge.prompt": "strict"}))
    assert [need.kind for need in changed.needs] == ["judge"]
    assert "another prompt" in changed.trace("judge").note


def test_a_failed_judge_can_be_asked_again(store: ChromaStore) -> None:
    sources, _ = linked(store)
    pool = run("q", LLM, sources).pool
    failed = replay(pool, LLM)
    assert failed.needs == ()
    assert "no LLM is configured" in failed.trace("judge").note
    again = replay(unfailed(pool), LLM)
    assert [need.kind for need in again.needs] == ["judge"]
    pool = fulfil(unfailed(pool), again.needs, LLM, replace(sources, chat=Judging(root="KEEP")))
    assert [hit.id for hit in replay(pool, LLM).kept] == ["root"]


def test_without_the_judge_the_first_max_chunks_stay(store: ChromaStore) -> None:
    sources, _ = linked(store)
    chat = Judging(root="DISCARD")
    result = run("q", without(LLM), replace(sources, chat=chat))
    assert [hit.id for hit in result.kept] == ["other", "root"]
    assert chat.asked == []
