"""The question box with example questions, and the button for Present mode."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit import query_labels
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.server.resources import Resources, ShelfSpec
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.views import Visit

MAX_EXAMPLES = 6
LONGEST = 34
EXAMPLES: ShelfSpec[dict[str, str]] = ShelfSpec(16)
WANTED = {
    "demo": {
        "cleric-ac6": "cleric vs AC 6",
        "fighter-fighter": "fighter vs fighter",
        "fighter-druid": "fighter vs druid",
        "monsters-09": "hill giant or troll",
        "monsters-11": "two dragons",
        "monsters-07": "owlbears",
    },
    "adsapi": {
        "sd-authenticate": "authenticate",
        "create-campaign": "create a campaign",
        "category-target": "target a category",
        "retry-429": "status 429",
        "audience-upload": "upload an audience",
        "request-report": "request a report",
    },
}
"""The short names of some labelled questions of each demo, by id."""
SECRETS = {"the dice": "When may the referee override the dice?", "false maps": "Which treasure maps are false?"}


def draw(visit: Visit) -> None:
    """Draw the box with the examples. A visit begins with the answer to the first one. Nothing can
    be asked while the collection is empty."""
    if not visit.collections:
        return
    _follow(visit)
    now = state.session()
    offered = examples(now.collection, visit.resources) if visit.ready else {}
    asked = now.asked if now.pending == "again" else None
    moved = asked is not None and asked.collection != now.collection
    if asked and moved and asked.query in examples(asked.collection, visit.resources).values():
        # The visitor's own question goes along to another collection, an example of the last one does not.
        state.update(query="", asked=None, pending=False)
    if offered and now.asked is None and not now.pending:
        state.ask(next(iter(offered.values())))
        now.pending = "example"
    with html.row("ask-line", "bottom"):
        _box(ready=visit.ready)
        if offered:
            questions = {literal(label): question for label, question in offered.items()}
            st.menu_button(
                "Examples",
                list(questions),
                key="examples",
                type="tertiary",
                on_click=lambda: state.ask(questions[st.session_state["examples"]]),
            )


def _follow(visit: Visit) -> None:
    """Follow changes that others made to the collection; tell the user if they can see them."""
    asked, resources = state.session().asked, visit.resources
    if asked is None or state.session().pending or asked.collection not in visit.collections:
        return
    if resources.bench.stores.of(asked.collection).outdated(asked.version):
        from ragfilter.ui.session import pools

        try:
            if pools.follow_edits(resources):
                st.toast("Rules or chunks changed elsewhere; the results are refreshed.")
        except RagfilterError:
            # Asking the question again shows the error.
            state.renew()


def _box(*, ready: bool) -> None:
    with st.form("ask", border=False, enter_to_submit=True):  # noqa: SIM117
        with st.container(key="ask-row", horizontal=True, gap="small", vertical_alignment="bottom"):
            st.text_input(
                "Question",
                state.session().query,
                key=widget.key_of("question", state.session().query),
                placeholder="Ask a question and press Enter",
                label_visibility="collapsed",
                disabled=not ready,
                autocomplete="off",
            )
            st.form_submit_button("Ask", key="ask-button", type="primary", on_click=_ask, disabled=not ready)


def _ask() -> None:
    question = widget.entered("question")
    if question.strip():
        state.ask(question)
    else:
        st.toast("Type a question first.")


def open_inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Open this question in Inspect with these settings."""
    state.take(profile, changes)
    state.ask(query)
    st.switch_page("pages/inspect.py")


def draw_present_button() -> None:
    """Draw the button, with its shortcut key."""
    on = bool(state.session().present)
    with st.container(key="present-switch", width="content"):
        html.button(
            "Leave" if on else "Present",
            "present-button",
            partial(state.update, present=not on, scene=0),
            icon="close" if on else "present_to_all",
            type="tertiary",
            shortcut="P",
        )


def examples(collection: str, resources: Resources) -> dict[str, str]:
    """A collection's example questions by short name: a demo's own, or labelled questions."""
    if collection in WANTED:
        # Imported here, because only one of them is needed.
        every = import_module(f"ragfilter.ingest.{collection}").queries
        return resources.shelf(EXAMPLES).of(
            collection,
            lambda: (
                {label: every()[i] for i, label in WANTED[collection].items()}
                | (SECRETS if collection == "demo" else {})
            ),
        )
    with suppress(RagfilterError):
        labelled = [*query_labels.labelled_questions(resources, collection)][:MAX_EXAMPLES]
        return {_short(question): question for question in labelled}
    return {}


def _short(question: str) -> str:
    """A question shortened to fit on a chip."""
    plain = question.strip().rstrip("?")
    if len(plain) <= LONGEST:
        return question.strip()
    return plain[: LONGEST - 1].rsplit(" ", 1)[0] + " …"
