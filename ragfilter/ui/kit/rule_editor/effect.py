"""What a change of rules would do to the labelled questions, and if wanted to those asked before,
before it is saved."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.evaluate.effect import Changes, Effect, QueryEffect
from ragfilter.model import Chunk
from ragfilter.rules.match import RuleBook
from ragfilter.rules.rule import stored_form
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import editor, labelled
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import html

UNKNOWN = (
    "The labelled questions were still being gathered or could not be, so what they would lose was "
    "not known."
)
WITH_ASKED = "effect-asked"
PATIENCE_S = 60.0
MOST_ROWS = 8
MOST_NAMES = 5


def preview(work: Desk, chunk: Chunk, rule: str | None) -> None:
    """Draw what storing `rule` would change."""
    if editor.is_changed(chunk, rule):
        of_changes(work, {chunk.id: rule})
    else:
        labelled.told(work)


def of_changes(work: Desk, changes: Changes, *, again: bool = False) -> Effect | None:
    """Draw what `changes` would do. Returns None if that is not known (yet). `again`: the page
    already says which questions there are."""
    known = labelled.gathered(work) if again or labelled.told(work) else None
    effect = None if known is None else known.effect(changes)
    if effect is not None:
        _draw(work, effect, "labelled question", "")
        if spoilt := _spoilt_beyond(work, changes):
            html.draw(f'<p class="rf-verdict rf-bad">{html.text(spoilt)}</p>')
    _of_asked(work, changes, again=again)
    return effect


def waits(work: Desk) -> bool:
    """Whether `wait` will wait; also before the switch for the questions asked is drawn."""
    asked = st.session_state.get(WITH_ASKED, labelled.labels(work) is None)
    return labelled.is_under_way(work) or (asked and labelled.is_under_way(work, asked=True))


def wait(work: Desk) -> None:
    """Show the progress until the questions are gathered on which changes are tried."""
    labelled.wait(work)
    if st.session_state.get(WITH_ASKED):
        labelled.wait(work, asked=True)


def _of_asked(work: Desk, changes: Changes, *, again: bool) -> None:
    if labelled.history(work) is None:
        return
    if not again:
        st.toggle(
            "Questions asked",
            value=labelled.labels(work) is None,
            key=WITH_ASKED,
            persist_state="session",
            help="Also shows which of the most recent questions asked would gain and lose chunks. "
            "They are gathered first, again after each new question.",
        )
    if st.session_state.get(WITH_ASKED) and (again or labelled.told(work, asked=True)):
        known = labelled.gathered(work, asked=True)
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
        return not labelled.missing(work) or st.checkbox(
            "Save without knowing the effect on labelled questions",
            key=f"{key}-unknown",
            help="They are still being gathered, or could not be. Once they are, the page shows "
            "what would change.",
        )
    harmless = not effect.loses_relevant and not _spoilt_beyond(work, changes)
    return harmless or st.checkbox(
        "Save even though labelled questions lose relevant chunks",
        key=key,
        help="They are listed above, in red.",
    )


def guard(work: Desk, chunk_id: str, text: str) -> str:
    """Describe the harm that saving `text` would do to labelled questions; empty if none."""
    try:
        rule = stored_form(text)
    except RuleError:
        return ""
    return guard_changes(work, {chunk_id: rule})


def guard_changes(work: Desk, changes: Changes) -> str:
    """The same as `guard` for rules by chunk id."""
    # Saving the first rule right away waits for the questions instead of asking for confirmation.
    labelled.await_labels(work, PATIENCE_S)
    known = labelled.gathered(work)
    if known is None:
        return UNKNOWN if labelled.missing(work) else ""
    effect = known.effect(changes)
    if not effect.loses_relevant:
        return _spoilt_beyond(work, changes)
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
    found = labelled.labels(work)
    if found is None or len(found.labelled) <= first:
        return []
    now = {i: work.chunks[i].rule for i in changes if i in work.chunks}
    book = RuleBook(rule for rules in (now, changes) for rule in rules.values() if rule)
    losing = []
    for query_id, question in list(found.labelled.items())[first:]:
        needed = [i for i, grade in found.qrels[query_id].items() if grade > 0 and i in now]
        if needed:
            scan = book.scan(question)
            if any(scan.passes(now[i]) and not scan.passes(changes[i]) for i in needed):
                losing.append(question)
    return losing


def _spoilt_beyond(work: Desk, changes: Changes) -> str:
    """The harm to the labelled questions that are too many to search for, by the rules alone."""
    losing = _losing(work, changes, labelled.MOST_LABELLED)
    if not losing:
        return ""
    return (
        f"{counted(len(losing), 'labelled question')} beyond the first {labelled.MOST_LABELLED} "
        f"would lose a relevant chunk, such as “{losing[0]}”."
    )


def _draw(work: Desk, effect: Effect, before: str, after: str) -> None:
    headline = _headline(effect, before, after)
    if effect.short:
        need = "needs" if effect.short == 1 else "need"
        headline += (
            f'<p class="rf-aside">{counted(effect.short, before)}{after} {need} a new search, and '
            "may then keep more: too few of the chunks found so far would pass. The search is "
            "repeated after saving.</p>"
        )
    html.draw(f'<div class="rf-effect">{headline}{_rows(work, effect)}</div>')


def _headline(effect: Effect, before: str, after: str) -> str:
    """`before` and `after` name a question."""
    line = (
        f"{len(effect.rows)} of {counted(effect.queries, before)}{after} would change"
        if effect.rows
        else f"No {before}{after} of {effect.queries} would change"
    )
    figures = ""
    if effect.rows and effect.before and effect.after:
        was, now = effect.before, effect.after
        figures = ": " + ", ".join(
            f"{name} {before:.3f} → <b>{after:.3f}</b>"
            for name, before, after in (
                ("precision", was.precision, now.precision),
                ("recall", was.recall, now.recall),
                ("F1", was.f1, now.f1),
            )
        )
    return f'<p class="rf-verdict">{html.text(line)}{figures}.</p>'


def _rows(work: Desk, effect: Effect) -> str:
    if not effect.rows:
        return ""
    rows = [_row(work, row) for row in effect.rows]
    first, rest = "".join(rows[:MOST_ROWS]), "".join(rows[MOST_ROWS:])
    if not rest:
        return f"<ul>{first}</ul>"
    more = f"<summary>and {len(rows) - MOST_ROWS} more</summary><ul>{rest}</ul>"
    return f"<ul>{first}</ul><details>{more}</details>"


def _row(work: Desk, row: QueryEffect) -> str:
    others = [i for i in row.lost if i not in row.lost_relevant]
    said = [
        f'<span class="{look}">{word} {_names(work, ids, len(ids) if look else MOST_NAMES)}</span>'
        for word, look, ids in (
            ("loses relevant", "rf-lost", row.lost_relevant),
            ("gains relevant", "rf-gained", row.gained_relevant),
            ("loses", "", others),
            ("gains", "", [i for i in row.gained if i not in row.relevant]),
        )
        if ids
    ]
    return f"<li>{html.text(row.query)}<br>{'; '.join(said)}</li>"


def _names(work: Desk, ids: Sequence[str], most: int) -> str:
    chunks = [work.chunks.get(i) for i in ids[:most]]
    names = ", ".join("a chunk that is gone" if c is None else c.name for c in chunks)
    return html.text(names) + (f" and {len(ids) - most} more" if len(ids) > most else "")
