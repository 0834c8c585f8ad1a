"""Drafts a rule for the open chunk with an LLM. The draft fills the editor; nothing is saved.

Source: docs/design.md#drafting. The decisions:

- The LLM is asked in the background. The page keeps working, and the draft is there when the chunk
  is opened again. A failure leaves the editor's text as it is.
- The chunk is read again from the store, and sent only if the *user* may see it, even if an
  operator looks: hidden chunks are sent to no LLM.
- Unsaved text that nobody drafted is not drafted over: it is saved or discarded first.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.rules.drafting import Draft, suggest
from ragfilter.rules.rule import read_rule
from ragfilter.text import numbers
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import answers, state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, open_resources

NO_LLM = "Drafting needs an LLM: set OPENAI_API_KEY or OPENAI_BASE_URL."
NO_LLM_MORE = "`make local-llm` serves a tiny one to try it with."
HIDDEN = "The user may not see this chunk, so it is not sent to an LLM."
GONE = "This chunk is no longer in the collection. Ask the question again."
STOPPED = "Stopped. Nothing was changed."
REMEDIES = {
    "rule": "Draft again, start from the template, or use a larger model.",
    "chunk": "Write the rule by hand.",
    "model": "Try again.",
}
"""What to do if the failure itself does not say."""
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Drafted:
    """The outcome of the last request: a draft, or the `error` that prevented one."""

    error: str = ""
    draft: Draft | None = None


def forget(chunk_id: str) -> None:
    """Forget the drafts of a chunk, after its text was saved or discarded."""
    _outcomes().pop(chunk_id, None)


def collect(chunk: Chunk, collection: str) -> bool:
    """Put a finished draft of this chunk into the editor. Returns True while one is still being
    made."""
    job = _jobs().get((collection, chunk.id))
    if job is None:
        return False
    if not job.done:
        return True
    del _jobs()[collection, chunk.id]
    draft = job.value()
    if draft.rule is None:
        sentence = draft.error if draft.error.endswith(".") else f"{draft.error}."
        remedy = REMEDIES.get(draft.failed, "")
        error = f"{sentence[:1].upper()}{sentence[1:]} {remedy}".strip()
        _outcomes()[chunk.id] = Drafted(error, draft)
        return False
    state.drafts().pop(chunk.id, None)
    if not _is_stored(draft, chunk):
        state.drafts()[chunk.id] = draft.rule.pretty
    _outcomes()[chunk.id] = Drafted(draft=draft)
    return False


def _begin(chunk_id: str, collection: str, rule: str | None) -> None:
    """Ask for a draft, in the background. `rule` is the stored rule that the author sees: saving
    the draft must not overwrite one that is stored in the meantime."""
    if chunk_id not in state.drafts():
        state.bases()[chunk_id] = rule
    forget(chunk_id)
    try:
        user, resources = state.user(), open_resources()
        # Read again: the chunk's text or clearance may have changed since the pool was gathered.
        chunk = resources.bench.collection(collection).chunks([chunk_id]).get(chunk_id)
        templates = resources.bench.templates()
    except RagfilterError as error:
        _outcomes()[chunk_id] = Drafted(str(error))
        return
    chat, timeout_s = resources.bench.chat, resources.deployment.answer_timeout_s
    if chat is None:
        return
    if chunk is None or not user.sees(chunk):
        _outcomes()[chunk_id] = Drafted(GONE if chunk is None else HIDDEN)
        return

    def work(job: Job[Draft]) -> Draft:
        return suggest(chunk, Stoppable(chat, job.stop), timeout_s=timeout_s, templates=templates)

    _jobs()[collection, chunk_id] = resources.jobs.start(user, object(), work)


def _stop(chunk_id: str, collection: str) -> None:
    job = _jobs().pop((collection, chunk_id), None)
    if job is not None:
        job.stop.set()
    _outcomes()[chunk_id] = Drafted(STOPPED)


def button(chunk: Chunk, collection: str, user: User, resources: Resources, *, busy: bool) -> None:
    """Draw the button that drafts a rule. If it is disabled, its tooltip says why."""
    chat, hidden = resources.bench.chat, not user.sees(chunk)
    draft, text = _outcome(chunk.id).draft, state.drafts().get(chunk.id)
    drafted = draft.rule.pretty if draft is not None and draft.rule is not None else None
    typed = text is not None and text != drafted
    if chat is None:
        about = f"{NO_LLM} {NO_LLM_MORE}"
    elif typed:
        about = "Save or discard what you typed first: the draft would replace it."
    elif hidden:
        about = HIDDEN
    else:
        about = (
            f"Asks {literal(answers.model_label(chat.name))}, once or twice, for at most "
            f"{resources.deployment.answer_timeout_s:g} s. Nothing is saved."
        )
    st.button(
        "Draft a rule",
        key="rule-draft",
        on_click=_begin,
        args=(chunk.id, collection, chunk.rule),
        disabled=chat is None or hidden or typed or busy,
        help=about,
    )


def draw(chunk: Chunk, collection: str, user: User, resources: Resources, *, busy: bool) -> None:
    """Draw who drafted the rule with which template, its doubts and tokens, or why there is no
    draft. While a request is running, draw its time next to a Stop button."""
    outcome = _outcome(chunk.id)
    with st.container(key="draft-note", gap="small"):
        if busy:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.button(
                    "Stop",
                    key="rule-draft-stop",
                    icon=":material/stop:",
                    on_click=_stop,
                    args=(chunk.id, collection),
                    help="Cancel the draft. The text in the editor stays.",
                )
                st.fragment(_progress, run_every=LOOK_S)(chunk.id, collection, resources)
        elif note := _note(outcome, chunk, user, resources):
            html.draw(note)


def _progress(chunk_id: str, collection: str, resources: Resources) -> None:
    """Draw how long a request has been running; redraw the page when it ends."""
    job = _jobs().get((collection, chunk_id))
    if job is None or job.done:
        st.rerun()
    model = resources.bench.chat.name if resources.bench.chat else "the LLM"
    html.draw(
        f'<p class="rf-aside" role="status">Asking {html.text(model)} for a rule … '
        f"{job.seconds:.0f} of at most {resources.deployment.answer_timeout_s:g} s</p>"
    )


def _note(outcome: Drafted, chunk: Chunk, user: User, resources: Resources) -> str:
    draft = outcome.draft
    if outcome.error == STOPPED:
        return f'<p class="rf-verdict">{STOPPED}</p>'
    if outcome.error:
        return (
            f'<p class="rf-verdict rf-bad" role="alert"><b>No draft.</b> '
            f"{html.text(outcome.error)} {_tokens(draft, resources)}</p>"
        )
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
    same = " It is identical to the stored rule." if _is_stored(draft, chunk) else ""
    return (
        f'<p class="rf-verdict"><b>Drafted</b> by {html.text(by)} with the template '
        f"<b>{html.text(draft.category)}</b>.{second}{same} {_tokens(draft, resources)}{doubts}</p>"
    )


def _tokens(draft: Draft | None, resources: Resources) -> str:
    """Tokens, cost if prices are set, and time; empty if nothing was sent."""
    if draft is None or not draft.usage.prompt_tokens:
        return ""
    usage, prices = draft.usage, resources.prices
    parts = [
        numbers.exchanged(usage.prompt_tokens, usage.completion_tokens, estimated=usage.estimated)
    ]
    if prices is not None:
        parts.append(f"cost {numbers.money(prices.of(usage), prices.currency)}")
    return f'<span class="rf-aside">{html.text(" · ".join([*parts, numbers.ms(draft.ms)]))}</span>'


def _is_stored(draft: Draft, chunk: Chunk) -> bool:
    return draft.rule == read_rule(chunk.rule)


def _outcome(chunk_id: str) -> Drafted:
    return _outcomes().get(chunk_id, Drafted())


def _outcomes() -> dict[str, Drafted]:
    """The outcomes of this session by chunk."""
    return state.session().rules.drafted


def _jobs() -> dict[tuple[str, str], Job[Draft]]:
    """The running requests by collection and chunk."""
    return state.session().rules.drafting
