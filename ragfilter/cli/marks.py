"""`ragfilter labels mark`, `undo` and `next`: label one question's chunks in a terminal.

Source: docs/design.md#labels.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labels import labels
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.errors import InputError
from ragfilter.model import Chunk
from ragfilter.text.numbers import counted

TEXT_CHARS = 300
Question = Annotated[str, typer.Argument(help="The question.")]


@command(labels)
def mark(
    question: Question,
    chunks: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of the chunks.")],
    place: Place,
    grade: Annotated[
        int,
        typer.Option(
            "--grade", "-g", min=0, max=2, help="2 relevant, 1 partly relevant, 0 not relevant."
        ),
    ] = 2,
) -> None:
    """Label chunks as relevant to a question, all or none. Replaces your earlier labels."""
    from ragfilter.engine.complete import find_chunks

    if not question.strip():
        raise InputError("The question is empty.", remedy="Write the question to label for.")
    with place.open("labels") as bench:
        there = find_chunks(bench.collection(place.collection), set(chunks))
        missing = [i for i in chunks if i not in there]
        if missing:
            raise InputError(
                f"There is no chunk {missing[0]!r} in {place.collection}.",
                remedy="Use the ids that `ragfilter labels next` lists.",
            )
        bench.labels.mark(
            place.collection, question, list(dict.fromkeys(chunks)), grade,
            who=bench.deployment.user,
        )  # fmt: skip
    parts.emit(f"{place.collection}: {counted(len(set(chunks)), 'chunk')} labelled {grade}\n")


@command(labels)
def undo(
    place: Place,
    last: Annotated[
        int, typer.Option("--last", "-n", min=1, help="How many of your labels to take back.")
    ] = 1,
) -> None:
    """Take back your last labels. The ones that they replaced count again."""
    with place.open("labels") as bench:
        me = bench.deployment.user
        own = (label for label in bench.labels.standing(place.collection)
               if (label.who, label.made_by) == (me, "human"))  # fmt: skip
        taken = sorted(own, key=lambda label: label.id)[-last:]
        bench.labels.take_back([label.id for label in taken])
    lines = [f"taken back: {each.chunk_id} = {each.grade} for {each.query!r}" for each in taken]
    parts.emit("\n".join(lines or [f"{me} has no labels in {place.collection}"]) + "\n")


@command(labels, "next")
def next_(
    question: Question,
    place: Place,
    filtering: Filtering,
    first: Annotated[int, typer.Option("-n", min=1, help="How many chunks to list.")] = 5,
    blind: Annotated[
        bool,
        typer.Option("--blind", help="In an order that says nothing about rank or outcome."),
    ] = False,
    as_json: Json = False,
) -> None:
    """List the chunks to label next: those without a label, closest to the cut first."""
    from ragfilter.evaluate.offered import offered
    from ragfilter.layers.cutoff import cut_of
    from ragfilter.report.rows import rows as list_rows
    from ragfilter.stores.labels import settle

    loaded, user = filtering.load()
    with place.open("labels") as bench:
        result = parts.ask(question, loaded.settings, parts.backends(bench, place.collection), user)
        standing = bench.labels.standing(place.collection, question)
        me = bench.deployment.user
    # A blind labeller may label what others have labelled.
    mine_or_all = (label for label in standing if label.who == me) if blind else standing
    judged = settle(mine_or_all).get(question.strip(), {})
    detail, rows = cut_of(result), list_rows(result)
    order = offered(rows, detail.ids if detail else (), mixed_by=question if blind else None)
    chunks = {hit.id: hit.chunk for hit in result.hits}
    left = [chunks[i] for i in order if i not in judged]
    shown = [{"id": each.id, "title": each.name, "text": each.text} for each in left[:first]]
    document = place.head(result.pool.incomplete) | {"left": len(left), "next": shown}
    text = "".join(map(_text, left[:first])) + f"{counted(len(left), 'chunk')} left to label\n"
    parts.emit(document if as_json else text)


def _text(chunk: Chunk) -> str:
    text = " ".join(chunk.text.split())
    short = text if len(text) <= TEXT_CHARS else f"{text[: TEXT_CHARS - 1]}…"
    return f"{chunk.id}  {chunk.name}\n  {short}\n"
