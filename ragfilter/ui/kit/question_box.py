"""The question: its box with examples, and the buttons that show its result to others: Present and Report. Report calls
no model: it has the answers that exist by then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit import labelled_sets
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal
from ragfilter.ui.resources import CacheSpec, Resources
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.page_run import PageRun, View

if TYPE_CHECKING:
    from ragfilter.ui.kit.answer_making import AnswerSide

MAX_EXAMPLES = 6
LONGEST = 34
QUERIES: CacheSpec[dict[str, str]] = CacheSpec(2)
"""The labelled questions of the demos."""
EXAMPLES = {
    "demo": {
        "cleric-ac6": "cleric vs AC 6",
        "fighter-fighter": "fighter vs fighter",
        "fighter-druid": "fighter vs druid",
        "monsters-09": "hill giant or troll",
        "monsters-11": "two dragons",
        "monsters-07": "owlbears",
        "When may the referee override the dice?": "the dice",
        "Which treasure maps are false?": "false maps",
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
"""The short names of some questions of each demo. The key is a labelled question's id, or the question itself."""


def draw(page_run: PageRun) -> None:
    """Draw the box with the examples. A session begins with the answer to the first one."""
    if not page_run.collections:
        return
    session = state.session()
    offered = examples(session.collection, page_run.resources) if page_run.ready else {}
    asked = session.asked if session.pending == "current" else None
    moved = asked is not None and asked.collection != session.collection
    if asked and moved and asked.query in examples(asked.collection, page_run.resources).values():
        # The visitor's own question goes along to another collection, an example of the last one does not.
        state.set_fields(query="", asked=None, pending="")
    if offered and session.asked is None and not session.pending and not session.present:
        state.ask(next(iter(offered.values())))
        session.pending = "example"
    with elements.row("ask-line", "bottom"):
        _box(ready=page_run.ready)
        if offered:
            questions = {literal(label): question for label, question in offered.items()}
            st.menu_button(
                "Examples",
                list(questions),
                key="examples",
                type="tertiary",
                on_click=lambda: state.ask(questions[st.session_state["examples"]]),
            )


def _box(*, ready: bool) -> None:
    with st.form("ask", border=False, enter_to_submit=True), elements.row("ask-row", "bottom"):
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


def draw_present_button() -> None:
    """Draw the button, with its shortcut key."""
    on = state.session().present
    label, icon, shortcut = ("Leave", "close", "Esc") if on else ("Present", "present_to_all", "P")
    with st.container(key="present-switch", width="content"):
        switch = partial(state.set_fields, present=not on, scene=0)
        elements.button(label, "present-button", switch, icon=icon, type="tertiary", shortcut=shortcut)


def draw_report(view: View, key: str) -> None:
    """Draw the button that downloads the report on the current question."""
    # The report is made outside the page run, without its session.
    profile, called = state.session().profile, state.profile_label()

    def report() -> str:
        from ragfilter.publish import reports
        from ragfilter.ui.kit import answer_making

        filtered, plain = answer_making.answer_sides(view.as_user)
        contents = report_contents(view, {"without the filter": plain, "with the filter": filtered})
        return reports.of_query(view.as_user, profile, called=called, **contents)

    elements.report(key, report, report_name(view.asked.query))


def report_name(query: str) -> str:
    """The file name of a question's report, made from its first words."""
    words = re.findall(r"\w+", query.lower())
    return f"{'-'.join(words)[:60].rstrip('-') or 'ragfilter'}.html"


def report_contents(view: View, sides: Mapping[str, AnswerSide]) -> dict[str, Any]:
    """What all reports on a question contain: their origin, and the answers that exist by now, by name."""
    from ragfilter.publish.reports import ReportOrigin, shown_answer
    from ragfilter.ui.kit.answer_making import known_answer

    asked, bench = view.asked, view.resources.bench
    known = {name: known_answer(asked.query, side, view.resources) for name, side in sides.items()}
    version, embedder = bench.version_seen(asked.collection, view.user), bench.recorded_embedder(asked.collection).name
    space, made_at = view.result.pool.space, datetime.now(UTC)
    return {
        "origin": ReportOrigin(asked.collection, version, embedder, space, view.user, made_at),
        "prices": bench.prices,
        "answers": [
            shown_answer(name, replace(each, text=side.whole(each)), side.context, side.numbers)
            for name, side in sides.items()
            if (each := known[name])
        ],
    }


def examples(collection: str, resources: Resources) -> dict[str, str]:
    """A collection's example questions by short name: a demo's own, or labelled questions."""
    if collection in EXAMPLES:
        from ragfilter.ingest import bundled

        every = resources.cache(QUERIES).of(collection, lambda: bundled.queries(collection))
        return {label: every.get(i, i) for i, label in EXAMPLES[collection].items()}
    with suppress(RagfilterError):
        labelled = [*labelled_sets.labelled_questions(resources, collection)][:MAX_EXAMPLES]
        return {_short(question): question for question in labelled}
    return {}


def _short(question: str) -> str:
    """A question shortened to fit on a chip."""
    plain = question.strip().rstrip("?")
    if len(plain) <= LONGEST:
        return question.strip()
    return plain[: LONGEST - 1].rsplit(" ", 1)[0] + " …"
