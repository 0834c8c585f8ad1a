"""The results of a run: the rows, what each layer contributes, the questions, the plots."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.evaluate import told
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.plotted import DEEP, best_distance, within
from ragfilter.evaluate.runs import changed_since
from ragfilter.evaluate.sweep import DEEPEST
from ragfilter.evaluate.table import ABOUT_LAYERS, FIXED, ORACLE, cost
from ragfilter.evaluate.variants import IN_FORCE, unmeasured
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import opening, plots
from ragfilter.ui.evaluate.measured import FILTERS, Measured, QueryRow, matching
from ragfilter.ui.look import hint, html, numbers, prose
from ragfilter.ui.session import reports
from ragfilter.ui.session.visit import Visit

VIEWS = ROWS, LAYERS, QUESTIONS, PLOTS = "Rows", "Layers", "Questions", "Plots"
LABELS = {
    "precision": "precision", "recall": "recall", "f1": "F1", "f2": "F2", "ndcg": "nDCG",
    "chunks": "chunks", "tokens": "tokens", "cost": "cost", "ms": "ms", "unlabelled": "no label",
    "f1_most": "F1 at most",
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
"""What the name of a row is the name of: the profile unfiltered is not the plain search with the k
in force."""
CHART = {"displayModeBar": False}
WIDTH = 68
"""Of a column with a figure, in pixels."""


def draw(measured: Measured, visit: Visit) -> None:
    """One view of the run's results."""
    if not measured.records:
        html.draw(
            '<p class="rf-empty"><b>No question of this run has been measured yet.</b> Evaluate '
            "continues it.</p>"
        )
        return
    _head(measured, visit)
    with st.container(key="views-bar", horizontal=True, vertical_alignment="center", gap="small"):
        if st.session_state.get("view-box") != _view():
            st.session_state["view-box"] = _view()
        st.segmented_control(
            "View", VIEWS, key="view-box", required=True, on_change=_choose_view,
            label_visibility="collapsed",
        )  # fmt: skip
        hint.beside(
            "Rows: settings side by side. Layers: what each layer contributes. Questions: the "
            "individual results; click one to open it in Inspect. Plots: precision against "
            "recall, and distances."
        )
        if st.button(
            "Compare",
            key="evaluate-compare",
            icon=":material/compare_arrows:",
            type="tertiary",
            help="Compares this run with another one, or with other settings, question by "
            "question.",
        ):
            opening.compare(measured.run)
        reports.button(
            reports.of_run(measured, visit.resources.prices),
            f"ragfilter-run-{measured.run.id}.html",
            key="run-report",
        )
    match _view():
        case "Layers":
            _layers(measured)
        case "Questions":
            _questions(measured)
        case "Plots":
            _plots(measured)
        case _:
            _rows(measured, visit)


def _head(measured: Measured, visit: Visit) -> None:
    """The settings in force in one line, beside the best fixed k and the oracle."""
    facts = []
    own = "Settings of this run" + (", in sample" if measured.in_sample else "")
    for name, label in ((IN_FORCE, own), (FIXED, "Best fixed k"),
                        (ORACLE, "Oracle")):  # fmt: skip
        row = measured.row(name)
        if row is not None:
            f1 = row.means["f1"]
            facts.append(
                f'<div class="rf-fact"><span>{label}</span><b>F1 {f1.mean:.3f} '
                f"<i>{f1.low:.3f} to {f1.high:.3f}</i></b></div>"
            )
    gain = measured.over_fixed_k
    if gain is not None:
        verdict = f"{told.compared(gain)} the best fixed k".capitalize()
        facts.append(
            f'<div class="rf-fact"><span>{verdict}</span><b>{numbers.signed(gain.mean)} '
            f"<i>{told.ends(gain)}</i></b></div>"
        )
    html.draw(f'<section class="rf-strip" aria-label="Evaluation">{"".join(facts)}</section>')
    for note in _notes(measured, visit):
        html.draw(f'<p class="rf-aside">{html.text(note)}</p>')


def _notes(measured: Measured, visit: Visit) -> list[str]:
    """What a reader must know of the figures."""
    run, notes = measured.run, [measured.in_sample]
    if not run.complete:
        notes.append(
            f"{run.done} of {counted(run.plan.queries, 'question')} measured. Evaluate continues "
            "if settings, labels and collection are still the same."
        )
    bench = visit.resources.bench
    collection = bench.collection(run.plan.collection)
    notes += changed_since(run.plan, collection.version, collection.entries(), bench.labels)
    if len(measured.records) == 1 and run.complete:
        notes.append(
            "Only one question is measured: nothing can be held out, so there is no best fixed k "
            "and no interval. Label a second question."
        )
    waiting = sum(record.waiting for record in measured.records)
    if waiting:
        notes.append(f"In {counted(waiting, 'question')} a layer fell back: a model failed.")
    row = measured.row(IN_FORCE)
    if row is not None:
        figures = (row.means[name].mean for name in ("chunks", "unlabelled", "f1", "f1_most"))
        notes.append(told.unlabelled(*figures))
    return [note for note in notes if note]


def _rows(measured: Measured, visit: Visit) -> None:
    prices = visit.resources.prices
    # A separate column, so that the figures are numbers that can be sorted.
    shown = st.pills(
        "95% interval of", [name for name in INTERVALS if prices or name != "cost"],
        key="intervals", selection_mode="multi", default=["f1"],
        persist_state="session", format_func=lambda name: LABELS[name],
        help="The bootstrap intervals to show, each beside its mean.",
    )  # fmt: skip
    columns: dict[str, list[Any]] = {
        "settings": [row.name for row in measured.rows],
    }
    config: dict[str, Any] = {
        "settings": st.column_config.TextColumn(width=150, pinned=True),
        "kind": st.column_config.TextColumn(width=110, help="What the name means."),
    }
    for name, label in LABELS.items():
        about = HELP.get(name)
        if name == "cost" and prices is not None and prices.currency:
            about = f"{about} In {prices.currency}."
        # Narrow, so that a window of 900 shows the measures.
        config[label] = st.column_config.NumberColumn(
            label, help=about, format=_format(name), width=WIDTH
        )
        found = [row.means.get(name) for row in measured.rows]
        if name == "cost":
            if prices is None:
                continue
            found = [cost(row, prices) for row in measured.rows]
        columns[label] = [None if each is None else each.mean for each in found]
        if name in shown:
            columns[f"{label} 95%"] = [_ends(name, each) for each in found]
            config[f"{label} 95%"] = st.column_config.TextColumn(
                width=110, help="The 95% interval of the mean, bootstrapped over the questions."
            )
    # Last: in a narrow window the figures are what counts.
    columns["kind"] = [KINDS.get(row.group, "") for row in measured.rows]
    table = pd.DataFrame(columns)
    with st.container(key="table"):
        st.dataframe(
            table, key="evaluation-rows", hide_index=True, row_height=32,
            height=36 + 32 * len(table) + 3, column_config=config, placeholder="–",
        )  # fmt: skip
    # Below the table: in its last column it would be cut off.
    notes = [f"<b>{html.text(r.name)}</b>: {html.text(r.about)}" for r in measured.rows if r.about]
    html.draw(f'<p class="rf-aside">{"<br>".join([*notes, html.text(unmeasured())])}</p>')


def _layers(measured: Measured) -> None:
    groups = {"added": "added to those before it", "left out": "against the whole without it"}
    table = pd.DataFrame(
        {
            "layer": [gain.layer for gain in measured.gains],
            "": [groups[gain.group] for gain in measured.gains],
            "ΔF1": [told.gain_short(gain.f1) for gain in measured.gains],
            "Δrecall": [told.gain_short(gain.recall) for gain in measured.gains],
            "Δtokens": [told.gain_short(gain.tokens, 0) for gain in measured.gains],
        }
    )
    if table.empty:
        html.draw(
            '<p class="rf-empty"><b>No layer is on</b> except clearance, which always applies.</p>'
        )
        return
    with st.container(key="table"):
        st.dataframe(table, key="evaluation-layers", hide_index=True, row_height=32)
    html.draw(
        '<p class="rf-aside">What each layer adds to the settings, with the 95% interval: '
        "positive is more. Clearance depends on the user, so it is not varied. "
        f"{ABOUT_LAYERS}</p>"
    )


def _questions(measured: Measured) -> None:
    with st.container(key="queries-bar", horizontal=True, gap="small"):
        wanted = st.segmented_control(
            "Questions shown", FILTERS, key="query-filter", default=FILTERS[0], required=True,
            label_visibility="collapsed",
        )  # fmt: skip
        rows = matching(measured.queries, wanted or FILTERS[0])
        st.markdown(prose.quiet(counted(len(rows), "question")))
        hint.beside(
            "Failures: a lower F1 than the unfiltered first k, or nothing relevant found. "
            "Changed: a different F1. Highlights: a gain of 0.2 or more without losing recall. "
            "Click a row to open the question in Inspect with these settings."
        )
    if not rows:
        html.draw('<p class="rf-empty"><b>There are no questions of this kind.</b> Choose All.</p>')
        return
    with st.container(key="table"):
        opening.draw_questions(_frame(rows), rows, measured.run)


def _frame(rows: tuple[QueryRow, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "question": [row.query for row in rows],
            "lost": [row.lost for row in rows],
            "F1": [row.f1 for row in rows],
            "ΔF1": [row.gain for row in rows],
            "precision": [row.precision for row in rows],
            "recall": [row.recall for row in rows],
            "kept": [row.kept for row in rows],
            "relevant": [row.relevant for row in rows],
            "no label": [row.unlabelled for row in rows],
        }
    )


def _plots(measured: Measured) -> None:
    dark = st.context.theme.type == "dark"
    records = measured.records
    left, right = st.columns(2, gap="medium")
    with left:
        st.plotly_chart(
            plots.precision_recall(measured.rows, records, dark=dark), key="plot-pr", theme=None,
            config=CHART, alt="Precision against recall of every row, with the oracle's line",
        )  # fmt: skip
        st.plotly_chart(
            plots.kept_counts(records, dark=dark), key="plot-kept", theme=None, config=CHART,
            alt="How many questions keep how many chunks",
        )  # fmt: skip
    with right:
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
        st.plotly_chart(
            plots.distances(records, threshold, dark=dark), key="plot-distances", theme=None,
            config=CHART, alt="Distances of all questions by rank, relevant chunks marked",
        )  # fmt: skip
        found = within(records, threshold)
        html.draw(
            f'<p class="rf-say">Up to {numbers.distance(threshold)}: precision '
            f"<b>{found['precision']:.3f}</b>, recall <b>{found['recall']:.3f}</b>, F1 "
            f"<b>{found['f1']:.3f}</b> ({found['f1_most']:.3f} if all {found['unlabelled']:.1f} "
            f"without a label were relevant), <b>{found['chunks']:.1f}</b> chunks of the first "
            f"{DEEPEST}.</p>"
        )
        if best is not None:
            html.draw(f'<p class="rf-aside">{html.text(told.best_distance(best))}</p>')


def _view() -> str:
    return str(st.session_state.get("view", ROWS))


def _choose_view() -> None:
    st.session_state["view"] = st.session_state["view-box"]


def _format(name: str) -> str:
    return {"chunks": "%.1f", "tokens": "%.0f", "ms": "%.1f", "unlabelled": "%.1f"}.get(
        name, "%.3f"
    )


def _ends(name: str, interval: Interval | None) -> str:
    if interval is None:
        return "–"
    form = _format(name).removeprefix("%")
    return f"{interval.low:{form}} – {interval.high:{form}}"
