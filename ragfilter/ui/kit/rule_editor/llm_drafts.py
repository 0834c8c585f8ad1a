"""Rules drafted by an LLM: the runs over a collection, and the draft for the open chunk, in its editor. Nothing is
saved as a rule.

A collection has one run at a time, in the background. Each draft is stored in the workspace at once, so neither a
closed tab nor a killed server loses it. A chunk is read again before it is sent, and sent only if the *user* can see
it, even if an operator is looking: no LLM gets hidden chunks. Source: docs/design.md#drafting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st

from ragfilter.basics.threads import Pace
from ragfilter.model import Chunk, User
from ragfilter.protocols import Prices, Usage
from ragfilter.rules.drafting import Draft, drafts, total
from ragfilter.rules.rule import read_rule
from ragfilter.text import numbers
from ragfilter.ui.jobs import Job, Stoppable, draw_progress, progress_of
from ragfilter.ui.kit.rule_editor import saving
from ragfilter.ui.kit.rule_editor.saving import Editing
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, model_label
from ragfilter.ui.resources import Resources, open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.state import Trouble, UnsavedRule

DraftingJob = Job[list[Draft]]
REFRESH_S = 0.5
"""Seconds between two looks at a run in progress."""
NO_LLM = "Drafting needs an LLM: set OPENAI_API_KEY or OPENAI_BASE_URL."
NO_LLM_MORE = "`make local-llm` serves a tiny one to try it with."
HIDDEN = "The user cannot see this chunk, so it is not sent to an LLM."
UNSENT = "Nothing was sent: the chunk is gone, or the user can no longer see it."


def collect(editing: Editing) -> bool:
    """Put the requested draft into the editor. Returns True while it is being made."""
    rules, chunk = state.session().rules, editing.chunk
    if rules.awaited is None or rules.awaited[:2] != (editing.collection, chunk.id):
        return False
    if is_running(editing.collection, editing.resources):
        return True
    base, rules.awaited = rules.awaited[2], None
    draft = _draft_of(editing)
    if draft is None or draft.rule is None:
        saving.show_outcome(chunk.id, Trouble(f"No draft: {UNSENT if draft is None else draft.error}"))
    elif draft.rule == read_rule(chunk.rule):
        saving.store_unsaved(chunk.id, None)
        st.toast("The draft is identical to the stored rule.")
    else:
        saving.store_unsaved(chunk.id, UnsavedRule(draft.rule.pretty, base))
    return False


def _draft_of(editing: Editing) -> Draft | None:
    drafts = editing.resources.bench.drafts.drafts(editing.collection)
    return next((draft for draft in drafts if draft.chunk_id == editing.chunk.id), None)


def _in_editor(editing: Editing) -> Draft | None:
    """The draft in the chunk's editor, if the unsaved text is one."""
    unsaved = state.unsaved_rule(editing.chunk.id)
    draft = _draft_of(editing) if unsaved else None
    return draft if draft and draft.rule and unsaved and draft.rule.pretty == unsaved.text else None


def draw_button(editing: Editing, *, busy: bool) -> None:
    """Draw the button that drafts a rule. If it is disabled, its tooltip says why."""
    chunk, chat = editing.chunk, editing.resources.bench.chat
    allowed = False
    if chat is None:
        about = f"{NO_LLM} {NO_LLM_MORE}"
    elif state.unsaved_rule(chunk.id) and _in_editor(editing) is None:
        about = "Save or discard your text first: the draft would replace it."
    elif not state.user().sees(chunk):
        about = HIDDEN
    else:
        allowed, limit = True, editing.resources.bench.deployment.answer_timeout_s
        about = f"Asks {literal(model_label(chat.name))}, once or twice, for at most {limit:g} s. Nothing is saved."
    ask = partial(_start_one, chunk.id, editing.collection, chunk.rule)
    disabled = busy or not allowed or is_running(editing.collection, editing.resources)
    elements.button("Draft", "rule-draft", ask, disabled=disabled, about=about)


def draw_note(editing: Editing, *, busy: bool) -> None:
    """Draw what drafted the rule in the editor, with its doubts and tokens, or the progress while it is being made."""
    job, bench = last_run(editing.collection, editing.resources), editing.resources.bench
    with st.container(key="draft-note", gap="small"):
        if busy and job is not None:
            watch(job, editing.collection)
        elif draft := _in_editor(editing):
            doubts = "".join(f"<br><b>Doubt:</b> {elements.text(remark)}." for remark in draft.remarks)
            second = " The first answer had a fault; this is the second." if draft.repaired else ""
            used = elements.text(f"{tokens_text(draft.usage, bench.prices)} · {numbers.ms(draft.ms)}")
            elements.draw(
                f'<p class="rf-verdict"><b>Drafted</b> by {elements.text(model_label(draft.model))} with the '
                f"template <b>{elements.text(draft.category)}</b>.{second} "
                f'<span class="rf-aside">{used}</span>{doubts}</p>'
            )
        elif bench.chat is None or not state.user().sees(editing.chunk):
            elements.aside(NO_LLM if bench.chat is None else HIDDEN)


@state.notice_errors()
def _start_one(chunk_id: str, collection: str, rule: str | None) -> None:
    """Ask for a draft of one rule. `rule` is the stored rule that the author sees, because saving
    the draft must not overwrite a newer one."""
    open_resources().bench.drafts.forget(collection, [chunk_id])
    start(collection, [chunk_id])
    state.session().rules.awaited = (collection, chunk_id, saving.base(chunk_id, rule))


def watch(job: DraftingJob, collection: str) -> None:
    """Show the progress of a run until it ends."""
    st.fragment(_progress, run_every=REFRESH_S)(job, collection, Pace())


def _progress(job: DraftingJob, collection: str, pace: Pace) -> None:
    if job.done:
        st.rerun()
    about, stop = "Drafts so far are kept, and the next run skips them.", partial(state.then_page(_stop), collection)
    draw_progress("drafts", *progress_of(job, "Drafting", pace), stop, about)


def last_run(collection: str, resources: Resources) -> DraftingJob | None:
    """The last run over this collection since the server started; None if there is none."""
    return resources.jobs.find(("drafting", collection))


def is_running(collection: str, resources: Resources) -> bool:
    """Whether rules of the collection are being drafted."""
    job = last_run(collection, resources)
    return job is not None and not job.done


def _stop(collection: str) -> None:
    """Stop after the last stored draft."""
    state.session().rules.awaited = None
    open_resources().jobs.stop(("drafting", collection))


def start(collection: str, ids: Sequence[str]) -> None:
    """Draft rules for these chunks, unless a run over the collection is in progress."""
    # This user's clearance decides which chunks are sent.
    user, resources = state.user(), open_resources()
    bench, timeout_s = resources.bench, resources.bench.deployment.answer_timeout_s
    chat, templates = bench.chat, bench.templates()
    if chat is None:
        return

    def work(job: DraftingJob) -> list[Draft]:
        done: list[Draft] = []
        job.tell(0, len(ids))
        chunks = _readable(collection, ids, user, resources)
        for draft in drafts(chunks, Stoppable(chat, job.stop), timeout_s=timeout_s, templates=templates):
            if job.stop.is_set():
                break
            bench.drafts.keep(collection, draft)
            done.append(draft)
            job.tell(len(done), len(ids), f"Drafting, {tokens_text(total(done, 0).usage, bench.prices)}")
        return done

    resources.jobs.start(user, ("drafting", collection), work, again=True)


def _readable(collection: str, ids: Sequence[str], user: User, resources: Resources) -> Iterator[Chunk]:
    """The chunks as they are at their turn, without deleted or hidden ones."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def tokens_text(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    cost = "" if prices is None else f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return numbers.exchanged(usage.prompt_tokens, usage.completion_tokens, estimated=usage.estimated) + cost
