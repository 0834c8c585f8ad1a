"""`ragfilter cut`: the cutoff alone, over given distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.options import GapThreshold, Json, help_of
from ragfilter.errors import InputError
from ragfilter.layers.cutoff import check_distances
from ragfilter.layers.cutoff import cut as cut_values
from ragfilter.model import Cut

LARGEST = 1e9
"""Beyond it a sum of two is no longer exact enough to be compared with a threshold."""


@command(context_settings={"ignore_unknown_options": True})
def cut(
    distances: Annotated[list[str], typer.Argument(help="Distances, best first.")],
    strategy: Annotated[
        str | None, typer.Option("--strategy", "-s", help=help_of("cutoff.strategy"))
    ] = None,
    k: Annotated[
        str | None, typer.Option("--k", "-k", metavar="N", help=help_of("cutoff.max_results"))
    ] = None,
    min_results: Annotated[
        str | None,
        typer.Option("--min-results", metavar="N", help=help_of("cutoff.min_results")),
    ] = None,
    gap_threshold: GapThreshold = None,
    distance_offset: Annotated[
        str | None,
        typer.Option(
            "--distance-offset",
            "--distance-threshold",
            metavar="NUMBER",
            help=help_of("cutoff.distance_offset"),
        ),
    ] = None,
    jumps: Annotated[
        str | None, typer.Option("--jumps", metavar="N", help=help_of("cutoff.jumps"))
    ] = None,
    b_extra: Annotated[
        str | None, typer.Option("--b-extra", metavar="N", help=help_of("cutoff.b_extra"))
    ] = None,
    relative_offset: Annotated[
        str | None,
        typer.Option("--relative-offset", metavar="SHARE", help=help_of("cutoff.relative_offset")),
    ] = None,
    as_json: Json = False,
) -> None:
    """Apply the cutoff to a list of distances. Needs no collection."""
    flags = {
        "--strategy": {"cutoff.strategy": strategy},
        "--k": {"cutoff.max_results": k},
        "--min-results": {"cutoff.min_results": min_results},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-offset": {"cutoff.distance_offset": distance_offset},
        "--jumps": {"cutoff.jumps": jumps},
        "--b-extra": {"cutoff.b_extra": b_extra},
        "--relative-offset": {"cutoff.relative_offset": relative_offset},
    }
    values = [distance(given) for given in distances]
    settings = parts.load_config("adaptive-gap", None, None, flags).settings
    check_distances(settings.cutoff)
    made = cut_values(values, settings.cutoff)
    parts.emit(parts.dumps(document(made)) if as_json else text(made, values))


def distance(text: str) -> float:
    """A number of at most `LARGEST`. Raises InputError."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f"{text!r} is not a distance.", remedy="Use numbers such as 0.12 0.18.")
    return value


def document(cut: Cut) -> dict[str, Any]:
    """What `cut --json` prints. Gaps are rounded to 12 places: what is beyond is float noise."""
    return {
        "kept": cut.kept,
        "strategy": cut.strategy,
        "cliff_after_rank": cut.cliff_after_rank,
        "gap": None if cut.gap is None else round(cut.gap, 12),
        "gaps": [round(gap.size, 12) for gap in cut.gaps],
        "limit": cut.limit,
        "reason": cut.reason,
    }


def text(cut: Cut, values: Sequence[float]) -> str:
    """The values with their gaps and the cut; four decimals, as in the debug trace."""
    gaps = {gap.after_rank: gap for gap in cut.gaps}
    lines = [f"keep {cut.kept} of {len(values)}: {cut.reason}"]
    for rank, value in enumerate(values, start=1):
        mark = "kept" if rank <= cut.kept else "dropped"
        line = f"{rank:4d}  {value:.4f}  {mark:7s}"
        gap = gaps.get(rank)
        if gap is not None:
            note = "  skipped" if gap.skipped else ""
            note = "  cut" if rank == cut.cliff_after_rank else note
            line += f"  gap {gap.size:+.4f}{note}"
        lines.append(line.rstrip())
    return "\n".join(lines) + "\n"
