"""Apply the fixes of lint until it has no more. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from ragfilter.rules.lint import by_severity, lint
from ragfilter.rules.values import COMMON

MOST_ROUNDS = 50


def mend(
    rules: Mapping[str, str],
    titles: Mapping[str, str],
    kinds: Collection[str] = (),
    texts: Mapping[str, str] | None = None,
    usual: Collection[str] = COMMON,
    others: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str | None]:
    """Fix the rules (by chunk id) that lint can fix, and return those that changed, None for one
    to remove. Only findings of `kinds` are fixed, or by default those that are sure. `titles`,
    `texts`, `usual` and `others` as for `lint`.

    A rule is fixed one finding at a time, most severe first, since one fix may resolve another
    finding.
    """
    mended: dict[str, str] = {}
    waiting, compared = dict(rules), others
    for _ in range(MOST_ROUNDS):
        changed: dict[str, str] = {}
        for finding in by_severity(lint(waiting, titles, texts, usual, compared)):
            wanted = finding.kind in kinds if kinds else finding.sure
            fits = finding.proposal is not None and wanted
            if fits and finding.proposal != waiting[finding.chunk_id]:
                changed.setdefault(finding.chunk_id, finding.proposal or "")
        if not changed:
            break
        mended |= changed
        waiting = {i: text for i, text in changed.items() if text}
        compared = {**others, **{i: text for i, text in rules.items() if i not in mended}}
    return {i: text or None for i, text in mended.items() if text != rules[i]}
