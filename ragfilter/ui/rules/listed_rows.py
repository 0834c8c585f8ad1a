"""The rows of the Rules page: the states of the visible rules, the filter that its parts share, and the open chunk."""

from __future__ import annotations

import streamlit as st

from ragfilter.rules.overview import WORDS, Listing, ListingRow, RuleFilter, make_listing
from ragfilter.text import numbers
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements, theme
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.session import link, state

LISTINGS: CacheSpec[Listing] = CacheSpec(8)
PART = "rules-part"
FILTERS = TEXT, TYPES, SOURCES, STATES = link.TEXT, link.TYPES, link.SOURCES, link.STATES
"""The fields of the filter, as in the link."""
MAX_OPTIONS = 500


def listing(visible: VisibleCollection) -> Listing:
    """The rows of the collection, cached for each version, with unsaved ones marked."""
    journal, cache = visible.resources.bench.journal, visible.resources.cache(LISTINGS)
    key = (*visible.key, journal.export_mark(visible.collection))
    unsaved, checks = state.unsaved_chunk_ids(), visible.resources.checks

    def plain() -> Listing:
        exported = journal.edited_since_export(visible.collection)
        with st.spinner("Checking the rules …"):
            return make_listing(visible.chunks.values(), checks, exported=exported)

    return cache.of((key, unsaved), lambda: cache.of(key, plain).with_unsaved(unsaved))


def rule_filter() -> RuleFilter:
    """The current filter."""
    text, *lists = (st.session_state.get(f"rules-{name}") for name in FILTERS)
    return RuleFilter(text or "", *(tuple(chosen or ()) for chosen in lists))


def draw_filter(visible: VisibleCollection, rows: Listing | None = None) -> None:
    """Draw the filter. Without `rows`, also draw how many chunks it admits."""
    every = listing(visible) if rows is None else rows
    with elements.row("rules-filter", "bottom"):
        key, hint = f"rules-{TEXT}", "Title, id, source, type or rule"
        st.text_input(
            "Filter", key=key, persist_state="session", icon=":material/search:", placeholder=hint, width="stretch"
        )
        _choice("State", STATES, WORDS, theme.RULE_STATES_HELP)
        chosen = rule_filter()
        with st.popover("More ●" if chosen.types or chosen.sources else "More", help="Filter by type and source."):
            _choice("Type", TYPES, every.types)
            _choice("Source", SOURCES, every.sources)
    if rows is None:
        elements.aside(f"{numbers.count(len(selected(visible)))} of {numbers.chunk_count(len(every.rows))}")


def _choice(label: str, name: str, options: tuple[str, ...], about: str | None = None) -> None:
    # Every run sends all options to the browser.
    many, key = len(options) > MAX_OPTIONS, f"rules-{name}"
    sent = () if many else options
    st.multiselect(
        label, sent, key=key, help=about, persist_state="session", placeholder="all", disabled=many, width=150
    )


def selected(visible: VisibleCollection) -> tuple[ListingRow, ...]:
    """The rows that the filter currently admits."""
    return listing(visible).find(rule_filter())


def row_order(visible: VisibleCollection, rows: Listing) -> tuple[str, ...]:
    """The ids that the filter admits. Saving rules keeps their order, so that *Next* continues from the same place."""
    content = visible.resources.bench.collection(visible.collection).content
    # A foreign collection has no fingerprint of its content.
    of = (visible.collection, visible.user, rule_filter(), content, len(visible.chunks))
    order = state.session().rules.row_order
    if order is None or order[0] != of:
        order = state.session().rules.row_order = (of, tuple(row.id for row in rows.find(of[2])))
    return order[1]


def open_chunk(chunk_id: str) -> None:
    """Open a chunk in the editor."""
    state.session().rules.chunk = chunk_id


@state.then_page
def edit(chunk_id: str) -> None:
    """Open a chunk in the editor from another part of the page."""
    open_chunk(chunk_id)
    st.session_state[PART] = "Chunks"
