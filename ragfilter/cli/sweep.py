"""`ragfilter sweep`: the map of the Tune page. Source: docs/design.md#evaluate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.cli.output import table
from ragfilter.errors import InputError
from ragfilter.evaluate import maps, run, told
from ragfilter.evaluate.maps import Map
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted

MEASURES = ("f1", "f2", "precision", "recall")
NAMES = {"f1": "F1", "f2": "F2"}


@command()
def sweep(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    across: Annotated[
        str | None,
        typer.Option(
            help="Setting to vary, as layer.field. Default: the setting by which the cutoff cuts."
        ),
    ] = None,
    up: Annotated[
        str, typer.Option(help="Second setting to vary, to try every pair of values.")
    ] = "",
    measure: Annotated[
        str, typer.Option(help=f"Measure to maximize: {', '.join(MEASURES)}.")
    ] = "f1",
    as_json: Json = False,
) -> None:
    """Replay labelled queries under many values of one or two settings.

    Shows the current settings, the best-scoring ones, and the best trade-offs of recall against
    tokens. The best-scoring settings are chosen and measured on the same queries; `tune` measures
    on held-out queries.
    """
    loaded, user = filtering.load()
    settings = loaded.settings
    if measure not in MEASURES:
        raise InputError(
            f"There is no measure {measure!r}.", remedy=f"Use one of {', '.join(MEASURES)}."
        )
    if settings.judge.enabled:
        raise InputError(
            "The judge is on, and a sweep cannot replay LLM answers.",
            remedy="Sweep without it: --set judge.enabled=false.",
        )
    known = maps.axes(settings)
    across = maps.usual(known) if across is None else across
    for option, path in (("--across", across), ("--up", up)):
        if path not in known and (path or option == "--across"):
            raise InputError(
                f"{path!r} is not a numeric setting in effect here.",
                remedy=f"Use one of {', '.join(known)} with {option}.",
            )
    if across == up:
        raise InputError(f"--across and --up both name {up}.", remedy="Leave out --up.")
    with labelled.open("sweep", place, user) as (_, backends, labels, _unknown):
        warn_of(labels)
        notes = warn_in_sample(settings, labels, place.collection)
        pools = run.gather_all(
            labels.labelled, maps.gathering_for(settings, across, up), backends, user,
            progress=parts.progress("gathered"),
        )  # fmt: skip
        head = place.head(backends.incomplete)
    made = maps.make(
        pools, labels.qrels, settings, user, across, up, progress=parts.progress("replayed")
    )
    head |= {"queries": len(pools), "measure": measure, "with_llm": labelled.llm, "notes": notes}
    head_line = f"{place.collection}: {counted(len(pools), 'labelled query')}, "
    shown = head_line + text(made, settings, measure)
    parts.emit(head | document(made, settings, measure) if as_json else shown)


def document(made: Map, settings: Settings, measure: str) -> dict[str, Any]:
    """The document of `sweep --json`. A point has its settings and the mean of every figure."""
    return {
        "across": made.x.path,
        "up": made.y.path if made.y else None,
        "left_out": made.left_out,
        "in_force": _point(made, made.nearest(settings)),
        "highest": _point(made, made.highest(measure)),
        "front": [_point(made, place) for place in made.front()],
        "points": [_point(made, place) for place in made.places],
    }


def text(made: Map, settings: Settings, measure: str) -> str:
    """The same as text, without the points that nobody would choose."""
    paths = [made.x.path, *([made.y.path] if made.y else [])]
    here, best = made.nearest(settings), made.highest(measure)
    rows = [
        _row(made, place, name, paths)
        for name, place in (
            ("in force", here),
            (f"highest {NAMES.get(measure, measure)}", best),
            *(("front", place) for place in made.front()),
        )
    ]
    head = ("", *paths, "precision", "recall", "F1", "F1 upper bound", "F2", "chunks", "tokens")
    at = made.at(here)
    bare = told.unlabelled(at["kept"], at["unlabelled"], at["f1"], at["f1_most"])
    left_out = f"; {made.left_out}" if made.left_out else ""
    lines = [
        f"{counted(len(made.places), 'setting')} replayed{left_out}\n",
        table(head, rows),
        "front: no other setting has more recall for as few tokens. The highest is chosen and "
        "measured on these same queries.",
        *([f"In force: {bare[0].lower()}{bare[1:]}"] if bare else []),
    ]
    return "\n".join(lines) + "\n"


def _point(made: Map, place: int) -> dict[str, Any]:
    return {"settings": made.values(place)} | made.at(place)


def _row(made: Map, place: int, name: str, paths: list[str]) -> tuple[str, ...]:
    values, at = made.values(place), made.at(place)
    return (
        name,
        *(f"{values[path]:g}" for path in paths),
        *(f"{at[figure]:.3f}" for figure in ("precision", "recall", "f1", "f1_most", "f2")),
        f"{at['kept']:.1f}",
        f"{at['tokens']:,.0f}",
    )
