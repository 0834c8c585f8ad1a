"""`ragfilter rules explain`: which rules questions meet, and one rule part by part."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import read_lines
from ragfilter.cli.app import command
from ragfilter.cli.options import Json, Place, Viewing, refuse_beside
from ragfilter.cli.output import show, table
from ragfilter.cli.rules.select import Where, rules, select_rules
from ragfilter.errors import InputError
from ragfilter.rules.explain import Explanation, RulePart
from ragfilter.rules.explain import explain as explain_rule
from ragfilter.rules.match import RuleBook
from ragfilter.rules.rule import parse
from ragfilter.text.normalise import whole
from ragfilter.text.numbers import counted

SHOWN_TERMS = 4
FIRES = ("always", "sometimes", "never")
UNREADABLE = "unreadable"
"""A rule that cannot be read lets every question pass."""


@command(rules)
def explain(
    place: Place,
    viewing: Viewing,
    file: Annotated[
        Path | None, typer.Argument(help="Questions, one per line. Default: standard input.")
    ] = None,
    question: Annotated[str | None, "Use this question instead of a file."] = None,
    chunk: Annotated[str | None, "Explain this chunk's rule, part by part."] = None,
    where: Where = None,
    as_json: Json = False,
) -> None:
    """Show which rules questions meet, which block them, and which never block."""
    if question is not None:
        refuse_beside("--question", FILE=file)
    if chunk is not None:
        refuse_beside("--chunk", where=where)
    questions = _questions(file) if question is None else [question]
    if chunk is not None and len(questions) != 1:
        raise InputError(
            "--chunk explains one question.", remedy="Pass the question with --question."
        )
    selected = select_rules(place, viewing, [f"id={chunk}"] if chunk is not None else where)
    if chunk is None:
        ids_of: dict[str, list[str]] = {}
        for each in selected.chunks:
            ids_of.setdefault(each.rule or "", []).append(each.id)
        rows = _rows(ids_of, questions)
        document = place.head(selected.incomplete) | {"questions": len(questions), "rules": rows}
        show(document, lambda: _counts_text(rows, len(questions)), as_json=as_json)
        return
    text = next((each.rule for each in selected.chunks if each.id == chunk), None)
    if text is None:
        raise InputError(f"There is no chunk {chunk!r} with a rule.", remedy="Check its id.")
    explanation, asked = explain_rule(parse(text), questions[0]), whole(questions[0])
    head = {"chunk_id": chunk, "question": asked, "incomplete": selected.incomplete}
    show(head | asdict(explanation), _explanation_text(explanation, asked), as_json=as_json)


def _questions(file: Path | None) -> list[str]:
    lines = read_lines(file) if file is not None else sys.stdin.read().splitlines()
    questions = [line for line in lines if line.strip()]
    if not questions:
        raise InputError("There are no questions.", remedy="Write one question per line.")
    return questions


def _rows(ids_of: Mapping[str, Sequence[str]], questions: Sequence[str]) -> list[dict[str, Any]]:
    """By rule, how many questions meet it. Rules that some question meets come first, because most
    chunks have nothing to do with the questions."""
    book = RuleBook(ids_of)
    passes = book.count_passes(questions)

    def fires(rule: str) -> str:
        if rule in book.errors:
            return UNREADABLE
        if passes[rule] == len(questions):
            return "never"
        return "sometimes" if passes[rule] else "always"

    return [
        {
            "rule": rule,
            "chunk_ids": list(ids),
            "passes": passes[rule],
            "blocks": len(questions) - passes[rule],
            "fires": fires(rule),
        }
        for rule, ids in sorted(ids_of.items(), key=lambda item: -passes[item[0]])
    ]


def _counts_text(rows: Sequence[Mapping[str, Any]], questions: int) -> str:
    body = [
        (chunk_id, row["passes"], row["blocks"], row["fires"])
        for row in rows
        for chunk_id in row["chunk_ids"]
    ]
    fires = [row["fires"] for row in rows]
    figures = ", ".join(f"{fires.count(kind)} block {kind}" for kind in FIRES)
    if UNREADABLE in fires:
        figures += f", {fires.count(UNREADABLE)} unreadable"
    counts = f"{counted(len(rows), 'rule')}, {counted(questions, 'question')}: {figures}\n"
    return table(("chunk", "passes", "blocks", "fires"), body) + counts


def _explanation_text(explanation: Explanation, question: str) -> str:
    """The question with matches in brackets, then the rule part by part."""
    marks: list[tuple[int, str]] = []
    for start, end in {
        s for part in explanation.parts for match in part.found for s in match.spans
    }:
        marks += [(start, "["), (end, "]")]
    marked = question
    for at, sign in sorted(marks, key=lambda mark: (-mark[0], mark[1] == "]")):
        marked = f"{marked[:at]}{sign}{marked[at:]}"
    parts = [f"{'ok' if p.met else 'no'}  {p.named}: {_part_text(p)}" for p in explanation.parts]
    verdict = "passes" if explanation.passes else "blocked"
    return "\n".join([marked, *parts, f"{verdict}: {explanation.reason}"]) + "\n"


def _part_text(part: RulePart) -> str:
    matches = ", ".join(match.term for match in part.found)
    if part.place.startswith("contain_none_of"):
        return f"must not contain {matches}" if matches else f"free of {part.terms[0]}"
    if part.met:
        return f"found {matches}"
    more = ", …" if len(part.terms) > SHOWN_TERMS else ""
    text = f"missing: one of {', '.join(part.terms[:SHOWN_TERMS])}{more}"
    if part.near is None:
        return text
    letters = counted(part.near.letters, "letter")
    return f"{text}; nearest to {part.near.term!r} is {part.near.words!r}, {letters} off"
