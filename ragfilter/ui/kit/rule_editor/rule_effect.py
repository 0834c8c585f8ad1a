"""How changed rules would affect questions, shown before saving. Changes are tried on the labelled questions of the
workspace and the demo, and on the last asked ones. All are gathered in the background, without the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from zlib import crc32

import streamlit as st

from ragfilter.evaluate.effect import Effect, GatheredQuestions, QueryEffect, make_labelled
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.model import Chunk, Pool
from ragfilter.rules.lint import check_rule
from ragfilter.rules.match import CompiledRules
from ragfilter.rules.rule import AnyRule, Changes, InvalidRule, read_rule, texts_of
from ragfilter.text.numbers import counted
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit.rule_editor.visible_collection import MAX_LABELLED, VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.session import state

MAX_ROWS, MAX_NAMES = 4, 5
NO_LABELS = (
    "Only labelled questions can show whether a change does harm. Label chunks on "
    "Inspect, or import labelled questions on Evaluate."
)
POOLS: CacheSpec[dict[str, Pool]] = CacheSpec(2)
"""The gathered pools, by question."""
RENEWED: CacheSpec[GatheredQuestions] = CacheSpec(4)
EFFECTS: CacheSpec[Effect] = CacheSpec(16)


def gathered(visible: VisibleCollection) -> GatheredQuestions | None:
    """The gathered questions with the current rules; None until they are ready, or if it failed."""
    job = _job(visible)
    if job is None or not job.done or job.failure:
        return None
    cache, key = visible.resources.cache(RENEWED), (job, visible.version)
    known = cache.get(key)
    if known is None:
        known = job.value().renew(visible.chunks)
        if known.short:
            _job(visible, known)
            return None
        cache.put(key, known)
    # A new label for a known question needs no new search.
    return replace(known, qrels=visible.qrels)


def wait(visible: VisibleCollection) -> None:
    """Show the progress of gathering, then redraw the page. Using the page ends the waiting, not the gathering."""
    job = _job(visible)
    if job is not None and not job.done:
        jobs.until_done(job, "rules-gathering", "Gathering the questions, once")
        st.rerun()


def begin_gathering(visible: VisibleCollection) -> bool:
    """Gather the questions, once. Draws hints and any failure. Returns False if there are none, or if it failed."""
    if visible.labels is None:
        elements.aside(NO_LABELS)
    job, rules = _job(visible), state.session().rules
    if job is not None and job.failure:
        st.error(message(job.failure), title="The questions could not be gathered")
        again = partial(setattr, rules, "gathered_again", rules.gathered_again + 1)
        elements.button("Gather again", "rules-gather", again, about="Tries again.")
    elif job is not None and visible.settings.judge.enabled:
        elements.aside("Measured without the judge, which would ask the LLM about every question.")
    return job is not None and not job.failure


def _job(visible: VisibleCollection, known: GatheredQuestions | None = None) -> Job[GatheredQuestions] | None:
    """The job that gathers the questions; with `known`, it searches again for short ones."""
    wanted = visible.questions
    if not wanted:
        return None
    resources, tries = visible.resources, state.session().rules.gathered_again
    # With the judge on, each of hundreds of questions would call the LLM.
    settings = visible.settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    collection = (visible.collection, resources.bench.collection(visible.collection).content, settings, visible.user)
    pools = resources.cache(POOLS).of(collection, dict)
    again = frozenset() if known is None else known.short
    backends, qrels = resources.backends(visible.collection), visible.qrels

    def gather(job: Job[GatheredQuestions]) -> GatheredQuestions:
        left = {i: text for i, text in wanted.items() if i in again or text not in pools}
        new = completed_pools(left, settings, backends, visible.user, progress=job.step)
        pools.update({wanted[i]: pool for i, pool in new.items()})
        every = {i: pools[text] for i, text in wanted.items()}
        return make_labelled(every, qrels, settings, visible.user)

    key = ("labelled", *collection, crc32(repr(wanted).encode()), tries)
    return resources.jobs.start(visible.user, key, gather, again=known is not None)


def draw(visible: VisibleCollection, chunk: Chunk, rule: AnyRule | None) -> None:
    """Draw how many questions keep the chunk with and without `rule`, and what would change."""
    known = gathered(visible) if begin_gathering(visible) else None
    if known is None:
        return
    n_keeping = sum(chunk.id in ids for ids in known.kept.values())
    effects = {each: _effect(visible, known, {chunk.id: each}) for each in (rule, None)}
    rows: list[elements.Fact] = []
    for each, effect in effects.items():
        more = sum((chunk.id in row.gained) - (chunk.id in row.lost) for row in effect.rows)
        rows.append(("with this rule" if each else "without a rule", n_keeping + more, ""))
    elements.draw(f'<p class="rf-say">How many of {_questions(effects[None])} keep this chunk:</p>')
    elements.facts("Questions that keep this chunk", rows)
    if rule != read_rule(chunk.rule):
        _draw(visible, effects[rule])


def _effect(visible: VisibleCollection, known: GatheredQuestions, changes: Changes) -> Effect:
    key = (*visible.key, known.settings, visible.questions_key, frozenset(changes.items()))
    return visible.resources.cache(EFFECTS).of(key, lambda: known.effect(changes))


def confirm(visible: VisibleCollection, changes: Changes, key: str) -> bool:
    """Draw the effect of `changes`, and ask for confirmation if it does harm. Returns whether they can be saved."""
    known = gathered(visible) if begin_gathering(visible) else None
    if known is not None:
        _draw(visible, _effect(visible, known, changes))
    losses = harm(visible, changes)
    confirmed = state.session().rules.confirmed
    if confirmed.get(key) != changes:
        # The confirmation was given for other changes.
        confirmed[key] = changes
        st.session_state[key] = False
    if not losses:
        return True
    elements.draw_action_result(losses, good=False)
    return st.checkbox("Save even though labelled questions lose relevant chunks", key=key, help=losses)


def harm_of_rule(visible: VisibleCollection, chunk_id: str, rule: AnyRule | None, *, immediate: bool = False) -> str:
    """The harm that saving `rule` would do, in words; empty if none. An invalid rule is not saved."""
    if isinstance(rule, InvalidRule):
        return ""
    chunk = visible.chunks.get(chunk_id)
    if chunk is not None and rule == read_rule(chunk.rule):
        return ""
    if rule is not None and any(each.kind == "impossible" for each in check_rule(rule)):
        return "No question can meet this rule, so the chunk would never be kept."
    return harm(visible, {chunk_id: rule}, immediate=immediate)


def harm(visible: VisibleCollection, changes: Changes, *, immediate: bool = False) -> str:
    """Which labelled questions would lose a relevant chunk, in words; empty if none. For questions
    not gathered yet, or for all if `immediate`, only the rules are checked: a question loses a
    chunk if it meets the chunk's rule now and would no longer meet it."""
    known = None if immediate else gathered(visible)
    losing = _losing_rules(visible, changes, 0 if known is None else MAX_LABELLED)
    if known is not None:
        losing = [row.query for row in _effect(visible, known, changes).rows if row.lost_relevant] + losing
    count = counted(len(losing), "labelled question")
    return f"{count} would lose a relevant chunk, such as “{losing[0]}”." if losing else ""


def _losing_rules(visible: VisibleCollection, changes: Changes, first: int) -> list[str]:
    """The labelled questions from position `first` on that need a changed chunk and would no longer meet its rule."""
    known = visible.labels
    if known is None or len(known.labelled) <= first:
        return []
    stored, new = {i: visible.chunks[i].rule for i in changes if i in visible.chunks}, texts_of(changes)
    book = CompiledRules(rule for rules in (stored, new) for rule in rules.values() if rule)
    losing = []
    for query_id, question in list(known.labelled.items())[first:]:
        needed = [i for i, grade in known.qrels[query_id].items() if grade > 0 and i in stored]
        if needed:
            scan = book.scan(question)
            if any(scan.passes(stored[i]) and not scan.passes(new[i]) for i in needed):
                losing.append(question)
    return losing


def _draw(visible: VisibleCollection, effect: Effect) -> None:
    figures = ""
    if effect.rows and (before := effect.before) and (after := effect.after):
        figures = (
            f": precision {before.precision:.3f} → <b>{after.precision:.3f}</b>, "
            f"recall {before.recall:.3f} → <b>{after.recall:.3f}</b>, F1 {before.f1:.3f} → <b>{after.f1:.3f}</b>"
        )
    line = f"{len(effect.rows) or 'None'} of {_questions(effect)} would change{figures}."
    body = f'<p class="rf-verdict">{line}</p>'
    if effect.short:
        need = "needs" if effect.short == 1 else "need"
        body += (
            f'<p class="rf-aside">{counted(effect.short, "question")} {need} a new search, '
            "because too few of the chunks found so far would pass. It runs after you save.</p>"
        )
    rows = [_row(visible, row) for row in effect.rows]
    body += f"<ul>{''.join(rows[:MAX_ROWS])}</ul>" if rows else ""
    if rest := "".join(rows[MAX_ROWS:]):
        body += f"<details><summary>and {len(rows) - MAX_ROWS} more</summary><ul>{rest}</ul></details>"
    elements.draw(f'<div class="rf-effect">{body}</div>')


def _questions(effect: Effect) -> str:
    """The questions that changes are tried on: ``156 labelled questions and 2 asked questions``."""
    asked = effect.queries - effect.labelled
    labelled = counted(effect.labelled, "labelled question") if effect.labelled else ""
    return " and ".join(filter(None, (labelled, counted(asked, "asked question") if asked else "")))


def _row(visible: VisibleCollection, row: QueryEffect) -> str:
    others = [i for i in row.lost if i not in row.lost_relevant]
    parts = [
        f'<span class="{look}">{word} {_names(visible, ids, len(ids) if look else MAX_NAMES)}</span>'
        for word, look, ids in (
            ("loses relevant", "rf-lost", row.lost_relevant),
            ("gains relevant", "rf-gained", row.gained_relevant),
            ("loses", "", others),
            ("gains", "", [i for i in row.gained if i not in row.relevant]),
        )
        if ids
    ]
    return f"<li>{elements.text(row.query)}<br>{'; '.join(parts)}</li>"


def _names(visible: VisibleCollection, ids: Sequence[str], most: int) -> str:
    existing = [i for i in ids[:most] if i in visible.chunks]
    gone = len(ids[:most]) - len(existing)
    names = ", ".join([*visible.titles(existing), *["a chunk that is gone"] * gone])
    return elements.text(names) + (f" and {len(ids) - most} more" if len(ids) > most else "")
