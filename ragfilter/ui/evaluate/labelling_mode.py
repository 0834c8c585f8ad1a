"""The labelling mode: shows one passage at a time in the whole window, labelled by keyboard.

The browser holds the passages and sends each action as a numbered event; see the script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.errors import InputError, RagfilterError
from ragfilter.evaluate import query_sets
from ragfilter.evaluate.crossval import FEW_QUERIES
from ragfilter.evaluate.labelling import FIRST, to_label
from ragfilter.layers.cutoff import cutoff_detail
from ragfilter.results.rows import rows
from ragfilter.stores.label_book import ASKED, GRADES, LABELLED, Label, qrels_of, selected_quotation
from ragfilter.text.normalise import mend_characters
from ragfilter.ui.kit import labelled_sets, problems
from ragfilter.ui.kit.labelled_sets import ChosenSet
from ragfilter.ui.look import elements
from ragfilter.ui.session import asking, state

KEY, AHEAD = "labelling", 3
"""The component, and how many questions the browser holds."""
HTML = '<dialog class="rf-label" aria-label="Label"></dialog>'


@st.fragment
@problems.show_errors()
def draw(chosen: ChosenSet) -> None:
    """Draw the mode over the page."""
    session = state.session()
    labels = _labels(chosen)
    labelled = labelled_sets.labelled_questions(chosen.resources, chosen.collection)
    window = _window(chosen, labels, labelled)
    data = {
        "questions": [_question(chosen, query, labels) for query in window],
        "done": len(labelled),
        "wanted": FEW_QUERIES,
        "blind": session.blind,
        "last": session.label_events,
        "error": session.label_error,
    }
    take, close = partial(_take, chosen), state.then_page(partial(state.set_field, False, "labelling"))
    script = "evaluate/labelling_mode.js"
    elements.mount(script, HTML, key=KEY, data=data, on_events_change=take, on_closed_change=close)


def _labels(chosen: ChosenSet) -> tuple[Label, ...]:
    """The labels that count as done: people's or, for a blind labeller, only their own. Otherwise
    nobody would label a chunk twice, and labellers could not be compared."""
    me, blind = state.author(), state.session().blind
    return tuple(each for each in chosen.labels if each.made_by == "human" and (not blind or each.who == me))


def _window(chosen: ChosenSet, labels: tuple[Label, ...], labelled: Collection[str]) -> list[str]:
    """The open question and the next ones, those without any label first."""
    session, counts = state.session(), Counter(label.query for label in labels)
    every = list(dict.fromkeys(_questions(chosen)))
    at = every.index(session.label_query) if session.label_query in every else -1
    left = [q for q in every[at + 1 :] + every[: max(at, 0)] if counts[q] < FIRST]
    left.sort(key=labelled.__contains__)
    return [*(every[at : at + 1] if at >= 0 else ()), *left][:AHEAD]


def _questions(chosen: ChosenSet) -> Iterator[str]:
    """Typed questions, then the query set's. For sets that nobody stored, questions asked before follow."""
    yield from state.session().typed_questions
    stored = chosen.name not in (LABELLED, chosen.collection, labelled_sets.OTHERS)
    for name in (chosen.name,) if stored else (chosen.name, ASKED):
        try:
            by_id = query_sets.questions(chosen.book, chosen.collection, name, chosen.chunks, chosen.user)
        except InputError:
            continue
        yield from (text.strip() for text in by_id.values())


def _question(chosen: ChosenSet, query: str, labels: tuple[Label, ...]) -> dict[str, Any]:
    """A question with the whole passages that the user can see, as the browser gets them."""
    settings, user, resources = chosen.page_run.settings, chosen.user, chosen.resources
    question = asking.asked_question(query, chosen.collection, settings, user, resources)
    result = state.session().replays.of(asking.pool_of(question, settings, resources), settings, user)
    detail = cutoff_detail(result)
    ids = to_label(listed := rows(result), detail.ids if detail else (), query, blind=state.session().blind)
    first = [row.id for row in listed if row.rank][:FIRST]
    chunks = resources.bench.collection(chosen.collection).chunks(ids)
    grades = qrels_of(label for label in labels if label.query == query).get(query, {})
    passages = [
        {"id": i, "title": chunk.name, "text": chunk.text, "grade": grades.get(i), "first": i in first}
        for i in ids
        if (chunk := chunks.get(i)) and user.sees(chunk)
    ]
    return {"query": query, "passages": passages}


def _take(chosen: ChosenSet) -> None:
    """Apply the events from the browser, which resends a failed one with the next event."""
    session = state.session()
    session.label_error = ""
    try:
        for n, kind, *values in st.session_state[KEY].events or ():
            if n > session.label_events:
                _apply(chosen, kind, *values)
                session.label_events = n
    except RagfilterError as error:
        session.label_error = str(error)


def _apply(chosen: ChosenSet, kind: str, *given: Any) -> None:
    session = state.session()
    match kind, given:
        case "mark", (str(query), str(chunk_id), int(grade), str(quote)) if grade in GRADES:
            visible = chosen.chunks.get(chunk_id)
            if visible is None or not chosen.user.sees(visible):
                return
            store = chosen.resources.bench.collection(chosen.collection)
            chunk = store.chunks([chunk_id]).get(chunk_id, visible) if quote else visible
            quotation = selected_quotation(chunk, quote)
            who = state.author()
            labels = chosen.book.label(chosen.collection, query, [chunk_id], grade, who=who, quotation=quotation)
            session.label_query = query
            state.remember_labels(labels, chunk_id, chosen.collection, query)
        case "undo", ():
            state.undo_labels(chosen.book)
        case "open", (str(query),):
            session.label_query = query
        case "ask", (str(text),) if query := mend_characters(text).strip():
            session.typed_questions = [query, *session.typed_questions]
            session.label_query = query
        case "blind", (bool(on),):
            session.blind = on
