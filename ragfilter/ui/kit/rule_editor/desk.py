"""The collection as this session may see it, shared by all parts of the Rules page."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar

import streamlit as st

from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.model import Chunk, User
from ragfilter.protocols import Catalogue
from ragfilter.rules.overview import Checks, Listing, ListingRow, RuleFilter, make_listing
from ragfilter.settings.schema import Settings
from ragfilter.text.titles import short_title
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

T = TypeVar("T")

TITLE_WIDTH = 44
"""Characters of a title in a table; a longer one is shortened before its distinctive end."""
PART, OPEN, ORDER, PAGE_AT = "rules-part", "rules-open", "rules-order", "rules-page"
PAGE = 50
"""Rows sent to the browser at a time."""
MANY, SHOWN_EVERY, MOST_READ = 2_000, 500, 1_000
TEXT, TYPES, SOURCES, STATES = "rules-text", "rules-types", "rules-sources", "rules-states"


@dataclass(frozen=True)
class Desk:
    """A collection as `user` sees it; `chunks` are the ones they may see."""

    collection: str
    version: str
    settings: Settings
    user: User
    resources: Resources
    chunks: Catalogue

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What the visible chunks depend on, for caches."""
        return self.collection, self.version, self.user

    @cached_property
    def labels(self) -> Labels | None:
        """The labels of the visible chunks from the workspace and the demo; None if there are none.
        Raises StoreError."""
        bench = self.resources.bench
        # Read once, and not again for every key that is pressed.
        asked = bench.labels.questions_version(self.collection)

        def read() -> Labels | None:
            catalogue = bench.collection(self.collection).entries()
            return stored.everything(bench.labels, self.collection, catalogue, self.user)

        return self.resources.labels.of((*self.key, asked), read)

    @cached_property
    def checks(self) -> Checks:
        """The linter's findings. Raises StoreError."""
        return self.resources.checks_of(self.collection, self.version, self.user)

    def chunk(self, chunk_id: str | None) -> Chunk | None:
        """The whole chunk, None if it does not exist or may not be seen."""
        if not chunk_id or chunk_id not in self.chunks:
            return None
        key = (self.collection, self.version, chunk_id)
        return self.resources.chunks.of(key, lambda: self.read((chunk_id,))[chunk_id])

    def name(self, chunk_id: str) -> str:
        """The title of a chunk, or its id if it has none or is gone."""
        chunk = self.chunks.get(chunk_id)
        return chunk_id if chunk is None else chunk.name

    def title(self, chunk_id: str, width: int = TITLE_WIDTH) -> str:
        """The name of a chunk, shortened for a table."""
        return short_title(self.name(chunk_id), width)

    def read(self, ids: Iterable[str]) -> dict[str, Chunk]:
        """Visible chunks by id: whole, but without texts if there are too many to read in every
        run. Raises StoreError."""
        listed = {i: self.chunks[i] for i in ids if i in self.chunks}
        if len(listed) > MOST_READ:
            return listed
        found = self.resources.bench.collection(self.collection).chunks(list(listed))
        return listed | {i: chunk for i, chunk in found.items() if self.user.sees(chunk)}


def lay(collection: str, settings: Settings, resources: Resources) -> Desk:
    """Open the collection in its current state. Raises StoreError."""
    user = state.onlooker()
    store = resources.bench.collection(collection)
    version = store.version
    every = store.entries()
    if user.unrestricted:
        return Desk(collection, version, settings, user, resources, every)
    key = (collection, version, user)
    seen = resources.visible.of(
        key, lambda: Catalogue({i: chunk for i, chunk in every.items() if user.sees(chunk)})
    )
    return Desk(collection, version, settings, user, resources, seen)


def check(desk: Desk) -> None:
    """Run the linter on rules it has not seen yet, with a progress bar if there are many."""
    checks = desk.checks
    key = (*desk.key, checks)
    if desk.resources.checked.get(key):
        return
    missing = checks.missing(desk.chunks.values())
    if len(missing) < MANY:
        desk.resources.checked.put(key, True)
        return
    place = st.empty()
    for done, chunk in enumerate(missing):
        if done % SHOWN_EVERY == 0:
            place.progress(
                done / len(missing), text=f"Checking {len(missing):,} rules, once … {done:,}"
            )
        checks.findings(chunk)
    place.empty()


def listing(desk: Desk, harm: Mapping[str, float] = MappingProxyType({})) -> Listing:
    """The rows of the desk, cached per version, with unsaved drafts marked. `harm` is what each
    chunk costs labelled questions, if known."""
    journal = desk.resources.bench.journal
    mark = journal.export_mark(desk.collection)
    key = (*desk.key, desk.checks, mark, frozenset(harm.items()))
    shelf, drafts = desk.resources.listings, frozenset(state.drafts())

    def plain() -> Listing:
        exported = journal.edited_since_export(desk.collection)
        return make_listing(desk.chunks.values(), desk.checks, exported=exported, harm=harm)

    return shelf.of((key, drafts), lambda: shelf.of(key, plain).with_drafts(drafts))


def wanted() -> RuleFilter:
    """The current filter."""
    named = st.session_state.get
    return RuleFilter(
        text=named(TEXT) or "",
        types=tuple(named(TYPES) or ()),
        sources=tuple(named(SOURCES) or ()),
        states=tuple(named(STATES) or ()),
    )


def ordered(desk: Desk, rows: Listing, *, anew: bool = False) -> tuple[str, ...]:
    """The ids that the filter admits. Their order stays the same while rules are saved, so that
    *next* continues from the same place."""
    content = desk.resources.bench.collection(desk.collection).content
    # A foreign collection has no fingerprint of its content.
    asked = (desk.collection, desk.user, wanted(), content, len(desk.chunks))
    kept: tuple[object, tuple[str, ...]] | None = st.session_state.get(ORDER)
    if anew or kept is None or kept[0] != asked:
        kept = (asked, tuple(row.id for row in rows.find(asked[2])))
        st.session_state[ORDER] = kept
    return kept[1]


def selected(desk: Desk) -> tuple[ListingRow, ...]:
    """The rows that the filter currently admits."""
    return listing(desk).find(wanted())


def find(
    work: Desk, key: str, rows: Sequence[T], ids_of: Callable[[T], Sequence[str]], about: str
) -> Sequence[T]:
    """Draw a search field. Returns the rows with a chunk that has all the words in title or id."""
    sought = st.text_input(
        "Find a chunk",
        key=key,
        persist_state="session",
        icon=":material/search:",
        placeholder="Title or id",
        help=about,
        width=200,
    )
    words = (sought or "").casefold().split()
    if not words:
        return rows

    def has_words(chunk_id: str) -> bool:
        chunk = work.chunks.get(chunk_id)
        text = f"{chunk.title if chunk else ''}\n{chunk_id}".casefold()
        return all(word in text for word in words)

    return [row for row in rows if any(map(has_words, ids_of(row)))]


def open_(chunk_id: str) -> None:
    """Open a chunk in the editor."""
    st.session_state[OPEN] = chunk_id


@state.then_page
def edit(chunk_id: str) -> None:
    """Open a chunk in the editor from another part of the page."""
    open_(chunk_id)
    st.session_state[PART] = "Chunks"
