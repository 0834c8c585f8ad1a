"""Keeps drafts across a reload: the browser stores unsaved text, and a new session reads it back,
so that nobody else sees the text."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import streamlit as st

from ragfilter.model import Chunk
from ragfilter.text.characters import whole
from ragfilter.ui.kit.rule_editor import saving
from ragfilter.ui.look import html
from ragfilter.ui.session import state

KEY, SESSION, RESTORED = "rule-kept", "rule-kept-session", "rule-restored"
DRAWN = "rule-kept-drawn"
Drafts = dict[tuple[str, str], tuple[str, str | None]]
MOST = 1_000_000
"""Maximum number of characters accepted from a browser."""
_keep = st.components.v2.component(
    "ragfilter.drafts",
    # The stored drafts are read once per session before they are changed, because a restarted
    # server knows nothing of the previous session. Tabs share them, so each changes only the drafts
    # that changed in it.
    js="""const NAME = "ragfilter-drafts"
    let asked, before
    const byChunk = text => {
      try {
        const rows = JSON.parse(text || "[]")
        return Object.fromEntries(rows.map(row => [row.slice(0, 2), JSON.stringify(row)]))
      } catch {
        return {}
      }
    }
    export default ({ data, setTriggerValue }) => {
      const [session, drafts] = data
      const kept = localStorage.getItem(NAME)
      const stored = byChunk(kept)
      if (session !== asked) {
        asked = session
        before = { ...stored }
        if (kept) return setTriggerValue("found", kept)
      }
      const now = byChunk(drafts)
      for (const chunk in { ...before, ...now }) {
        if (now[chunk] === before[chunk]) continue
        if (chunk in now) stored[chunk] = now[chunk]
        else delete stored[chunk]
      }
      before = now
      const rows = Object.values(stored)
      if (rows.length) localStorage.setItem(NAME, `[${rows}]`)
      else localStorage.removeItem(NAME)
    }""",
    isolate_styles=False,
)


def draw(chunk: Chunk, text: str) -> None:
    """Store the drafts of this session in the browser, including `text` in the editor of `chunk`,
    and say if the text comes from an earlier session."""
    drafts = saving.every()
    here = (state.session().collection or "", chunk.id)
    if text != saving.shown(chunk.rule):
        drafts[here] = (text, saving.base(chunk))
    _store(drafts)
    st.session_state[DRAWN] = True
    if here in st.session_state.get(RESTORED, ()) and chunk.id in state.drafts():
        since = " The stored rule was changed since." if saving.base(chunk) != chunk.rule else ""
        html.draw(
            '<p class="rf-caption" role="status">Typed before this page was reopened, and not '
            f"saved.{since}</p>"
        )


def finish() -> None:
    """Do the same on a page without an editor: its table marks the drafts of an earlier session."""
    if not st.session_state.pop(DRAWN, False):
        _store(saving.every())


def _store(drafts: Drafts) -> None:
    data = json.dumps([[*place, *kept] for place, kept in drafts.items()]) if drafts else ""
    session = st.session_state.setdefault(SESSION, uuid4().hex)
    _keep(key=KEY, data=[session, data], on_found_change=_found)


def _found() -> None:
    """Restore what the browser has stored. Text typed in the meantime takes precedence."""
    restored = saving.restore(read(st.session_state[KEY].found))
    st.session_state[RESTORED] = restored | st.session_state.get(RESTORED, frozenset())


def read(kept: Any) -> Drafts:
    """Every draft by collection and chunk: its text and the stored rule it started from. The
    browser can send anything, so whatever is not a draft is ignored."""
    try:
        rows = json.loads(kept) if isinstance(kept, str) and len(kept) <= MOST else []
    except (ValueError, RecursionError):
        return {}
    rows = rows if isinstance(rows, list) else []
    return {(row[0], row[1]): (whole(row[2]), row[3]) for row in rows if _is_draft(row)}


def _is_draft(row: Any) -> bool:
    kinds = (str, str, str, str | None)
    return isinstance(row, list) and len(row) == 4 and all(map(isinstance, row, kinds))
