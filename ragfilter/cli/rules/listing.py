"""`ragfilter rules list`, `explain` and `matrix`: the chunks with their rules, what rules do to
questions, and one rule part by part."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ragfilter.basics.files import read_lines
from ragfilter.cli.access import backends
from ragfilter.cli.app import command
from ragfilter.cli.labelled import QueryOptions
from ragfilter.cli.options import (
    MAX_NUMBER,
    Filtering,
    Json,
    Place,
    Viewing,
    refuse_beside,
    text_argument,
)
from ragfilter.cli.output import progress, show, table, warn
from ragfilter.cli.rules.select import Where, list_chunks, rules, select_ids, select_rules
from ragfilter.errors import InputError
from ragfilter.evaluate import measure, rule_matrix
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow
from ragfilter.model import Chunk, User
from ragfilter.rules.explain import Explanation, RulePart
from ragfilter.rules.explain import explain as explain_rule
from ragfilter.rules.match import RuleBook
from ragfilter.rules.overview import RuleFilter, brief
from ragfilter.rules.rule import parse, shorten
from ragfilter.text.normalise import whole
from ragfilter.text.numbers import chunks as counted_chunks
from ragfilter.text.numbers import counted, signed
from ragfilter.text.titles import telling_titles

SHOWN_TERMS = 4
FIRES = ("always", "sometimes", "never")
UNREADABLE = "unreadable"
"""A rule that cannot be read lets every question pass."""
TITLE_WIDTH = 44
MAX_CROWDING = 10
FIGURES = (
    "queries", "blocks", "passes", "overlap", "conflicts", "precision", "ΔF1 without",
    "Δrecall without", "fires",
)  # fmt: skip


@command(rules, name="list")
def list_(
    place: Place,
    viewing: Viewing,
    where: Where = None,
    limit: Annotated[
        int | None, typer.Option(min=1, max=MAX_NUMBER, help="List only the first N.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List chunks with their rules, most urgent first."""
    user = viewing.viewer
    with place.open("rules") as bench:
        store = bench.collection(place.collection)
        visible = sum(user.sees(chunk) for chunk in store.entries().values())
        wanted = {*select_ids(bench, place.collection, where, user)}
        listing = list_chunks(user, bench, place.collection).find(RuleFilter())
        incomplete = store.incomplete
    warn(incomplete)
    rows = [row for row in listing if row.id in wanted]
    listed = rows[:limit]
    documents = [
        {"id": row.id, "title": row.chunk.title, "type": row.chunk.type,
         "source": row.chunk.source, "state": row.state, "changed": row.changed,
         "rule": row.chunk.rule or None, "brief": brief(row.chunk.rule)}
        for row in listed
    ]  # fmt: skip
    titles = telling_titles([row.chunk.title for row in listed], TITLE_WIDTH)
    # The rule comes last, since it may be long.
    body = [
        (", ".join(row.words), row.id, title, brief(row.chunk.rule))
        for row, title in zip(listed, titles, strict=True)
    ]
    first = f", the first {len(body):,} shown" if len(body) < len(rows) else ""
    counts = f"{place.collection}: {len(rows):,} of {counted_chunks(visible)}{first}\n"
    head = place.head(incomplete) | {"chunks": visible, "found": len(rows)}
    text = (table(("state", "id", "title", "rule"), body) if body else "") + counts
    show(head | {"rows": documents}, text, as_json=as_json)


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


@command(rules)
def matrix(
    place: Place,
    filtering: Filtering,
    measuring: QueryOptions,
    chunk: Annotated[
        str | None,
        text_argument(metavar="CHUNK", help="Show only this chunk's rule, by group and term."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the effect of every rule over many questions, most harmful rule first.

    Questions without labels count if none of them has any.
    """
    if measuring.queries is None:
        raise InputError("--queries is missing.", remedy="Pass queries, such as --queries asked.")
    loaded, user = filtering.load()
    # Gathered with rules applied, so that the pools are large enough for what passes them.
    settings = loaded.settings.with_values({"query_must.enabled": True})
    with place.open("rules") as bench:
        labels = measuring.read(bench, place.collection, user, bare=True)
        assert labels is not None
        store = bench.collection(place.collection)
        catalogue, head = store.entries(), place.head(store.incomplete)
        rule = None if chunk is None else _rule_of(chunk, catalogue, user)
        pools = measure.gather_all(
            labels.labelled or labels.queries, settings, backends(bench, place.collection), user,
            progress=progress("queries"),
        )  # fmt: skip
    questions = pools, labels.qrels, catalogue.values(), settings, user
    if rule is None:
        result = rule_matrix.build_matrix(*questions)
        document: Any = rule_matrix.document(result)
        names = [_named(row.chunk_ids) for row in result.rules]
        text = _rows_text(result.rules, "chunks", names) + _matrix_text(result)
    else:
        rows = rule_matrix.build_parts(rule, *questions)
        document = [rule_matrix.row_document(row) for row in rows]
        names = [f"{r.place} {shorten(parse(r.rule).written(r.place))}" for r in rows]
        text = _rows_text(rows, "part", names)
    name = "labelled" if labels.qrels else "history"
    show(head | {name: document}, f"{name}\n{text}", as_json=as_json)


def _rule_of(chunk_id: str, catalogue: Mapping[str, Chunk], user: User) -> str:
    if chunk_id not in catalogue or not user.sees(catalogue[chunk_id]):
        raise InputError(f"There is no chunk {chunk_id!r}.", remedy="Check its id.")
    rule = catalogue[chunk_id].rule
    if not rule:
        raise InputError(f"The chunk {chunk_id!r} has no rule.", remedy="Name another.")
    return rule


def _matrix_text(result: Matrix) -> str:
    """What is below the rows of a matrix."""
    text = ""
    if result.crowding:
        first = result.crowding[:MAX_CROWDING]
        body = [(row.chunk_id, row.retrieved, row.irrelevant, row.kept) for row in first]
        text = f"\n{table(('without a rule', 'retrieved', 'irrelevant', 'kept wrongly'), body)}"
        if len(result.crowding) > len(first):
            text += f"and {len(result.crowding) - len(first)} more\n"
    waiting = f", {result.waiting} fell back" if result.waiting else ""
    figures = f"{counted(len(result.rules), 'rule')} over {counted(result.queries, 'question')}"
    return f"{text}{figures}{waiting}\n"


def _rows_text(rows: Sequence[RuleRow], first: str, names: Sequence[str]) -> str:
    body = []
    for name, row in zip(names, rows, strict=True):
        precision = "–" if row.precision is None else f"{row.precision:.2f}"
        gains = ("–" if d is None else signed(d, 4) for d in (row.delta_f1, row.delta_recall))
        body.append((name, row.queries, row.blocks, row.passes, row.overlap, len(row.conflicts),
                     precision, *gains, row.fires))  # fmt: skip
    return table((first, *FIGURES), body)


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"
