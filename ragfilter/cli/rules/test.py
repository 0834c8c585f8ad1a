"""`ragfilter rules test`: checks rules against a file of expectations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing
from ragfilter.cli.rules.group import FOUND, rules
from ragfilter.errors import InputError
from ragfilter.evaluate.expectations import Checked, Expectation, check_rules, read_expectations
from ragfilter.rules import rule_files as files
from ragfilter.text.numbers import counted


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
    """Check that rules keep and drop the chunks that a file expects. Exits with 1 if not."""

    expected: Sequence[Expectation] = read_expectations(file)
    known: Mapping[str, str | None]
    incomplete = ""
    if rules_file is not None:
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
                f"{missing[0]}: treated as having no rule."
            )
    else:
        user = viewing.viewer
        with place.open("rules") as bench:
            store = bench.collection(place.collection)
            chunks = store.entries()
            incomplete = store.incomplete
        parts.tell(incomplete)
        known = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
    checked = check_rules(expected, known)
    parts.emit(asdict(checked) | {"incomplete": incomplete} if as_json else _text(checked))
    return FOUND if checked.broken else 0


def _text(checked: Checked) -> str:
    lines = [
        f"line {item.line}: {item.chunk_id} must {item.must}: {item.reason} ({item.question})"
        for item in checked.broken
    ]
    figures = f"{counted(checked.questions, 'question')}, {counted(checked.tested, 'expectation')}"
    lines.append(f"{figures}, {len(checked.broken)} broken")
    return "\n".join(lines) + "\n"
