"""What a change of rules would do to questions, before it is saved.

Changes are tried on the labelled questions of the workspace and the demo and, separately, on
questions that were asked. Both are gathered in the background, without the judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.evaluate import measure
from ragfilter.evaluate.effect import Changes, Effect, LabelledQuestions, QueryEffect, make_labelled
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.model import Chunk
from ragfilter.rules.match import RuleBook
from ragfilter.rules.rule import read_rule, stored_form
from ragfilter.stores.labels import ASKED
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import progress
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements, html
from ragfilter.ui.look.prose import message
from ragfilter.ui.session.jobs import Job

TRIES, WITH_ASKED = "rules-tries", "effect-asked"
MOST_ASKED, MOST_LABELLED = 200, 500
"""The most recent questions asked, and the first labelled ones, that are used."""
PATIENCE_S = 60.0
MOST_ROWS, MOST_NAMES = 8, 5
NO_LABELS = (
    "Without labelled questions, it is unknown whether a change does harm. Label chunks on "
    "Inspect, or import labelled questions on Evaluate."
)
NONE_ASKED = "No questions have been asked of this collection yet. Ask some on Inspect."
UNKNOWN = "The effect is unknown: the labelled questions are not gathered yet, or gathering failed."


def _asked(work: Desk) -> dict[str, str]:
    return work.resources.bench.labels.queries(work.collection, ASKED)


def _questions(work: Desk, *, asked: bool) -> Labels | None:
    """The labelled questions, or with `asked` the most recently asked ones without their labels;
    None if there are none."""
    if not asked:
        return work.labels
    every = _asked(work)
    return Labels(dict(list(every.items())[-MOST_ASKED:]), {}) if every else None


def mark(work: Desk) -> int:
    """A number that changes with the labels."""
    known = work.labels
    return 0 if known is None else crc32(repr((known.queries, known.qrels)).encode())


def gathered(work: Desk, *, asked: bool = False) -> LabelledQuestions | None:
    """The labelled questions, or with `asked` those asked before, with the current rules. None if
    there are none, if they are still being gathered, or if gathering failed."""
    job = _job(work, asked=asked)
    if job is None or not job.done or job.failure:
        return None
    key = ("renewed", id(job), work.version)
    held: tuple[object, LabelledQuestions] | None = work.resources.renewed.get(key)
    if held is None:
        renewed = job.value().renew(work.chunks)
        if renewed.short:
            _job(work, asked=asked, known=renewed)
            return None
        held = work.resources.renewed.put(key, (job, renewed))
    known = None if asked else work.labels
    # A new label for a known question needs no new search.
    return held[1] if known is None else replace(held[1], qrels=known.qrels)


def _missing(work: Desk) -> bool:
    """Whether there are labelled questions, but they are still being gathered or could not be."""
    job = _job(work, asked=False)
    return job is not None and not (job.done and not job.failure)


def _await_labels(work: Desk) -> None:
    """Wait for the labelled questions to be gathered, unless that would take longer than
    `PATIENCE_S` seconds."""
    if gathered(work) is None and (job := _job(work, asked=False)) is not None:
        done, count, _ = job.at
        # The first ones say nothing yet: a model may have to be loaded for them.
        if done < 5 or job.seconds / done * (count - done) < PATIENCE_S:
            job.wait(PATIENCE_S)


def is_under_way(work: Desk, *, asked: bool = False) -> bool:
    """Whether the questions are being gathered."""
    job = _job(work, asked=asked)
    return job is not None and not job.done


def waits(work: Desk) -> bool:
    """Whether `wait` will wait; also before the switch for the questions asked is drawn."""
    asked = st.session_state.get(WITH_ASKED, work.labels is None)
    return is_under_way(work) or (asked and is_under_way(work, asked=True))


def wait(work: Desk) -> None:
    """Show the progress until the questions are gathered on which changes are tried."""
    wait_for(work)
    if st.session_state.get(WITH_ASKED):
        wait_for(work, asked=True)


def wait_for(work: Desk, *, asked: bool = False) -> None:
    """Show the progress until these questions are gathered, then redraw the page with them. Using
    the page ends only the waiting."""
    job = _job(work, asked=asked)
    if job is not None and not job.done:
        which = "questions asked" if asked else "labelled questions"
        progress.until_done(job, "rules-gathering", f"Gathering the {which}, once")
        st.rerun()


def available(work: Desk, *, asked: bool = False) -> bool:
    """Whether there are such questions. If not, draw how to get some."""
    if _questions(work, asked=asked) is None:
        elements.aside(NONE_ASKED if asked else NO_LABELS)
        return False
    job = _job(work, asked=asked)
    if job is not None and job.failure:
        st.error(message(job.failure), title="The questions could not be gathered")
        st.button("Gather again", key=f"rules-gather-{asked}", on_click=_again, help="Tries again.")
        return False
    if asked:
        if (count := len(_asked(work))) > MOST_ASKED:
            elements.aside(f"Measured on the last {MOST_ASKED} of {count:,} questions asked.")
        return True
    if work.settings.judge.enabled:
        elements.aside("Measured without the judge, which would ask the LLM about every question.")
    known = work.labels
    if known is not None and (count := len(known.qrels)) > MOST_LABELLED:
        elements.aside(f"Measured on the first {MOST_LABELLED} of {count:,} labelled questions.")
    return True


def _again() -> None:
    st.session_state[TRIES] = st.session_state.get(TRIES, 0) + 1


def _job(
    work: Desk, *, asked: bool, known: LabelledQuestions | None = None
) -> Job[LabelledQuestions] | None:
    """The job that gathers the questions. With `known`, a new one, which searches only for those
    that need it."""
    questions = _questions(work, asked=asked)
    if questions is None:
        return None
    store = work.resources.bench.collection(work.collection)
    # With the judge on, each of hundreds of questions would call the LLM.
    settings = work.settings.with_values({"query_must.enabled": True, "judge.enabled": False})
    wanted = {i: text for i, text in questions.queries.items() if asked or i in questions.qrels}
    if not asked:
        wanted = dict(list(wanted.items())[:MOST_LABELLED])
    tries = st.session_state.get(TRIES, 0)
    mark = crc32(repr(wanted).encode())
    key = ("labelled", work.collection, store.content, settings, work.user, mark, tries)
    pools = {i: p for i, p in known.pools.items() if i not in known.short} if known else {}
    backends = work.resources.backends(work.collection)

    def gather(job: Job[LabelledQuestions]) -> LabelledQuestions:
        left = {i: text for i, text in wanted.items() if i not in pools}
        new = measure.gather_all(left, settings, backends, work.user, progress=job.step)
        return make_labelled(pools | new, questions.qrels, settings, work.user)

    return work.resources.jobs.start(work.user, key, gather, again=known is not None)


def is_changed(chunk: Chunk, rule: str | None) -> bool:
    """Whether `rule`, in the form in which it would be stored, differs from the chunk's rule."""
    return (rule or None) != as_stored(chunk.rule)


def as_stored(text: str | None) -> str | None:
    """A rule in the form in which it would be stored; an invalid one as it is."""
    rule = read_rule(text and text.strip())
    return None if rule is None else rule.text


def preview(work: Desk, chunk: Chunk, rule: str | None) -> None:
    """Draw what storing `rule` would change."""
    if is_changed(chunk, rule):
        of_changes(work, {chunk.id: rule})
    else:
        available(work)


def of_changes(work: Desk, changes: Changes, *, again: bool = False) -> Effect | None:
    """Draw what `changes` would do. Returns None if that is not known (yet). `again`: the page
    already says which questions there are."""
    known = gathered(work) if again or available(work) else None
    effect = None if known is None else known.effect(changes)
    if effect is not None:
        _draw(work, effect, "labelled question", "")
        if harm := _harm_beyond(work, changes):
            html.draw(f'<p class="rf-verdict rf-bad">{html.text(harm)}</p>')
    _of_asked(work, changes, again=again)
    return effect


def _of_asked(work: Desk, changes: Changes, *, again: bool) -> None:
    if not _asked(work):
        return
    if not again:
        st.toggle(
            "Questions asked",
            value=work.labels is None,
            key=WITH_ASKED,
            persist_state="session",
            help=f"Also shows the effect on the last {MOST_ASKED} questions that were asked.",
        )
    if st.session_state.get(WITH_ASKED) and (again or available(work, asked=True)):
        known = gathered(work, asked=True)
        if known is not None:
            _draw(work, known.effect(changes), "question", " asked")


def confirm(work: Desk, changes: Changes, key: str, *, again: bool = False) -> bool:
    """Draw what `changes` would do, and return whether they may be saved. Asks for confirmation if
    a labelled question would lose a chunk it needs, or if the effect is not known yet. `again` as
    in `of_changes`."""
    effect = of_changes(work, changes, again=again)
    if st.session_state.get(f"{key}-of") != changes:
        # The earlier confirmation was for other changes.
        st.session_state.update({f"{key}-of": dict(changes), key: False, f"{key}-unknown": False})
    if effect is None:
        return not _missing(work) or st.checkbox(
            "Save without knowing the effect", key=f"{key}-unknown", help=UNKNOWN
        )
    harmless = not effect.loses_relevant and not _harm_beyond(work, changes)
    return harmless or st.checkbox(
        "Save even though labelled questions lose relevant chunks",
        key=key,
        help="They are listed above, in red.",
    )


def guard(work: Desk, chunk_id: str, text: str) -> str:
    """Describe the harm that saving `text` would do to labelled questions; empty if none."""
    try:
        changes = {chunk_id: stored_form(text)}
    except RuleError:
        return ""
    # Saving the first rule right away waits for the questions instead of asking for confirmation.
    _await_labels(work)
    known = gathered(work)
    if known is None:
        return UNKNOWN if _missing(work) else ""
    effect = known.effect(changes)
    if not effect.loses_relevant:
        return _harm_beyond(work, changes)
    losing = [row for row in effect.rows if row.lost_relevant]
    lost = sum(len(row.lost_relevant) for row in losing)
    return (
        f"{counted(len(losing), 'labelled question')} would lose "
        f"{counted(lost, 'relevant chunk')}, such as “{losing[0].query}”."
    )


def guard_at_once(work: Desk, chunk_id: str, text: str) -> str:
    """The same as `guard` by the rules alone, without a search: labelled questions that need the
    chunk, meet its rule now and would no longer meet it. Used on Inspect, where saving does not
    wait for the questions to be gathered."""
    try:
        losing = _losing(work, {chunk_id: stored_form(text)})
    except RuleError:
        return ""
    if not losing:
        return ""
    return (
        f"{counted(len(losing), 'labelled question')} would lose this chunk, which they need, such "
        f"as “{losing[0]}”."
    )


def _losing(work: Desk, changes: Changes, first: int = 0) -> list[str]:
    """The labelled questions, from the one at `first` on, that need a changed chunk, meet its rule
    now and would no longer meet it."""
    known = work.labels
    if known is None or len(known.labelled) <= first:
        return []
    now = {i: work.chunks[i].rule for i in changes if i in work.chunks}
    book = RuleBook(rule for rules in (now, changes) for rule in rules.values() if rule)
    losing = []
    for query_id, question in list(known.labelled.items())[first:]:
        needed = [i for i, grade in known.qrels[query_id].items() if grade > 0 and i in now]
        if needed:
            scan = book.scan(question)
            if any(scan.passes(now[i]) and not scan.passes(changes[i]) for i in needed):
                losing.append(question)
    return losing


def _harm_beyond(work: Desk, changes: Changes) -> str:
    """The harm to the labelled questions that are too many to search for, by the rules alone."""
    losing = _losing(work, changes, MOST_LABELLED)
    if not losing:
        return ""
    return (
        f"{counted(len(losing), 'labelled question')} beyond the first {MOST_LABELLED} would lose "
        f"a relevant chunk, such as “{losing[0]}”."
    )


def _draw(work: Desk, effect: Effect, before: str, after: str) -> None:
    """Draw an effect; `before` and `after` name a question."""
    line = (
        f"{len(effect.rows)} of {counted(effect.queries, before)}{after} would change"
        if effect.rows
        else f"No {before}{after} of {effect.queries} would change"
    )
    figures = ""
    if effect.rows and (was := effect.before) and (now := effect.after):
        figures = ": " + ", ".join(
            f"{name} {before:.3f} → <b>{after:.3f}</b>"
            for name, before, after in (
                ("precision", was.precision, now.precision),
                ("recall", was.recall, now.recall),
                ("F1", was.f1, now.f1),
            )
        )
    body = f'<p class="rf-verdict">{html.text(line)}{figures}.</p>'
    if effect.short:
        need = "needs" if effect.short == 1 else "need"
        body += (
            f'<p class="rf-aside">{counted(effect.short, before)}{after} {need} a new search, '
            "since too few of the chunks found so far would pass. It is repeated after saving.</p>"
        )
    rows = [_row(work, row) for row in effect.rows]
    body += f"<ul>{''.join(rows[:MOST_ROWS])}</ul>" if rows else ""
    if rest := "".join(rows[MOST_ROWS:]):
        more = f"<summary>and {len(rows) - MOST_ROWS} more</summary>"
        body += f"<details>{more}<ul>{rest}</ul></details>"
    html.draw(f'<div class="rf-effect">{body}</div>')


def _row(work: Desk, row: QueryEffect) -> str:
    others = [i for i in row.lost if i not in row.lost_relevant]
    parts = [
        f'<span class="{look}">{word} {_names(work, ids, len(ids) if look else MOST_NAMES)}</span>'
        for word, look, ids in (
            ("loses relevant", "rf-lost", row.lost_relevant),
            ("gains relevant", "rf-gained", row.gained_relevant),
            ("loses", "", others),
            ("gains", "", [i for i in row.gained if i not in row.relevant]),
        )
        if ids
    ]
    return f"<li>{html.text(row.query)}<br>{'; '.join(parts)}</li>"


def _names(work: Desk, ids: Sequence[str], most: int) -> str:
    chunks = [work.chunks.get(i) for i in ids[:most]]
    names = ", ".join("a chunk that is gone" if c is None else c.name for c in chunks)
    return html.text(names) + (f" and {len(ids) - most} more" if len(ids) > most else "")
