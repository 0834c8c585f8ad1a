"""`ragfilter rules lint`: rules that do not work as intended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing, Where
from ragfilter.cli.rules.group import FOUND, rules, select_rules
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.rules.lint import Finding, Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@command(rules)
def lint(
    place: Place,
    viewing: Viewing,
    where: Where = None,
    as_json: Json = False,
) -> int:
    """Find rules that do not work as intended. Exits with 1 if there are errors."""
    chosen = select_rules(place, viewing, where)
    from ragfilter.rules.lint import lint as find

    texts = {chunk.id: chunk.rule or "" for chunk in chosen.chunks}
    findings = find(texts, {chunk.id: chunk.title for chunk in chosen.chunks})
    if as_json:
        document = lint_document(place.collection, len(texts), findings)
        parts.emit(parts.dumps(document | {"incomplete": chosen.incomplete}))
    else:
        parts.emit(lint_text(place.collection, len(texts), findings))
    return FOUND if any(finding.severity == "error" for finding in findings) else 0


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
