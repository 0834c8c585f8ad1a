"""The gate of a run: its limits, a baseline to compare it with, and the questions that break it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.errors import InputError
from ragfilter.evaluate import baseline as baselines
from ragfilter.evaluate import gate as gating
from ragfilter.evaluate import limits as limiting
from ragfilter.evaluate.baseline import DEFAULT_DROPS, About, Baseline
from ragfilter.evaluate.gate import Gate
from ragfilter.evaluate.limits import Limit
from ragfilter.stores.runs import Run
from ragfilter.text.numbers import counted, p_value, signed
from ragfilter.ui.evaluate import opening
from ragfilter.ui.evaluate.measured import Measured
from ragfilter.ui.look import prose, say
from ragfilter.ui.look.prose import message
from ragfilter.ui.main import grid
from ragfilter.ui.session import uploads
from ragfilter.ui.session.resources import Resources

MOST_MB = 20
FIGURES = {"f1": "F1", "recall": "recall", "precision": "precision"}
COLUMNS = {
    "question": st.column_config.TextColumn(width=330),
    "check": st.column_config.TextColumn(width=150),
    "change": st.column_config.TextColumn(
        width=80, help="The change since the baseline, or the figure below its minimum."
    ),
}


def draw(measured: Measured, resources: Resources) -> None:
    """Draw the gate of a complete run."""
    if not measured.run.complete:
        say.empty("A gate needs all questions of the run.", "Evaluate continues it.")
        return
    reached = limiting.of_records(measured.records)
    about = _about(measured.run, resources)
    limits, allowed = _limits()
    before = _baseline()
    st.download_button(
        "Download baseline",
        data=partial(baselines.dumps, baselines.of_reached(reached, about)),
        file_name="baseline.json",
        mime="application/json",
        key="gate-download",
        icon=":material/download:",
        on_click="ignore",
        help="What every question of this run reaches. A small file for git, which "
        "`ragfilter gate --baseline` reads as well.",
    )
    if before is None and not limits:
        say.empty(
            "There is nothing to check yet.",
            "Upload the baseline of an earlier run, or set a minimum.",
        )
        return
    try:
        compared = None if before is None else (before, about)
        gate = gating.decide(reached, limits, before=compared, allowed=allowed)
    except InputError as error:
        st.error(message(str(error)))
        return
    _outcome(gate)
    _broken(gate, measured)


def _about(run: Run, resources: Resources) -> About:
    """What the run measured. The collection has the same fingerprint wherever the same files are
    indexed, but only as long as it is what the run saw."""
    plan = run.plan
    collection = resources.bench.collection(plan.collection)
    same = collection.version == plan.collection_version
    version = (same and collection.content) or plan.collection_version
    return About(plan.collection, version, plan.labels_version, plan.model, plan.space)


def _limits() -> tuple[list[Limit], Mapping[str, float]]:
    """Draw the limits, and return them with how much each mean may drop."""
    with st.container(horizontal=True, gap="small"):
        least = {
            name: st.number_input(
                f"Minimum {FIGURES[name]}", 0.0, 1.0, None, 0.01,
                key=f"gate-min-{name}", placeholder="none", width=126,
                help="The mean over all questions must reach this.",
            )
            for name in ("f1", "recall")
        }  # fmt: skip
        allowed = {
            name: st.number_input(
                f"{FIGURES[name].capitalize()} may drop", 0.0, 1.0, DEFAULT_DROPS[name], 0.01,
                key=f"gate-drop-{name}", width=126,
                help="How far the mean may drop below the baseline before a drop that is unlikely "
                "to be chance (p < 0.05) breaks the gate. A drop of 0.5 or more in one question "
                "always does.",
            )
            for name in DEFAULT_DROPS
        }  # fmt: skip
    limits = [Limit(name, value, True) for name, value in least.items() if value is not None]
    return limits, allowed


def _baseline() -> Baseline | None:
    file = st.file_uploader(
        "Baseline",
        type="json",
        key="gate-baseline",
        max_upload_size=MOST_MB,
        width=640,
        help="Downloaded here from an earlier run, or written by "
        "`ragfilter gate --update-baseline`.",
    )
    if file is None:
        return None
    try:
        with uploads.as_files(file) as (path,):
            return baselines.read(path)
    except InputError as error:
        st.error(message(str(error)))
        return None


def _outcome(gate: Gate) -> None:
    """Draw the verdict, and every check in a line."""
    failed = [one for one in gate.every if not one.passed]
    if failed:
        st.error(f"The gate fails: {len(failed)} of {counted(len(gate.every), 'check')} failed.")
    else:
        st.success(f"The gate passes: {counted(len(gate.every), 'check')} passed.")
    for note in gate.notes:
        say.aside(note)
    st.markdown("  \n".join(message(line) for line in _lines(gate)))


def _lines(gate: Gate) -> Iterator[str]:
    for check in gate.checks:
        figure = FIGURES[check.limit.figure]
        yield f"{_sign(check.passed)} Mean {figure} {check.mean:.3f}, minimum {check.limit.value:g}"
    for drop in gate.drops:
        yield (
            f"{_sign(drop.passed)} Mean {FIGURES[drop.figure]} {drop.now:.3f}, baseline "
            f"{drop.before:.3f}: {signed(-drop.drop)}, may drop {drop.allowed:g} "
            f"({p_value(drop.p_value)})"
        )
        if drop.severe:
            yield f"{_sign(False)} {counted(len(drop.severe), 'question')} lost 0.5 or more"
    if gate.gone is not None:
        if gate.gone.passed:
            yield f"{_sign(True)} All questions and relevant chunks of the baseline are there"
        for query in gate.gone.queries:
            yield f"{_sign(False)} Question {query} of the baseline was not measured"
        for query, fewer in gate.gone.relevant:
            yield f"{_sign(False)} Question {query} has {fewer} fewer relevant than the baseline"


def _sign(passed: bool) -> str:
    return "✓" if passed else "✕"


def _broken(gate: Gate, measured: Measured) -> None:
    """Draw the questions that break the checks, those that lost most first. A click opens one in
    Inspect."""
    rows = [
        (query, f"{FIGURES[drop.figure]} dropped", signed(value))
        for drop in gate.drops
        if not drop.passed
        for query, value in drop.worst
    ]
    rows += [
        (query, f"{FIGURES[check.limit.figure]} below minimum", f"{value:.3f}")
        for check in gate.checks
        if not check.passed
        for query, value in check.worst
    ]
    if not rows:
        return
    texts = {record.id: record.query for record in measured.records}
    table = pd.DataFrame(
        {
            "question": [texts[query] for query, _, _ in rows],
            "check": [check for _, check, _ in rows],
            "change": [value for _, _, value in rows],
        }
    )
    broken = len({query for query, _, _ in rows})
    st.markdown(prose.quiet(f"{counted(broken, 'question')}; by check, the worst first"))
    ids = (f"{query} {check}" for query, check, _ in rows)
    name = f"gate-{measured.run.id}"
    clicked = grid.picked(table, ids, name=name, columns=COLUMNS, height=300)
    if clicked is not None:
        plan = measured.run.plan
        opening.inspect(texts[rows[clicked][0]], plan.profile, plan.changes)
