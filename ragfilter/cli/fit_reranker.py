"""`ragfilter fit-reranker`: what a reranker's scores mean, from labels. Source: docs/tuning.md."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ragfilter.basics.files import write_text
from ragfilter.cli import output
from ragfilter.cli.app import command
from ragfilter.cli.labelled import LabelledOptions
from ragfilter.cli.options import Filtering, Json, Place
from ragfilter.cli.output import OTHER_OUT
from ragfilter.errors import InputError
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.rerank_fit import fit_reranker as fit
from ragfilter.settings.config import to_toml


@command(name="fit-reranker")
def fit_reranker(
    labelled: LabelledOptions,
    place: Place,
    filtering: Filtering,
    depth: Annotated[int, typer.Option(min=2, max=500, help="Hits of each query to score.")] = 20,
    out: Annotated[Path | None, "Write the settings with the fit to this TOML file."] = None,
    as_json: Json = False,
) -> None:
    """Fit a reranker's scores, of any range, to your labels, so that thresholds apply to them.

    Without a fit, such scores only order the chunks.
    """
    loaded, user = filtering.load()
    settings = loaded.settings
    if settings.quality.reranker == "none":
        raise InputError("No reranker is chosen.", remedy="Set quality.reranker.")
    plain = settings.with_values({"quality.enabled": False})
    with labelled.open("fit-reranker", place, user) as (bench, backends, labels, _unknown):
        pools = gather_all(
            labels.labelled, plain, backends, user, progress=output.progress("gathered")
        )
        reranker = bench.reranker(settings.quality)
        made = fit(pools, labels.qrels, reranker, depth=depth, progress=output.progress("scored"))
        head = place.head(backends.incomplete)
    values = {"quality.reranker_slope": made.slope, "quality.reranker_offset": made.offset}
    if out is not None:
        write_text(out, to_toml(settings.with_values(values), loaded.profile), remedy=OTHER_OUT)
    if as_json:
        output.emit(head | asdict(made) | {"settings": values, "settings_file": out})
        return
    lines = [
        f"{reranker.name}: {made.hits} hits of {made.queries} queries, {made.relevant} relevant",
        f"log-loss {made.loss:.3f} on queries that it was not fitted on, {made.base:.3f} for the "
        "mere share",
        *(f"{path} = {value:g}" for path, value in values.items()),
        "" if out is None else f"Written to {out}; use it with --config {out}.",
    ]
    output.emit("\n".join(filter(None, lines)) + "\n")
