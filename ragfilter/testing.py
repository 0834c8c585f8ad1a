"""Tests that any store must pass, and a store in memory. Needs pytest. docs/library.md#stores shows how to use them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from typing import Any, Protocol, get_args

import numpy as np
import pytest

from ragfilter.errors import StoreError
from ragfilter.model import UNRESTRICTED, Chunk, Space, User
from ragfilter.protocols import Collection, DistinctRules, RuleStore, Vectors, Where

FILES = ("a.json", "b.json", "", "c/d.json")
DEPARTMENTS = (None, "ops", "hr", "5")
LEVELS = (0, 1, 2, 5, None)
FULL = Chunk(
    "a/1 #ä",
    "A text with \u202e and 🙂.",
    title="Title",
    type="special",
    source="a.json",
    page=7,
    refs=("c00", "nobody"),
    clearance=1,
    department="ops",
    rule='{"contain":"x"}',
    metadata={"own": [1, {"deep": "value"}]},
)
CHUNKS: tuple[Chunk, ...] = (
    FULL,
    *(
        Chunk(f"c{i:02d}", f"text {i}", source=FILES[i % 4], clearance=level, department=department)
        for i, (level, department) in enumerate(product(LEVELS, DEPARTMENTS))
    ),
)
"""Chunks of every clearance (None is unreadable, so the chunk is hidden), department and file."""
VECTORS: Vectors = np.random.default_rng(3).normal(size=(len(CHUNKS), 8)).astype(np.float32)
"""The unit vectors of `CHUNKS`, shape (len(CHUNKS), 8). Some are equal."""
VECTORS[5] = VECTORS[9] = VECTORS[2]
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
QUERY: Vectors = VECTORS[3]
USERS = (None, UNRESTRICTED, User(), User(1, ("ops",)), User(2, ("hr", "5")), User(100, ("ops", "hr")))
RULES = ('{"contain":"x"}', '{"contain":"y"}', '{"contain":"z"}')
MANY: tuple[Chunk, ...] = tuple(
    Chunk(
        f"m{i}",
        f"text {i}",
        source="rare" if i % 700 == 0 else f"f{i % 50}",
        clearance=i % 4,
        department=("rare" if i % 900 == 0 else "ops") if i % 3 == 0 else None,
        rule=None if i % 60 == 0 else RULES[i % 1000 and 1 + i % 2],
    )
    for i in range(3000)
)
"""Enough chunks for a store to use its index."""
MANY_VECTORS: Vectors = np.random.default_rng(1).normal(size=(len(MANY), 8)).astype(np.float32)
"""The unit vectors of `MANY`, shape (len(MANY), 8)."""
MANY_VECTORS /= np.linalg.norm(MANY_VECTORS, axis=1, keepdims=True)
WHERES = (
    Where(),
    Where(User()),
    Where(User(1, ("ops",))),
    Where(User(2, ("rare",))),
    Where(sources=("f1", "f2")),
    Where(User(3), ("rare",)),
    Where(User(100, ("ops",)), tuple(f"f{i}" for i in range(40))),
)
RULE = RULES[0]
SOURCES = (None, (), ("a.json",), ("a.json", "c/d.json"), ("",), ("b.json", ""), ("zz",))


class MemoryCollection:
    """A collection in memory with exact squared distances, which subclasses can override."""

    name = "memory"
    space: Space = "l2"
    version = "1"
    incomplete = ""

    def __init__(self, chunks: Iterable[Chunk], vectors: Vectors | None = None) -> None:
        """`vectors` has shape (number of chunks, dimension); None if `distances` needs none."""
        self.all = {chunk.id: chunk for chunk in chunks}
        self._vectors = vectors

    def count(self) -> int:
        return len(self.all)

    def distances(self, vector: Vectors) -> Mapping[str, float]:
        """The distance of each chunk to a query. Raises StoreError."""
        assert self._vectors is not None
        query = np.asarray(vector, dtype=np.float32).reshape(-1)
        if query.shape != self._vectors.shape[1:] or not np.isfinite(query).all():
            raise StoreError("The query vector is not finite or has another dimension.")
        squares = ((self._vectors - query) ** 2).sum(axis=1)
        return dict(zip(self.all, map(float, squares), strict=True))

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        among = None if ids is None else frozenset(ids)
        pairs = [
            (i, distance)
            for i, distance in self.distances(vector).items()
            if (among is None or i in among) and (where is None or admits(where, self.all[i]))
        ]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))[: max(n, 0)]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.all[i] for i in ids if i in self.all}

    def catalogue(self) -> Mapping[str, Chunk] | None:
        return {i: replace(c, text="", page=None, loaded=False) for i, c in self.all.items()}


def admits(where: Where, chunk: Chunk) -> bool:
    """Whether a condition admits a chunk. Every store must agree with this."""
    if where.sources is not None and chunk.source not in where.sources:
        return False
    if where.rules is not None and chunk.rule not in (None, *where.rules):
        return False
    return where.user is None or where.user.sees(chunk)


@functools.cache
def _exact_ids(where: Where, last: int | None = None) -> list[str]:
    """The ids that `where` admits among the `last` of `MANY`, nearest first; cached, since every store is compared."""
    ids = None if last is None else [chunk.id for chunk in MANY[-last:]]
    return [i for i, _ in MemoryCollection(MANY, MANY_VECTORS).nearest(QUERY, len(MANY), ids=ids, where=where)]


Make = Callable[[Sequence[Chunk], Vectors], Any]
"""Fills a new collection with chunks and their vectors, both in the same order."""


class CollectionTests:
    """Tests of `protocols.Collection`. A subclass has a fixture `make`, which is a `Make`. `damages` lists the kinds of
    damage that `damage` can do."""

    damages: Sequence[Any] = ()

    def damage(self, collection: Any, how: Any) -> None:
        """Make the clearance of every stored chunk unreadable, as another program might."""
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def collection(cls, make: Make) -> Collection:
        return make(CHUNKS, VECTORS)  # type: ignore[no-any-return]

    @pytest.fixture(scope="class")
    @classmethod
    def many(cls, make: Make) -> Collection:
        return make(MANY, MANY_VECTORS)  # type: ignore[no-any-return]

    def nearest(self, where: Where, ids: Sequence[str] | None = None) -> list[str]:
        """The ids that a search must return, by exact distance over all chunks and then by id."""
        exact = MemoryCollection(CHUNKS, VECTORS)
        return [i for i, _ in exact.nearest(QUERY, 1000, ids=ids, where=where)]

    def test_it_says_what_it_is(self, collection: Collection) -> None:
        assert collection.name
        assert collection.space in get_args(Space)
        assert collection.count() == len(CHUNKS)
        assert collection.version == collection.version != ""
        assert isinstance(getattr(collection, "incomplete", ""), str)

    def test_nearest_is_ascending_and_equal_distances_stand_by_id(self, collection: Collection) -> None:
        hits = collection.nearest(QUERY, len(CHUNKS))
        assert [i for i, _ in hits] == self.nearest(Where())
        assert [d for _, d in hits] == sorted(d for _, d in hits)

    def test_nearest_takes_any_number(self, collection: Collection) -> None:
        # Of several chunks at the same distance, any can come last.
        every = [d for _, d in collection.nearest(QUERY, len(CHUNKS))]
        for n in (-3, 0, 1, 5, 10**9):
            assert [d for _, d in collection.nearest(QUERY, n)] == every[: max(n, 0)], n

    def test_nearest_among_ids(self, collection: Collection) -> None:
        some = ["c07", "nobody", "c02", "c02", FULL.id]
        assert collection.nearest(QUERY, 9, ids=[]) == []
        assert collection.nearest(QUERY, 9, ids=["nobody"]) == []
        hits = collection.nearest(QUERY, 9, ids=some)
        assert [i for i, _ in hits] == self.nearest(Where(), some)

    @pytest.mark.parametrize("user", USERS, ids=str)
    def test_nearest_admits_what_the_user_may_see_in_the_files(self, collection: Collection, user: User | None) -> None:
        even = [chunk.id for chunk in CHUNKS[::2]]
        for where in (Where(user, sources) for sources in SOURCES):
            expected = self.nearest(where)
            hits = collection.nearest(QUERY, len(CHUNKS), where=where)
            assert [i for i, _ in hits] == expected, where
            few = collection.nearest(QUERY, 3, where=where)
            assert [d for _, d in few] == [d for _, d in hits[:3]], where
            assert {i for i, _ in few} <= set(expected), where
            among = collection.nearest(QUERY, len(CHUNKS), ids=even, where=where)
            assert [i for i, _ in among] == self.nearest(where, even), where

    @pytest.mark.parametrize("where", WHERES, ids=str)
    def test_all_are_found_and_equal_to_the_exact_answer(self, many: Collection, where: Where) -> None:
        """Among all, and among the last chunks, as those whose rules a query meets."""
        for last, wanted in ((None, 15), (None, 300), (7, 15), (2700, 300)):
            ids = None if last is None else [chunk.id for chunk in MANY[-last:]]
            pairs = many.nearest(QUERY, wanted, ids=ids, where=where)
            assert [i for i, _ in pairs] == _exact_ids(where, last)[:wanted], (last, wanted)

    def test_rules_are_a_condition_where_the_store_offers_it(self, many: Collection) -> None:
        if isinstance(many, DistinctRules):
            assert set(many.distinct_rules()) == set(RULES)
            for where, rules in product(WHERES, ((), RULES[:1], RULES[1:])):
                ruled = replace(where, rules=rules)
                assert [i for i, _ in many.nearest(QUERY, 15, where=ruled)] == _exact_ids(ruled)[:15], ruled

    def test_nobody_sees_a_chunk_whose_clearance_is_damaged(self, make: Make) -> None:
        if not self.damages:
            pytest.skip("nothing in this store can be damaged")
        for how in self.damages:
            collection = make(CHUNKS, VECTORS)
            self.damage(collection, how)
            boss = User(100, ("ops", "hr", "5"))
            pairs = collection.nearest(QUERY, 99, where=Where(boss))
            entries = (collection.catalogue() or {}).values()
            chunks = collection.chunks([chunk.id for chunk in CHUNKS]).values()
            assert (how, pairs) == (how, [])
            assert (how, [c for c in (*entries, *chunks) if boss.sees(c)]) == (how, [])
            assert len(collection.nearest(QUERY, 99, where=Where(UNRESTRICTED))) == len(CHUNKS)

    def test_an_unusable_query_vector_is_refused(self, collection: Collection) -> None:
        for vector in (QUERY * np.nan, QUERY * np.inf, QUERY[:3]):
            with pytest.raises(StoreError):
                pytest.fail(f"{vector} found {collection.nearest(vector, 2)}")

    def test_chunks_come_back_whole_in_the_order_of_their_ids(self, collection: Collection) -> None:
        chunks = collection.chunks(["c03", FULL.id, "nobody", "c03"])
        assert list(chunks.items()) == [("c03", CHUNKS[4]), (FULL.id, FULL)]
        assert collection.chunks([]) == {}

    def test_the_catalogue_has_every_chunk_without_its_text(self, collection: Collection) -> None:
        catalogue = collection.catalogue()
        if catalogue is None:
            return
        assert set(catalogue) == {chunk.id for chunk in CHUNKS}
        for chunk in CHUNKS:
            entry = catalogue[chunk.id]
            assert (entry.loaded, entry.text) == (False, "")
            for name in ("title", "type", "source", "refs", "clearance", "department", "rule"):
                assert getattr(entry, name) == getattr(chunk, name)


class EditableCollection(Collection, RuleStore, Protocol):
    """A collection whose rules can be edited."""


class RuleStoreTests(CollectionTests):
    """Tests of a collection that is also a `protocols.RuleStore`."""

    @pytest.fixture
    def edited(self, make: Make) -> EditableCollection:
        return make(CHUNKS, VECTORS)  # type: ignore[no-any-return]

    def test_a_rule_is_replaced_and_removed_and_every_edit_is_a_version(self, edited: EditableCollection) -> None:
        versions = [edited.version]
        for rule in (RULE, '{"contain":"ü"}', None):
            edited.set_rules({"c01": rule, FULL.id: rule})
            versions.append(edited.version)
            assert edited.rules(["c01", "nobody", "c02"]) == {"c01": rule, "c02": None}
            assert edited.chunks([FULL.id])[FULL.id] == replace(FULL, rule=rule)
            assert (edited.catalogue() or edited.chunks(["c01"]))["c01"].rule == rule
        assert len(set(versions)) == len(versions)

    def test_a_rule_of_an_unknown_chunk_is_refused(self, edited: EditableCollection) -> None:
        with pytest.raises(StoreError, match="nobody"):
            edited.set_rules({"nobody": RULE})
        assert edited.count() == len(CHUNKS)

    def test_of_eight_who_edit_at_once_nobody_loses_an_edit(self, edited: EditableCollection) -> None:
        rules = {c.id: f'{{"contain":"{at}"}}' for at, c in enumerate(CHUNKS)}

        def edit(worker: int) -> None:
            for i in list(rules)[worker::8]:
                edited.set_rules({i: rules[i]})
                assert edited.chunks([i])[i].rule == rules[i]
                assert (edited.catalogue() or edited.chunks([i]))[i].rule == rules[i]
                assert len(edited.nearest(QUERY, 5)) == 5

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(edit, range(8)))
        assert edited.rules(list(rules)) == rules
