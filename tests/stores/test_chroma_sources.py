"""Which conditions on files are pushed down into the store, and which are resolved to ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.protocols import Vectors, Where
from ragfilter.stores.chroma.store import ChromaCollection, ChromaStore
from ragfilter.stores.copies import StoredRow

N = 60
FILES = ("a.json", "b.json", "", "c/d.json")


def vectors(n: int) -> Vectors:
    made = np.random.default_rng(3).normal(size=(n, 8)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


CHUNKS = [
    Chunk(
        f"c{i:02d}",
        "text",
        source=FILES[i % 4],
        clearance=i % 3,
        department="ops" if i % 5 == 0 else None,
    )
    for i in range(N)
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaStore]:
    store = ChromaStore.folder(tmp_path_factory.mktemp("chroma"))
    made = vectors(N)
    ours = store.create("ours", embedder="given")
    ours.write([StoredRow(chunk, vector) for chunk, vector in zip(CHUNKS, made, strict=True)])
    yield store
    store.close()


def admitted(where: Where) -> set[str]:
    """The expected result: chunks in these files and, if asked, those the user may see."""
    return {
        c.id
        for c in CHUNKS
        if (where.sources is None or c.source in where.sources)
        and (
            where.user in (None, UNRESTRICTED)
            or (
                (c.clearance or 0) <= where.user.level
                and c.department in (None, *where.user.departments)
            )
        )
    }


class Told:
    """Chroma's own collection, with a record of what it was asked."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self.asked: list[tuple[Any, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def query(self, **given: Any) -> Any:
        self.asked.append((given["where"], given["ids"]))
        return self.raw.query(**given)


@pytest.mark.parametrize(
    ("where", "pushed"),
    [
        (Where(sources=("a.json", "b.json")), {"source": {"$in": ["a.json", "b.json"]}}),
        (Where(sources=("a.json", "")), None),
        (Where(sources=("a.json", *(f"{i}.json" for i in range(20)))), None),
        (
            Where(User(1, ("ops",)), ("a.json",)),
            {
                "$and": [
                    {"clearance": {"$gte": 0}},
                    {"clearance": {"$lte": 1}},
                    {"department": {"$in": ["", "ops"]}},
                    {"source": {"$in": ["a.json"]}},
                ]
            },
        ),
    ],
    ids=["few", "a chunk without a file", "many", "with clearance"],
)
def test_few_files_go_into_the_stores_own_condition(
    store: ChromaStore, where: Where, pushed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = store.collection("ours")
    collection.nearest(vectors(1)[0], 1)  # Looks for chunks that the index has lost, once.
    told = Told(collection.raw())
    monkeypatch.setattr(ChromaCollection, "raw", lambda self: told)
    collection.nearest(vectors(1)[0], 5, where=where)
    if pushed is None:
        ((condition, ids),) = told.asked
        assert condition is None
        assert set(ids) == admitted(where)
    else:
        assert told.asked == [(pushed, None)]
