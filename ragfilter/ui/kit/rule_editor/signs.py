"""The word and sign for each state of a rule, the same on every page."""

from __future__ import annotations

from dataclasses import replace

from ragfilter.errors import StoreError
from ragfilter.rules.overview import Checks, make_listing
from ragfilter.ui.look import theme
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import View

SIGNS = {
    "invalid": ("✕", theme.LAYERS["query_must"]),
    "warning": ("!", theme.OUTCOMES["fallback"]),
    "none": ("○", theme.LAYERS["context"]),
    "note": ("◦", theme.OUTCOMES["kept"]),
    "valid": ("●", theme.OUTCOMES["kept"]),
    "draft": ("✎", theme.OUTCOMES["pinned"]),
    "changed": ("↑", theme.OUTCOMES["expanded"]),
}
MEANT = (
    "invalid: cannot work. warning: questioned by the linter. none: no rule. note: the linter can "
    "improve it. valid: no finding."
)
EDITED = (
    "draft: an edit that is not saved. changed: edited since the last export, or ever if nothing "
    "was exported."
)


def signed(word: str) -> str:
    """``✎ draft``."""
    return f"{SIGNS[word][0]} {word}"


def chips(*, dark: bool) -> dict[str, str]:
    """The tint of every sign-and-word combination in a table."""
    return {signed(word): theme.tint(mark, dark) for word, (_, mark) in SIGNS.items()}


def states(view: View) -> dict[str, tuple[str, ...]]:
    """The states of the rule of each chunk in a result. Findings that involve several rules are
    looked for among these chunks only."""
    # Without texts, as on the Rules page: which texts were fetched depends on the settings.
    chunks = (replace(hit.chunk, text="") for hit in view.shown.hits)
    made = make_listing(chunks, _checks(view), exported=_exported(view))
    made = made.with_drafts(frozenset(state.drafts()))
    return {row.id: row.words for row in made.rows}


def edited(view: View) -> dict[str, list[str]]:
    """How the rule of each chunk in a result was edited; only chunks with an edited rule."""
    drafts, before = state.drafts(), _exported(view)
    if not drafts and not before:
        return {}
    found: dict[str, list[str]] = {}
    for hit in view.shown.hits:
        changed = hit.id in before and before[hit.id] != (hit.chunk.rule or None)
        words = [w for w, holds in (("draft", hit.id in drafts), ("changed", changed)) if holds]
        if words:
            found[hit.id] = list(map(signed, words))
    return found


def _checks(view: View) -> Checks:
    try:
        asked = view.asked
        return view.resources.checks_of(asked.collection, asked.version, view.user)
    except StoreError:
        # As below; the same database holds the questions.
        return Checks()


def _exported(view: View) -> dict[str, str | None]:
    """The rules of edited chunks as they were at the last export, for chunks of the result."""
    shown = [hit.id for hit in view.shown.hits]
    try:
        return view.resources.bench.journal.edited_since_export(view.asked.collection, shown)
    except StoreError:
        # The editor shows what is wrong with the journal.
        return {}
