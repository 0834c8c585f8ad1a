"""The results of a run: the rows, the contribution of each layer, the questions, the plots."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import caveats, frame, gate
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import ABOUT_KINDS, ABOUT_LAYERS, KINDS, interval_of
from ragfilter.evaluate.prefixes import DEEPEST, SHOWN_RANKS, Curve, best_distance, within
from ragfilter.evaluate.query_sets import untitled
from ragfilter.evaluate.runs import MeasuredRun, changed_since
from ragfilter.evaluate.variants import CURRENT, FIXED, ORACLE, unmeasured
from ragfilter.publish.measured import of_run
from ragfilter.stores.export import content_of
from ragfilter.stores.runs import Plan, Run
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid, problems, share
from ragfilter.ui.kit.runs import plots, running
from ragfilter.ui.look import elements, html, plotting, prose, theme
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.session.resources import Resources

VIEWS = ROWS, LAYERS, QUESTIONS, PLOTS = "Comparison", "Layers", "Questions", "Plots"
LABELS = {
    "precision": "precision", "recall": "recall", "f1": "F1", "f2": "F2", "ndcg": "nDCG",
    "kept": "chunks", "tokens": "tokens", "cost": "cost", "ms": "ms", "unlabelled": "unlabelled",
    "f1_most": "F1 upper bound",
}  # fmt: skip
INTERVALS = ("precision", "recall", "f1", "f2", "ndcg", "kept", "tokens", "cost", "ms")
HELP = {
    "ndcg": "trec_eval's nDCG of the kept chunks, in their order.",
    "ms": "Milliseconds to filter, without the search. A plain search has no such time.",
    "unlabelled": "Kept chunks without a label. They count as irrelevant.",
    "f1_most": "F1 if every kept chunk without a label were relevant.",
    "cost": "Price of the context tokens of 1,000 questions.",
    "tokens": "Estimated prompt tokens of the kept chunks.",
}
GROUPS = {"plain": "search alone", "strategy": "cutoff strategy", "profile": "profile"}
"""The kind of each named row: the profile unfiltered is not the same as the plain search with the
current k."""
BASELINE = "baseline.json"
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
            running.open_compare(measured.run)
        _guard(measured, resources)
        share.report_button(
            lambda: of_run(measured, resources.prices, since=_since(measured, resources)),
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
    for name, label in ((CURRENT, own), (FIXED, "Best fixed k"), (ORACLE, "Oracle")):
        row = measured.row(name)
        f1 = interval_of(row, "f1") if row else None
        if f1 is not None:
            facts.append((label, f"F1 {f1.mean:.3f}", caveats.between_ends(f1)))
    gain = measured.over_fixed_k
    if gain is not None:
        verdict = f"{caveats.compared(gain)} the best fixed k".capitalize()
        facts.append((verdict, numbers.signed(gain.mean), caveats.ends(gain)))
    elements.facts("Evaluation", facts)


def _notes(measured: MeasuredRun, resources: Resources) -> list[str]:
    """Caveats about the figures."""
    run, own = measured.run, measured.row(CURRENT)
    notes = [
        caveats.over_fixed_k(None, measured.in_sample),
        ""
        if run.complete
        else f"{run.done} of {counted(run.plan.queries, 'question')} measured. Evaluate continues "
        "if settings, user, labels and collection are still the same.",
        *_since(measured, resources),
        *caveats.about_records(measured.records, measured.variants),
        caveats.unlabelled_of(own) if own else "",
    ]
    return [note for note in notes if note]


def _since(measured: MeasuredRun, resources: Resources) -> list[str]:
    """What has changed since the run was planned."""
    return changed_since(measured.run.plan, resources.bench)


def _rows(measured: MeasuredRun, prices: Prices | None) -> None:
    # Separate columns, so that the figures are numbers that can be sorted.
    shown = st.pills(
        "95% interval of", [name for name in INTERVALS if prices or name != "cost"],
        key="intervals", selection_mode="multi", default=["f1"],
        persist_state="session", format_func=lambda name: LABELS[name],
        help="The intervals to show, each beside its mean.",
    )  # fmt: skip
    rows = frame.cells(measured.rows)
    columns: dict[str, list[Any]] = {"settings": [row["variant"] for row in rows]}
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
        if name == "cost" and prices is None:
            continue
        cells = [
            frame.cost(row, prices) if name == "cost" and prices else interval_of(row, name)
            for row in rows
        ]
        columns[label] = [None if each is None else each.mean for each in cells]
        if name in shown:
            columns[f"{label} 95%"] = [_ends(name, each) for each in cells]
            config[f"{label} 95%"] = st.column_config.TextColumn(
                width=110, help="The 95% interval of the mean over the questions."
            )
    # Last, because the figures matter more in a narrow window.
    columns["kind"] = [GROUPS.get(row["group"], "") for row in rows]
    table = pd.DataFrame(columns)
    with st.container(key="table"):
        st.dataframe(
            table, key="evaluation-rows", hide_index=True, row_height=32,
            height=36 + 32 * len(table) + 3, column_config=config, placeholder="–",
        )  # fmt: skip
    # Below the table, because the last column would cut it off.
    notes = [
        f"<b>{html.text(row['variant'])}</b>: {html.prose(row['about'])}"
        for row in rows
        if row["about"]
    ]
    notes.append(html.prose(unmeasured(columns["settings"])))
    html.draw(f'<p class="rf-aside">{"<br>".join(notes)}</p>')


def _layers(measured: MeasuredRun) -> None:
    groups = {"added": "added to those before it", "left out": "against the whole without it"}
    gains = frame.cells(measured.gains)
    if not gains:
        elements.empty("No layer is on except clearance, which always applies.")
        return
    table = {"layer": [row["layer"] for row in gains],
             "measured": [groups[row["group"]] for row in gains]}  # fmt: skip
    for name, label, digits in (("f1", "ΔF1", 3), ("recall", "Δrecall", 3),
                                ("tokens", "Δtokens", 0)):  # fmt: skip
        found = [interval_of(row, name) for row in gains]
        table[label] = [caveats.gain_short(each, digits) if each else "–" for each in found]
    with st.container(key="table"):
        st.dataframe(pd.DataFrame(table), key="evaluation-layers", hide_index=True, row_height=32)
    elements.aside(
        "What each layer adds to the settings, with the 95% interval: positive is more. Clearance "
        f"depends on the user, so it is not varied. {ABOUT_LAYERS}"
    )


def _questions(measured: MeasuredRun) -> None:
    with st.container(key="queries-bar", horizontal=True, gap="small"):
        wanted = st.segmented_control(
            "Questions shown", ("all", *KINDS), key="query-filter", default="all",
            required=True, label_visibility="collapsed", format_func=str.capitalize,
        )  # fmt: skip
        rows = measured.questions
        for kind in KINDS:
            rows = frame.of_kind(rows, kind) if wanted == kind else rows
        st.markdown(prose.quiet(counted(len(rows), "question")))
        elements.hint(
            f"{ABOUT_KINDS} Click a row to open the question in Inspect with these settings."
        )
    if rows.empty:
        elements.empty("There are no questions of this kind.", "Choose All.")
        return
    table = rows[[*NAMED]].rename(columns=NAMED)
    name = f"questions-{measured.run.id}"
    clicked = grid.picked(table, rows["id"], name=name, columns=_COLUMNS, height=460)
    if clicked is not None:
        plan = measured.run.plan
        running.open_inspect(rows["query"].iloc[clicked], plan.profile, plan.changes)


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
    dark, curves = theme.is_dark(), measured.curves
    with st.container(key="plots"):
        left, right = st.columns(2, gap="medium")
    with left:
        plotting.draw(
            plots.precision_recall(frame.cells(measured.rows), curves, dark=dark),
            key="plot-pr", alt="Precision against recall of every row, with the oracle's line",
        )  # fmt: skip
        plotting.draw(
            plots.kept_counts(frame.kept_counts(measured.records), dark=dark), key="plot-kept",
            alt="How many questions keep how many chunks",
        )  # fmt: skip
    with right:
        _distances(curves)


@st.fragment
def _distances(curves: Sequence[Curve]) -> None:
    """Draw the distances with a line across them, and what it would keep."""
    every = [distance for curve in curves for distance in curve.distances[:SHOWN_RANKS]]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    best = best_distance(curves)
    threshold = min(best.distance, high) if best else (low + high) / 2
    if high > low:
        threshold = st.slider(
            "Distance", low, high, threshold, step=(high - low) / 200, format="%.3f",
            key="distance-line",
            help="Shows, beside the curve, the figures if every chunk up to this distance "
            "were kept.",
        )  # fmt: skip
    plotting.draw(
        plots.distances(curves, threshold, dark=theme.is_dark()), key="plot-distances",
        alt="Distances of all questions by rank, relevant chunks marked",
    )  # fmt: skip
    means = within(curves, threshold)
    st.markdown(
        f"Up to {numbers.distance(threshold)}, on these same questions: precision "
        f"**{means['precision']:.3f}**, recall **{means['recall']:.3f}**, F1 "
        f"**{means['f1']:.3f}** ({means['f1_most']:.3f} if all {means['unlabelled']:.1f} "
        f"without a label were relevant), **{means['kept']:.1f}** chunks of the first "
        f"{DEEPEST}."
    )
    if best is not None:
        elements.aside(caveats.best_distance(best))


def _guard(measured: MeasuredRun, resources: Resources) -> None:
    """Draw the button that opens the run as a baseline file, and the command that compares with it
    in CI."""
    with st.popover(
        "Guard",
        key="guard",
        icon=":material/verified_user:",
        type="tertiary",
        help="Makes a CI job fail when the filter gets worse than this run.",
    ):
        if not measured.run.complete:
            elements.empty("A baseline needs all questions of the run.", "Evaluate continues it.")
            return
        baseline = gate.to_baseline(
            gate.reached(measured.records), _origin(measured.run, resources)
        )
        st.download_button(
            "Use this run as baseline",
            data=baseline.dumps,
            file_name=BASELINE,
            mime="application/json",
            key="guard-baseline",
            icon=":material/download:",
            on_click="ignore",
            help="What every question of this run reaches. A small file for git.",
        )
        st.code(gate_command(measured.run.plan), language="bash", wrap_lines=True)


def gate_command(plan: Plan) -> str:
    """The command that fails if these settings get worse than the baseline."""
    queries, qrels, llm = untitled(plan.query_set)
    words = ["ragfilter", "gate", "--collection", plan.collection, "--queries", queries]
    words += ["--qrels", qrels] if qrels else []
    words += ["--with-llm"] if llm else []
    words += ["--profile", plan.profile]
    for path, value in plan.changes.items():
        words += ["--set", f"{path}={_written(value)}"]
    user = plan.viewer
    if not user.unrestricted:
        words += ["--level", str(user.level)]
        for department in user.departments:
            words += ["--department", department]
    return shlex.join([*words, "--baseline", BASELINE])


def _origin(run: Run, resources: Resources) -> gate.BaselineOrigin:
    """What the run measured. The collection has the same fingerprint wherever the same files are
    indexed, but only as long as it is what the run saw."""
    plan = run.plan
    collection = resources.bench.collection(plan.collection)
    same = collection.version == plan.collection_version
    workspace = resources.bench.workspace
    version = content_of(workspace, collection, plan.viewer) if same else plan.collection_version
    return gate.BaselineOrigin(
        collection=plan.collection, collection_version=version,
        labels_version=plan.labels_version, model=plan.model, space=plan.space,
    )  # fmt: skip


def _written(value: object) -> str:
    """A setting's value as `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _format(name: str) -> str:
    return {"kept": "%.1f", "tokens": "%.0f", "ms": "%.1f", "unlabelled": "%.1f"}.get(name, "%.3f")


def _ends(name: str, found: Interval | None) -> str:
    if found is None:
        return "–"
    return caveats.between_ends(found, lambda value: _format(name) % value, " – ")
