"""What can be said about rules and the chunks that have or lack them: the type that checks return,
pages and commands show, and fixes are taken from.

kind        severity  means
unreadable  error     the rule is invalid, so its chunk always passes
impossible  error     no query can meet the rule: a required term contains a forbidden one
spread      warning   alternatives are in separate groups
loose       warning   as a substring, a term is also found within longer words or numbers
no_edges    warning   a term in a script without spaces is hardly ever found in word mode
empty       warning   the rule requires nothing
bare        warning   a number is alone, and nothing says what it counts
everywhere  warning   a term is in nearly every question
shared      warning   several chunks whose titles differ in a number have the rule
spelling    note      a group lacks a usual spelling of a value ("ac 6", "armor class of 6")
dead        note      an alternative never helps, because it contains a forbidden term
duplicate   note      a term or group occurs twice
covered     note      a term or group changes nothing, because another one decides
family      note      a rule would tell the chunk apart from others that differ in a few values
draft       note      an LLM has drafted a rule
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, computed_field

from ragfilter.rules.rule import Rule

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
KINDS: Mapping[str, Severity] = {
    "unreadable": "error",
    "impossible": "error",
    "spread": "warning",
    "loose": "warning",
    "no_edges": "warning",
    "empty": "warning",
    "bare": "warning",
    "everywhere": "warning",
    "shared": "warning",
    "spelling": "note",
    "dead": "note",
    "duplicate": "note",
    "covered": "note",
    "family": "note",
    "draft": "note",
}
"""Every kind of finding with its severity."""


class Finding(BaseModel):
    """A problem with the rule of some chunks, or a proposal for one.

    `place` is a path within the rule, empty for the rule as a whole. `fix` is a rule without the
    problem; one without terms means that the rule should be removed, and None that only a person
    can tell what was meant. Unless it is `sure`, the rule may be intended as it is.
    """

    model_config = ConfigDict(frozen=True)

    kind: str
    chunk_ids: tuple[str, ...] = ()
    place: str = ""
    message: str
    fix: Rule | None = None
    sure: bool = True

    @computed_field  # type: ignore[prop-decorator]
    @property
    def severity(self) -> Severity:
        """``error``: the rule does not work; ``warning``: probably not what was meant; ``note``:
        could be better."""
        return KINDS[self.kind]

    @property
    def fixed(self) -> str | None:
        """The fix in its stored form, None to remove the rule."""
        return self.fix.text if self.fix is not None and self.fix.terms else None

    def on(self, *chunk_ids: str) -> Finding:
        """The same finding about these chunks."""
        return self.model_copy(update={"chunk_ids": chunk_ids})


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Sort errors first, then warnings, then notes; stable otherwise."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
