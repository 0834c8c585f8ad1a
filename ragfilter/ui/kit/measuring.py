"""Runs that measure settings over a query set: starting, watching and loading one, and the table of its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import frame, query_sets, runs, wording
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import DIGITS, LABELS, Row, interval_of
from ragfilter.evaluate.runs import MeasuredRun
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run
from ragfilter.ui import jobs
from ragfilter.ui.kit import problems
from ragfilter.ui.kit.query_labels import ChosenSet, counts_llm_labels
from ragfilter.ui.look import html
from ragfilter.ui.resources import Resources, ShelfSpec
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
            help=about, format=f"%.{DIGITS.get(name, 3)}f", width=WIDTH if len(label) > 6 else NARROW
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
    return wording.between_ends(interval, lambda value: f"{value:.{DIGITS.get(name, 3)}f}", " – ")
