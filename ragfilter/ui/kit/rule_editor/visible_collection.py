"""The chunks of a collection as this session can see them, with the questions that changed rules are tried on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.model import Chunk, User
from ragfilter.protocols import Catalogue
from ragfilter.settings.schema import Settings
from ragfilter.stores.label_book import ASKED
from ragfilter.text.titles import telling_titles
from ragfilter.ui.resources import CacheSpec, Resources
from ragfilter.ui.session import state

VISIBLE: CacheSpec[Catalogue] = CacheSpec(8)
"""What a user can see of each collection."""
TITLE_WIDTH = 44
"""Characters of a title in a table. A longer title loses text before its distinctive end."""
MAX_READ = 1_000
MAX_ASKED, MAX_LABELLED = 100, 500
"""How many of the last asked and the first labelled questions changes are tried on."""


@dataclass(frozen=True)
class VisibleCollection:
    """A collection as `user` sees it; `chunks` holds the ones that they can see."""

    collection: str
    version: str
    settings: Settings
    user: User
    resources: Resources
    chunks: Catalogue

    @property
    def key(self) -> tuple[Hashable, ...]:
        """A cache key: everything that the visible chunks depend on."""
        return self.collection, self.version, self.user

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of the visible chunks; None if there are none. Raises StoreError."""
        # Read once, not at every key press.
        return self.resources.labels_for(self.collection, self.user)

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """The labelled and last asked questions that changes are tried on. Raises StoreError."""
        labelled = {} if self.labels is None else self.labels.labelled
        first = dict(list(labelled.items())[:MAX_LABELLED])
        asked = list(self.resources.bench.labels.queries(self.collection, ASKED).items())
        known = {*first.values()}
        last = {f"{ASKED} {i}": text for i, text in asked[-MAX_ASKED:] if text not in known}
        return first | last

    @property
    def qrels(self) -> Mapping[str, Mapping[str, int]]:
        """The grades of the labelled questions. Raises StoreError."""
        return {} if self.labels is None else self.labels.qrels

    @cached_property
    def questions_key(self) -> int:
        """A number that changes with the questions and their labels."""
        return crc32(repr((self.questions, self.qrels)).encode())

    def chunk(self, chunk_id: str | None) -> Chunk | None:
        """The whole chunk; None if it does not exist or is hidden."""
        if not chunk_id or chunk_id not in self.chunks:
            return None
        listed = self.chunks[chunk_id]
        chunk = self.resources.whole_chunk(listed, self.collection, self.version)
        return chunk if self.user.sees(chunk) else listed

    def name(self, chunk_id: str) -> str:
        """The title of a chunk, or its id if it has no title or is gone."""
        chunk = self.chunks.get(chunk_id)
        return chunk_id if chunk is None else chunk.name

    def titles(self, chunk_ids: Iterable[str], width: int = TITLE_WIDTH) -> list[str]:
        """The names of chunks, shortened for a table."""
        return telling_titles([self.name(i) for i in chunk_ids], width)

    def read(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Visible chunks by id, without texts if there are too many. Raises StoreError."""
        listed = {i: self.chunks[i] for i in ids if i in self.chunks}
        if len(listed) > MAX_READ:
            return listed
        texts = self.resources.bench.collection(self.collection).chunks(list(listed))
        return listed | {i: chunk for i, chunk in texts.items() if self.user.sees(chunk)}


def current(collection: str, settings: Settings, resources: Resources) -> VisibleCollection:
    """The collection in its current state. Raises StoreError."""
    user = state.listing_user()
    store = resources.bench.collection(collection)
    version, chunks = store.version, store.entries()
    if not user.unrestricted:
        entries = ((i, chunk) for i, chunk in chunks.items() if user.sees(chunk))
        key = (collection, version, user)
        chunks = resources.cache(VISIBLE).of(key, lambda: Catalogue(dict(entries)))
    return VisibleCollection(collection, version, settings, user, resources, chunks)
