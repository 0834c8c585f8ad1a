"""`ragfilter rules test`: checks rules against a file of expectations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing
from ragfilter.cli.output import show, warn
from ragfilter.cli.rules.select import FOUND, rules
from ragfilter.errors import InputError
from ragfilter.evaluate.expectations import Outcome, check_rules, read_expectations
from ragfilter.rules import rule_files
from ragfilter.text.numbers import counted


@command(rules, name="test")
def run_expectations(
    file: Annotated[Path, "JSONL with question, stay and go (chunk ids)."],
    place: Place,
    viewing: Viewing,
    rules_file: Annotated[
        Path | None, typer.Option("--rules", help="Test the rules of an exported file.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Check that rules keep and drop the chunks that a file expects. Exits with 1 if not."""
    expectations = read_expectations(file)
    known: Mapping[str, str | None]
    incomplete = ""
    if rules_file is not None:
        in_file, refused = rule_files.read(rules_file)
        for line in refused:
            raise InputError(
                f"{rules_file}, line {line.line}: {line.error.rstrip('.')}.",
                remedy="`ragfilter rules check --rules FILE` names every such line.",
            )
        named = {i for expectation in expectations for i in (*expectation.stay, *expectation.go)}
        missing = sorted(named.difference(in_file))
        known = dict.fromkeys(missing) | {i: chunk.rule for i, chunk in in_file.items()}
        if missing:
            warn(
                f"{rules_file} has no line for {counted(len(missing), 'chunk')}, such as "
                f"{missing[0]}: treated as having no rule."
            )
    else:
        user = viewing.viewer
        with place.open("rules") as bench:
            store = bench.collection(place.collection)
            chunks = store.entries()
            incomplete = store.incomplete
        warn(incomplete)
        known = {i: chunk.rule for i, chunk in chunks.items() if user.sees(chunk)}
    outcome = check_rules(expectations, known)
    document = asdict(outcome) | {"incomplete": incomplete}
    show(document, _text(outcome), as_json=as_json)
    return FOUND if outcome.broken else 0


def _text(outcome: Outcome) -> str:
    lines = [
        f"line {each.line}: {each.chunk_id} must {each.must}: {each.reason} ({each.question})"
        for each in outcome.broken
    ]
    figures = f"{counted(outcome.questions, 'question')}, {counted(outcome.tested, 'expectation')}"
    lines.append(f"{figures}, {len(outcome.broken)} broken")
    return "\n".join(lines) + "\n"
