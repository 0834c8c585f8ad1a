"""`ragfilter rules matrix`: what every rule does over many questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.basics.files import read_lines
from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import Measuring
from ragfilter.cli.options import Filtering, Json, Place, text_argument
from ragfilter.cli.output import table
from ragfilter.cli.rules.group import rules
from ragfilter.errors import InputError
from ragfilter.evaluate import measure, rule_matrix
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow
from ragfilter.model import Chunk, User
from ragfilter.rules.rule import parse, shorten
from ragfilter.text.numbers import counted, signed

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings
    from ragfilter.workbench import Workbench

MOST_CROWDING = 10
FIGURES = (
    "queries", "blocks", "passes", "overlap", "conflicts", "precision", "ΔF1 without",
    "Δrecall without", "fires",
)  # fmt: skip


def measured(
    measuring: Measuring,
    bench: Workbench,
    place: Place,
    filtering: Filtering,
    chunks: Iterable[Chunk],
) -> Matrix | None:
    """The matrix of the rules of `chunks` over labelled queries; None if none are named."""
    settings, user = _load(filtering)
    labels = measuring.read(bench, place.collection, user)
    if labels is None:
        return None
    backends, show = parts.backends(bench, place.collection), parts.progress("queries")
    pools = measure.gather_all(labels.labelled, settings, backends, user, progress=show)
    return rule_matrix.build_matrix(pools, labels.qrels, chunks, settings, user)


@command(rules)
def matrix(
    place: Place,
    filtering: Filtering,
    measuring: Measuring,
    chunk: Annotated[
        str | None,
        text_argument(metavar="CHUNK", help="Show only this chunk's rule, by group and term."),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Text file of unlabelled questions, one per line, or `asked` for those asked of "
            "the collection. They are counted separately."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the effect of every rule over many questions, most harmful rule first."""
    if measuring.queries is None and questions is None:
        raise InputError("--queries is missing.", remedy="Pass labelled queries, or --questions.")
    settings, user = _load(filtering)
    from ragfilter.stores.labels import ASKED

    asked: dict[str, tuple[Mapping[str, str], Any]] = {}
    from_history = str(questions) == ASKED
    if questions is not None and not from_history:
        lines = enumerate(read_lines(questions), start=1)
        asked["history"] = {str(number): line for number, line in lines if line.strip()}, {}
        if not asked["history"][0]:
            raise InputError(
                f"{questions} has no questions.", remedy="Write one question per line."
            )
    made: dict[str, Matrix | tuple[RuleRow, ...]] = {}
    with place.open("rules") as bench:
        if from_history:
            asked["history"] = bench.labels.queries(place.collection, ASKED), {}
            if not asked["history"][0]:
                raise InputError(
                    f"No question has been asked of {place.collection} yet.",
                    remedy="Ask some in the app, or pass a file of questions.",
                )
        backends = parts.backends(bench, place.collection)
        catalogue = bench.collection(place.collection).entries()
        labels = measuring.read(bench, place.collection, user)
        if labels is not None:
            asked = {"labelled": (labels.labelled, labels.qrels)} | asked
        rule = None
        if chunk is not None:
            if chunk not in catalogue or not user.sees(catalogue[chunk]):
                raise InputError(f"There is no chunk {chunk!r}.", remedy="Check its id.")
            rule = catalogue[chunk].rule
            if not rule:
                raise InputError(f"The chunk {chunk!r} has no rule.", remedy="Name another.")
        for name, (texts, known) in asked.items():
            pools = measure.gather_all(
                texts, settings, backends, user, progress=parts.progress(f"{name} questions")
            )
            what = pools, known, catalogue.values(), settings, user
            made[name] = (
                rule_matrix.build_matrix(*what)
                if rule is None
                else rule_matrix.build_parts(rule, *what)
            )
        head = place.head(backends.incomplete)
    text = "\n".join(f"{name}\n{_text(one)}" for name, one in made.items())
    parts.emit(head | _document(made) if as_json else text)


def _load(filtering: Filtering) -> tuple[Settings, User]:
    loaded, user = filtering.load()
    # Gathered with rules applied, so that the pools are large enough for what passes them.
    return loaded.settings.with_values({"query_must.enabled": True}), user


def _document(made: dict[str, Matrix | tuple[RuleRow, ...]]) -> dict[str, Any]:
    return {
        name: [rule_matrix.row_document(row) for row in one]
        if isinstance(one, tuple)
        else rule_matrix.document(one)
        for name, one in made.items()
    }


def _text(one: Matrix | tuple[RuleRow, ...]) -> str:
    if isinstance(one, tuple):
        named = [f"{row.place} {shorten(parse(row.rule).written(row.place))}" for row in one]
        return _rows(one, "part", named)
    text = _rows(one.rules, "chunks", [_named(row.chunk_ids) for row in one.rules])
    if one.crowding:
        head = ("without a rule", "retrieved", "irrelevant", "kept wrongly")
        first = one.crowding[:MOST_CROWDING]
        body = [(r.chunk_id, str(r.retrieved), str(r.irrelevant), str(r.kept)) for r in first]
        text += f"\n{table(head, body)}"
        if len(one.crowding) > len(first):
            text += f"and {len(one.crowding) - len(first)} more\n"
    waiting = f", {one.waiting} fell back for lack of scores or verdicts" if one.waiting else ""
    figures = f"{counted(len(one.rules), 'rule')} over {counted(one.queries, 'question')}"
    return f"{text}{figures}{waiting}\n"


def _rows(rows: Sequence[RuleRow], first: str, names: Sequence[str]) -> str:
    body = [(name, *figures(row)) for name, row in zip(names, rows, strict=True)]
    return table((first, *FIGURES), body)


def figures(row: RuleRow | None) -> tuple[str, ...]:
    """The `FIGURES` of a row as text."""
    if row is None:
        return ("–",) * len(FIGURES)
    return (
        str(row.queries),
        str(row.blocks),
        str(row.passes),
        str(row.overlap),
        str(len(row.conflicts)),
        "–" if row.precision is None else f"{row.precision:.2f}",
        _gain(row.delta_f1),
        _gain(row.delta_recall),
        row.fires,
    )


def _named(ids: Sequence[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} and {len(ids) - 1} more"


def _gain(value: float | None) -> str:
    return "–" if value is None else signed(value, 4)
