"""Rules drafted by an LLM: for the open chunk, in its editor, or for all filtered chunks, as findings. Nothing is saved
as a rule.

A collection has one run at a time, in the background. Each draft is stored in the workspace at once, so neither a
closed tab nor a killed server loses it. A chunk is read again before it is sent, and sent only if the *user* can see
it, even if an operator is looking: no LLM gets hidden chunks. Source: docs/design.md#drafting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate.effect import GatheredQuestions
from ragfilter.model import Chunk, User
from ragfilter.protocols import Prices, Usage
from ragfilter.rules.drafting import Draft, drafts, foresee, total
from ragfilter.rules.families import as_finding
from ragfilter.rules.lint import Finding, analyse
from ragfilter.rules.rule import place_name, read_rule
from ragfilter.text import numbers
from ragfilter.text.numbers import counted, time_left
from ragfilter.ui.jobs import Job, Stoppable
from ragfilter.ui.kit.rule_editor import rule_effect, saving, visible_collection
from ragfilter.ui.kit.rule_editor.saving import Editing, Trouble
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import literal, message, model_label
from ragfilter.ui.resources import CacheSpec, Resources, open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.state import UnsavedRule

Run = Job[list[Draft]]
DOUBTED: CacheSpec[list[Finding]] = CacheSpec(4)
SAMPLE = 40
"""How many of the selected chunks the cost is estimated from."""
LOOK_S = 0.5
MAX_REASONS = 8
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
    elif not editing.user.sees(chunk):
        about = HIDDEN
    else:
        allowed, limit = True, editing.resources.deployment.answer_timeout_s
        about = f"Asks {literal(model_label(chat.name))}, once or twice, for at most {limit:g} s. Nothing is saved."
    start = partial(_start_one, chunk.id, editing.collection, chunk.rule)
    disabled = busy or not allowed or is_running(editing.collection, editing.resources)
    elements.button("Draft a rule", "rule-draft", start, disabled=disabled, about=about)


def draw_note(editing: Editing, *, busy: bool) -> None:
    """Draw what drafted the rule in the editor, with its doubts and tokens, or the progress while it is being made."""
    job, bench = last_run(editing.collection, editing.resources), editing.resources.bench
    with st.container(key="draft-note", gap="small"):
        if busy and job is not None:
            st.fragment(_progress, run_every=LOOK_S)(job, editing.collection)
        elif draft := _in_editor(editing):
            doubts = "".join(f"<br><b>Doubt:</b> {elements.text(remark)}." for remark in draft.remarks)
            second = " The first answer had a fault; this is the second." if draft.repaired else ""
            used = elements.text(f"{_tokens(draft.usage, bench.prices)} · {numbers.ms(draft.ms)}")
            elements.draw(
                f'<p class="rf-verdict"><b>Drafted</b> by {elements.text(model_label(draft.model))} with the '
                f"template <b>{elements.text(draft.category)}</b>.{second} "
                f'<span class="rf-aside">{used}</span>{doubts}</p>'
            )
        elif bench.chat is None or not editing.user.sees(editing.chunk):
            elements.aside(NO_LLM if bench.chat is None else HIDDEN)


@state.tell_errors()
def _start_one(chunk_id: str, collection: str, rule: str | None) -> None:
    """Ask for a draft of one rule. `rule` is the stored rule that the author sees, because saving
    the draft must not overwrite a newer one."""
    open_resources().bench.drafts.forget(collection, [chunk_id])
    _start(collection, [chunk_id])
    state.session().rules.awaited = (collection, chunk_id, saving.base(chunk_id, rule))


def draw(visible: VisibleCollection) -> None:
    """Draw the cost of drafting the filtered chunks, the progress, and the drafts."""
    collection, resources = visible.collection, visible.resources
    job = last_run(collection, resources)
    # Progress reveals how many chunks the starter drafts, and others must not know.
    sees_job = job is None or visible.user.unrestricted or visible.user == job.owner
    busy = is_running(collection, resources)
    if resources.bench.chat is None:
        elements.empty(NO_LLM, NO_LLM_MORE)
    elif job is not None and busy and sees_job:
        # Refreshed automatically while a run is in progress.
        st.fragment(_progress, run_every=LOOK_S)(job, collection)
    elif busy:
        elements.aside("Rules are being drafted for another user.")
    else:
        if job is not None and sees_job and job.failure:
            st.error(message(f"{job.failure} Finished drafts are kept."), title="Drafting stopped.")
        _begin(visible)
    if stored := _stored(visible):
        _review(visible, stored, busy=busy)


def findings(visible: VisibleCollection) -> list[Finding]:
    """The unsaved drafts, each with its doubts."""
    drafted = (draft for draft in _stored(visible) if draft.rule is not None)
    unsaved = [draft for draft in drafted if visible.chunks[draft.chunk_id].rule != draft.text]
    if not unsaved:
        return []
    known = rule_effect.gathered(visible)
    texts = tuple((draft.chunk_id, draft.text) for draft in unsaved)
    key = (*visible.key, visible.settings, visible.questions_key, known is None, texts)
    return visible.resources.cache(DOUBTED).of(key, lambda: _doubted(visible, unsaved, known))


def _doubted(visible: VisibleCollection, unsaved: Sequence[Draft], known: GatheredQuestions | None) -> list[Finding]:
    """The drafts with their remarks, the linter's findings about them among the stored rules, and
    the labelled questions that would lose a chunk."""
    rules = {draft.chunk_id: draft.rule for draft in unsaved if draft.rule is not None}
    doubts = {draft.chunk_id: dict.fromkeys(draft.remarks) for draft in unsaved}
    for finding in analyse({**visible.chunks, **visible.read(rules)}, rules):
        doubt = f"{place_name(finding.place)}: {finding.message}".removeprefix(": ").rstrip(".")
        for chunk_id in finding.chunk_ids if finding.severity != "note" else ():
            doubts[chunk_id][doubt] = None
    if known is not None:
        changes = {draft.chunk_id: draft.text for draft in unsaved}
        for chunk_id, queries in known.effect(changes).losses.items():
            if chunk_id in doubts:
                doubts[chunk_id] |= dict.fromkeys(f"would drop what “{q}” needs" for q in queries)
    chunks, words = visible.chunks, "Drafted with the template"
    return [
        as_finding("draft", chunks[d.chunk_id], d.text, f"{words} {d.category}", [*doubts[d.chunk_id]]) for d in unsaved
    ]


def _begin(visible: VisibleCollection) -> None:
    """Draw the cost of drafting, and the button that starts it."""
    sender = state.user()
    there = {draft.chunk_id for draft in _stored(visible) if draft.rule is not None}
    left = [row.chunk for row in visible_collection.selected(visible) if row.id not in there and sender.sees(row.chunk)]
    # Chunks with a written rule are drafted only if the filter shows no others.
    chunks = [chunk for chunk in left if not chunk.rule] or left
    if not chunks:
        elements.empty("Nothing to draft.", "No filtered chunk lacks a draft.")
        return
    st.markdown(message(_cost(visible, chunks)))
    start = partial(state.tell_errors()(_start), visible.collection, [chunk.id for chunk in chunks])
    about = "Drafts rules for filtered chunks without a draft. Saves nothing."
    elements.button(f"Draft {counted(len(chunks), 'rule')}", "drafts-begin", start, about=about)


def _cost(visible: VisibleCollection, chunks: Sequence[Chunk]) -> str:
    """The approximate cost of first answers in words, estimated from a sample."""
    bench = visible.resources.bench
    try:
        ids = [chunk.id for chunk in chunks[:: -(-len(chunks) // SAMPLE)]]
        sample = list(bench.collection(visible.collection).chunks(ids).values())
        usage = foresee(sample, len(chunks), bench.templates())
    except RagfilterError as error:
        return str(error)
    return (
        f"{counted(len(chunks), 'chunk')}: {_tokens(usage, bench.prices)}, read and "
        f"written by {model_label(bench.chat.name) if bench.chat else ''}; up to three times as much if first answers "
        "are faulty. A faulty answer is sent back once, with the fault named."
    )


def _progress(job: Run, collection: str) -> None:
    if job.done:
        st.rerun()
    done, count, used = job.at
    left = time_left(job.seconds / done * (count - done) if done else None)
    words = (f"{done:,} of {count:,} drafted", used, left or f"{job.seconds:.0f} s")
    st.progress(min(1.0, done / max(1, count)), text=" · ".join(filter(None, words)))
    about = "Drafts so far are kept, and the next run skips them."
    elements.button("Stop", "drafts-stop", state.then_page(_stop), collection, icon="stop", about=about)


def _review(visible: VisibleCollection, stored: Sequence[Draft], *, busy: bool) -> None:
    """Draw the number of drafts, why some chunks have none, and the button that forgets them."""
    bench, figures = visible.resources.bench, total(stored, 0)
    st.markdown(
        f"{counted(figures.drafted, 'draft')}, {figures.repaired} by a second answer, "
        f"{figures.doubtful} with remarks; {figures.without} without a draft; {_tokens(figures.usage, bench.prices)}."
    )
    reasons: dict[str, list[str]] = {}
    for draft in stored:
        if draft.rule is None:
            reasons.setdefault(draft.error, []).append(draft.chunk_id)
    listed = [
        f"- {message(ids[0])}{f' and {len(ids) - 1:,} more' if len(ids) > 1 else ''}: {message(reason)}"
        for reason, ids in list(reasons.items())[:MAX_REASONS]
    ]
    if listed:
        st.warning("\n".join(listed), title="These chunks got no draft. Draft again to retry.")
    forget = partial(state.tell_errors()(bench.drafts.forget), visible.collection, [draft.chunk_id for draft in stored])
    about = "Deletes them, so you can draft again. Accepted rules stay."
    elements.button("Forget these drafts", "drafts-forget", forget, disabled=busy, about=about)


def last_run(collection: str, resources: Resources) -> Run | None:
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


def _start(collection: str, ids: Sequence[str]) -> None:
    """Draft rules for these chunks, unless a run over the collection is in progress."""
    # This user's clearance decides which chunks are sent.
    user, resources = state.user(), open_resources()
    bench, timeout_s = resources.bench, resources.deployment.answer_timeout_s
    chat, templates = bench.chat, bench.templates()
    if chat is None:
        return

    def work(job: Run) -> list[Draft]:
        done: list[Draft] = []
        job.tell(0, len(ids))
        chunks = _readable(collection, ids, user, resources)
        for draft in drafts(chunks, Stoppable(chat, job.stop), timeout_s=timeout_s, templates=templates):
            if job.stop.is_set():
                break
            bench.drafts.keep(collection, draft)
            done.append(draft)
            job.tell(len(done), len(ids), _tokens(total(done, 0).usage, bench.prices))
        return done

    resources.jobs.start(user, ("drafting", collection), work, again=True)


def _readable(collection: str, ids: Sequence[str], user: User, resources: Resources) -> Iterator[Chunk]:
    """The chunks as they are at their turn, without deleted or hidden ones."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _stored(visible: VisibleCollection) -> list[Draft]:
    """The stored drafts of visible chunks, and the failures."""
    stored = visible.resources.bench.drafts.drafts(visible.collection)
    return [draft for draft in stored if draft.chunk_id in visible.chunks]


def _tokens(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    cost = "" if prices is None else f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return numbers.exchanged(usage.prompt_tokens, usage.completion_tokens, estimated=usage.estimated) + cost
