"""The results of a run: the rows, the contribution of each layer, the questions, the plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import kinds, told
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.plotted import DEEP, best_distance, within
from ragfilter.evaluate.prefixes import DEEPEST
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import changed_since
from ragfilter.evaluate.table import ABOUT_LAYERS, FIXED, ORACLE, cost
from ragfilter.evaluate.variants import IN_FORCE, unmeasured
from ragfilter.publish.measured import of_run
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import baseline
from ragfilter.ui.kit import grid, problems, share
from ragfilter.ui.kit.runs import opening, plots
from ragfilter.ui.kit.runs.measured import MeasuredRun
from ragfilter.ui.look import elements, html, plotting, prose, theme
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.session.resources import Resources

VIEWS = ROWS, LAYERS, QUESTIONS, PLOTS = "Comparison", "Layers", "Questions", "Plots"
LABELS = {
    "precision": "precision", "recall": "recall", "f1": "F1", "f2": "F2", "ndcg": "nDCG",
    "chunks": "chunks", "tokens": "tokens", "cost": "cost", "ms": "ms", "unlabelled": "unlabelled",
    "f1_most": "F1 upper bound",
}  # fmt: skip
INTERVALS = ("precision", "recall", "f1", "f2", "ndcg", "chunks", "tokens", "cost", "ms")
HELP = {
    "ndcg": "trec_eval's nDCG of the kept chunks, in their order.",
    "ms": "Milliseconds to filter, without the search. A plain search has no such time.",
    "unlabelled": "Kept chunks without a label. They count as irrelevant.",
    "f1_most": "F1 if every kept chunk without a label were relevant.",
    "cost": "Price of the context tokens of 1,000 questions.",
    "tokens": "Estimated prompt tokens of the kept chunks.",
}
KINDS = {"plain": "search alone", "strategy": "cutoff strategy", "profile": "profile"}
"""The kind of each named row: the profile unfiltered is not the same as the plain search with the
current k."""
WIDTH = 68
"""The width of a column with a figure, in pixels."""


def draw(measured: MeasuredRun, resources: Resources) -> None:
    """Draw the chosen view of the run's results."""
    if not measured.records:
        elements.empty("No question of this run has been measured yet.", "Evaluate continues it.")
        return
    _facts(measured)
    for note in _notes(measured, resources):
        elements.aside(note)
    _views(measured, resources)


@st.fragment
@problems.shown()
def _views(measured: MeasuredRun, resources: Resources) -> None:
    """Draw the choice of view, and the view."""
    with st.container(key="views-bar", horizontal=True, vertical_alignment="center", gap="small"):
        view = elements.choice(
            "View", VIEWS,
            "Comparison: settings side by side. Layers: what each layer contributes. Questions: "
            "the individual results; click one to open it in Inspect. Plots: precision against "
            "recall, and distances.",
            key="view", default=ROWS,
        )  # fmt: skip
        if st.button(
            "Compare",
            key="evaluate-compare",
            icon=":material/compare_arrows:",
            type="tertiary",
            help="Compares this run with another one, or with other settings, question by "
            "question.",
        ):
            opening.compare(measured.run)
        baseline.draw(measured, resources)
        share.report_button(
            lambda: of_run(
                measured.run, measured.records, resources.prices, since=_since(measured, resources)
            ),
            f"ragfilter-run-{measured.run.id}.html",
            key="run-report",
        )
    match view:
        case "Layers":
            _layers(measured)
        case "Questions":
            _questions(measured)
        case "Plots":
            _plots(measured)
        case _:
            _rows(measured, resources.prices)


def _facts(measured: MeasuredRun) -> None:
    """Draw the run's own settings in one line with the best fixed k and the oracle."""
    facts: list[Fact] = []
    own = "Settings of this run" + (", tuned on labels" if measured.in_sample else "")
    for name, label in ((IN_FORCE, own), (FIXED, "Best fixed k"), (ORACLE, "Oracle")):
        row = measured.row(name)
        if row is not None:
            f1 = row.means["f1"]
            facts.append((label, f"F1 {f1.mean:.3f}", told.between_ends(f1)))
    gain = measured.over_fixed_k
    if gain is not None:
        verdict = f"{told.compared(gain)} the best fixed k".capitalize()
        facts.append((verdict, numbers.signed(gain.mean), told.ends(gain)))
    elements.facts("Evaluation", facts)


def _notes(measured: MeasuredRun, resources: Resources) -> list[str]:
    """Caveats about the figures."""
    run, notes = measured.run, []
    if measured.in_sample:
        notes.append(told.over_fixed_k(measured.records, measured.in_sample))
    if not run.complete:
        notes.append(
            f"{run.done} of {counted(run.plan.queries, 'question')} measured. Evaluate continues "
            "if settings, user, labels and collection are still the same."
        )
    notes += [told.profiles_since(run.plan), *_since(measured, resources)]
    notes += told.about_records(measured.records, measured.variants)
    row = measured.row(IN_FORCE)
    if row is not None:
        figures = (row.means[name].mean for name in ("chunks", "unlabelled", "f1", "f1_most"))
        notes.append(told.unlabelled(*figures))
    return [note for note in notes if note]


def _since(measured: MeasuredRun, resources: Resources) -> list[str]:
    """What has changed since the run was planned, besides the profiles."""
    bench = resources.bench
    return changed_since(measured.run.plan, bench.collection, bench.labels)


def _rows(measured: MeasuredRun, prices: Prices | None) -> None:
    # Separate columns, so that the figures are numbers that can be sorted.
    shown = st.pills(
        "95% interval of", [name for name in INTERVALS if prices or name != "cost"],
        key="intervals", selection_mode="multi", default=["f1"],
        persist_state="session", format_func=lambda name: LABELS[name],
        help="The intervals to show, each beside its mean.",
    )  # fmt: skip
    columns: dict[str, list[Any]] = {"settings": [row.name for row in measured.rows]}
    config: dict[str, Any] = {
        "settings": st.column_config.TextColumn(width=150, pinned=True),
        "kind": st.column_config.TextColumn(width=110, help="What the name means."),
    }
    for name, label in LABELS.items():
        about = HELP.get(name)
        if name == "cost" and prices is not None and prices.currency:
            about = f"{about} In {prices.currency}."
        # Narrow, so that a window 900 pixels wide still shows the measures.
        config[label] = st.column_config.NumberColumn(help=about, format=_format(name), width=WIDTH)
        found = [row.means.get(name) for row in measured.rows]
        if name == "cost":
            if prices is None:
                continue
            found = [cost(row, prices) for row in measured.rows]
        columns[label] = [None if each is None else each.mean for each in found]
        if name in shown:
            columns[f"{label} 95%"] = [_ends(name, each) for each in found]
            config[f"{label} 95%"] = st.column_config.TextColumn(
                width=110, help="The 95% interval of the mean over the questions."
            )
    # Last, because the figures matter more in a narrow window.
    columns["kind"] = [KINDS.get(row.group, "") for row in measured.rows]
    table = pd.DataFrame(columns)
    with st.container(key="table"):
        st.dataframe(
            table, key="evaluation-rows", hide_index=True, row_height=32,
            height=36 + 32 * len(table) + 3, column_config=config, placeholder="–",
        )  # fmt: skip
    # Below the table, because the last column would cut it off.
    notes = [f"<b>{html.text(r.name)}</b>: {html.prose(r.about)}" for r in measured.rows if r.about]
    notes.append(html.prose(unmeasured([row.name for row in measured.rows])))
    html.draw(f'<p class="rf-aside">{"<br>".join(notes)}</p>')


def _layers(measured: MeasuredRun) -> None:
    groups = {"added": "added to those before it", "left out": "against the whole without it"}
    table = pd.DataFrame(
        {
            "layer": [gain.layer for gain in measured.gains],
            "measured": [groups[gain.group] for gain in measured.gains],
            "ΔF1": [told.gain_short(gain.f1) for gain in measured.gains],
            "Δrecall": [told.gain_short(gain.recall) for gain in measured.gains],
            "Δtokens": [told.gain_short(gain.tokens, 0) for gain in measured.gains],
        }
    )
    if table.empty:
        elements.empty("No layer is on except clearance, which always applies.")
        return
    with st.container(key="table"):
        st.dataframe(table, key="evaluation-layers", hide_index=True, row_height=32)
    elements.aside(
        "What each layer adds to the settings, with the 95% interval: positive is more. Clearance "
        f"depends on the user, so it is not varied. {ABOUT_LAYERS}"
    )


def _questions(measured: MeasuredRun) -> None:
    with st.container(key="queries-bar", horizontal=True, gap="small"):
        wanted = st.segmented_control(
            "Questions shown", ("all", *kinds.KINDS), key="query-filter", default="all",
            required=True, label_visibility="collapsed", format_func=str.capitalize,
        )  # fmt: skip
        every = measured.queries
        rows = kinds.only(every, wanted) if wanted in kinds.KINDS else every
        st.markdown(prose.quiet(counted(len(rows), "question")))
        elements.hint(
            f"{kinds.ABOUT} Click a row to open the question in Inspect with these settings."
        )
    if not rows:
        elements.empty("There are no questions of this kind.", "Choose All.")
        return
    name = f"questions-{measured.run.id}"
    ids = (row.id for row in rows)
    table = pd.DataFrame(rows)[list(NAMED)].rename(columns=NAMED)
    clicked = grid.picked(table, ids, name=name, columns=_COLUMNS, height=460)
    if clicked is not None:
        plan = measured.run.plan
        opening.inspect(rows[clicked].query, plan.profile, plan.changes)


NAMED = {
    "query": "question", "lost": "lost", "f1": "F1", "gain": "ΔF1", "precision": "precision",
    "recall": "recall", "kept": "kept", "relevant": "relevant", "unlabelled": "unlabelled",
}  # fmt: skip
"""The columns of the questions, by the figure they show."""
_number = st.column_config.NumberColumn
_COLUMNS: dict[str, Any] = {
    "question": st.column_config.TextColumn(width=420),
    "lost": _number(help="Relevant chunks in the pool that the filter drops."),
    "ΔF1": _number(format="%+.3f", help="F1 minus that of the unfiltered first k."),
    **{name: _number(format="%.3f") for name in ("F1", "precision", "recall")},
    "unlabelled": _number(help="Kept chunks without a label."),
}


def _plots(measured: MeasuredRun) -> None:
    dark, records = theme.is_dark(), measured.records
    with st.container(key="plots"):
        left, right = st.columns(2, gap="medium")
    with left:
        plotting.draw(
            plots.precision_recall(measured.rows, records, dark=dark), key="plot-pr",
            alt="Precision against recall of every row, with the oracle's line",
        )  # fmt: skip
        plotting.draw(
            plots.kept_counts(records, dark=dark), key="plot-kept",
            alt="How many questions keep how many chunks",
        )  # fmt: skip
    with right:
        _distances(records)


@st.fragment
def _distances(records: Sequence[QueryRecord]) -> None:
    """Draw the distances with a line across them, and what it would keep."""
    every = [d for record in records for d in record.curve.distances[:DEEP]]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    best = best_distance(records)
    threshold = min(best.distance, high) if best else (low + high) / 2
    if high > low:
        threshold = st.slider(
            "Distance", low, high, threshold, step=(high - low) / 200, format="%.3f",
            key="distance-line",
            help="Shows, beside the curve, the figures if every chunk up to this distance "
            "were kept.",
        )  # fmt: skip
    plotting.draw(
        plots.distances(records, threshold, dark=theme.is_dark()), key="plot-distances",
        alt="Distances of all questions by rank, relevant chunks marked",
    )  # fmt: skip
    found = within(records, threshold)
    st.markdown(
        f"Up to {numbers.distance(threshold)}, on these same questions: precision "
        f"**{found['precision']:.3f}**, recall **{found['recall']:.3f}**, F1 "
        f"**{found['f1']:.3f}** ({found['f1_most']:.3f} if all {found['unlabelled']:.1f} "
        f"without a label were relevant), **{found['chunks']:.1f}** chunks of the first "
        f"{DEEPEST}."
    )
    if best is not None:
        elements.aside(told.best_distance(best))


def _format(name: str) -> str:
    return {"chunks": "%.1f", "tokens": "%.0f", "ms": "%.1f", "unlabelled": "%.1f"}.get(
        name, "%.3f"
    )


def _ends(name: str, interval: Interval | None) -> str:
    if interval is None:
        return "–"
    return told.between_ends(interval, lambda value: _format(name) % value, " – ")
