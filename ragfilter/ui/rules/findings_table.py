"""What the linter finds in the rules of the filtered chunks, and the fixes, saved as one step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from ragfilter.model import Chunk
from ragfilter.rules.bulk import BulkPlan, plan_fixes
from ragfilter.rules.findings import Finding, by_severity
from ragfilter.ui.kit import grid, progress
from ragfilter.ui.kit.rule_editor import desk, rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import change_preview

KINDS = "findings-kinds"
MOST_FINDINGS = 500


def draw(work: Desk) -> None:
    """Draw the findings, the kinds to fix, and what the fixes would change."""
    ruled = [row.chunk.id for row in desk.selected(work) if row.chunk.rule]
    chunks = list(work.read(ruled).values())
    if len(chunks) > desk.MOST_READ:
        elements.aside(
            f"Texts are read for up to {desk.MOST_READ:,} rules. A narrower filter under Chunks "
            "may find more."
        )
    findings = _findings(work, chunks)
    if not findings:
        change_preview.draw_outcome()
        elements.empty("No findings.", "The linter found no problem in the rules under Chunks.")
        return
    counts = Counter(finding.kind for finding in findings)
    kinds = st.multiselect(
        "Fix",
        list(counts),
        key=KINDS,
        persist_state="session",
        format_func=lambda kind: f"{kind} ({counts[kind]})",
        placeholder="all certain fixes",
        help="Fixes only these kinds, including ones that may be intentional.",
    )
    listed = [finding for finding in findings if not kinds or finding.kind in kinds]
    progress.unless(rule_effect.waits(work), _table)(work, listed)
    change_preview.draw_outcome()
    change_preview.draw(work, "fix findings", _fixes(work, chunks, kinds), "findings")


def _findings(work: Desk, chunks: Sequence[Chunk]) -> list[Finding]:
    shared = desk.listing(work).shared
    return by_severity(
        finding
        for chunk in chunks
        for finding in (
            *work.checks.findings(chunk),
            *([shared[chunk.id]] if chunk.id in shared else []),
        )
    )


def _fixes(work: Desk, chunks: Sequence[Chunk], kinds: Sequence[str]) -> BulkPlan:
    """What fixing these kinds of finding would change, cached, since it lints each rule again."""
    key = (*work.key, work.checks, tuple(chunk.id for chunk in chunks), tuple(kinds))

    def fix() -> BulkPlan:
        with st.spinner("Fixing the rules …"):
            return plan_fixes(chunks, kinds, work.checks.usual, work.chunks)

    return work.resources.mends.of(key, fix)


def _table(work: Desk, findings: Sequence[Finding]) -> None:
    """Draw the findings, and the button that opens the chunk of one."""
    shown = findings[:MOST_FINDINGS]
    row = grid.picked(
        pd.DataFrame(
            {
                "severity": [finding.severity for finding in shown],
                "kind": [finding.kind for finding in shown],
                "chunk": [work.title(finding.chunk_ids[0]) for finding in shown],
                "finding": [finding.message for finding in shown],
                "place": [finding.place for finding in shown],
                "fix": [_fix(finding) for finding in shown],
            }
        ),
        [f"{finding.chunk_ids[0]} {finding.kind} {finding.place}" for finding in shown],
        name="findings",
        height=320,
        columns={"finding": st.column_config.TextColumn(width="large")},
    )
    st.button(
        "Edit",
        key="findings-edit",
        on_click=desk.edit,
        args=() if row is None else (shown[row].chunk_ids[0],),
        disabled=row is None,
        help="Opens the chunk of the selected finding. Click a row first.",
    )
    if len(findings) > MOST_FINDINGS:
        elements.aside(f"and {len(findings) - MOST_FINDINGS:,} more")


def _fix(finding: Finding) -> str:
    if finding.fix is None:
        return "by hand"
    return "certain" if finding.sure else "check first"
