"""Rules to and from JSONL files: `ragfilter rules export` and `import`.

One object a line with `id` and `query_must`, the rule as an object or as text. So are drafts
(`rules suggest --out`) and the records that `index` reads. On import a line without `query_must`,
and a draft that failed, are skipped; ``"query_must": null`` removes the chunk's rule. Of several
lines for one chunk the last counts. A draft with remarks is held back unless they are accepted:
nobody may have seen them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragfilter.errors import ConflictError, InputError, RuleError
from ragfilter.model import Chunk
from ragfilter.protocols import Progress, RuleStore
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.rules.rule import canonical, parse
from ragfilter.text.characters import whole

ID_KEYS = ("id", "_id", "chunk_id")
RULE_KEY = "query_must"
REMARKS_KEY = "remarks"


@dataclass(frozen=True, slots=True)
class Change:
    """A rule to be stored: canonical text, None for no rule; `before` is what is stored now.
    `doubts` are the remarks of its draft."""

    line: int
    chunk_id: str
    before: str | None
    after: str | None
    doubts: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        if self.after is None:
            return "removed"
        return "changed" if self.before else "new"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A line that cannot be imported, and why."""

    line: int
    chunk_id: str
    error: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a file would change, and what is `held` back for its doubts. `unchanged` and `skipped`
    count lines."""

    changes: tuple[Change, ...]
    held: tuple[Change, ...]
    refusals: tuple[Refusal, ...]
    unchanged: int
    skipped: int


def lines(chunks: Iterable[Chunk]) -> Iterator[str]:
    """One line of JSON for every chunk that has a rule; one that cannot be read stays a text."""
    for chunk in chunks:
        if chunk.rule:
            record = {"id": chunk.id, "title": chunk.title, RULE_KEY: _value(chunk.rule)}
            yield json.dumps(record, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> None:
    """Write the file, whole or not at all. Raises InputError."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}.",
            remedy="Use another file with --out.",
        ) from None


def read(path: Path) -> dict[str, str | None]:
    """The rules of the file at `path`, by chunk id; those that cannot be read stay as they are.

    Raises InputError that names the first line that is not one of a chunk.
    """
    found: dict[str, str | None] = {}
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        record = _record(line, number)
        if isinstance(record, Refusal):
            raise InputError(
                f"{path}, line {number}: {record.error}.", remedy="Write id and query_must a line."
            )
        chunk_id, fields = record
        value = fields.get(RULE_KEY)
        found[chunk_id] = value if value is None or isinstance(value, str) else json.dumps(value)
    return found


def plan(path: Path, stored: dict[str, str | None], *, with_doubts: bool = False) -> Plan:
    """What importing the file at `path` would change of `stored` (chunk id to rule text).

    Without `with_doubts` drafts that have some are held back. Writes nothing. Raises InputError
    where the file cannot be read at all.
    """
    text = _read_text(path)
    wanted: dict[str, Change | Refusal | None] = {}
    unnamed: list[Refusal] = []
    skipped = 0
    # Not splitlines: that also breaks at characters that may stand within a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        found = _of_line(line, number, stored)
        if found is None:
            skipped += 1
        elif found.chunk_id:
            wanted[found.chunk_id] = found
        elif isinstance(found, Refusal):
            unnamed.append(found)
    changes = [item for item in wanted.values() if isinstance(item, Change)]
    refusals = unnamed + [item for item in wanted.values() if isinstance(item, Refusal)]
    new = [change for change in changes if change.before != change.after]
    return Plan(
        changes=tuple(change for change in new if with_doubts or not change.doubts),
        held=tuple(change for change in new if change.doubts and not with_doubts),
        refusals=tuple(sorted(refusals, key=lambda refusal: refusal.line)),
        unchanged=sum(change.before == change.after for change in changes),
        skipped=skipped,
    )


def save(
    changes: Sequence[Change],
    store: RuleStore,
    journal: Journal,
    *,
    who: str,
    progress: Progress | None = None,
) -> Iterator[Change | Refusal]:
    """Save each change through the journal; each as it is saved, or a refusal where somebody else
    was faster. Raises StoreError; what was saved until then stays."""
    for done, change in enumerate(changes, start=1):
        try:
            edits.save(
                store,
                journal,
                chunk_id=change.chunk_id,
                rule=change.after,
                expected=change.before,
                who=who,
            )
            yield change
        except ConflictError as error:
            yield Refusal(change.line, change.chunk_id, str(error))
        if progress is not None:
            progress(done, len(changes))


def _of_line(line: str, number: int, stored: dict[str, str | None]) -> Change | Refusal | None:
    found = _record(line, number)
    if isinstance(found, Refusal):
        return found
    chunk_id, record = found
    if RULE_KEY not in record or (record[RULE_KEY] is None and record.get("error")):
        return None
    if chunk_id not in stored:
        return Refusal(number, chunk_id, "the collection has no such chunk")
    value = record[RULE_KEY]
    after = None
    if value is not None:
        try:
            after = canonical(parse(value if isinstance(value, str) else json.dumps(value)))
        except (RuleError, RecursionError) as error:
            return Refusal(number, chunk_id, str(error))
    remarks = record.get(REMARKS_KEY)
    told = remarks if after and isinstance(remarks, list) else ()
    doubts = tuple(whole(str(remark)) for remark in told)
    return Change(number, chunk_id, stored[chunk_id], after, doubts)


def _record(line: str, number: int) -> tuple[str, dict[str, Any]] | Refusal:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return Refusal(number, "", "this is not JSON")
    if not isinstance(record, dict):
        return Refusal(number, "", "this is not a JSON object")
    chunk_id = next((record[key] for key in ID_KEYS if key in record), None)
    if not isinstance(chunk_id, str) or not chunk_id:
        return Refusal(number, "", "the id is missing or is not text")
    return whole(chunk_id), record


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(
            f"{path} cannot be read: {why}.", remedy="Use a JSONL file in UTF-8."
        ) from None


def _value(rule: str) -> Any:
    try:
        return json.loads(canonical(parse(rule)))
    except RuleError:
        return rule
