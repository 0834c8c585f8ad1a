"""Rules that an LLM drafts for the filtered chunks: the expected cost, the progress, and the drafts
to accept.

Source: docs/design.md#drafting. A collection has one run at a time, in the background. A draft is
saved in the workspace as it is made, so neither a closed tab nor a killed server loses one. A chunk
is read again before it is sent, and sent only if the *user* may see it, even if an operator is
looking: hidden chunks are sent to no LLM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.errors import RagfilterError
from ragfilter.evaluate.effect import LabelledQuestions, weigh
from ragfilter.model import Chunk, User
from ragfilter.protocols import Usage
from ragfilter.rules.drafting import Draft, drafts, foresee, total
from ragfilter.rules.families import as_finding
from ragfilter.rules.lint import Finding, analyse
from ragfilter.rules.rule import place_name
from ragfilter.text import numbers
from ragfilter.text.numbers import counted, time_left
from ragfilter.ui.kit.rule_editor import desk, rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.kit.rule_editor.llm_draft import NO_LLM, NO_LLM_MORE
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message
from ragfilter.ui.session import answers, state
from ragfilter.ui.session.jobs import Job, Stoppable
from ragfilter.ui.session.resources import Resources, ShelfSpec, open_resources

Drafting = Job[list[Draft]]
DOUBTED: ShelfSpec[list[Finding]] = ShelfSpec(4)
SAMPLE = 40
"""Chunks of the selection from which the cost is estimated."""
LOOK_S = 1.0
MAX_REASONS = 8


def draw(work: Desk) -> None:
    """Draw the cost, the progress, and what was drafted."""
    running = last_run(work.collection, work.resources)
    shown = _is_shown(work.collection, work.user, work.resources)
    busy = is_running(work)
    if work.resources.bench.chat is None:
        html.empty(NO_LLM, NO_LLM_MORE)
    elif running is not None and busy:
        # Refreshed automatically while a run is in progress.
        st.fragment(_progress, run_every=LOOK_S)(running, work.collection, shown=shown)
    else:
        _told(running if shown else None)
        _begin(work)
    if drafts := _made(work):
        _review(work, drafts, busy=busy)


def is_running(work: Desk) -> bool:
    """Whether rules of the collection are being drafted."""
    running = last_run(work.collection, work.resources)
    return running is not None and not running.done


def _made(work: Desk) -> list[Draft]:
    stored = work.resources.bench.drafts.drafts(work.collection)
    return [draft for draft in stored if draft.chunk_id in work.chunks]


def findings(work: Desk) -> list[Finding]:
    """The drafts that are not saved, each with its doubts."""
    drafted = [draft for draft in _made(work) if draft.rule is not None]
    drafted = [draft for draft in drafted if work.chunks[draft.chunk_id].rule != draft.text]
    if not drafted:
        return []
    known = rule_effect.gathered(work)
    texts = tuple((draft.chunk_id, draft.text) for draft in drafted)
    key = (*work.key, work.settings, work.mark, known is None, texts)
    return work.resources.shelf(DOUBTED).of(key, lambda: _doubted(work, drafted, known))


def _doubted(
    work: Desk, drafted: Sequence[Draft], known: LabelledQuestions | None
) -> list[Finding]:
    """The drafts with their remarks, what the linter finds in them beside the stored rules, and
    which labelled questions would lose their chunk."""
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
            "draft", work.chunks[draft.chunk_id], draft.text,
            f"Drafted with the template {draft.category}", [*doubts[draft.chunk_id]],
        )
        for draft in drafted
    ]  # fmt: skip


def _begin(work: Desk) -> None:
    """Draw what drafting would cost, and the button that starts it."""
    sender = state.user()
    there = {draft.chunk_id for draft in _made(work) if draft.rule is not None}
    open_ = [row.chunk for row in desk.selected(work) if row.id not in there]
    open_ = [chunk for chunk in open_ if sender.sees(chunk)]
    # Rules that somebody wrote are drafted again only if the filter shows no other chunks.
    chosen = [chunk for chunk in open_ if not chunk.rule] or open_
    if not chosen:
        html.empty("Nothing to draft.", "The filter shows no chunk that lacks a draft.")
        return
    st.markdown(message(_cost(work, chosen)))
    st.button(
        f"Draft {counted(len(chosen), 'rule')}",
        key="drafts-begin",
        on_click=_start_run,
        args=(work.collection, [chunk.id for chunk in chosen]),
        help="For the filtered chunks that have no draft yet. Nothing is saved.",
    )


def _cost(work: Desk, chosen: Sequence[Chunk]) -> str:
    """The approximate cost of the first answers, estimated from a sample, in words."""
    resources = work.resources
    chat = resources.bench.chat
    step = -(-len(chosen) // SAMPLE)
    try:
        ids = [chunk.id for chunk in chosen[::step]]
        whole = list(resources.bench.collection(work.collection).chunks(ids).values())
        usage = foresee(whole, len(chosen), resources.bench.templates())
    except RagfilterError as error:
        return str(error)
    name = answers.model_label(chat.name) if chat is not None else ""
    return (
        f"{counted(len(chosen), 'chunk')}: {_tokens(usage, resources.prices)}, read and "
        f"written by {name}; up to three times as much if first answers have faults. A faulty "
        "answer is returned once, with the fault named."
    )


def _progress(running: Drafting, collection: str, *, shown: bool) -> None:
    if running.done:
        st.rerun()
    if not shown:
        html.aside("Rules are being drafted for another user.")
        return
    done, count, used = running.at
    left = time_left(running.seconds / done * (count - done) if done else None)
    words = " · ".join(filter(None, (f"{done:,} of {count:,} drafted", used, left)))
    st.progress(min(1.0, done / max(1, count)), text=words)
    stopping = running.stop.is_set()
    st.button(
        "Stopping …" if stopping else "Stop",
        key="drafts-stop",
        icon=":material/stop:",
        on_click=_stop,
        args=(collection,),
        disabled=stopping,
        help="Drafts so far are kept, and the next run skips them.",
    )


def _told(running: Drafting | None) -> None:
    """Draw what went wrong."""
    failed = state.session().rules.drafting_failed
    trouble = failed or ("" if running is None else running.failure)
    if trouble:
        st.error(message(f"{trouble} What was drafted is kept."), title="Drafting stopped.")


def _review(work: Desk, drafts: Sequence[Draft], *, busy: bool) -> None:
    """Draw how many drafts there are, and the button that forgets them."""
    figures = total(drafts, 0)
    st.markdown(
        f"{counted(figures.drafted, 'draft')}, {figures.repaired} by a second answer, "
        f"{figures.doubtful} with remarks; {figures.without} without a draft; "
        f"{_tokens(figures.usage, work.resources.prices)}."
    )
    _without(drafts)
    st.button(
        "Forget these drafts",
        key="drafts-forget",
        on_click=_forget,
        args=(work.collection, [draft.chunk_id for draft in drafts]),
        disabled=busy,
        help="Lets you draft them again. Accepted rules stay.",
    )


def _without(drafts: Sequence[Draft]) -> None:
    """Why chunks have no draft, each reason once."""
    reasons: dict[str, list[str]] = {}
    for draft in drafts:
        if draft.rule is None:
            reasons.setdefault(draft.error, []).append(draft.chunk_id)
    listed = [
        f"- {message(ids[0])}{f' and {len(ids) - 1:,} more' if len(ids) > 1 else ''}: "
        f"{message(reason)}"
        for reason, ids in list(reasons.items())[:MAX_REASONS]
    ]
    if listed:
        st.warning(
            "\n".join(listed), title="No draft was made for the following. Draft again to retry."
        )


def last_run(collection: str, resources: Resources) -> Drafting | None:
    """The last run over this collection since the server started, None if there is none."""
    return resources.jobs.find(_key(collection))


def _is_shown(collection: str, user: User, resources: Resources) -> bool:
    """Whether `user` may know how far the last run is. It tells how many chunks its starter drafts,
    of which others may not know."""
    run = last_run(collection, resources)
    return run is None or user.unrestricted or user == run.owner


def _start_run(collection: str, chunk_ids: Sequence[str]) -> None:
    """Draft rules for these chunks, unless a run over the collection is in progress."""
    # The user whose clearance decides whether a chunk may be sent.
    user = state.user()
    _try(lambda resources: _start(collection, chunk_ids, user, resources))


def _stop(collection: str) -> None:
    """Stop after the last saved draft."""
    running = last_run(collection, open_resources())
    if running is not None:
        running.stop.set()


def _forget(collection: str, chunk_ids: Sequence[str]) -> None:
    """Remove drafts."""
    _try(lambda resources: resources.bench.drafts.forget(collection, chunk_ids))


def _start(collection: str, ids: Sequence[str], user: User, resources: Resources) -> None:
    chat, templates = resources.bench.chat, resources.bench.templates()
    if chat is None:
        return

    def work(job: Drafting) -> list[Draft]:
        done: list[Draft] = []
        job.tell(0, len(ids))
        for draft in drafts(
            _readable(collection, ids, user, resources), Stoppable(chat, job.stop),
            timeout_s=resources.deployment.answer_timeout_s, templates=templates,
        ):  # fmt: skip
            if job.stop.is_set() and draft.rule is None:
                break
            resources.bench.drafts.keep(collection, draft)
            done.append(draft)
            if not job.tell(len(done), len(ids), _tokens(total(done, 0).usage, resources.prices)):
                break
        return done

    resources.jobs.start(user, _key(collection), work, again=True)


def _key(collection: str) -> tuple[str, str]:
    return "drafting", collection


def _tokens(usage: Usage, prices: Prices | None) -> str:
    """``about 5,000 + 700 tokens, cost 0.0123``."""
    about, cost = "about " if usage.estimated else "", ""
    if prices is not None:
        cost = f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return f"{about}{numbers.exchanged(usage.prompt_tokens, usage.completion_tokens)}{cost}"


def _readable(
    collection: str, ids: Sequence[str], user: User, resources: Resources
) -> Iterator[Chunk]:
    """The chunks as they are when their turn comes, without those that are deleted or hidden."""
    store = resources.bench.collection(collection)
    for chunk_id in ids:
        chunk = store.chunks([chunk_id]).get(chunk_id)
        if chunk is not None and user.sees(chunk):
            yield chunk


def _try(action: Callable[[Resources], None]) -> None:
    """Do it, and keep the error for the page."""
    rules = state.session().rules
    rules.drafting_failed = ""
    try:
        action(open_resources())
    except RagfilterError as error:
        rules.drafting_failed = str(error)
