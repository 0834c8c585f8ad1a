"""Apply the fixes of lint until it has no more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ragfilter.rules.lint import by_severity, lint

MOST_ROUNDS = 50


def mend(
    rules: Mapping[str, str],
    titles: Mapping[str, str],
    kinds: Collection[str] = (),
    texts: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The rules (by chunk id) that lint can mend, mended; of findings of `kinds` where given, else
    of those that are sure.

    A rule is mended one finding at a time, the gravest first, since mending one may settle another.
    """
    mended: dict[str, str] = {}
    waiting = dict(rules)
    for _ in range(MOST_ROUNDS):
        changed: dict[str, str] = {}
        for finding in by_severity(lint(waiting, titles, texts)):
            wanted = finding.kind in kinds if kinds else finding.sure
            fits = finding.proposal is not None and wanted
            if fits and finding.proposal != waiting[finding.chunk_id]:
                changed.setdefault(finding.chunk_id, finding.proposal or "")
        if not changed:
            break
        mended |= changed
        waiting = changed
    return {i: text for i, text in mended.items() if text != rules[i]}
