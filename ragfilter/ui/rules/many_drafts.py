"""Drafting rules for all filtered chunks: its cost, its progress and the drafts, as findings. Saves no rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate.effect import GatheredQuestions
from ragfilter.model import Chunk
from ragfilter.rules.drafting import Draft, foresee, total
from ragfilter.rules.families import as_finding
from ragfilter.rules.lint import Finding, analyse
from ragfilter.rules.rule import place_name, read_rule
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import llm_drafts, rule_effect
from ragfilter.ui.kit.rule_editor.llm_drafts import NO_LLM, NO_LLM_MORE, tokens_text
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message, model_label
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.rules import listed_rows
from ragfilter.ui.session import state

DOUBTED: CacheSpec[list[Finding]] = CacheSpec(4)
SAMPLE = 40
"""How many of the selected chunks the cost is estimated from."""
MAX_REASONS = 8


def draw(visible: VisibleCollection) -> None:
    """Draw the cost of drafting the filtered chunks, the progress, and the drafts."""
    collection, resources = visible.collection, visible.resources
    job = llm_drafts.last_run(collection, resources)
    # Progress reveals how many chunks the starter drafts, and others must not know.
    sees_job = job is None or visible.user.unrestricted or visible.user == job.owner
    busy = llm_drafts.is_running(collection, resources)
    if resources.bench.chat is None:
        elements.empty(NO_LLM, NO_LLM_MORE)
    elif job is not None and busy and sees_job:
        llm_drafts.watch(job, collection)
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
    unsaved = [draft for draft in drafted if draft.rule != read_rule(visible.chunks[draft.chunk_id].rule)]
    if not unsaved:
        return []
    known = rule_effect.gathered(visible)
    rules = tuple((draft.chunk_id, draft.rule) for draft in unsaved)
    key = (*visible.key, visible.settings, visible.questions_key, known is None, rules)
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
        for chunk_id, queries in known.effect(rules).losses.items():
            if chunk_id in doubts:
                doubts[chunk_id] |= dict.fromkeys(f"would drop what “{q}” needs" for q in queries)
    chunks, words = visible.chunks, "Drafted with the template"
    return [
        as_finding("draft", chunks[each.chunk_id], each.rule, f"{words} {each.category}", [*doubts[each.chunk_id]])
        for each in unsaved
        if each.rule is not None
    ]


def _begin(visible: VisibleCollection) -> None:
    """Draw the cost of drafting, and the button that starts it."""
    sender = state.user()
    drafted = {draft.chunk_id for draft in _stored(visible) if draft.rule is not None}
    rows = listed_rows.selected(visible)
    left = [row.chunk for row in rows if row.id not in drafted and sender.sees(row.chunk)]
    # Chunks with a written rule are drafted only if the filter shows no others.
    chunks = [chunk for chunk in left if not chunk.rule] or left
    if not chunks:
        elements.empty("Nothing to draft.", "No filtered chunk lacks a draft.")
        return
    st.markdown(message(_cost(visible, chunks)))
    start = partial(state.notice_errors()(llm_drafts.start), visible.collection, [chunk.id for chunk in chunks])
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
        f"{counted(len(chunks), 'chunk')}: {tokens_text(usage, bench.prices)}, read and "
        f"written by {model_label(bench.chat.name) if bench.chat else ''}; up to three times as much if first answers "
        "are faulty. A faulty answer is sent back once, with the fault named."
    )


def _review(visible: VisibleCollection, stored: Sequence[Draft], *, busy: bool) -> None:
    """Draw the number of drafts, why some chunks have none, and the button that forgets them."""
    bench, figures = visible.resources.bench, total(stored, 0)
    st.markdown(
        f"{counted(figures.drafted, 'draft')}, {figures.repaired} by a second answer, {figures.doubtful} with remarks; "
        f"{figures.without} without a draft; {tokens_text(figures.usage, bench.prices)}."
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
    forget = partial(state.notice_errors()(bench.drafts.forget), visible.collection, [each.chunk_id for each in stored])
    about = "Deletes them, so you can draft again. Accepted rules stay."
    elements.button("Forget these drafts", "drafts-forget", forget, disabled=busy, about=about)


def _stored(visible: VisibleCollection) -> list[Draft]:
    """The stored drafts of visible chunks, and the failures."""
    stored = visible.resources.bench.drafts.drafts(visible.collection)
    return [draft for draft in stored if draft.chunk_id in visible.chunks]
