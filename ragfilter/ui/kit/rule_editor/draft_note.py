"""Drafting in the rule editor: the button, the progress, and the outcome."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.rules.draft import Draft, messages
from ragfilter.rules.templates import recognise
from ragfilter.text import numbers
from ragfilter.text.tokens import estimate
from ragfilter.ui.kit.rule_editor import drafting
from ragfilter.ui.kit.rule_editor.drafting import HIDDEN, STOPPED, Drafted
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import answers
from ragfilter.ui.session.resources import Resources

NO_LLM = "Drafting needs an LLM: set OPENAI_API_KEY or OPENAI_BASE_URL."
NO_LLM_MORE = "`make local-llm` serves a tiny one to try it with."
TICK_S = 0.2


def button(chunk: Chunk, collection: str, user: User, resources: Resources, *, busy: bool) -> None:
    """Draw the button that drafts a rule. If it is disabled, its tooltip says why."""
    chat = resources.bench.chat
    hidden = not user.sees(chunk)
    timeout = resources.deployment.answer_timeout_s
    if chat is None:
        said = f"{NO_LLM} {NO_LLM_MORE}"
    elif hidden:
        said = HIDDEN
    else:
        tokens = numbers.tokens(_estimated(chunk, resources))
        said = (
            f"Asks {literal(answers.model_label(chat.name))}: one call, or two if the first draft "
            f"has a fault, about {tokens} each, at most {timeout:g} s. The draft goes into the "
            "editor; nothing is saved."
        )
    st.button(
        "Draft a rule",
        key="rule-draft",
        on_click=drafting.begin,
        args=(chunk.id, collection, chunk.rule),
        disabled=chat is None or hidden or busy,
        help=said,
    )


def draw(
    chunk: Chunk, collection: str, shown: str, user: User, resources: Resources, *, busy: bool
) -> DeltaGenerator | None:
    """Draw who drafted the rule with which template, its doubts and tokens, or why there is no
    draft. While a request is running, return the place in which `wait` shows the time, next to a
    Stop button."""
    found = drafting.of(chunk.id)
    place = None
    with st.container(key="draft-note", gap="small"):
        if busy:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.button(
                    "Stop",
                    key="rule-draft-stop",
                    icon=":material/stop:",
                    on_click=drafting.stop,
                    args=(chunk.id, collection),
                    help="Cancel the draft. The text in the editor stays.",
                )
                place = st.empty()
        elif said := _said(found, shown, chunk, user, resources):
            html.draw(said)
        if found.ring:
            _swap_button(found, chunk.id, shown, busy=busy)
    return place


def wait(place: DeltaGenerator, chunk: Chunk, collection: str, resources: Resources) -> None:
    """Show that a draft is being made until it is done, then redraw the page. The rest of the page
    is already drawn; using it ends only the waiting, not the draft."""
    job = drafting.job(chunk.id, collection)
    model = resources.bench.chat.name if resources.bench.chat else "the LLM"
    limit = resources.deployment.answer_timeout_s
    while job is not None and not job.done:
        place.html(
            f'<p class="rf-aside" role="status">Asking {html.text(model)} for a rule … '
            f"{job.seconds:.0f} of at most {limit:g} s</p>"
        )
        job.wait(TICK_S)
    st.rerun()


def _said(found: Drafted, shown: str, chunk: Chunk, user: User, resources: Resources) -> str:
    if found.error == STOPPED:
        return f'<p class="rf-verdict">{STOPPED}</p>'
    if found.error:
        return (
            f'<p class="rf-verdict rf-bad" role="alert"><b>No draft.</b> {html.text(found.error)} '
            f"{_tokens(found.draft, resources)}</p>"
        )
    draft = found.draft
    if draft is None:
        why = "" if user.sees(chunk) else HIDDEN
        why = NO_LLM if resources.bench.chat is None else why
        return f'<p class="rf-aside">{html.text(why)}</p>' if why else ""
    doubts = "".join(f"<br><b>Doubt:</b> {html.text(remark)}." for remark in draft.remarks)
    by = (
        f"{answers.model_label(draft.model)},"
        if answers.is_demonstration(draft.model)
        else draft.model
    )
    second = " The first answer had a fault; this is the second." if draft.repaired else ""
    there = " It is identical to the stored rule." if found.same else ""
    return (
        f'<p class="rf-verdict"><b>{_state(found, shown)}</b> by {html.text(by)} with the '
        f"template <b>{html.text(draft.category)}</b>.{second}{there} {_tokens(draft, resources)}"
        f"{doubts}</p>"
    )


def _swap_button(found: Drafted, chunk_id: str, shown: str, *, busy: bool) -> None:
    st.button(
        "Back to the draft" if found.ring[0] in found.texts else "Back to my text",
        key="rule-swap",
        icon=":material/swap_vert:",
        on_click=drafting.swap,
        args=(chunk_id, shown),
        disabled=busy,
        help="Puts it into the editor and sets the current text aside. Neither is saved.",
    )


def _state(found: Drafted, shown: str) -> str:
    last = found.texts[-1]
    if shown == last or found.same:
        return "Drafted"
    return "Drafted, put aside," if last in found.ring else "Drafted, then edited,"


def _tokens(draft: Draft | None, resources: Resources) -> str:
    """Tokens, cost if prices are set, and time; empty if nothing was sent."""
    if draft is None or not draft.usage.prompt_tokens:
        return ""
    usage = draft.usage
    sent, back = usage.prompt_tokens, usage.completion_tokens
    parts = [numbers.exchanged(sent, back, estimated=usage.estimated)]
    prices = resources.prices
    if prices is not None:
        parts.append(f"cost {numbers.money(prices.of(usage), prices.currency)}")
    return f'<span class="rf-aside">{html.text(" · ".join([*parts, numbers.ms(draft.ms)]))}</span>'


def _estimated(chunk: Chunk, resources: Resources) -> int:
    """Estimated tokens of the first call's prompt; 0 if the prompt cannot be built."""
    try:
        templates = resources.bench.templates()
        asked = messages(chunk, recognise(chunk, templates))
    except RagfilterError:
        return 0
    return sum(estimate(message.content) for message in asked)
