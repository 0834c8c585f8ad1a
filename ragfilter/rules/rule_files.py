"""Rules to and from files: `ragfilter rules export` and `import`, as JSONL, or as CSV for
spreadsheets (docs/rules.md); and expectations of rules, which `ragfilter rules test` checks.

Each line is an object with `id` and `query_must`, the rule as an object or as text. An import skips
lines without `query_must` and failed drafts; ``"query_must": null`` removes the chunk's rule.
Drafts with remarks are held back unless they are accepted; a later line for the same chunk replaces
them. Any other second line with a different rule is refused, since bad merges leave such lines.

An expectation is a line ``{"question": "…", "stay": ["id", …], "go": ["id", …]}``. A chunk stays if the question meets
its rule, or if it has none."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from ragfilter.basics import files
from ragfilter.errors import InputError, RuleError
from ragfilter.model import Chunk
from ragfilter.rules.match import CompiledRules
from ragfilter.rules.rule import Rule, RuleTexts, load, parse, read_rule
from ragfilter.text.normalise import in_one_line, mend_characters

ID_KEYS = ("id", "_id", "chunk_id")
RULE_KEY = "query_must"
REMARKS_KEY = "remarks"
NO_CHUNK = "the collection has no such chunk"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The rule to store `after` the text stored `before`, None for no rule. `doubts` are the remarks of its draft."""

    line: int
    chunk_id: str
    before: str | None
    after: Rule | None
    doubts: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        if self.after is None:
            return "removed"
        return "changed" if self.before else "new"


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that cannot be imported, and why."""

    line: int
    chunk_id: str
    error: str

    @property
    def message(self) -> str:
        """The refusal in one line."""
        whose = f" ({self.chunk_id})" if self.chunk_id else ""
        return in_one_line(f"refused: line {self.line}{whose}: {self.error}")


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The changes that a file would make, and those `held` back for doubts. `unchanged` and `skipped` count lines."""

    changes: tuple[FileChange, ...]
    held: tuple[FileChange, ...]
    refusals: tuple[RefusedLine, ...]
    unchanged: int
    skipped: int


def lines(chunks: Iterable[Chunk]) -> Iterator[str]:
    """Yield a line of JSON for every chunk with a rule; an invalid rule stays a string."""
    for chunk in chunks:
        if rule := read_rule(chunk.rule):
            record = {"id": chunk.id, "title": chunk.title, RULE_KEY: rule.value}
            yield json.dumps(record, ensure_ascii=False) + "\n"


def csv_text(chunks: Iterable[Chunk]) -> str:
    """The same as CSV, with a header and the byte order mark that Excel needs for UTF-8. A title
    that would run as a formula gets a leading apostrophe, since titles are not read back."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(("id", "title", RULE_KEY))
    for c in chunks:
        if rule := read_rule(c.rule):
            text = json.dumps(rule.value, ensure_ascii=False, separators=(",", ":"))
            writer.writerow((c.id, files.harmless(c.title), text))
    return f"\ufeff{buffer.getvalue()}"


def is_csv(path: Path | None) -> bool:
    """Whether a file is read and written as CSV."""
    return path is not None and path.suffix.lower() == ".csv"


def read(path: Path) -> tuple[dict[str, Chunk], tuple[RefusedLine, ...]]:
    """Read the chunks of a file by id, with only titles and rules, and the lines that are not chunks. Invalid rules are
    kept as they are. Raises InputError if the file cannot be read at all."""
    latest, refusals, _ = _latest(path)
    chunks = {}
    for chunk_id, (_, fields) in latest.items():
        value = fields[RULE_KEY]
        rule = value if value is None or isinstance(value, str) else json.dumps(value)
        chunks[chunk_id] = Chunk(chunk_id, "", str(fields.get("title") or ""), rule=rule)
    return chunks, tuple(refusals)


def plan(path: Path, stored: dict[str, str | None], *, with_doubts: bool = False) -> ImportPlan:
    """The changes that importing a file would make to `stored` (chunk id → rule text). Without `with_doubts`, drafts
    with doubts are held back. Writes nothing. Raises InputError if the file cannot be read at all."""
    latest, refusals, skipped = _latest(path)
    outcomes = [_change(number, chunk_id, fields, stored) for chunk_id, (number, fields) in latest.items()]
    refusals += [outcome for outcome in outcomes if isinstance(outcome, RefusedLine)]
    new = [outcome for outcome in outcomes if isinstance(outcome, FileChange)]
    return ImportPlan(
        changes=tuple(change for change in new if with_doubts or not change.doubts),
        held=tuple(change for change in new if change.doubts and not with_doubts),
        refusals=tuple(sorted(refusals, key=lambda refusal: refusal.line)),
        unchanged=outcomes.count(None),
        skipped=skipped,
    )


def _latest(path: Path) -> tuple[dict[str, tuple[int, dict[str, Any]]], list[RefusedLine], int]:
    """For each chunk, the number and content of the line that counts; also the unusable lines, and
    the number of lines without a rule. A later line replaces a draft with remarks."""
    latest: dict[str, tuple[int, dict[str, Any]]] = {}
    refusals: list[RefusedLine] = []
    skipped = 0
    for number, fields in _rows(path) if is_csv(path) else _objects(path):
        if isinstance(fields, str):
            refusals.append(RefusedLine(number, "", fields))
            continue
        chunk_id = next((fields[key] for key in ID_KEYS if key in fields), None)
        if not isinstance(chunk_id, str) or not chunk_id:
            refusals.append(RefusedLine(number, "", "the id is missing or is not text"))
            continue
        chunk_id = mend_characters(chunk_id)
        if RULE_KEY not in fields or (fields[RULE_KEY] is None and fields.get("error")):
            skipped += 1
            continue
        first, known = latest.get(chunk_id, (number, fields))
        if known is fields or known.get(REMARKS_KEY):
            latest[chunk_id] = number, fields
        elif known[RULE_KEY] != fields[RULE_KEY]:
            error = f"line {first} has another rule for this chunk"
            refusals.append(RefusedLine(number, chunk_id, error))
    return latest, refusals, skipped


def _change(
    number: int, chunk_id: str, record: dict[str, Any], stored: dict[str, str | None]
) -> FileChange | RefusedLine | None:
    """What a line of the file does to `stored`; None if it changes nothing."""
    if chunk_id not in stored:
        return RefusedLine(number, chunk_id, NO_CHUNK)
    value = record[RULE_KEY]
    if value == stored[chunk_id]:
        # Even if it is invalid, because an export writes it as stored.
        return None
    try:
        after = None if value is None else parse(value if isinstance(value, str) else json.dumps(value))
    except (RuleError, RecursionError) as error:
        within = f"{RULE_KEY}, " if str(error).startswith("line ") else ""
        return RefusedLine(number, chunk_id, f"{within}{error}")
    if after == read_rule(stored[chunk_id]):
        return None
    remarks = record.get(REMARKS_KEY)
    # A cell of a CSV file is text.
    listed = [remarks] if isinstance(remarks, str) and remarks.strip() else remarks
    doubts = tuple(mend_characters(str(remark)) for remark in listed) if after and isinstance(listed, list) else ()
    return FileChange(number, chunk_id, stored[chunk_id], after, doubts)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the object of every line of a JSONL file, or what is wrong with it."""
    for number, line in enumerate(files.read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record: Any = load(line)
        except RuleError as error:
            yield number, str(error).removeprefix("line 1, ")
            continue
        yield number, record if isinstance(record, dict) else "this is not a JSON object"


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the cells of every row of a CSV file by column, or what is wrong with it. Raises
    InputError if there is no header, or if cells are quoted wrongly. Empty cells are left out."""
    numbered = files.rows(files.read_text(path), str(path))
    number, header = next(numbered, (1, []))
    names = [cell.strip().lower() for cell in header]
    if RULE_KEY not in names or not {*ID_KEYS} & {*names}:
        raise InputError(
            f"{path}, line {number}: the header does not name id and {RULE_KEY}.",
            remedy=f"Begin the file with id,title,{RULE_KEY}.",
        )
    for number, cells in numbered:
        if len(cells) > len(names):
            yield number, f"it has {len(cells)} cells, the header {len(names)}"
            continue
        record: dict[str, Any] = {name: cell for name, cell in zip(names, cells, strict=False) if cell.strip()}
        cell = record.get(RULE_KEY, "").strip()
        # The other rules are read later, with their errors.
        if cell == "null" or cell.startswith('"'):
            with contextlib.suppress(ValueError):
                record[RULE_KEY] = json.loads(cell)
        yield number, record


# Expectations of rules.
Wanted = Literal["stay", "go"]
EXPECTED = 'Write {"question": "…", "stay": ["id"], "go": ["id"]}.'


class Expectation(files.TomlTable):
    """One line of the file, by its 1-based number."""

    line: int
    question: str
    stay: list[str] = Field(default_factory=list)
    go: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _expects_one_outcome(self) -> Self:
        if not self.wanted:
            raise ValueError("it expects nothing")
        if both := {*self.stay} & {*self.go}:
            raise ValueError(f"{min(both)!r} must both stay and go")
        return self

    @property
    def wanted(self) -> tuple[tuple[str, Wanted], ...]:
        """Each chunk with its expected outcome."""
        return (*((i, "stay") for i in self.stay), *((i, "go") for i in self.go))


@dataclass(frozen=True, slots=True)
class Broken:
    """A chunk that did not behave as expected, with the matcher's reason."""

    line: int
    question: str
    chunk_id: str
    must: Wanted
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of expectations: how many were `tested`, one per chunk."""

    questions: int
    tested: int
    broken: tuple[Broken, ...]


def read_expectations(path: Path) -> tuple[Expectation, ...]:
    """Read the expectations in a file, in order. Raises InputError naming the line."""
    expectations = tuple(
        files.check_table(record | {"line": int(where.rpartition(" ")[2])}, Expectation, where, remedy=EXPECTED)
        for where, record in files.json_objects(path, EXPECTED)
    )
    if not expectations:
        raise InputError(f"{path} contains no expectations.", remedy=EXPECTED)
    return expectations


def check_rules(expectations: Sequence[Expectation], rules: RuleTexts) -> Outcome:
    """Check `rules` against the expectations. Expectations
    about other chunks are broken: chunks that the user cannot see count as missing."""
    expected_ids = [i for expected in expectations for i, _ in expected.wanted]
    compiled = CompiledRules(filter(None, {rules.get(i) for i in expected_ids}))
    broken: list[Broken] = []
    for expected in expectations:
        scan = compiled.scan(expected.question)
        for chunk_id, must in expected.wanted:
            check = scan.check(rules.get(chunk_id))
            if chunk_id not in rules or check.passes != (must == "stay"):
                reason = check.reason if chunk_id in rules else NO_CHUNK
                broken.append(Broken(expected.line, expected.question, chunk_id, must, reason))
    return Outcome(len(expectations), len(expected_ids), tuple(broken))
