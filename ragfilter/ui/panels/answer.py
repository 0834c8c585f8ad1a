"""The answer from the kept chunks beside the one from the unfiltered first k."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from time import monotonic

import streamlit as st

from ragfilter.answer.stream import DOUBT, UNFINISHED, Answer
from ragfilter.model import Result
from ragfilter.report import short_title
from ragfilter.ui.look import html, numbers, prose
from ragfilter.ui.main import empty
from ragfilter.ui.session import answers, models, state
from ragfilter.ui.session.answers import Side
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import View

TITLE_WIDTH = 31
SHOWN_CHARS = 20_000
"""Of an answer: a browser takes seconds over longer ones, and an endpoint may send any."""
MOST_UNKNOWN = 10
INSTEAD = "Without an LLM instead: the sentences of the chunks closest to the question."


def draw(view: View) -> None:
    """Both answers; what is not there yet is offered by a button."""
    if not view.result.kept:
        empty.nothing_kept(view.result)
    result, resources = view.mine, view.resources
    if st.session_state.fresh:
        st.session_state.fresh = False
        with st.spinner("Reading the chunks …"):
            answers.warm(result, resources)
    both = answers.sides(result)
    chat = resources.bench.chat
    found = [answers.known(result.query, side, resources) for side in both]
    asking = st.session_state.pop("answering", False)
    if not any(side.context.chunks for side in both):
        # What was said above is all there is to say.
        return
    _head(
        chat.name if chat else "",
        missing=any(answer is None or answer.error for answer in found),
        asking=asking,
    )
    columns = st.columns(2, gap="medium")
    waited: Answer | None = None
    for side, answer, column in zip(both, found, columns, strict=True):
        with column:
            _title(side, answer, result)
            if asking and (answer is None or answer.error):
                if waited is not None:
                    answers.skip(result.query, side, waited, resources)
                    continue
                made = _stream(result.query, side, resources)
                waited = made if made is not None and made.failed == "timeout" else None
            elif answer is not None:
                _show(result.query, side, answer, resources)
            else:
                html.draw('<p class="rf-empty">Not answered yet for these chunks.</p>')
    if asking:
        # Draws the same answers from memory, with their citations and without the stop button.
        st.rerun()


def _head(model: str, *, missing: bool, asking: bool) -> None:
    label = (
        f"answers by {html.text(models.called(model))}"
        if model
        else "extractive: the sentences closest to the question, no LLM"
    )
    with st.container(key="answer-bar", horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(f'<p class="rf-aside">{label}</p>')
        if asking:
            st.button(
                "Stop",
                key="stop",
                icon=":material/stop:",
                help="Stop here and keep what has arrived.",
            )
        elif missing:
            st.button(
                f"Answer with {prose.literal(model)}" if model else "Answer",
                key="answer",
                type="primary",
                on_click=_ask,
                help="Makes two calls, one for each context."
                if model
                else "Compares the sentences of the new chunks with the question on this machine.",
            )


def _title(side: Side, answer: Answer | None, result: Result) -> None:
    context = side.context
    note = "" if side.name == "filtered" else f" (first {result.settings.retrieval.k})"
    html.draw(
        f'<p class="rf-side rf-{side.name}"><b>{side.name}</b>{note}'
        f"<span>{numbers.chunks(len(context.chunks))}, {numbers.tokens(context.tokens)}</span></p>"
    )


def _stream(query: str, side: Side, resources: Resources) -> Answer | None:
    """Draw the answer as it comes; until something has come, how long it was waited for."""
    chat, limit = resources.bench.chat, resources.deployment.answer_timeout_s
    place, text, began = st.empty(), "", monotonic()
    # Closed at once when Stop interrupts a drawing: what came is then remembered for the next run.
    with closing(answers.make(query, side, resources)) as pieces:
        for piece in pieces:
            text += piece
            if text:
                place.markdown(_body(text, quoted=chat is None))
            elif chat is not None:
                place.html(
                    f'<p class="rf-aside" role="status">Waiting for {html.text(chat.name)} … '
                    f"{monotonic() - began:.0f} of at most {limit:g} s</p>"
                )
    return answers.known(query, side, resources)


def _show(query: str, side: Side, answer: Answer, resources: Resources) -> None:
    """The answer with its citations and costs; where it failed, the extractive one below it."""
    quoted = answers.instead(query, side, resources) if answer.failed else None
    with st.container(key=f"answer-{side.name}", gap="small"):
        if answer.doubt:
            html.draw(f'<p class="rf-aside">{html.text(DOUBT.format(why=answer.doubt))}</p>')
        if answer.text:
            st.markdown(_body(answer.text, quoted=answer.extractive))
            if len(answer.text) > SHOWN_CHARS:
                html.draw(
                    f'<p class="rf-aside">The first {SHOWN_CHARS:,} of {len(answer.text):,} '
                    "characters.</p>"
                )
        if answer.error:
            _failure(answer)
        if quoted is not None:
            html.draw(f'<p class="rf-aside">{INSTEAD}</p>')
            st.markdown(prose.quoted(quoted.text))
    both = answer.citations + (quoted.citations if quoted is not None else ())
    _cites(side, replace(answer, citations=tuple(dict.fromkeys(both))))
    if side.context.chunks:
        _cost(answer)


def _body(text: str, *, quoted: bool) -> str:
    """The Markdown of an answer's text, of a long one that of its beginning."""
    return (prose.quoted if quoted else prose.written)(text[:SHOWN_CHARS])


def _failure(answer: Answer) -> None:
    if answer.error == UNFINISHED:
        html.draw('<p class="rf-aside">Stopped before the end.</p>')
        return
    html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(answer.error)}</p>')


def _cites(side: Side, answer: Answer) -> None:
    chunks = side.context.chunks
    if answer.citations:
        with st.container(key=f"cites-{side.name}", gap=None):
            for number in answer.citations:
                hit = chunks[number - 1]
                st.button(
                    f"[{number}] {prose.literal(short_title(hit.chunk.name, TITLE_WIDTH))}",
                    key=f"cite-{side.name}-{number}",
                    type="tertiary",
                    on_click=state.open_chunk,
                    args=(hit.id,),
                    help=f"Open {prose.literal(hit.id)}.",
                )
    if answer.unknown_citations:
        numbers = ", ".join(f"[{n}]" for n in answer.unknown_citations[:MOST_UNKNOWN])
        more = len(answer.unknown_citations) - MOST_UNKNOWN
        numbers += f" and {more:,} more" if more > 0 else ""
        html.draw(f'<p class="rf-aside">Cites {numbers}, which do not exist.</p>')


def _cost(answer: Answer) -> None:
    if not answer.text:
        return
    parts = [f"{'cached, ' if answer.cached else ''}took {numbers.ms(answer.ms)}"]
    usage = answer.usage
    if not answer.extractive and usage.prompt_tokens:
        about = "about " if usage.estimated else ""
        parts.append(f"{about}{usage.prompt_tokens:,} + {numbers.tokens(usage.completion_tokens)}")
    if answer.cost is not None:
        parts.append(f"cost {numbers.money(answer.cost)}")
    html.draw(f'<p class="rf-aside">{html.text(" · ".join(parts))}</p>')


def _ask() -> None:
    st.session_state.answering = True
