"""One change applied to all filtered rows: chosen, previewed as a diff, then saved as one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.errors import InputError, RagfilterError, StoreError
from ragfilter.model import Chunk
from ragfilter.rules import bulk, steps
from ragfilter.rules.bulk import BulkPlan, RuleChange
from ragfilter.rules.findings import Finding, by_severity
from ragfilter.rules.overview import brief
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid, progress
from ragfilter.ui.kit.rule_editor import desk, effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import diff, outcome
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import author

KINDS = GROUP, SPELLINGS, REPLACE, MEND, SET, REMOVE = (
    "Add a group", "Add spellings", "Replace a term", "Fix findings", "Set a rule",
    "Remove the rule",
)  # fmt: skip
KIND, TERM, TERMS, RULE = "bulk-kind", "bulk-term", "bulk-terms", "bulk-rule"
MEND_KINDS, NEW, LEFT_OUT = "bulk-kinds", "bulk-new", "bulk-left-out"
MOST_FINDINGS, MOST_TICKED = 500, 1_000
Rules = Mapping[str, str | None]
"""Rules by chunk id, None for no rule."""


def draw(work: Desk) -> None:
    """Draw the choice of change, its preview and the button that saves it."""
    rows = desk.selected(work)
    elements.aside(
        f"Acts on the {counted(len(rows), 'chunk')} that the filter under Chunks shows. You see "
        "what would change before anything is saved."
    )
    kind = st.segmented_control(
        "Change",
        KINDS,
        key=KIND,
        default=GROUP,
        required=True,
        persist_state="session",
        help="One change for every chunk that the filter shows, saved as one step.",
    )
    chunks = [row.chunk for row in rows]
    if kind == MEND:
        whole = list(work.read(chunk.id for chunk in chunks if chunk.rule).values())
        kinds = _findings(work, whole)
        outcome.draw()
        if kinds is not None:
            _preview(work, "fix findings", _mends(work, whole, kinds))
        return
    try:
        change = _change(str(kind))
    except InputError as error:
        outcome.draw()
        if any(st.session_state.get(name) for name in (TERM, TERMS, NEW, RULE)):
            elements.aside(str(error))
        return
    outcome.draw()
    _preview(work, change.label, bulk.plan(change, chunks))


def _mends(work: Desk, chunks: Sequence[Chunk], kinds: Sequence[str]) -> BulkPlan:
    """What fixing these kinds of finding would change, cached, since it lints each rule again."""
    key = (*work.key, work.checks, tuple(chunk.id for chunk in chunks), tuple(kinds))

    def mend() -> BulkPlan:
        with st.spinner("Fixing the rules …"):
            return bulk.plan_fixes(chunks, kinds, work.checks.usual, work.chunks)

    return work.resources.mends.of(key, mend)


def _findings(work: Desk, chunks: Sequence[Chunk]) -> list[str] | None:
    """The kinds of finding to fix, empty for all certain fixes. None if there are no findings."""
    shared = desk.listing(work).shared
    found = by_severity(
        finding
        for chunk in chunks
        for finding in (
            *work.checks.findings(chunk),
            *([shared[chunk.id]] if chunk.id in shared else []),
        )
    )
    if len(chunks) > desk.MOST_READ:
        elements.aside(
            f"Texts are read for up to {desk.MOST_READ:,} rules. With a narrower filter the linter "
            "may find more."
        )
    if not found:
        elements.empty("No findings.", "The linter found no problems.")
        return None
    counts = Counter(finding.kind for finding in found)
    kinds = st.multiselect(
        "Fix",
        list(counts),
        key=MEND_KINDS,
        persist_state="session",
        format_func=lambda kind: f"{kind} ({counts[kind]})",
        placeholder="all certain fixes",
        help="Fixes only these kinds, including ones that may be intentional.",
    )
    listed = [finding for finding in found if not kinds or finding.kind in kinds]
    progress.unless(effect.waits(work), _list)(work, listed)
    return list(kinds)


def _list(work: Desk, listed: Sequence[Finding]) -> None:
    """Draw the findings, and the button that opens the chunk of one."""
    shown = listed[:MOST_FINDINGS]
    row = grid.picked(
        pd.DataFrame(
            {
                "severity": [finding.severity for finding in shown],
                "kind": [finding.kind for finding in shown],
                "chunk": [work.title(finding.chunk_ids[0]) for finding in shown],
                "finding": [finding.message for finding in shown],
                "place": [finding.place for finding in shown],
                "fix": [_mend(finding) for finding in shown],
            }
        ),
        [f"{finding.chunk_ids[0]} {finding.kind} {finding.place}" for finding in shown],
        name="bulk-findings",
        height=320,
        columns={"finding": st.column_config.TextColumn(width="large")},
    )
    st.button(
        "Edit the chosen chunk",
        key="bulk-edit",
        on_click=desk.edit,
        args=() if row is None else (shown[row].chunk_ids[0],),
        disabled=row is None,
        help="Click a finding first. Opens its chunk under Chunks.",
    )
    if len(listed) > MOST_FINDINGS:
        elements.aside(f"and {len(listed) - MOST_FINDINGS:,} more")


def _mend(finding: Finding) -> str:
    if finding.fix is None:
        return "by hand"
    return "sure" if finding.sure else "if meant so"


def _change(kind: str) -> RuleChange:
    """The change described by the form. Raises InputError, RuleError."""
    if kind == REMOVE:
        return bulk.remove()
    if kind == SET:
        text = st.text_area(
            "Rule",
            key=RULE,
            persist_state="session",
            placeholder='{"contain_one_of": [["term", "other spelling"]]}',
            help="Every chunk of the selection gets this rule instead of its own.",
        )
        if not text or not text.strip():
            raise InputError("There is no rule.", remedy="Write one.")
        return bulk.set_rule(text)
    if kind == GROUP:
        return bulk.add_group(_terms("Terms of the new group"))
    if kind == SPELLINGS:
        term = _term(
            "Existing term", "Every group that contains this term gets the spellings below."
        )
        return bulk.add_spellings(term, _terms("Spellings to add"))
    old = _term("Existing term", "As it is written, in upper or lower case.")
    new = st.text_input(
        "Replacement term", key=NEW, persist_state="session", help="Replaces the existing term."
    )
    return bulk.replace_term(old, new or "")


def _term(label: str, said: str) -> str:
    return st.text_input(label, key=TERM, persist_state="session", help=said) or ""


def _terms(label: str) -> list[str]:
    return st.multiselect(
        label,
        st.session_state.get(TERMS, []),
        key=TERMS,
        persist_state="session",
        accept_new_options=True,
        placeholder="Type a term and press Enter",
        help="The question must contain one of them.",
    )


def _preview(work: Desk, what: str, plan: BulkPlan) -> None:
    if plan.refused:
        first, why = next(iter(plan.refused.items()))
        refused = counted(len(plan.refused), "rule")
        st.error(message(f"{refused} cannot be changed, such as {first}: {why}"))
    rules = _ticked(work, plan.after)
    if not rules:
        elements.empty(
            "Nothing would change.",
            "The rules already have this change, it applies to no chunk that the filter shows, or "
            "no chunk is ticked.",
        )
        return
    offer(work, rules, what, key="bulk")


def offer(work: Desk, rules: Rules, what: str, *, key: str) -> None:
    """Draw the effect of storing `rules`, the button that stores them, and every change."""
    sure = effect.confirm(work, rules, f"{key}-sure")
    place = st.container()
    st.button(
        f"Save {counted(len(rules), 'rule')}",
        key=f"{key}-save",
        type="primary",
        on_click=save,
        args=(work, rules, what),
        disabled=not sure,
        help="Saves all of them as one step, which can be undone under History.",
    )
    changed = ((work.chunks[i], rule) for i, rule in rules.items())
    changes = [(chunk.name, chunk.rule, rule) for chunk, rule in changed]
    progress.unless(effect.waits(work), diff.draw_all)(changes, f"{key}-changes")
    # Last, since it waits, but shown where the effect will be.
    with place:
        effect.wait(work)


def _ticked(work: Desk, rules: Rules) -> Rules:
    """Draw a box for each chunk. Returns the rules of those that are ticked."""
    ids = list(rules)
    # Another change, filter or collection begins with every row ticked.
    change = (work.collection, desk.wanted(), st.session_state.get(KIND))
    of, left_out = st.session_state.get(LEFT_OUT, (change, frozenset()))
    chosen = [i for i in ids if of != change or i not in left_out]
    if 0 < len(ids) <= MOST_TICKED:
        # The label stays the same, since an expander with a new one is closed.
        with st.container(key="bulk-chunks"), st.expander("Leave out chunks"):
            grid.draw(
                pd.DataFrame(
                    {
                        "chunk": [work.title(i) for i in ids],
                        "id": ids,
                        "rule": [brief(work.chunks[i].rule) for i in ids],
                    }
                ),
                ids,
                name="bulk",
                height=min(32 * (len(ids) + 1) + 6, 320),
                row_height=32,
                columns={"rule": st.column_config.TextColumn(width="large")},
                ticked=chosen,
                tick=partial(_tick, change, ids),
            )
            elements.aside("The chunks without a tick keep their rules.")
    if len(chosen) < len(ids):
        elements.aside(f"{len(chosen):,} of {counted(len(ids), 'chunk')} are ticked.")
    return {i: rules[i] for i in chosen}


def _tick(change: object, ids: Sequence[str], ticked: Sequence[str]) -> None:
    st.session_state[LEFT_OUT] = change, frozenset(ids).difference(ticked)


def save(work: Desk, rules: Rules, what: str) -> None:
    """Store `rules` as one step, unless a rule is no longer the one on the desk."""
    bench = work.resources.bench
    try:
        made = steps.save_all(
            bench.collection(work.collection),
            bench.journal,
            rules=rules,
            expected={i: work.chunks[i].rule for i in rules},
            who=author(),
        )
    except RagfilterError as error:
        # The store's own errors say what was saved.
        said = str(error) if isinstance(error, StoreError) else f"Not saved: {error}"
        outcome.put(said, good=False)
    else:
        outcome.put(f"Saved: {counted(len(made), 'rule')}, {what}.", good=True)
        st.session_state.pop(LEFT_OUT, None)
        state.renew()
