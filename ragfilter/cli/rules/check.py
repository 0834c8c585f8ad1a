"""`ragfilter rules check`: checks questions against rules, or one question against one rule."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import read_lines
from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing, Where, text_option
from ragfilter.cli.output import table
from ragfilter.cli.rules.group import rules, select_rules
from ragfilter.errors import InputError
from ragfilter.rules.explain import Explanation, explain
from ragfilter.rules.match import RuleBook
from ragfilter.rules.rule import parse
from ragfilter.text.characters import whole
from ragfilter.text.numbers import counted

SHOWN_TERMS = 4
FIRES = ("always", "sometimes", "never")
UNREADABLE = "unreadable"
"""A rule that cannot be read lets every question pass."""


@command(rules)
def check(
    place: Place,
    viewing: Viewing,
    file: Annotated[
        Path | None,
        typer.Argument(help="Text file with one question per line. Default: standard input."),
    ] = None,
    question: Annotated[
        str | None, text_option(help="Check this question instead of a file.")
    ] = None,
    chunk: Annotated[
        str | None, text_option(help="Explain this chunk's rule, part by part.")
    ] = None,
    where: Where = None,
    as_json: Json = False,
) -> None:
    """Show which rules questions meet, which block them, and which never block."""
    if question is not None:
        parts.refuse_beside("--question", FILE=file)
    if chunk is not None:
        parts.refuse_beside("--chunk", where=where)
    questions = _questions(file) if question is None else [question]
    if chunk is not None and len(questions) != 1:
        raise InputError(
            "--chunk explains one question.", remedy="Pass the question with --question."
        )
    where = [f"id={chunk}"] if chunk is not None else where
    chosen = select_rules(place, viewing, where)
    of_rule: dict[str, list[str]] = {}
    for one in chosen.chunks:
        of_rule.setdefault(one.rule or "", []).append(one.id)
    if chunk is None:
        book = RuleBook(of_rule)
        counts = book.count_passes(questions)
        rows = [
            _row(rule, ids, counts[rule], len(questions))
            | ({"fires": UNREADABLE} if rule in book.errors else {})
            for rule, ids in of_rule.items()
        ]
        document = place.head(chosen.incomplete) | {"questions": len(questions), "rules": rows}
        parts.emit(document if as_json else _text(rows, len(questions)))
        return

    text = next((text for text, ids in of_rule.items() if chunk in ids), None)
    if text is None:
        raise InputError(f"There is no chunk {chunk!r} with a rule.", remedy="Check its id.")
    made, asked = explain(parse(text), questions[0]), whole(questions[0])
    document = {"chunk_id": chunk, "question": asked, "incomplete": chosen.incomplete}
    parts.emit(document | asdict(made) if as_json else _explanation_text(made, asked))


def _questions(file: Path | None) -> list[str]:
    if file is not None:
        lines = list(read_lines(file))
    else:
        lines = sys.stdin.read().splitlines()
    questions = [line for line in lines if line.strip()]
    if not questions:
        raise InputError("There are no questions.", remedy="Write one question per line.")
    return questions


def _row(rule: str, ids: Sequence[str], passes: int, questions: int) -> dict[str, Any]:
    fires = "never" if passes == questions else "sometimes" if passes else "always"
    return {
        "rule": rule,
        "chunk_ids": list(ids),
        "passes": passes,
        "blocks": questions - passes,
        "fires": fires,
    }


def _text(rows: Sequence[Mapping[str, Any]], questions: int) -> str:
    """Rules that some question meets first, because most chunks have nothing to do with the
    questions."""
    head = ("chunk", "passes", "blocks", "fires")
    ordered = sorted(rows, key=lambda row: -row["passes"])
    body = [
        (chunk_id, row["passes"], row["blocks"], row["fires"])
        for row in ordered
        for chunk_id in row["chunk_ids"]
    ]
    fires = [row["fires"] for row in rows]
    figures = ", ".join(f"{fires.count(kind)} block {kind}" for kind in FIRES)
    if UNREADABLE in fires:
        figures += f", {fires.count(UNREADABLE)} unreadable"
    return (
        f"{table(head, body)}{counted(len(rows), 'rule')}, {counted(questions, 'question')}: "
        f"{figures}\n"
    )


def _explanation_text(made: Explanation, question: str) -> str:
    """The question with matches in brackets, then the rule part by part."""
    spans = {span for part in made.parts for found in part.found for span in found.spans}
    marks: list[tuple[int, str]] = []
    for start, end in spans:
        marks += [(start, "["), (end, "]")]
    marked = question
    for at, sign in sorted(marks, key=lambda mark: (-mark[0], mark[1] == "]")):
        marked = f"{marked[:at]}{sign}{marked[at:]}"
    lines = [marked]
    for part in made.parts:
        named = ", ".join(found.term for found in part.found)
        if part.place.startswith("contain_none_of"):
            said = f"must not contain {named}" if named else f"free of {part.terms[0]}"
        elif part.met:
            said = f"found {named}"
        else:
            more = ", …" if len(part.terms) > SHOWN_TERMS else ""
            said = f"missing: one of {', '.join(part.terms[:SHOWN_TERMS])}{more}"
            if part.near is not None:
                near = part.near
                letters = counted(near.letters, "letter")
                said += f"; nearest to {near.term!r} is {near.words!r}, {letters} off"
        lines.append(f"{'ok' if part.met else 'no'}  {part.named}: {said}")
    lines.append(f"{'passes' if made.passes else 'blocked'}: {made.reason}")
    return "\n".join(lines) + "\n"
