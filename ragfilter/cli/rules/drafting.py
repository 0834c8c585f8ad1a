"""What `ragfilter rules suggest` writes and prints about its drafts.

Source: docs/design.md#drafting. Every draft is in the output file (JSONL) before the next chunk is
asked about. So an interruption loses at most the current draft, and the next run continues after
the last one. It tries chunks whose draft failed again.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragfilter.answer.stream import Prices
from ragfilter.cli.rules.saving import row_text
from ragfilter.errors import InputError
from ragfilter.evaluate.rule_matrix import RuleRow, row_document
from ragfilter.model import Chunk
from ragfilter.protocols import Progress, Usage
from ragfilter.rules import draft as suggesting
from ragfilter.rules.draft import Draft
from ragfilter.rules.drafting import Totals
from ragfilter.text import numbers

MANY = 20
MOST_NAMED = 5


def record(draft: Draft, chunk: Chunk, collection: str, row: RuleRow | None) -> dict[str, Any]:
    """One line of the output file; `ragfilter rules import` reads it."""
    head = {"collection": collection, "id": chunk.id, "title": chunk.title}
    matrix = None if row is None else row_document(row)
    return head | dict(suggesting.fields(draft)) | {"matrix": matrix}


def drafted_before(path: Path, collection: str) -> set[str]:
    """The ids that already have a rule in the output file at `path`, which need not exist.

    A last line that was cut off during writing is removed; a complete one gets its missing newline.
    Raises InputError and leaves the file unchanged if it is unreadable, not a file of drafts, or
    for another collection.
    """
    try:
        raw = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    *lines, tail = raw.split(b"\n")
    # A file without a single complete draft may be anything, so nothing is removed from it.
    cut_off = bool(lines) and _is_cut_off(tail)
    if tail and not cut_off:
        lines.append(tail)
    found = [_drafted(path, n, line, collection) for n, line in enumerate(lines, start=1)]
    # Only now is it certain that the file is ours to change.
    try:
        if cut_off:
            os.truncate(path, len(raw) - len(tail))
        # Always, so that an unwritable file is reported before a model is called.
        with path.open("ab") as file:
            file.write(b"\n" if tail and not cut_off else b"")
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None
    return {chunk_id for chunk_id in found if chunk_id is not None}


def append(path: Path, line: dict[str, Any]) -> None:
    """Append one line to the file and flush it to disk. Raises InputError."""
    try:
        with path.open("ab") as file:
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from None


def text(draft: Draft, chunk: Chunk, place: str, row: RuleRow | None) -> str:
    """A draft as printed if no file is written."""
    second = ", second answer" if draft.repaired else ""
    title = " ".join(chunk.name.split())
    lines = [f"{place}  {chunk.id}  {title}  ({draft.category}{second})"]
    lines.append(f"  {draft.text}" if draft.rule is not None else f"  no draft: {draft.error}")
    lines += [] if row is None else [f"  {row_text(row)}"]
    lines += [f"  doubt: {remark}" for remark in draft.remarks]
    return "\n".join(lines) + "\n"


def totals_text(totals: Totals, *, before: int) -> str:
    """The totals in one line; `before` is the number of drafts made by an earlier run."""
    about = "about " if totals.usage.estimated else ""
    parts = [
        f"{totals.drafted} drafted ({totals.repaired} by a second answer, "
        f"{totals.doubtful} with doubts)",
        f"{totals.without} without a draft",
    ]
    parts += [f"{before} drafted before"] if before else []
    cost = "" if totals.cost is None else f", cost {numbers.money(totals.cost, totals.currency)}"
    return (
        f"{', '.join(parts)}; {about}{totals.usage.prompt_tokens:,} prompt and "
        f"{totals.usage.completion_tokens:,} answer tokens{cost}, {totals.seconds:.1f} s. "
        "Nothing is saved to the collection.\n"
    )


def expected_text(chunks: int, usage: Usage, prices: Prices | None) -> str:
    """The approximate cost of the first answers for this many chunks, printed before the first
    call."""
    paid = prices and f", cost {numbers.money(prices.of(usage), prices.currency)}"
    return (
        f"{numbers.counted(chunks, 'chunk')} to draft: about {usage.prompt_tokens:,} prompt and "
        f"{usage.completion_tokens:,} answer tokens{paid or ''}; up to three times as much if "
        "first answers have faults."
    )


def without_text(made: Sequence[Draft]) -> str:
    """Why chunks have no draft: each reason once, with its chunks; empty if all have one."""
    by_reason: dict[str, list[str]] = {}
    for draft in made:
        if draft.rule is None:
            by_reason.setdefault(draft.error, []).append(draft.chunk_id)
    lines = []
    for reason, ids in by_reason.items():
        named = ", ".join(" ".join(i.split()) for i in ids[:MOST_NAMED])
        more = f" and {len(ids) - MOST_NAMED} more" if len(ids) > MOST_NAMED else ""
        lines.append(f"  {named}{more}: {reason}\n")
    return "".join(["Without a draft:\n", *lines]) if lines else ""


def next_text(path: Path, collection: str, *, doubtful: int) -> str:
    """What to do with the file next; `doubtful` is the number of drafts with remarks."""
    words = ["ragfilter", "rules", "import", str(path), "--collection", collection]
    doubts = (
        " Drafts with doubts, listed under remarks, are held back until the remarks are removed."
    )
    return (
        "Review the drafts, then save the ones you want to "
        f"keep.{doubts if doubtful else ''}\n{shlex.join(words)}\n"
    )


def plain_progress(what: str, tell: Callable[[str], None]) -> Progress:
    """Progress for a log instead of a terminal: a line for each tenth, if there are many chunks."""

    def show(done: int, total: int) -> None:
        tenth = done * 10 // total if total else 10
        if total >= MANY and tenth > (done - 1) * 10 // total:
            tell(f"{done:,} of {total:,} {what}")

    return show


def totals_document(totals: Totals) -> dict[str, Any]:
    """The same for `--json`."""
    values: dict[str, Any] = asdict(totals) | {"seconds": round(totals.seconds, 3)}
    usage: dict[str, Any] = values.pop("usage")
    paid = {name: values.pop(name) for name in ("cost", "currency")}
    return values | usage | ({} if paid["cost"] is None else paid)


def _is_cut_off(tail: bytes) -> bool:
    """Whether `tail` may be the beginning of a draft. Drafts are objects, and a truncated object
    cannot be parsed."""
    if not tail.startswith(b"{"):
        return False
    try:
        json.loads(tail)
    except ValueError:
        return True
    except RecursionError:
        pass
    return False


def _drafted(path: Path, number: int, line: bytes, collection: str) -> str | None:
    """The id in one line of the output file, None if that draft has no rule."""
    try:
        data = json.loads(line)
        chunk_id, of, rule = data["id"], data["collection"], data["query_must"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _unusable(path, f"line {number} is not a draft") from None
    if of != collection:
        raise _unusable(path, f"line {number} is a draft for the collection {of!r}")
    return None if rule is None else str(chunk_id)


def _unusable(path: Path, why: str) -> InputError:
    return InputError(
        f"The drafts cannot be written to {path}: {why}.", remedy="Use another file with --out."
    )
