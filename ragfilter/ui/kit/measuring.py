"""Runs that measure settings over a query set: starting, watching and loading one, and its figures as a table
and as plots (plain data for Plotly)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from ragfilter.evaluate import frame, measured_runs, wording
from ragfilter.evaluate.frame import Row, interval_of
from ragfilter.evaluate.measured_runs import MeasuredRun
from ragfilter.evaluate.metrics import FIGURES, SHOWN_RANKS, Curve, frontier
from ragfilter.evaluate.variants import ORACLE, UNFILTERED
from ragfilter.protocols import Prices
from ragfilter.settings.schema import Settings
from ragfilter.stores.run_store import Plan, Run
from ragfilter.text.numbers import first_of
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.labelled_sets import ChosenSet
from ragfilter.ui.look import elements, prose, theme
from ragfilter.ui.look.theme import THREE_DECIMALS, Ink
from ragfilter.ui.resources import CacheSpec, Resources
from ragfilter.ui.session import state

MEASURED: CacheSpec[MeasuredRun] = CacheSpec(8)
STOP = "Stops after the current question. Measure continues from there."


def plan(chosen: ChosenSet, profile: str, settings: Settings) -> Plan:
    """The plan of a run with `settings`, which started from `profile`. Needs labelled questions. Raises StoreError."""
    assert chosen.measurable is not None
    resources, user = chosen.resources, state.user()
    backends = resources.backends(chosen.collection)
    return measured_runs.plan(chosen.measurable, chosen.title, profile, settings, backends, user, resources.bench)


def unfinished(chosen: ChosenSet) -> Run | None:
    """The unfinished run that `begin` would continue, or None. Raises StoreError."""
    return chosen.resources.bench.runs.unfinished(plan(chosen, state.session().profile, chosen.page_run.settings))


def begin(chosen: ChosenSet, profile: str, settings: Settings, *, unasked: bool = False) -> Run:
    """Start a run, or continue one that was stopped. `unasked`: nobody pressed a button. Raises StoreError."""
    resources, saved, labels = chosen.resources, chosen.resources.bench.runs, chosen.measurable
    assert labels is not None
    backends = resources.backends(chosen.collection)
    run = saved.begin(plan(chosen, profile, settings), who="" if unasked else state.author())
    resources.jobs.start(
        state.user(),
        ("run", run.id),
        lambda job: measured_runs.go_on(run, labels, saved, backends, seen=job.tell),
        again=True,
    )
    return run


def in_progress(saved: Iterable[Run], resources: Resources) -> Run | None:
    """The first of these runs that is being measured, or None."""
    found = ((run, resources.jobs.find(("run", run.id))) for run in saved)
    return next((run for run, job in found if job is not None and not job.done), None)


def watch(run: Run, resources: Resources) -> bool:
    """Show the progress of a run until it ends. Returns False if it failed."""
    job = resources.jobs.find(("run", run.id))
    jobs.wait_for_result(job, "measuring", f"Measuring {prose.literal(run.plan.query_set)}", stop=STOP)
    error = job.future.exception() if job is not None and job.done else None
    if getattr(error, "action", "") == "recalibrate" and elements.button("Recalibrate", "run-recalibrate", icon="sync"):
        state.open_recalibration()
    return error is None


def load(run_id: int, resources: Resources) -> MeasuredRun:
    """A run with its records and figures, cached. Shows the progress. Raises InputError if it was removed,
    StoreError."""
    saved = resources.bench.runs
    run = saved.get(run_id)

    def figures(job: Job[MeasuredRun]) -> MeasuredRun:
        measured = measured_runs.load(run, saved)
        # Intervals take a second, which the page would otherwise spend empty.
        _ = measured.rows, measured.over_fixed_k
        return measured

    def computed() -> MeasuredRun:
        job = resources.jobs.start(state.user(), ("figures", run.id, run.done), figures, again=True)
        jobs.until_done(job, f"figures-{run.id}", "Computing intervals")
        return job.value()

    # Renaming a query set renames its runs.
    return resources.cache(MEASURED).of((run.id, run.done, run.plan.query_set), computed)


MEASURES = ("f1", "precision", "recall", "f2", "ndcg", "tokens")
"""The measures that rows can be sorted by."""
FIRST = ("f1", "precision", "recall", "kept", "tokens")
"""The figures that a table shows by default."""
HELP = {
    "ndcg": "trec_eval's nDCG of the kept chunks, in their order.",
    "ms": "Milliseconds to filter, without the search. A plain search does not filter.",
    "unlabelled": "Kept chunks without a label. They count as irrelevant.",
    "f1_most": "F1 if every kept chunk without a label were relevant.",
    "cost": "Price of the context tokens for 1,000 questions.",
    "tokens": "Estimated prompt tokens of the kept chunks.",
}
HIGHEST, OWN = "▲", "●"
ABOUT_OWN = (
    f"{HIGHEST}: the highest. {OWN}: the run's own. Settings that keep the same chunks share a row. The others are "
    "listed under About these figures."
)
HELD_OUT = "Held out or tuned: each question is measured with settings that were tuned on other questions."
LONGEST_NAMES = 36
NARROW, WIDTH = 62, 72
"""Pixels of figure columns: a window 900 wide shows the default ones, one 400 wide the first with its interval."""


def draw_table(
    rows: Sequence[Row], measure: str, *, key: str, own: str = "", every: bool = False, prices: Prices | None = None
) -> None:
    """Draw rows with the interval of `measure`. With `own`, the name of the visitor's row, rows are
    sorted by `measure`, and the best one and the visitor's are marked."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    about_names = ABOUT_OWN if own else HELD_OUT
    config: dict[str, Any] = {"settings": text(width=190, help=about_names)}
    columns: dict[str, list[Any]] = {"settings": [_row_name(row, own, n == 0) for n, row in enumerate(rows)]}
    for name in dict.fromkeys((measure, "f1", *(FIGURES if every else FIRST))):
        label, about, form = FIGURES[name].label, HELP.get(name), f"%.{FIGURES[name].digits}f"
        if name == "cost" and prices:
            cells = [frame.cost(row, prices) for row in rows]
            about = f"{about} In {prices.currency}." if prices.currency else about
        elif name in rows[0]:
            cells = [interval_of(row, name) for row in rows]
        else:
            continue
        columns[label] = [None if cell is None else cell.mean for cell in cells]
        config[label] = number(help=about, format=form, width=WIDTH if len(label) > 6 else NARROW)
        if name == measure:
            known = [cell if cell and cell.ends else None for cell in cells]
            ends = [wording.between_ends(cell, form.__mod__, " – ") if cell else "–" for cell in known]
            columns["95% interval"] = ends
            about = f"The 95% interval of the mean {label} over the questions; none if too few of them differ."
            config["95% interval"] = text(width=98, help=about)
    height = grid.ROW_PX * (len(rows) + 1) + 3
    st.dataframe(pd.DataFrame(columns), key=key, height=height, column_config=config, **grid.TABLE)


def _row_name(row: Row, own: str, best: bool) -> str:
    """The name of a row, with the signs of the best one and the visitor's `own`, if given."""
    names = row.get("names") or [row["variant"]]
    signs = [HIGHEST] * (best and bool(own)) + [OWN] * (own in names)
    ceiling = " (knows the labels)" if row.get("group") == "oracle" else ""
    shown = first_of(names, 1) if shortened(names) else " = ".join(names)
    return " ".join([*signs, shown + ceiling])


def shortened(names: Sequence[str]) -> bool:
    """Whether the column has room only for the first name of the settings that share a row."""
    return len(names) > 1 and len(" = ".join(names)) > LONGEST_NAMES


SMALL = theme.LEGEND | {"font": {"size": 12}}
SYMBOLS = {"plain": "square", "strategy": "hexagon", "profile": "diamond", "settings": "circle", "oracle": "cross"}


def precision_recall(rows: Sequence[Row], curves: Sequence[Curve], *, dark: bool) -> dict[str, Any]:
    """Precision against recall for every row, with the oracle's line."""
    ink = Ink(dark)
    line = {"color": ink.kept, "width": 1.4}
    oracle = frontier(curves)
    data = [theme.trace("lines", oracle, name="oracle, by weight of recall", hoverinfo="skip", line=line)]
    for group, symbol in SYMBOLS.items():
        members = [row for row in rows if row["group"] == group]
        if members:
            colour = ink.kept if group in ("settings", "oracle") else ink.curve
            marker = theme.marker(symbol, 15 if group == "settings" else 10, colour)
            marker["line"]["color"] = ink.surface
            points = ((row["recall"], row["precision"]) for row in members)
            tips = [_tooltip(row) for row in members]
            data.append(theme.trace("markers", points, name=group, hovertext=tips, hoverinfo="text", marker=marker))
    layout = ink.axes("recall", "precision") | {"showlegend": True, "legend": SMALL}
    layout["xaxis"] |= THREE_DECIMALS
    layout["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": layout}


def kept_counts(kept: pd.Series[float], *, dark: bool) -> dict[str, Any]:
    """How many questions keep 0, 1, 2 … chunks with the run's settings."""
    ink, counts = Ink(dark), np.bincount(kept.astype(int)).tolist()
    hover = "%{y} questions keep %{x}<extra></extra>"
    bars = {"x": list(range(len(counts))), "y": counts, "marker": {"color": ink.kept}, "hovertemplate": hover}
    layout = ink.axes("chunks kept", "questions")
    if max(counts) < 6:
        # Counts are whole numbers.
        layout["yaxis"]["dtick"] = 1
    return {"data": [{"type": "bar", **bars}], "layout": layout}


def distances(curves: Sequence[Curve], threshold: float, *, dark: bool) -> dict[str, Any]:
    """The distances of all questions, relevant chunks and others marked, with a line across."""
    ink = Ink(dark)
    # An empty point ends each curve.
    points = (point for curve in curves for point in (*enumerate(curve.distances[:SHOWN_RANKS], start=1), (None, None)))
    line = {"color": ink.curve, "width": 0.7}
    data = [theme.trace("lines", points, name="not labelled", line=line, opacity=0.45, hoverinfo="skip")]
    dropped = theme.mark("dropped", "cutoff").colour(dark=dark)
    for name, colour, symbol in (("not relevant", dropped, "x-thin-open"), ("relevant", ink.kept, "circle")):
        points = (point for curve in curves for point in curve.labelled(name == "relevant"))
        hover, marker = f"rank %{{x}}, distance %{{y:.3f}}<extra>{name}</extra>", theme.marker(symbol, 5, colour)
        data.append(theme.trace("markers", points, name=name, marker=marker, hovertemplate=hover))
    across = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": threshold, "y1": threshold}
    across["line"] = {"color": ink.text, "width": 1.4, "dash": "dash"}
    layout = ink.axes("rank by distance", "distance") | {"showlegend": True, "legend": SMALL, "shapes": [across]}
    layout["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": layout}


def _tooltip(row: Row) -> str:
    f1, name = interval_of(row, "f1"), row["variant"]
    if name in (UNFILTERED, ORACLE):
        name = f"{name}: {row['about']}"
    ends = wording.between_ends(f1) if f1 else ""
    return f"{name}<br>precision {row['precision']:.3f}, recall {row['recall']:.3f}<br>F1 {row['f1']:.3f} ({ends})"
