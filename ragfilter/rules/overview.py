"""A collection's chunks for a curator: each with a short form of its rule and the rule's state,
filtered and sorted by how much attention it needs. Pure.

state    means
invalid  the rule cannot be read, or no query can meet it
warning  the linter doubts that it works as intended
note     the linter proposes a better form
valid    no problem is known
none     the chunk has no rule, so it always passes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from ragfilter.model import Chunk
from ragfilter.rules.rule import AnyRule, InvalidRule, read_text, shorten

if TYPE_CHECKING:
    from ragfilter.rules.lint import Finding, Severity

State = Literal["invalid", "warning", "note", "valid", "none"]
STATES: tuple[State, ...] = ("invalid", "warning", "note", "valid", "none")
WORDS = (*STATES, "draft", "changed")  # all words for a rule's state
STORED = (*STATES, "changed")  # those that do not depend on unsaved edits
MAX_PARTS = 4


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One chunk in the list. `draft`: it has an unsaved edit; `changed`: its rule differs from the last export."""

    chunk: Chunk
    state: State
    draft: bool = False
    changed: bool = False

    @property
    def id(self) -> str:
        return self.chunk.id

    @property
    def words(self) -> tuple[str, ...]:
        """All words for the state."""
        return (self.state, *(word for word in ("draft", "changed") if getattr(self, word)))


@dataclass(frozen=True, slots=True)
class RuleFilter:
    """A filter; empty parts admit everything. `text` has words that must all occur in title, id,
    type, source or rule; `states` may include ``draft`` and ``changed``."""

    text: str = ""
    types: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


class Checks:
    """The linter's findings, cached by rule, title and text. Thread-safe."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int], tuple[Finding, ...]] = {}

    def findings(self, chunk: Chunk) -> tuple[Finding, ...]:
        """The findings about a chunk's rule; they depend on the chunk's text if it is loaded."""
        if not chunk.rule:
            return ()
        # Hashed, because texts are long and many chunks are checked.
        key = (chunk.rule, chunk.title, hash(chunk.text))
        known = self._known.get(key)
        if known is None:
            # Imported here and below: the page keeps a `Checks`, and most visits check no rule.
            from ragfilter.rules.lint import check_rule

            rule = read_text(chunk.rule)
            known = self._known[key] = check_rule(rule, chunk.title, chunk.text)
        return tuple(finding.on(chunk.id) for finding in known)

    def state(self, chunk: Chunk) -> State:
        """The state of a chunk's rule."""
        if not chunk.rule:
            return "none"
        severities = {finding.severity for finding in self.findings(chunk)}
        states: dict[Severity, State] = {"error": "invalid", "warning": "warning", "note": "note"}
        return next((state for severity, state in states.items() if severity in severities), "valid")


@dataclass(frozen=True)
class Listing:
    """All chunks that may be listed, in stored order."""

    rows: tuple[ListingRow, ...]
    shared: Mapping[str, Finding]
    """By chunk id, findings that depend on all rules together."""
    _texts: tuple[str, ...] = field(repr=False)

    def find(self, wanted: RuleFilter) -> tuple[ListingRow, ...]:
        """The rows that `wanted` admits, most urgent first."""
        words = wanted.text.casefold().split()
        rows = [
            row
            for row, text in zip(self.rows, self._texts, strict=True)
            if all(word in text for word in words)
            and (not wanted.types or row.chunk.type in wanted.types)
            and (not wanted.sources or row.chunk.source in wanted.sources)
            and (not wanted.states or not set(row.words).isdisjoint(wanted.states))
        ]
        # Invalid rules and unfinished or doubtful ones come first.
        return tuple(sorted(rows, key=lambda row: (row.state != "invalid", not row.draft, STATES.index(row.state))))

    def with_unsaved(self, ids: Iterable[str]) -> Listing:
        """The same listing with these chunks marked as having an unsaved edit; much cheaper than building it again."""
        drafted = {i: replace(self.by_id[i], draft=True) for i in ids if i in self.by_id}
        return replace(self, rows=tuple({**self.by_id, **drafted}.values())) if drafted else self

    @cached_property
    def by_id(self) -> Mapping[str, ListingRow]:
        return {row.id: row for row in self.rows}

    @cached_property
    def types(self) -> tuple[str, ...]:
        return tuple(sorted({row.chunk.type for row in self.rows} - {""}))

    @cached_property
    def sources(self) -> tuple[str, ...]:
        return tuple(sorted({row.chunk.source for row in self.rows} - {""}))


def make_listing(
    chunks: Iterable[Chunk], checks: Checks, *, exported: Mapping[str, str | None] = MappingProxyType({})
) -> Listing:
    """List `chunks`. `exported` has the last exported rule of each chunk edited since."""
    chunks = tuple(chunks)
    from ragfilter.rules.lint import find_shared, rules_of

    same = find_shared(rules_of(chunks), {chunk.id: chunk for chunk in chunks})
    rows = []
    for chunk in chunks:
        state = checks.state(chunk)
        if state in ("note", "valid") and chunk.id in same:
            state = "warning"
        changed = chunk.id in exported and exported[chunk.id] != (chunk.rule or None)
        rows.append(ListingRow(chunk, state, changed=changed))
    texts = ("\n".join((c.title, c.id, c.type, c.source, c.rule or "")).casefold() for c in chunks)
    return Listing(tuple(rows), same, tuple(texts))


def brief(rule: AnyRule | None) -> str:
    """A rule in one line: each part's first term and the number of its other terms."""
    if rule is None:
        return ""
    if isinstance(rule, InvalidRule):
        return f"invalid: {rule.error.message}"
    parts = [_first(group) for group in rule.demands.values()]
    parts += [f"not {_first(rule.contain_none_of)}"] if rule.contain_none_of else []
    more = [f"and {len(parts) - MAX_PARTS} more"] if len(parts) > MAX_PARTS else []
    return ", ".join(parts[:MAX_PARTS] + more) or "asks for nothing"


def _first(terms: Sequence[str]) -> str:
    others = f" (+{len(terms) - 1})" if len(terms) > 1 else ""
    return f"{shorten(terms[0])}{others}"
