"""One Chroma collection behind two protocols: `Collection` and `RuleStore`.

Source: docs/design.md#distances, docs/design.md#clearance and docs/design.md#chroma. Our own
collections have unit vectors in the `l2` space (squared distance, 0..4) and `ragfilter:` keys in
the collection's metadata. Other collections can be read too. Nothing is assumed about their
metadata, so conditions are checked in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from chromadb.api.models.Collection import Collection as RawCollection
from chromadb.errors import InternalError

from ragfilter.errors import CollectionMissing, StoreError
from ragfilter.model import Chunk, Space
from ragfilter.protocols import Catalogue, Vectors, Where
from ragfilter.stores import metadata as rows
from ragfilter.stores.chroma import insides
from ragfilter.stores.chroma.catalogue_file import read_catalogue, write_catalogue
from ragfilter.stores.chroma.connection import VERSION, Connection, guard
from ragfilter.stores.chunked import ChunkedCollection, query_vector
from ragfilter.stores.info import CollectionInfo

if TYPE_CHECKING:
    from ragfilter.stores.copies import StoredRow

T = TypeVar("T")

INDEX_AGAIN = "Index the same source again, unless that is still running."
FOUND_AGAIN = "Rebuild the collection, or index the same source again: nothing is re-embedded."

FORMAT = "ragfilter:format"
EMBEDDER = "ragfilter:embedder"
CONTENT = "ragfilter:content"
WITHHELD = "ragfilter:withheld"

PAYLOAD_PAGE = 5_000
IDS_PAGE = 50_000
ALL_CHECKED = 10_000
"""The largest collection of which every chunk is looked up, to see if it is lost."""
SAMPLE, SAMPLES = 250, 4
"""How many chunks are looked up of a larger one, and in how many places."""
WRITE_BATCH = 5_000


class ChromaCollection(ChunkedCollection):
    """One collection. Each call looks it up by name, so it survives re-indexing."""

    def __init__(self, store: Connection, name: str) -> None:
        super().__init__(name)
        self._store = store
        self._pinned: RawCollection | None = None

    def snapshot(self) -> ChromaCollection:
        """The collection pinned for one query, so that it is not looked up again."""
        pinned = ChromaCollection(self._store, self._name)
        pinned._pinned = self.raw()
        return pinned

    @property
    def space(self) -> Space:
        return _space_of(self.raw())

    @property
    def embedder(self) -> str:
        """The embedding model that made the vectors; empty if it is not known."""
        return _mark(self.raw(), EMBEDDER)

    @property
    def ours(self) -> bool:
        """Whether ragfilter made it."""
        return _is_ours(self.raw())

    @property
    def content(self) -> str:
        """The fingerprint of the indexed content; empty until indexing is complete."""
        return _mark(self.raw(), CONTENT)

    @property
    def version(self) -> str:
        raw = self.raw()
        token = f"{raw.id}:{_mark(raw, VERSION)}"
        # Others may write to a foreign collection at any time; at least additions and removals
        # show.
        return token if _is_ours(raw) else f"{token}:{self._count(raw)}"

    @property
    def withheld(self) -> bool:
        """Whether no chunks are returned, because their clearances are being changed."""
        return bool(_mark(self.raw(), WITHHELD))

    @property
    def incomplete(self) -> str:
        """Why a query may miss chunks, and what to do about it; empty if none are missing."""
        return self._incomplete(self.raw())

    def check_not_empty(self) -> None:
        """Raise CollectionMissing if it has no chunks, and StoreError if it has lost them."""
        raw = self.raw()
        if self._count(raw):
            return
        if _mark(raw, CONTENT):
            raise StoreError(self._emptied(), remedy=FOUND_AGAIN, action="rebuild")
        raise CollectionMissing(
            f"The collection {self._name!r} is empty.",
            remedy="Index chunks into it.",
            action="index",
        )

    def info(self) -> CollectionInfo:
        raw = self.raw()
        return CollectionInfo(
            name=self._name,
            count=self._count(raw),
            space=_space_of(raw),
            embedder=_mark(raw, EMBEDDER),
            ours=_is_ours(raw),
            incomplete=self._incomplete(raw),
        )

    def count(self) -> int:
        return self._count(self.raw())

    def nearest(
        self,
        vector: Vectors,
        n: int,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> list[tuple[str, float]]:
        """Up to `n` (id, distance), ascending, equal distances by id; unknown `ids` are left out.

        `vector` has shape (dimension,) or (1, dimension). Raises StoreError if it is not finite or
        has the wrong dimension.
        """
        query = query_vector(vector)
        raw = self._readable()
        if n > PAYLOAD_PAGE:
            n = min(n, self._count(raw))
        if n < 1:
            return []
        # Chroma refuses a condition, or a list of ids, that includes a chunk missing from its
        # index.
        lost = self._lost(raw)
        pushed = None
        if (
            where is not None
            and ids is None
            and _is_ours(raw)
            and rows.can_push(where)
            and not lost
        ):
            pushed = rows.condition(where)
        elif where is not None or ids is not None:
            known = self._known(ids)
            admits = rows.admission(where or Where())
            asked = known if ids is None else dict.fromkeys(ids)
            ids = [i for i in asked if i in known and i not in lost and admits(known[i])]
            if isinstance(known, Catalogue) and len(ids) == len(known):
                ids = None
        hits: list[tuple[str, float]] = []
        for page in [None] if ids is None else _pages(ids, IDS_PAGE):
            size = n if page is None else min(n, len(page))
            with guard(self._store.where):
                reply = raw.query(
                    query_embeddings=cast(Any, [query]),
                    n_results=size,
                    ids=page,
                    where=cast(Any, pushed),
                    include=["distances"],
                )
            distances = cast(Any, reply["distances"])
            hits.extend(zip(reply["ids"][0], map(float, distances[0]), strict=True))
        return sorted(hits, key=lambda hit: (hit[1], hit[0]))[:n]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        ours = _is_ours(self._readable())
        version, read = self.version if ours else "", self._store.chunks
        known_chunks = {i: read.get((version, i)) for i in ids} if ours else {}
        missing = [i for i in ids if known_chunks.get(i) is None]
        for i, text, metadata in self._get(missing, "documents", "metadatas"):
            known_chunks[i] = chunk = rows.to_chunk(i, metadata, text)
            if ours:
                read.put((version, i), chunk)
        return {i: known for i in ids if (known := known_chunks.get(i)) is not None}

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return cast(Iterator[tuple[str, Vectors]], self._get(ids, "embeddings"))

    def catalogue(self) -> Catalogue | None:
        """Every chunk by id without text; None if the collection is too large for that."""
        return None if self._is_large(self.raw()) else self.entries()

    def entries(self) -> Catalogue:
        """Every chunk by id without text, however many there are; cached until the version
        changes."""
        version = self.version
        kept = self._store.catalogues.get(self._name)
        if kept is not None and kept[0] == version:
            return kept[1]
        # Stored under the version from before reading, so that a concurrent write causes another
        # read.
        file = self._store.catalogue_file(self._name)
        entries = None if file is None else read_catalogue(file, version)
        if entries is None:
            entries = Catalogue(dict(self._read_catalogue()))
            if file is not None:
                write_catalogue(file, version, entries)
        self._store.catalogues[self._name] = (version, entries)
        return entries

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        self._store.reopen_after_failure()
        return {i: entry.rule for i, entry in self._read_entries(ids)}

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        if not _is_ours(self.raw()) and not self._store.writable(self._name):
            raise StoreError(
                f"Collection {self._name!r} was not created by ragfilter and is open read-only.",
                remedy="Allow changes to it on the Collections page.",
                action="writable",
            )
        with self._store.changing(self._name):
            # Refuse an unknown chunk, because Chroma would silently do nothing.
            known = self.rules(list(rules))
            self.check_known(rules, known)
            before = self.version
            raw = self.raw()
            for page in _pages(list(rules), WRITE_BATCH):
                metadatas: Any = [{rows.RULE_KEY: rules[i] or None} for i in page]
                raw.update(ids=page, metadatas=metadatas)
            self.renew()
            self._renew_entries(list(rules), before)

    def write(self, batch: Sequence[StoredRow]) -> None:
        """Store chunks with their vectors, replacing those with the same id including all
        metadata."""
        for page in _pages(batch, WRITE_BATCH):
            ids = [row.chunk.id for row in page]
            with self._store.changing(self._name):
                raw = self.raw()
                present = set(raw.get(ids=ids, include=[])["ids"])
                # Chroma's `add` of a present id and `update` of an absent one silently do nothing.
                self._put(raw.add, [row for row in page if row.chunk.id not in present], {})
                self._put(
                    raw.update, [row for row in page if row.chunk.id in present], rows.NO_METADATA
                )
                self.renew()

    def renew(self) -> None:
        """Give the collection a new version, because its content may have changed."""
        self._store.mark(self._name, {})

    def mark_content(self, fingerprint: str) -> None:
        """Record what the collection now holds; "" marks it as incomplete. Once it is complete,
        withheld chunks are returned again."""
        done = {WITHHELD: ""} if fingerprint else {}
        self._store.mark(self._name, {CONTENT: fingerprint, **done})

    def withhold(self) -> None:
        """Return no chunks until the collection has been indexed, because clearances are about to
        change. From now on every read raises StoreError, in this process and in any other."""
        self._store.mark(self._name, {WITHHELD: "yes"})

    def raw(self) -> RawCollection:
        """Chroma's own collection object."""
        if self._pinned is not None:
            return self._pinned
        looked_up = self._store.looked_up
        raw = looked_up.get(self._name) or self._store.look_up(self._name)
        if not self._store.shared:
            looked_up[self._name] = raw
        return raw

    def _readable(self) -> RawCollection:
        raw = self.raw()
        if _mark(raw, WITHHELD):
            raise StoreError(self._withheld(), remedy=INDEX_AGAIN, action="finish")
        return raw

    def _withheld(self) -> str:
        return (
            f"Collection {self._name!r} is closed to queries: a change of its clearances has not "
            "finished."
        )

    def _emptied(self) -> str:
        return f"Collection {self._name!r} is damaged: its chunks are lost."

    def _incomplete(self, raw: RawCollection) -> str:
        if _mark(raw, WITHHELD):
            return f"{self._withheld()} {INDEX_AGAIN}"
        if _is_ours(raw) and not _mark(raw, CONTENT):
            return (
                f"Collection {self._name!r} is incomplete: it is being indexed, or its indexing "
                f"was interrupted. {INDEX_AGAIN}"
            )
        # No empty source is ever indexed.
        if _is_ours(raw) and not self._count_of_version(raw):
            return f"{self._emptied()} {FOUND_AGAIN}"
        lost = self._lost(raw)
        if not lost:
            return ""
        count = self._count(raw)
        remedy = FOUND_AGAIN if _is_ours(raw) else "Create it again."
        return (
            f"Collection {self._name!r} is damaged: only {count - len(lost):,} of its {count:,} "
            f"chunks can be found. {remedy}"
        )

    def _lost(self, raw: RawCollection) -> frozenset[str]:
        """The ids that no query can find; looked up once. If the folder of an index is gone, Chroma
        silently starts a new index."""
        if raw.id not in self._store.lost:
            self._store.lost[raw.id] = frozenset(self._read_lost(raw))
        return self._store.lost[raw.id]

    def _read_lost(self, raw: RawCollection) -> set[str]:
        probe: Any = np.eye(1, insides.dimension(raw) or 1, dtype=np.float32)
        with guard(self._store.where):
            # Lost chunks are older than found ones, so some of a large collection are enough.
            count = self._count(raw)
            size, step = (SAMPLE, count // SAMPLES) if count > ALL_CHECKED else (None, ALL_CHECKED)
            pages = (
                raw.get(include=[], limit=size, offset=start)["ids"]
                for start in range(0, count, step)
            )
            try:
                if ids := list(chain.from_iterable(pages)):
                    raw.query(query_embeddings=probe, n_results=1, ids=ids, include=[])
            except InternalError:
                ids = raw.get(include=[])["ids"]
                found_ids = raw.query(query_embeddings=probe, n_results=len(ids), include=[])["ids"]
                return set(ids).difference(found_ids[0])
        return set()

    def _is_large(self, raw: RawCollection) -> bool:
        """Whether it has too many chunks for a catalogue. Foreign collections always get one,
        because Chroma cannot check conditions on arbitrary metadata."""
        if not _is_ours(raw):
            return False
        return self._count_of_version(raw) > self._store.catalogue_limit

    def _count_of_version(self, raw: RawCollection) -> int:
        """How many chunks this version of a collection of ours has; counted once."""
        version, kept = self.version, self._store.counts.get(self._name)
        if kept is None or kept[0] != version:
            kept = self._store.counts[self._name] = (version, self._count(raw))
        return kept[1]

    def _count(self, raw: RawCollection) -> int:
        with guard(self._store.where):
            return int(raw.count())

    def _put(
        self, put: Callable[..., None], page: Sequence[StoredRow], cleared: Mapping[str, None]
    ) -> None:
        if not page:
            return
        metadatas = [
            {**cleared, **rows.to_metadata(row.chunk, clearance_as_given=row.clearance_as_given)}
            for row in page
        ]
        put(
            ids=[row.chunk.id for row in page],
            embeddings=np.stack([row.vector for row in page]),
            documents=[row.chunk.text for row in page],
            metadatas=metadatas,
        )

    def _read_catalogue(self) -> Iterator[tuple[str, Chunk]]:
        raw = self._readable()
        offset = 0
        while True:
            with guard(self._store.where):
                page = raw.get(limit=PAYLOAD_PAGE, offset=offset, include=["metadatas"])
            for i, metadata in zip(page["ids"], cast(Any, page["metadatas"]), strict=True):
                yield i, rows.to_entry(i, metadata)
            if len(page["ids"]) < PAYLOAD_PAGE:
                return
            offset += PAYLOAD_PAGE

    def _renew_entries(self, ids: Sequence[str], before: str) -> None:
        # If nobody else writes, the new entries are enough; reading all of them takes a second or
        # two for 100,000 chunks. Only under the write lock, so that no other edit comes in between.
        kept = self._store.catalogues.get(self._name)
        if self._store.shared or kept is None or kept[0] != before:
            return
        entries = Catalogue({**kept[1], **dict(self._read_entries(ids))})
        self._store.catalogues[self._name] = (self.version, entries)
        self._store.unwritten.add(self._name)

    def _read_entries(self, ids: Sequence[str]) -> Iterator[tuple[str, Chunk]]:
        return ((i, rows.to_entry(i, metadata)) for i, metadata in self._get(ids, "metadatas"))

    def _get(self, ids: Sequence[str], *fields: Any) -> Iterator[tuple[Any, ...]]:
        """The id of each chunk that is known, followed by these fields of it."""
        raw = self._readable()
        for page in _pages(list(dict.fromkeys(ids)), PAYLOAD_PAGE):
            with guard(self._store.where):
                got: Any = raw.get(ids=page, include=list(fields))
            yield from zip(got["ids"], *(got[each] for each in fields), strict=True)

    def _known(self, ids: Sequence[str] | None) -> Mapping[str, Chunk]:
        """At least these chunks by id without text; all if `ids` is None."""
        if ids is None:
            return self.entries()
        catalogue = self.catalogue()
        return dict(self._read_entries(ids)) if catalogue is None else catalogue


def _pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _mark(raw: RawCollection, key: str) -> str:
    return str((raw.metadata or {}).get(key, ""))


def _is_ours(raw: RawCollection) -> bool:
    return FORMAT in (raw.metadata or {})


def _space_of(raw: RawCollection) -> Space:
    # Not `raw.configuration`: that builds the stored embedding function, which may be foreign code.
    configuration = raw.configuration_json
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return cast(Space, index.get("space", "l2"))
