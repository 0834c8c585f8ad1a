"""`ragfilter rules test`: whether rules do what a file of expectations says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing
from ragfilter.cli.rules.group import FOUND, rules
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.evaluate.expectations import Broken, Expectation


@command(rules, name="test")
def run_expectations(
    file: Annotated[Path, typer.Argument(help="JSONL with question, stay and go (chunk ids).")],
    place: Place,
    viewing: Viewing,
    rules_file: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="Test the rules of this file (JSONL or CSV, as exported) instead of a "
            "collection's. Needs no workspace; a chunk that is not in it has no rule.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that rules keep and drop what a file expects. Exits with 1 if any does not."""
    from ragfilter.evaluate.expectations import find_broken, read_expectations

    expected: Sequence[Expectation] = read_expectations(file)
    known: Mapping[str, str | None]
    hidden: frozenset[str] = frozenset()
    if rules_file is not None:
        from ragfilter.rules import rule_files as files

        named = {i: None for expectation in expected for i, _ in expectation.wanted}
        in_file, refusals = files.read(rules_file)
        for each in refusals:
            raise InputError(
                f"{rules_file}, line {each.line}: {each.error.rstrip('.')}.",
                remedy="`ragfilter rules lint --rules FILE` names every such line.",
            )
        found = {i: chunk.rule for i, chunk in in_file.items()}
        known = named | found
        missing = [i for i in named if i not in found]
        if missing:
            parts.tell(
                f"{rules_file} has no line for {counted(len(missing), 'chunk')}, such as "
                f"{missing[0]}: taken as without a rule."
            )
    else:
        user = viewing.viewer
        with place.open("rules") as bench:
            store = bench.collection(place.collection)
            chunks = store.catalogue()
            parts.tell(store.incomplete)
        known = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
        hidden = frozenset(chunks.keys() - known.keys())
    tested = [_without(expectation, hidden) for expectation in expected]
    wanted = [sum(len(e.wanted) for e in listed) for listed in (expected, tested)]
    broken = find_broken(tested, known)
    skipped = wanted[0] - wanted[1]
    if skipped:
        what = "1 expectation is about a chunk" if skipped == 1 else f"{skipped} are about chunks"
        parts.tell(f"{what} above the clearance in force: skipped.")
    if as_json:
        parts.emit(parts.dumps(_document(len(expected), wanted[1], skipped, broken)))
    else:
        parts.emit(_text(len(expected), wanted[1], broken))
    return FOUND if broken else 0


def _without(expectation: Expectation, hidden: frozenset[str]) -> Expectation:
    return replace(
        expectation,
        stay=tuple(i for i in expectation.stay if i not in hidden),
        go=tuple(i for i in expectation.go if i not in hidden),
    )


def _document(
    questions: int, tested: int, skipped: int, broken: Sequence[Broken]
) -> dict[str, Any]:
    return {
        "questions": questions,
        "tested": tested,
        "skipped": skipped,
        "broken": [asdict(item) for item in broken],
    }


def _text(questions: int, tested: int, broken: Sequence[Broken]) -> str:
    lines = [
        f"line {item.line}: {item.chunk_id} must {item.must}: {item.reason} ({item.question})"
        for item in broken
    ]
    figures = f"{counted(questions, 'question')}, {counted(tested, 'expectation')}"
    lines.append(f"{figures}, {len(broken)} broken")
    return "\n".join(lines) + "\n"
