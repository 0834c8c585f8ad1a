"""What the `rules` commands print: plain text for people, and the JSON documents. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragfilter.cli.rule_files import Change, Plan, Refusal
from ragfilter.cli.text import table
from ragfilter.rules.journal import Edit
from ragfilter.rules.lint import Finding, Severity
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.evaluate.effect import Effect

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
RULE_CHARS = 60
HELD = (
    "Correct the drafts that are held back and remove their remarks from the file, or add "
    "--with-doubts to save them as they are."
)


def lint_document(collection: str, rules: int, findings: Sequence[Finding]) -> dict[str, Any]:
    counts = Counter(finding.severity for finding in findings)
    return {
        "collection": collection,
        "rules": rules,
        **{f"{severity}s": counts[severity] for severity in SEVERITIES},
        "findings": [asdict(f) | {"severity": f.severity} for f in findings],
    }


def lint_text(collection: str, rules: int, findings: Sequence[Finding]) -> str:
    """Errors first, each with what a better rule would be, where one can be offered."""
    lines: list[str] = []
    for finding in sorted(findings, key=lambda f: SEVERITIES.index(f.severity)):
        place = f" {finding.place}" if finding.place else ""
        lines.append(f"{finding.severity}: {finding.chunk_id}{place}: {finding.problem}")
        if finding.proposal is not None:
            lines.append(f"  better: {finding.proposal}")
    counts = Counter(finding.severity for finding in findings)
    figures = ", ".join(counted(counts[severity], severity) for severity in SEVERITIES)
    lines.append(f"{collection}: {counted(rules, 'rule')}, {figures}")
    return "\n".join(lines) + "\n"


def import_document(
    collection: str,
    plan: Plan,
    saved: Sequence[Change],
    refusals: Sequence[Refusal],
    *,
    dry_run: bool,
) -> dict[str, Any]:
    return {
        "collection": collection,
        "dry_run": dry_run,
        "would_save" if dry_run else "saved": [asdict(c) | {"kind": c.kind} for c in saved],
        "held_back": [asdict(c) | {"kind": c.kind} for c in plan.held],
        "unchanged": plan.unchanged,
        "skipped": plan.skipped,
        "refused": [asdict(refusal) for refusal in refusals],
    }


def import_text(
    collection: str,
    plan: Plan,
    saved: Sequence[Change],
    refusals: Sequence[Refusal],
    *,
    dry_run: bool,
) -> str:
    lines = [f"{c.kind}: {c.chunk_id}: {c.after or 'no rule'}" for c in saved] if dry_run else []
    lines += [_doubt("with doubts", change) for change in saved if change.doubts]
    lines += [_doubt("held back", change) for change in plan.held]
    for refusal in refusals:
        whose = f" ({refusal.chunk_id})" if refusal.chunk_id else ""
        lines.append(f"refused: line {refusal.line}{whose}: {refusal.error}")
    verb = "would be saved" if dry_run else "saved"
    lines.append(
        f"{collection}: {counted(len(saved), 'rule')} {verb}, {plan.unchanged} unchanged, "
        f"{counted(plan.skipped, 'line')} without a rule skipped, {len(refusals)} refused"
        + (f", {len(plan.held)} held back for doubts" if plan.held else "")
    )
    lines += [HELD] if plan.held else []
    return "\n".join(lines) + "\n"


def effect_document(effect: Effect | None) -> dict[str, Any]:
    """The key `effect`, where one was measured."""
    if effect is None:
        return {}
    from ragfilter.evaluate.effect import document

    return {"effect": document(effect)}


def effect_text(effect: Effect | None) -> str:
    """What a change does to labelled queries: those that lose relevant chunks first."""
    if effect is None:
        return ""
    lines = []
    for row in effect.rows:
        others = [i for i in row.lost if i not in row.lost_relevant]
        said = [
            f"{what} {', '.join(ids)}"
            for what, ids in (
                ("loses relevant", row.lost_relevant), ("loses", others), ("gains", row.gained),
            )
            if ids
        ]  # fmt: skip
        lines.append(f"{row.id}: {'; '.join(said)} ({row.query})")
    changed = f"{len(effect.rows)} of {counted(effect.queries, 'query')} change"
    if effect.before and effect.after:
        changed += ": " + ", ".join(
            f"{name} {was:.3f} → {now:.3f}"
            for name, was, now in (
                ("precision", effect.before.precision, effect.after.precision),
                ("recall", effect.before.recall, effect.after.recall),
                ("F1", effect.before.f1, effect.after.f1),
            )
        )
    return "\n".join([*lines, changed]) + "\n"


def _doubt(what: str, change: Change) -> str:
    doubts = " ".join("; ".join(change.doubts).split())
    return f"{what}: line {change.line} ({change.chunk_id}): {doubts}"


def history_text(edits: Sequence[Edit]) -> str:
    body = [
        (
            str(edit.id),
            edit.at.isoformat(sep=" ", timespec="seconds"),
            edit.who,
            edit.kind,
            edit.state,
            edit.chunk_id,
            f"{_short(edit.before)} -> {_short(edit.after)}",
        )
        for edit in edits
    ]
    return table(("edit", "when", "who", "kind", "state", "chunk", "rule"), body)


def edit_text(edit: Edit) -> str:
    """What an undo or redo did."""
    return f"{edit.kind} of edit {edit.of}: the rule of {edit.chunk_id} is {_whole(edit.after)}\n"


def edit_document(edit: Edit) -> dict[str, Any]:
    return asdict(edit) | {"at": edit.at.isoformat()}


def _whole(rule: str | None) -> str:
    return "none" if rule is None else rule


def _short(rule: str | None) -> str:
    text = _whole(rule)
    return text if len(text) <= RULE_CHARS else f"{text[: RULE_CHARS - 1]}…"
