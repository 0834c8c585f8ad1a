"""Runs that measure settings over a query set: starting, watching and loading one, and its figures as a table
and as plots (plain data for Plotly)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import frame, query_sets, runs, wording
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import Row, interval_of
from ragfilter.evaluate.prefixes import SHOWN_RANKS, Curve, frontier
from ragfilter.evaluate.runs import MeasuredRun
from ragfilter.evaluate.variants import ORACLE, UNFILTERED
from ragfilter.evaluate.wording import between_ends
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run
from ragfilter.ui.kit import problems
from ragfilter.ui.kit.query_labels import ChosenSet, counts_llm_labels
from ragfilter.ui.look import html, theme
from ragfilter.ui.look.theme import LEGEND, THREE_DECIMALS, Ink
from ragfilter.ui.server import jobs
from ragfilter.ui.server.resources import Resources, ShelfSpec
from ragfilter.ui.session import state
from ragfilter.ui.session.views import author

MEASURED: ShelfSpec[MeasuredRun] = ShelfSpec(8)
STOP = "Stops after the current question. Measure continues from there."


def plan(chosen: ChosenSet, profile: str, settings: Settings) -> Plan:
    """The plan of a run with these settings, which started from `profile`. Its query set's name
    says if an LLM's labels count. Requires labelled questions. Raises StoreError."""
    assert chosen.given is not None
    resources, name = chosen.resources, query_sets.title(chosen.name, llm=counts_llm_labels())
    backends, user = resources.backends(chosen.collection), state.user()
    return runs.plan(chosen.given, name, profile, settings, backends, user, resources.bench)


def unfinished(chosen: ChosenSet) -> Run | None:
    """The unfinished run that `begin` would continue, or None. Raises StoreError."""
    wanted = plan(chosen, state.session().profile, chosen.visit.settings)
    return chosen.resources.bench.runs.unfinished(wanted)


def begin(chosen: ChosenSet, profile: str, settings: Settings, *, unasked: bool = False) -> Run:
    """Start a run, or continue one that was stopped. `unasked`: nobody pressed a button. Raises StoreError."""
    resources, saved, given = chosen.resources, chosen.resources.bench.runs, chosen.given
    assert given is not None
    backends = resources.backends(chosen.collection)
    run = saved.begin(plan(chosen, profile, settings), who="" if unasked else author())
    resources.jobs.start(
        state.user(), _key(run), lambda job: runs.go_on(run, given, saved, backends, seen=job.tell), again=True
    )
    return run


def watch(run: Run, resources: Resources) -> bool:
    """Show the progress of a run until it ends. Returns False if it failed."""
    job = resources.jobs.find(_key(run))
    jobs.result(job, "measuring", "Measuring", stop=STOP)
    error = job.future.exception() if job is not None and job.done else None
    if getattr(error, "action", "") == "recalibrate" and html.button("Recalibrate", "run-recalibrate", icon="sync"):
        problems.recalibrate()
    return error is None


def load(run_id: int, resources: Resources) -> MeasuredRun:
    """A run with its records, cached. Raises InputError if it was removed, StoreError."""
    saved = resources.bench.runs
    run = saved.get(run_id)
    return resources.shelf(MEASURED).of((run.id, run.done), lambda: runs.load(run, saved))


def _key(run: Run) -> tuple[str, int]:
    return "run", run.id


LABELS = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "f2": "F2",
    "ndcg": "nDCG",
    "kept": "chunks",
    "tokens": "tokens",
    "cost": "cost",
    "ms": "ms",
    "unlabelled": "unlabelled",
    "f1_most": "F1 upper bound",
}
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
FORMATS = {"kept": "%.1f", "tokens": "%.0f", "ms": "%.1f", "unlabelled": "%.1f"}
HIGHEST, OWN = "★", "●"
NARROW, WIDTH, ROW_HEIGHT = 62, 72, 32
"""The widths of figure columns and the height of a row, in pixels. A window 900 wide shows all
default columns, and one 400 wide the first figure with its interval."""


def draw_table(
    rows: Sequence[Row], measure: str, *, key: str, own: str = "", every: bool = False, prices: Prices | None = None
) -> None:
    """Draw rows with the interval of `measure`. With `own`, the name of the visitor's row, rows are
    sorted by `measure`, and the best one and the visitor's are marked."""
    shown = [
        name
        for name in dict.fromkeys((measure, *(LABELS if every else FIRST)))
        if name in rows[0] or (name == "cost" and prices)
    ]
    columns: dict[str, list[Any]] = {"settings": _marked_names(rows, own)}
    config: dict[str, Any] = {
        "settings": st.column_config.TextColumn(
            width=190,
            help=f"{HIGHEST}: the highest. {OWN}: yours. Settings that keep the same "
            "chunks for every question share a row.",
        )
    }
    for name in shown:
        label, about = LABELS[name], HELP.get(name)
        if name == "cost" and prices is not None and prices.currency:
            about = f"{about} In {prices.currency}."
        cells = [frame.cost(row, prices) if name == "cost" and prices else interval_of(row, name) for row in rows]
        columns[label] = [None if each is None else each.mean for each in cells]
        config[label] = st.column_config.NumberColumn(
            help=about, format=FORMATS.get(name, "%.3f"), width=WIDTH if len(label) > 6 else NARROW
        )
        if name == measure:
            columns["95% interval"] = [_ends(name, each) for each in cells]
            config["95% interval"] = st.column_config.TextColumn(
                width=98, help=f"The 95% interval of the mean {label} over the questions."
            )
    table = pd.DataFrame(columns)
    st.dataframe(
        table,
        key=key,
        hide_index=True,
        row_height=ROW_HEIGHT,
        placeholder="–",
        height=ROW_HEIGHT * (len(table) + 1) + 3,
        column_config=config,
    )


def _marked_names(rows: Sequence[Row], own: str) -> list[str]:
    """The names of rows, with the signs of the first one and the visitor's `own`, if given."""
    shown = []
    for n, row in enumerate(rows):
        names = row.get("names") or [row["variant"]]
        signs = [HIGHEST] * bool(own and not n) + [OWN] * (own in names)
        ceiling = " (knows the labels)" if row.get("group") == "oracle" else ""
        shown.append(" ".join([*signs, " = ".join(names) + ceiling]))
    return shown


def _ends(name: str, interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return wording.between_ends(interval, lambda value: FORMATS.get(name, "%.3f") % value, " – ")


SMALL = LEGEND | {"font": {"size": 12}}
SYMBOLS = {"plain": "square", "strategy": "circle", "profile": "diamond", "settings": "star", "oracle": "cross"}


def precision_recall(rows: Sequence[Row], curves: Sequence[Curve], *, dark: bool) -> dict[str, Any]:
    """Precision against recall for every row, with the oracle's line."""
    ink = Ink.of(dark)
    data = [
        theme.trace(
            "lines",
            frontier(curves),
            name="oracle, by weight of recall",
            hoverinfo="skip",
            line={"color": ink.kept, "width": 1.4},
        )
    ]
    for group, symbol in SYMBOLS.items():
        own = [row for row in rows if row["group"] == group]
        if own:
            data.append(
                theme.trace(
                    "markers",
                    ((row["recall"], row["precision"]) for row in own),
                    name=group,
                    hovertext=[_tooltip(row) for row in own],
                    hoverinfo="text",
                    marker={
                        "symbol": symbol,
                        "size": 15 if group == "settings" else 10,
                        "color": ink.kept if group in ("settings", "oracle") else ink.curve,
                        "line": {"width": 1, "color": ink.surface},
                    },
                )
            )
    drawn = ink.axes("recall", "precision")
    drawn["xaxis"] |= THREE_DECIMALS
    drawn["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": drawn | {"showlegend": True, "legend": SMALL}}


def kept_counts(counts: Sequence[int], *, dark: bool) -> dict[str, Any]:
    """How many questions keep 0, 1, 2 … chunks with the run's settings."""
    ink = Ink.of(dark)
    data = [
        {
            "type": "bar",
            "x": list(range(len(counts))),
            "y": counts,
            "marker": {"color": ink.kept},
            "hovertemplate": "%{y} questions keep %{x}<extra></extra>",
        }
    ]
    drawn = ink.axes("chunks kept", "questions")
    if max(counts, default=0) < 6:
        # Half a question does not exist.
        drawn["yaxis"]["dtick"] = 1
    return {"data": data, "layout": drawn}


def distances(curves: Sequence[Curve], threshold: float, *, dark: bool) -> dict[str, Any]:
    """The distances of all questions, relevant chunks and others marked, with a line across."""
    ink = Ink.of(dark)
    # An empty point ends each curve.
    places = (place for curve in curves for place in (*enumerate(curve.distances[:SHOWN_RANKS], start=1), (None, None)))
    dropped = theme.mark("dropped", "cutoff").colour(dark=dark)
    data = [
        theme.trace(
            "lines",
            places,
            name="not labelled",
            line={"color": ink.curve, "width": 0.7},
            opacity=0.45,
            hoverinfo="skip",
        )
    ]
    for name, relevant, colour, symbol in (
        ("not relevant", False, dropped, "x-thin-open"),
        ("relevant", True, ink.kept, "circle"),
    ):
        marked = (place for curve in curves for place in curve.labelled(relevant))
        data.append(
            theme.trace(
                "markers",
                marked,
                name=name,
                marker=theme.marker(symbol, 5, colour),
                hovertemplate=f"rank %{{x}}, distance %{{y:.3f}}<extra>{name}</extra>",
            )
        )
    drawn = ink.axes("rank by distance", "distance") | {
        "showlegend": True,
        "legend": SMALL,
        "shapes": [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": threshold,
                "y1": threshold,
                "line": {"color": ink.text, "width": 1.4, "dash": "dash"},
            }
        ],
    }
    drawn["yaxis"] |= THREE_DECIMALS
    return {"data": data, "layout": drawn}


def _tooltip(row: Row) -> str:
    f1 = interval_of(row, "f1")
    name = row["variant"]
    name = name if name not in (UNFILTERED, ORACLE) else f"{name}: {row['about']}"
    return (
        f"{name}<br>precision {row['precision']:.3f}, recall {row['recall']:.3f}<br>"
        f"F1 {row['f1']:.3f} ({between_ends(f1) if f1 else ''})"
    )
