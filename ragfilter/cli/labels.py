"""The command group `ragfilter labels`: import, export and list. Source: docs/design.md#labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import LOOK, app, command
from ragfilter.cli.options import Json, Place, Viewing, in_words
from ragfilter.errors import InputError
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragfilter.evaluate.agreement import Agreement
    from ragfilter.stores.labels import Label, Source

labels = typer.Typer(
    help="Import, export and list the labels of a collection.",
    invoke_without_command=True,
    **LOOK,
)
app.add_typer(labels, name="labels")

SetName = Annotated[
    str,
    typer.Option(
        "--set-name", help="Name of the query set; labelled and asked always exist.",
        callback=in_words,
    ),
]  # fmt: skip


@labels.callback()
def _group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        parts.emit(f"{context.get_help()}\n")


@command(labels, "import")
def import_(
    place: Place,
    queries: Annotated[
        Path, typer.Option("--queries", help="Questions: BEIR's queries.jsonl, .csv or .txt.")
    ],
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Their labels, as BEIR or TREC qrels.")
    ] = None,
    name: SetName = "",
    by_llm: Annotated[
        bool, typer.Option("--by-llm", help="An LLM made these labels, and not a person.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Keep a file's questions as a query set. Its labels count from now on, as a labeller's that is
    called like the file."""
    from ragfilter.evaluate import beir
    from ragfilter.evaluate.query_files import as_labels, read_questions

    collection = place.collection
    asked = read_questions(queries)
    given = {} if qrels is None else beir.known(asked, beir.read_qrels(qrels), queries, qrels)
    rows = as_labels(asked, given)
    with place.open("labels") as bench:
        there = bench.collection(collection).catalogue()
        unknown = sorted({chunk for _, chunk, _ in rows if chunk not in there})
        if rows and len(unknown) == len({chunk for _, chunk, _ in rows}):
            raise InputError(
                f"None of the labelled ids, such as {unknown[0]!r}, is in the collection "
                f"{collection!r}.",
                remedy="Check that the labels and the collection belong together.",
            )
        set_name = name or queries.stem
        bench.labels.put_set(collection, set_name, asked)
        if qrels is not None:
            source: Source = "llm" if by_llm else "human"
            bench.labels.add(collection, rows, who=qrels.name, source=source)
    made = {
        "collection": collection, "set": set_name, "queries": len(asked), "labels": len(rows),
        "unknown_labels": unknown,
    }  # fmt: skip
    if as_json:
        parts.emit(parts.dumps(made))
        return
    if unknown:
        parts.tell(
            f"{counted(len(unknown), 'labelled id')} not in the collection, as {unknown[0]!r}."
        )
    parts.emit(
        f"{collection}: query set {set_name} with {counted(len(asked), 'query')}, "
        f"{counted(len(rows), 'label')}\n"
    )


@command(labels)
def export(
    place: Place,
    viewing: Viewing,
    folder: Annotated[Path, typer.Argument(help="Folder for queries.jsonl and the qrels.")],
    name: SetName = "labelled",
    trec: Annotated[bool, typer.Option("--trec", help="Write TREC's qrels, not BEIR's.")] = False,
    llm: Annotated[
        bool, typer.Option("--with-llm", help="An LLM's labels too, where no person has labelled.")
    ] = False,
) -> None:
    """Write a query set and its labels as BEIR or TREC files."""
    from ragfilter.evaluate import stored
    from ragfilter.evaluate.measuring import visible
    from ragfilter.evaluate.query_files import write

    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue = bench.collection(collection).catalogue()
        found = visible(
            stored.load(bench.labels, collection, name, llm=llm), catalogue, user
        )  # fmt: skip
    written = write(found, folder, "trec" if trec else "beir")
    parts.emit("".join(f"{path}\n" for path in written))


@command(labels, "list")
def list_(
    place: Place,
    viewing: Viewing,
    as_json: Json = False,
) -> None:
    """Count a collection's labels and query sets, and show where labellers disagree."""
    from ragfilter.evaluate import stored
    from ragfilter.evaluate.agreement import agreement
    from ragfilter.stores.labels import conflicts, settle

    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue = bench.collection(collection).catalogue()
        sets = stored.sets(bench.labels, collection)
        every = bench.labels.standing(collection)
    seen = [
        each
        for each in every
        if each.chunk_id not in catalogue or user.sees(catalogue[each.chunk_id])
    ]
    by_llm = settle((each for each in seen if each.source == "llm"), llm=True)
    agreed = agreement(settle(seen), by_llm)
    parted = conflicts(seen)
    if as_json:
        parts.emit(parts.dumps(_document(collection, sets, seen, parted, agreed)))
    else:
        parts.emit(_text(collection, sets, seen, parted, agreed))


def _document(
    collection: str,
    sets: dict[str, int],
    seen: Sequence[Label],
    parted: Sequence[Sequence[Label]],
    agreed: Agreement,
) -> dict[str, Any]:
    return {
        "collection": collection,
        "sets": sets,
        "labels": [_label(each) for each in seen],
        "conflicts": [[_label(each) for each in pair] for pair in parted],
        "llm": {"pairs": agreed.pairs, "agreed": agreed.agreed, "kappa": agreed.kappa},
    }


def _label(label: Label) -> dict[str, Any]:
    return {
        "query": label.query,
        "chunk": label.chunk_id,
        "grade": label.grade,
        "who": label.who,
        "source": label.source,
        "at": label.at.isoformat(timespec="seconds"),
    }


def _text(
    collection: str,
    sets: dict[str, int],
    seen: Sequence[Label],
    parted: Sequence[Sequence[Label]],
    agreed: Agreement,
) -> str:
    people = sorted({each.who for each in seen if each.source == "human"})
    asked = len({each.query for each in seen})
    lines = [
        f"{collection}: {counted(len(seen), 'label')} on {counted(asked, 'question')}"
        + (f", by {', '.join(people)}" if people else ""),
        *(f"  set {name}: {counted(count, 'query')}" for name, count in sets.items()),
    ]
    for pair in parted:
        said = ", ".join(f"{each.who} says {each.grade}" for each in pair)
        lines.append(f"  conflict: {pair[0].chunk_id} for {pair[0].query!r}: {said}")
    if agreed.pairs:
        kappa = "not defined" if agreed.kappa is None else f"{agreed.kappa:.2f}"
        lines.append(
            f"  LLM and people agree on {agreed.agreed} of {agreed.pairs} pairs, kappa {kappa}"
        )
    return "\n".join(lines) + "\n"
