"""Rules drafted by an LLM: for the open chunk, in its editor, or for all filtered chunks, as
findings. Nothing is saved as a rule.

Source: docs/design.md#drafting. A collection has one run at a time, in the background. Each draft is stored in the
workspace at once, so neither a closed tab nor a killed server loses it. A chunk is read again before it is sent, and
sent only if the *user* can see it, even if an operator is looking: no LLM gets hidden chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.errors import RagfilterError
from ragfilter.evaluate.effect import GatheredQuestions, weigh
from ragfilter.model import Chunk, User
from ragfilter.protocols import Usage
from ragfilter.rules.drafting import Draft, drafts, foresee, total
from ragfilter.rules.families import as_finding
from ragfilter.rules.lint import Finding, analyse
from ragfilter.rules.rule import place_name, read_rule
from ragfilter.text import numbers
from ragfilter.text.numbers import counted, time_left
from ragfilter.ui.kit.rule_editor import chunk_list, rule_effect, saving
from ragfilter.ui.kit.rule_editor.chunk_list import VisibleCollection
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal, message, model_label
from ragfilter.ui.server.jobs import Job, Stoppable
from ragfilter.ui.server.resources import Resources, ShelfSpec, open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.state import RuleDraft

Run = Job[list[Draft]]
DOUBTED: ShelfSpec[list[Finding]] = ShelfSpec(4)
SAMPLE = 40
"""How many of the selected chunks the cost is estimated from."""
LOOK_S = 0.5
MAX_REASONS = 8
NO_LLM = "Drafting needs an LLM: set OPENAI_API_KEY or OPENAI_BASE_URL."
NO_LLM_MORE = "`make local-llm` serves a tiny one to try it with."
HIDDEN = "The user cannot see this chunk, so it is not sent to an LLM."
UNSENT = "Nothing was sent: the chunk is gone, or the user can no longer see it."


def collect(chunk: Chunk, collection: str, resources: Resources) -> bool:
    """Put the requested draft into the editor. Returns True while it is being made."""
    rules = state.session().rules
    if rules.awaited is None or rules.awaited[:2] != (collection, chunk.id):
        return False
    job = last_run(collection, resources)
    if job is not None and not job.done:
        return True
    base, rules.awaited = rules.awaited[2], None
    draft = next((d for d in _stored(collection, resources) if d.chunk_id == chunk.id), None)
    if draft is None or draft.rule is None:
        why = UNSENT if draft is None else draft.error
        saving.show_outcome(chunk.id, saving.Trouble(f"No draft: {why}"))
        return False
    same = draft.rule == read_rule(chunk.rule)
    saving.store_draft(chunk.id, None if same else RuleDraft(draft.rule.pretty, base))
    if same:
        st.toast("The draft is identical to the stored rule.")
    return False


def in_editor(chunk: Chunk, collection: str, resources: Resources) -> Draft | None:
    """The draft in the chunk's editor, if the unsaved text is one."""
    if (typed := state.draft(chunk.id)) is not None:
        for draft in _stored(collection, resources):
            if draft.chunk_id == chunk.id and draft.rule and draft.rule.pretty == typed.text:
                return draft
    return None


def draw_button(chunk: Chunk, collection: str, user: User, resources: Resources, *, busy: bool) -> None:
    """Draw the button that drafts a rule. If it is disabled, its tooltip says why."""
    chat, hidden = resources.bench.chat, not user.sees(chunk)
    typed = bool(state.draft(chunk.id)) and in_editor(chunk, collection, resources) is None
    if chat is None:
        about = f"{NO_LLM} {NO_LLM_MORE}"
    elif typed:
        about = "Save or discard your text first: the draft would replace it."
    elif hidden:
        about = HIDDEN
    else:
        about = (
            f"Asks {literal(model_label(chat.name))}, once or twice, for at most "
            f"{resources.deployment.answer_timeout_s:g} s. Nothing is saved."
        )
    html.button(
        "Draft a rule",
        "rule-draft",
        _start_one,
        chunk.id,
        collection,
        chunk.rule,
        disabled=chat is None or hidden or typed or busy or is_running(collection, resources),
        about=about,
    )


def draw_note(chunk: Chunk, collection: str, user: User, resources: Resources, *, busy: bool) -> None:
    """Draw which model and template drafted the rule in the editor, with its doubts and tokens, or
    the progress while it is being made."""
    job = last_run(collection, resources)
    with st.container(key="draft-note", gap="small"):
        if busy and job is not None:
            st.fragment(_progress, run_every=LOOK_S)(job, collection)
        elif draft := in_editor(chunk, collection, resources):
            html.draw(_note(draft, resources))
        elif resources.bench.chat is None or not user.sees(chunk):
            html.aside(NO_LLM if resources.bench.chat is None else HIDDEN)


def _note(draft: Draft, resources: Resources) -> str:
    doubts = "".join(f"<br><b>Doubt:</b> {html.text(remark)}." for remark in draft.remarks)
    second = " The first answer had a fault; this is the second." if draft.repaired else ""
    used = " · ".join((_tokens(draft.usage, resources.bench.prices), numbers.ms(draft.ms)))
    return (
        f'<p class="rf-verdict"><b>Drafted</b> by {html.text(model_label(draft.model))} with the '
        f"template <b>{html.text(draft.category)}</b>.{second} "
        f'<span class="rf-aside">{html.text(used)}</span>{doubts}</p>'
    )


@state.tell_errors()
def _start_one(chunk_id: str, collection: str, rule: str | None) -> None:
    """Ask for a draft of one rule. `rule` is the stored rule that the author sees, because saving
    the draft must not overwrite a newer one."""
    open_resources().bench.drafts.forget(collection, [chunk_id])
    _start(collection, [chunk_id])
    state.session().rules.awaited = (collection, chunk_id, saving.base(chunk_id, rule))


def draw(work: VisibleCollection) -> None:
    """Draw the cost of drafting the filtered chunks, the progress, and the drafts."""
    collection, resources = work.collection, work.resources
    job = last_run(collection, resources)
    # Progress reveals how many chunks the starter drafts, and others must not know.
    shown = job is None or work.user.unrestricted or work.user == job.owner
    busy = is_running(collection, resources)
    if resources.bench.chat is None:
        html.empty(NO_LLM, NO_LLM_MORE)
    elif job is not None and busy and shown:
        # Refreshed automatically while a run is in progress.
        st.fragment(_progress, run_every=LOOK_S)(job, collection)
    elif busy:
        html.aside("Rules are being drafted for another user.")
    else:
        if job is not None and shown and job.failure:
            text = f"{job.failure} Finished drafts are kept."
            st.error(message(text), title="Drafting stopped.")
        _begin(work)
    if drafted := _visible(work):
        _review(work, drafted, busy=busy)


def findings(work: VisibleCollection) -> list[Finding]:
    """The unsaved drafts, each with its doubts."""
    drafted = [draft for draft in _visible(work) if draft.rule is not None]
    drafted = [draft for draft in drafted if work.chunks[draft.chunk_id].rule != draft.text]
    if not drafted:
        return []
    known = rule_effect.gathered(work)
    texts = tuple((draft.chunk_id, draft.text) for draft in drafted)
    key = (*work.key, work.settings, work.mark, known is None, texts)
    return work.resources.shelf(DOUBTED).of(key, lambda: _doubted(work, drafted, known))


def _doubted(work: VisibleCollection, drafted: Sequence[Draft], known: GatheredQuestions | None) -> list[Finding]:
    """The drafts with their remarks, the linter's findings about them among the stored rules, and
    the labelled questions that would lose a chunk."""
    rules = {draft.chunk_id: draft.rule for draft in drafted if draft.rule is not None}
    doubts = {draft.chunk_id: dict.fromkeys(draft.remarks) for draft in drafted}
    for finding in analyse({**work.chunks, **work.read(rules)}, rules):
        doubt = f"{place_name(finding.place)}: {finding.message}".removeprefix(": ").rstrip(".")
        for chunk_id in finding.chunk_ids if finding.severity != "note" else ():
            doubts[chunk_id][doubt] = None
    if known is not None:
        ruled = (replace(work.chunks[draft.chunk_id], rule=draft.text) for draft in drafted)
        for chunk_id, queries in weigh(ruled, known).losses.items():
            doubts[chunk_id] |= dict.fromkeys(f"would drop what “{q}” needs" for q in queries)
    return [
        as_finding(
            "draft",
            work.chunks[draft.chunk_id],
            draft.text,
            f"Drafted with the template {draft.category}",
            [*doubts[draft.chunk_id]],
        )
        for draft in drafted
    ]


def _begin(work: VisibleCollection) -> None:
    """Draw the cost of drafting, and the button that starts it."""
    sender = state.user()
    there = {draft.chunk_id for draft in _visible(work) if draft.rule is not None}
    left = [row.chunk for row in chunk_list.selected(work) if row.id not in there]
    left = [chunk for chunk in left if sender.sees(chunk)]
    # Chunks with a written rule are drafted only if the filter shows no others.
    chosen = [chunk for chunk in left if not chunk.rule] or left
    if not chosen:
        html.empty("Nothing to draft.", "No filtered chunk lacks a draft.")
        return
    st.markdown(message(_cost(work, chosen)))
    html.button(
        f"Draft {counted(len(chosen), 'rule')}",
        "drafts-begin",
        state.tell_errors()(_start),
        work.collection,
        [chunk.id for chunk in chosen],
        about="Drafts rules for filtered chunks without a draft. Saves nothing.",
    )


def _cost(work: VisibleCollection, chosen: Sequence[Chunk]) -> str:
    """The approximate cost of first answers in words, estimated from a sample."""
    resources = work.resources
    chat = resources.bench.chat
    step = -(-len(chosen) // SAMPLE)
    try:
        ids = [chunk.id for chunk in chosen[::step]]
        whole = list(resources.bench.collection(work.collection).chunks(ids).values())
        usage = foresee(whole, len(chosen), resources.bench.templates())
    except RagfilterError as error:
        return str(error)
    name = model_label(chat.name) if chat is not None else ""
    return (
        f"{counted(len(chosen), 'chunk')}: {_tokens(usage, resources.bench.prices)}, read and "
        f"written by {name}; up to three times as much if first answers are faulty. A faulty "
        "answer is sent back once, with the fault named."
    )


def _progress(job: Run, collection: str) -> None:
    if job.done:
        st.rerun()
    done, count, used = job.at
    left = time_left(job.seconds / done * (count - done) if done else None)
    words = (f"{done:,} of {count:,} drafted", used, left or f"{job.seconds:.0f} s")
    st.progress(min(1.0, done / max(1, count)), text=" · ".join(filter(None, words)))
    html.button(
        "Stop",
        "drafts-stop",
        state.then_page(_stop),
        collection,
        icon="stop",
        about="Drafts so far are kept, and the next run skips them.",
    )


def _review(work: VisibleCollection, drafted: Sequence[Draft], *, busy: bool) -> None:
    """Draw the number of drafts, why some chunks have none, and the button that forgets them."""
    figures = total(drafted, 0)
    st.markdown(
        f"{counted(figures.drafted, 'draft')}, {figures.repaired} by a second answer, "
        f"{figures.doubtful} with remarks; {figures.without} without a draft; "
        f"{_tokens(figures.usage, work.resources.bench.prices)}."
    )
    reasons: dict[str, list[str]] = {}
    for draft in drafted:
        if draft.rule is None:
            reasons.setdefault(draft.error, []).append(draft.chunk_id)
    listed = [
        f"- {message(ids[0])}{f' and {len(ids) - 1:,} more' if len(ids) > 1 else ''}: {message(reason)}"
        for reason, ids in list(reasons.items())[:MAX_REASONS]
    ]
    if listed:
        st.warning("\n".join(listed), title="These chunks got no draft. Draft again to retry.")
    html.button(
        "Forget these drafts",
        "drafts-forget",
        state.tell_errors()(work.resources.bench.drafts.forget),
        work.collection,
        [draft.chunk_id for draft in drafted],
        disabled=busy,
        about="Deletes them, so you can draft again. Accepted rules stay.",
    )


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
    chat, templates = resources.bench.chat, resources.bench.templates()
    if chat is None:
        return

    def work(job: Run) -> list[Draft]:
        done: list[Draft] = []
        job.tell(0, len(ids))
        for draft in drafts(
            _readable(collection, ids, user, resources),
            Stoppable(chat, job.stop),
            timeout_s=resources.deployment.answer_timeout_s,
            templates=templates,
        ):
            if job.stop.is_set():
                break
            resources.bench.drafts.keep(collection, draft)
            done.append(draft)
            job.tell(len(done), len(ids), _tokens(total(done, 0).usage, resources.bench.prices))
        return done

    resources.jobs.start(user, ("drafting", collection), work, again=True)


def _readable(collection: str, ids: Sequence[str], user: User, resources: Resources) -> Iterator[Chunk]:
    """The chunks as they are at their turn, without deleted or hidden ones."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _stored(collection: str, resources: Resources) -> tuple[Draft, ...]:
    return resources.bench.drafts.drafts(collection)


def _visible(work: VisibleCollection) -> list[Draft]:
    stored = _stored(work.collection, work.resources)
    return [draft for draft in stored if draft.chunk_id in work.chunks]


def _tokens(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    about, cost = "about " if usage.estimated else "", ""
    if prices is not None:
        cost = f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return f"{about}{numbers.exchanged(usage.prompt_tokens, usage.completion_tokens)}{cost}"
