"""The Evaluate page: how good the current settings are on labelled questions. It shows a run's rows, the contribution
of each layer, the questions and the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.evaluate import frame, measured_runs, metrics, regression_gate, wording
from ragfilter.evaluate.frame import ABOUT_KINDS, ABOUT_LAYERS, KINDS, interval_of
from ragfilter.evaluate.measured_runs import MeasuredRun
from ragfilter.evaluate.metrics import SHOWN_RANKS, Curve, within
from ragfilter.evaluate.query_sets import untitled
from ragfilter.evaluate.variants import CURRENT
from ragfilter.layers.registry import layer
from ragfilter.protocols import Prices
from ragfilter.publish.reports import command, of_run
from ragfilter.settings.schema import STRATEGIES
from ragfilter.stores.run_store import Plan, Run
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import labelling_mode, questions_and_labels
from ragfilter.ui.kit import grid, labelled_sets, measuring, problems
from ragfilter.ui.kit.guide import GUARD
from ragfilter.ui.kit.labelled_sets import ChosenSet
from ragfilter.ui.look import elements, prose, theme
from ragfilter.ui.resources import Resources
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.page_run import PageRun

PARTS = QUESTIONS, LABELS = "Questions", "Labels"
UNASKED = 500
"""The most questions that the page measures by itself when it is opened."""


@problems.show_errors(retry=True)
def draw(page_run: PageRun) -> None:
    """Draw the bar, the progress of a run, and its results; or the labelling mode."""
    if not page_run.ready:
        problems.draw_empty(page_run, None)
        return
    problems.draw_incomplete(page_run.incomplete)
    runs_here = page_run.saved_runs.values()
    chosen = labelled_sets.chosen_set(page_run, runs=runs_here)
    if state.session().labelling:
        labelling_mode.draw(chosen)
        return
    busy = measuring.in_progress(runs_here, chosen.resources)
    saved = _bar(chosen, busy=busy is not None)
    labelled_sets.explain(chosen)
    if st.session_state.get("sets-open"):
        _sets(chosen)
    elif saved:
        run = saved[_chosen_id(saved)]
        measuring.watch(run, chosen.resources)
        measured = measuring.load(run.id, chosen.resources)
        if measured.run.done != run.done:
            # Redraw, because the list of runs still shows the old progress.
            st.rerun()
        _results(measured, chosen)
    elif busy:
        measuring.watch(busy, chosen.resources)
        st.rerun()


def _sets(chosen: ChosenSet) -> None:
    with elements.row("sets-bar"):
        about = "Questions: edit the set. Labels: see who made them, where people disagree, and what an LLM proposes."
        part = elements.choice("Part", PARTS, about, key="sets-part", default=QUESTIONS)
    elements.aside(*_notes(chosen))
    if part == QUESTIONS:
        questions_and_labels.draw_questions(chosen)
    else:
        questions_and_labels.draw_labels(chosen)


def _bar(chosen: ChosenSet, *, busy: bool) -> Mapping[int, Run]:
    """Draw the controls and the list of the set's runs. Returns these, with one that was just started."""
    saved, others = chosen.runs, chosen.name == labelled_sets.OTHERS
    with elements.row("evaluate-bar", "bottom"):
        labelled_sets.choose(chosen)
        label, none = _measure_label(chosen), chosen.measurable is None
        about = "Measures the sidebar's settings on this set's labelled questions, or continues a stopped run."
        pressed = elements.button(label, "evaluate", icon="play_arrow", type="primary", disabled=none, about=about)
        # The page measures small sets by itself, one at a time, unless questions are being edited or an LLM judges.
        small = chosen.measurable is not None and len(chosen.measurable.qrels) <= UNASKED
        later = saved or busy or st.session_state.get("sets-open") or chosen.page_run.settings.judge.enabled
        if pressed:
            # Show the run instead of the editor.
            st.session_state["sets-open"] = False
        if pressed or (small and not later):
            run = measuring.begin(chosen, state.session().profile, chosen.page_run.settings, unasked=not pressed)
            state.session().run = run.id
            saved = {run.id: run, **saved}
        if len(saved) > 1 or others:
            labels = {i: measured_runs.run_label(run, of_set=others) for i, run in saved.items()}
            widget.draw_list("Run", labels, _chosen_id(saved), "run-box", state.set_field, "run", width=330)
        about = "Label chunks, question by question, with the keys 2, 1 and 0."
        elements.button("Label", "open-labelling", state.set_field, True, "labelling", icon="edit_note", about=about)
        with st.popover("More", key="evaluate-more", type="tertiary"):
            _more(chosen)
    return saved


def _measure_label(chosen: ChosenSet) -> str:
    if chosen.measurable is None:
        return "Measure"
    count, begun = counted(len(chosen.measurable.qrels), "question"), measuring.unfinished(chosen)
    return f"Continue from {begun.done} of {count}" if begun and begun.done else f"Measure {count}"


def _notes(chosen: ChosenSet) -> list[str]:
    if chosen.measurable is None:
        return []
    notes, count = wording.about_labels(chosen.measurable), len(chosen.measurable.qrels)
    gone, lost = chosen.gone()
    if bare := len(chosen.measurable.queries) - count - lost:
        notes.append(f"{counted(bare, 'question')} skipped: no labels.")
    if gone:
        without = f"{counted(len(gone), 'labelled chunk')} left out, such as {gone[0]}: not in the collection."
        notes.append(f"{without} Index them again, or label the chunks that replaced them.")
    if lost:
        notes.append(f"{counted(lost, 'question')} skipped: no relevant chunk left.")
    return notes


def _more(chosen: ChosenSet) -> None:
    about = "Edit the questions of this set, see who labelled what, or let an LLM propose labels."
    st.toggle("Questions and labels", key="sets-open", persist_state="session", help=about)
    about = "Used for chunks that no person has labelled. Off: only people's labels count."
    st.toggle("Count an LLM's labels", key=labelled_sets.LLM, persist_state="session", help=about)
    on, keep = chosen.book.records_history(chosen.collection), partial(chosen.book.record_history, chosen.collection)
    about = 'Keeps the questions you ask as the query set "asked". Turning this off deletes them.'
    given = widget.key_and_callback("history-box", on, state.notice_errors()(keep))
    st.toggle("Keep asked questions", on, help=about, **given)


def _chosen_id(saved: Mapping[int, Run]) -> int:
    run = state.session().run
    return run if run in saved else next(iter(saved))


TABS = ROWS, LAYERS, QUERIES, PLOTS = "Comparison", "Layers", "Questions", "Plots"
FILE = "baseline.json"


def _results(measured: MeasuredRun, chosen: ChosenSet) -> None:
    if not measured.records:
        elements.empty("No question in this run has been measured yet.", "Press Measure." if chosen.measurable else "")
        return
    who = "Your settings" if measured.settings == chosen.page_run.settings else "This run's settings"
    sentence = wording.over_fixed_k(measured.over_fixed_k, measured.in_sample, who)
    highest = measured.ranked("f1")[0]
    if measured.over_fixed_k and CURRENT not in highest["names"]:
        name, whose = highest["variant"], who[0].lower() + who[1:]
        if gain := frame.gain_over(measured.records, CURRENT, name):
            best = "is" if gain.shows_gain or gain.shows_loss else "scores highest, but is"
            verdict = f"{best} {wording.compared(gain)} {whose}: F1 {wording.stated(gain)}"
            sentence += f" {measuring.HIGHEST} {name} {verdict}."
    if sentence:
        elements.draw(f'<p class="rf-lead">{elements.text(sentence)}</p>')
    elements.aside(*_staleness_notes(measured, chosen))
    _tabs(measured, chosen.resources)


@st.fragment
@problems.show_errors()
def _tabs(measured: MeasuredRun, resources: Resources) -> None:
    with elements.row("views-bar"):
        view = elements.choice("View", TABS, key="view", default=ROWS)
        measure, every = "f1", False
        if view == ROWS:
            labels = {name: metrics.FIGURES[name].label for name in measuring.MEASURES}
            measure = elements.select("Sort by", labels, "measure", width=130, label_visibility="collapsed")
            every = st.toggle("All figures", key="all-figures", persist_state="session")
        st.space("stretch")
        about = "Compares this run with another one, or with other settings, by question."
        if elements.button("Compare", "evaluate-compare", icon="compare_arrows", type="tertiary", about=about):
            # The run is side B, over its questions.
            queries, _, _ = untitled(measured.run.plan.query_set)
            run = f"run-{measured.run.id}"
            state.session().compared = {"a": "unfiltered", "b": run, "set": queries}
            st.switch_page("pages/compare.py")
        _guard(measured, resources)
        # The report is made outside the page run, without its session.
        bench, plan = resources.bench, measured.run.plan
        elements.report(
            "run-report",
            lambda: of_run(measured, bench.prices, since=measured_runs.changed_since(plan, bench)),
            f"ragfilter-run-{measured.run.id}.html",
        )
    match view:
        case "Layers":
            _layers(measured)
        case "Questions":
            _queries(measured)
        case "Plots":
            _plots(measured)
        case _:
            _rows(measured, measure, resources.bench.prices, every=every)


def _staleness_notes(measured: MeasuredRun, chosen: ChosenSet) -> list[str]:
    """Why the figures may not describe the current state."""
    run = measured.run
    notes = measured_runs.changed_since(run.plan, chosen.resources.bench)
    if not run.complete:
        then = "Measure continues if settings, user, labels and collection are unchanged." if chosen.measurable else ""
        notes.insert(0, f"{run.done} of {counted(run.plan.queries, 'question')} measured. {then}".strip())
    if measured.settings != chosen.page_run.settings:
        notes.append("This run used different settings from the sidebar's.")
    before = measured_runs.earlier(run, chosen.page_run.saved_runs.values()) if run.complete else None
    if before is not None:
        previous = measuring.load(before.id, chosen.resources)
        moved = measured_runs.moved_since(measured, previous)
        name = "the baseline" if before.name == measured_runs.BASELINE else f"run {before.id}"
        was, now = (each.row(CURRENT) for each in (previous, measured))
        if was and now and previous.run.plan.labels_version == run.plan.labels_version:
            before_now = [f"{row['f1']:.3f}" for row in (was, now)]
            notes += [f"Since {name}, F1 went from {' to '.join(before_now)}."] if len(set(before_now)) > 1 else []
        notes += [f"Since {name}: {moved[0].lower()}{moved[1:]}"] if moved else []
    return notes


def _rows(measured: MeasuredRun, measure: str, prices: Prices | None, *, every: bool) -> None:
    own = CURRENT if measured.settings == state.settings() else "this run's settings"
    rows = [{**row, "names": [own if n == CURRENT else n for n in row["names"]]} for row in measured.ranked(measure)]
    measuring.draw_table(rows, measure, own=own, key="evaluation-rows", every=every, prices=prices)
    with st.expander("About these figures", key="about-figures", type="compact"):
        current = measured.row(CURRENT)
        notes = [
            *wording.about_records(measured.records, measured.variants),
            wording.unlabelled(current) if current else "",
            *(f"{' = '.join(row['names'])} keep the same chunks." for row in rows if measuring.shortened(row["names"])),
            *(f"{row['variant']}: {row['about']}." for row in rows if row["about"]),
            f"Where each strategy cuts: {' '.join(f'`{name}` {what}' for name, what in STRATEGIES.items())}",
        ]
        elements.aside(*filter(None, notes))


def _layers(measured: MeasuredRun) -> None:
    groups = {"added": "by adding it", "left out": "by leaving it out"}
    gains = frame.cells(measured.gains)
    if not gains:
        elements.empty("No layer is on except clearance, which always applies.")
        return
    shown = {"layer": [layer(row["layer"]).title for row in gains], "measured": [groups[row["group"]] for row in gains]}
    for name, label, digits in (("f1", "adds to F1", 3), ("recall", "adds to recall", 3), ("tokens", "adds tokens", 0)):
        intervals = [interval_of(row, name) for row in gains]
        shown[label] = [wording.gain(each, digits) if each else "–" for each in intervals]
    with st.container(key="table"):
        widths = {"measured": 120, "adds to F1": 190, "adds to recall": 190}
        config = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
        st.dataframe(shown, key="evaluation-layers", hide_index=True, row_height=32, column_config=config)
    about = "What each layer adds, with the 95% interval. Clearance depends on the user, so it is not varied."
    elements.aside(f"{about} {ABOUT_LAYERS}")


def _queries(measured: MeasuredRun) -> None:
    with elements.row("queries-bar", "top"):
        look: dict[str, Any] = {"persist_state": None, "format_func": str.capitalize}
        wanted = elements.choice("Questions shown", ("all", *KINDS), key="query-filter", default="all", **look)
        rows = measured.questions
        for kind in KINDS:
            rows = frame.of_kind(rows, kind) if wanted == kind else rows
        st.markdown(prose.quiet(counted(len(rows), "question")))
        elements.hint(f"{ABOUT_KINDS} Click a row to open the question in Inspect with these settings.")
    if rows.empty:
        elements.empty("There are no questions of this kind.", "Choose All.")
        return
    shown = rows[FIGURES].rename(columns=NAMES).assign(question=grid.fitting_questions(rows["query"], QUESTION_PX))
    name = f"questions-{measured.run.id}"
    clicked = grid.draw_clickable(shown, rows["id"], name=name, columns=_COLUMNS, height=460)
    if clicked is not None:
        plan = measured.run.plan
        state.open_inspect(rows["query"].iloc[clicked], plan.profile, plan.changes)


FIGURES = ["query", "lost", "f1", "gain", "precision", "recall", "kept", "relevant", "unlabelled"]
NAMES = {"query": "question", "f1": "F1", "gain": "ΔF1"}
"""The columns of the question table, and those that have another name there."""
QUESTION_PX = 320
_number = st.column_config.NumberColumn
_COLUMNS: dict[str, Any] = {
    "question": st.column_config.TextColumn(width=QUESTION_PX),
    "lost": _number(width=44, help="Relevant chunks in the pool that the filter drops."),
    "ΔF1": _number(width=66, help="F1 minus the F1 of the unfiltered first k."),
    **{name: _number(width=78, format="%.3f") for name in ("precision", "recall")},
    "F1": _number(width=60, format="%.3f"),
    "unlabelled": _number(help="Kept chunks without a label."),
}


def _plots(measured: MeasuredRun) -> None:
    dark, curves = theme.is_dark(), measured.curves
    with st.container(key="plots"):
        left, right = st.columns(2, gap="medium")
    with left:
        plot = measuring.precision_recall(frame.cells(measured.rows), curves, dark=dark)
        theme.draw_plot(plot, key="plot-pr", alt="Precision against recall for every row, with the oracle's line")
        plot = measuring.kept_counts(measured.questions["kept"], dark=dark)
        theme.draw_plot(plot, key="plot-kept", alt="How many questions keep how many chunks")
    with right:
        _distances(curves)


@st.fragment
def _distances(curves: Sequence[Curve]) -> None:
    """Draw the distances with a line across them, and figures for what the line would keep."""
    every = [distance for curve in curves for distance in curve.distances[:SHOWN_RANKS]]
    low, high = (min(every), max(every)) if every else (0.0, 1.0)
    threshold = (low + high) / 2
    if high > low:
        about = "Shows the figures beside the curve as if every chunk up to this distance were kept."
        step = (high - low) / 200
        threshold = st.slider("Distance", low, high, threshold, step, "%.3f", key="distance-line", help=about)
    plot = measuring.distances(curves, threshold, dark=theme.is_dark())
    theme.draw_plot(plot, key="plot-distances", alt="Distances of all questions by rank, relevant chunks marked")
    means, most = within(curves, threshold), max(len(curve.distances) for curve in curves)
    st.markdown(
        f"Up to {numbers.distance(threshold)}, on these same questions: precision **{means['precision']:.3f}**, recall "
        f"**{means['recall']:.3f}**, F1 **{means['f1']:.3f}** ({means['f1_most']:.3f} if all {means['unlabelled']:.1f} "
        f"without a label were relevant), **{means['kept']:.1f}** chunks of the first {most}."
    )


def _guard(measured: MeasuredRun, resources: Resources) -> None:
    box = st.popover("Guard", key=GUARD, icon=":material/verified_user:", type="tertiary", on_change="rerun")
    if not box.open:
        return
    with box:
        if not measured.run.complete:
            elements.empty("A baseline needs a complete run.")
            return
        if measured.settings != state.settings():
            elements.aside("This run did not use your settings. Measure yours to guard them.")
        plan, bench = measured.run.plan, resources.bench
        origin = measured_runs.origin_of(measured)
        if bench.version_seen(plan.collection, plan.viewer) == plan.collection_version:
            # The fingerprint is the same wherever the same files are indexed.
            content = bench.workspace.content_of(bench.collection(plan.collection), plan.viewer)
            origin = origin.model_copy(update={"collection_version": content})
        baseline = regression_gate.to_baseline(regression_gate.reached(measured.records), origin)
        about = "Each question's results in this run, as a small file for git."
        act, args = state.then_page(bench.runs.rename), (measured.run.id, measured_runs.BASELINE)
        elements.download("Use as baseline", "guard-baseline", baseline.dumps, FILE, about, on_click=act, args=args)
        saved = bench.runs.get(measured.run.id).name == measured_runs.BASELINE
        words = f"{FILE} was downloaded: commit it" if saved else "Commit the file"
        elements.aside(f"{words}. In CI, this command fails if the filter gets worse:")
        st.code(gate_command(measured.run.plan), language="bash", wrap_lines=True)


def gate_command(plan: Plan) -> str:
    """The command that fails if these settings get worse than the baseline."""
    words = ["gate", *measured_runs.measured_queries(plan), "--profile", plan.profile]
    # The record of tuning does not change what the settings keep.
    changes = {path: value for path, value in plan.changes.items() if path != "cutoff.tuned_on"}
    for path, value in changes.items():
        words += ["--set", f"{path}={str(value).lower() if isinstance(value, bool) else value}"]
    return command(*words, "--baseline", FILE, user=plan.viewer)
