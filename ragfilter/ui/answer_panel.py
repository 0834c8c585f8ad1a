"""The answer from the kept chunks beside the one from the unfiltered first k."""

from __future__ import annotations

import re

import streamlit as st

from ragfilter.answer import UNFINISHED, Answer
from ragfilter.report import short_title
from ragfilter.types import Result
from ragfilter.ui import answers, empty, figures, html, models, state
from ragfilter.ui.answers import Side
from ragfilter.ui.resources import Resources

TITLE_WIDTH = 30
_CITED = re.compile(r"((?:\[\d+(?:\s*[,;–-]\s*\d+)*\]\s*)+)(?<!\s)")


def draw(result: Result, resources: Resources) -> None:
    """Both answers; what is not there yet is offered by a button."""
    if not result.kept:
        empty.nothing_kept(result)
    if st.session_state.fresh:
        st.session_state.fresh = False
        with st.spinner("Reading the chunks …"):
            answers.warm(result, resources)
    both = answers.sides(result)
    chat = resources.bench.chat
    found = [answers.known(result.query, side, resources) for side in both]
    asking = st.session_state.pop("answering", False)
    _head(
        chat.name if chat else "",
        missing=any(answer is None or answer.error for answer in found),
        asking=asking,
    )
    columns = st.columns(2, gap="medium")
    for side, answer, column in zip(both, found, columns, strict=True):
        with column:
            _title(side, answer, result)
            if asking and (answer is None or answer.error):
                answer = None
                st.write_stream(answers.make(result.query, side, resources))
            elif answer is not None:
                _text(side, answer)
            else:
                html.draw('<p class="rf-empty">The context changed; not answered yet.</p>')
            if answer is not None:
                _cites(side, answer)
                if side.context.chunks:
                    _cost(answer)
    if asking:
        # Draws the same answers from memory, with their citations and without the stop button.
        st.rerun()


def _head(model: str, *, missing: bool, asking: bool) -> None:
    label = (
        f"answers by {html.text(models.called(model))}"
        if model
        else "extractive: the nearest sentences of the chunks, no LLM"
    )
    with st.container(key="answer-bar", horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(f'<p class="rf-aside">{label}</p>')
        if asking:
            st.button(
                "Stop", key="stop", icon=":material/stop:", help="Keep what came and stop here."
            )
        elif missing:
            st.button(
                f"Answer with {model}" if model else "Answer",
                key="answer",
                type="primary",
                on_click=_ask,
                help="Two calls, one for each context."
                if model
                else "Compares the sentences of the new chunks with the question, locally.",
            )


def _title(side: Side, answer: Answer | None, result: Result) -> None:
    context = side.context
    note = "" if side.name == "filtered" else f" (first {result.settings.retrieval.k})"
    html.draw(
        f'<p class="rf-side rf-{side.name}"><b>{side.name}</b>{note}'
        f"<span>{figures.chunks(len(context.chunks))}, {figures.tokens(context.tokens)}</span></p>"
    )


def _text(side: Side, answer: Answer) -> None:
    with st.container(key=f"answer-{side.name}", gap="small"):
        if answer.text:
            st.markdown(bold_citations(answer.text))
        if answer.error:
            _failure(answer)


def _failure(answer: Answer) -> None:
    if answer.error == UNFINISHED:
        html.draw('<p class="rf-aside">Stopped before its end.</p>')
        return
    html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(answer.error)}</p>')


def bold_citations(text: str) -> str:
    """The answer as Markdown with its citations marked; a dollar sign begins no formula."""
    return _CITED.sub(r"**\1**", text.replace("$", r"\$"))


def _cites(side: Side, answer: Answer) -> None:
    chunks = side.context.chunks
    if answer.citations:
        with st.container(key=f"cites-{side.name}", gap=None):
            for number in answer.citations:
                hit = chunks[number - 1]
                st.button(
                    f"[{number}] {_literal(short_title(hit.chunk.name, TITLE_WIDTH))}",
                    key=f"cite-{side.name}-{number}",
                    type="tertiary",
                    on_click=state.open_chunk,
                    args=(hit.id,),
                    help=f"Open {hit.id}.",
                )
    if answer.unknown_citations:
        numbers = ", ".join(f"[{n}]" for n in answer.unknown_citations)
        html.draw(f'<p class="rf-aside">Cites {numbers}, which no chunk has.</p>')


def _literal(text: str) -> str:
    return re.sub(r"([\[\]*_`:$])", r"\\\1", text)


def _cost(answer: Answer) -> None:
    if not answer.text:
        return
    parts = [figures.ms(answer.ms)]
    usage = answer.usage
    if not answer.extractive and usage.prompt_tokens:
        about = "about " if usage.estimated else ""
        parts.append(f"{about}{usage.prompt_tokens:,} + {figures.tokens(usage.completion_tokens)}")
    if answer.cost is not None:
        parts.append(f"cost {figures.money(answer.cost)}")
    html.draw(f'<p class="rf-aside">{html.text(" · ".join(parts))}</p>')


def _ask() -> None:
    st.session_state.answering = True
