"""The gate of a run: its limits, a baseline to compare it with, and the questions that break it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.errors import InputError
from ragfilter.evaluate import baseline as baselines
from ragfilter.evaluate import gate as gating
from ragfilter.evaluate import gate_words
from ragfilter.evaluate import limits as limiting
from ragfilter.evaluate.baseline import DEFAULT_DROPS, About, Baseline
from ragfilter.evaluate.gate import Gate
from ragfilter.evaluate.limits import SHARES, Limit
from ragfilter.stores.export import content_of
from ragfilter.stores.runs import Run
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate import opening
from ragfilter.ui.evaluate.measured import Measured
from ragfilter.ui.look import prose, say
from ragfilter.ui.look.prose import message
from ragfilter.ui.main import grid
from ragfilter.ui.session import uploads
from ragfilter.ui.session.resources import Resources

MOST_MB = 20
FIRST = ("f1", "recall")
"""The figures whose minimum is asked for at once."""
NARROW, WIDE = 126, 210
COLUMNS = {
    "question": st.column_config.TextColumn(width=330),
    "why": st.column_config.TextColumn(
        width=330, help="The change since the baseline, or the figure beyond its limit."
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
    _outcome(gate, measured)


def _about(run: Run, resources: Resources) -> About:
    """What the run measured. The collection has the same fingerprint wherever the same files are
    indexed, but only as long as it is what the run saw."""
    plan = run.plan
    collection = resources.bench.collection(plan.collection)
    same = collection.version == plan.collection_version
    workspace = resources.bench.workspace
    version = content_of(workspace, collection, plan.viewer) if same else plan.collection_version
    return About(plan.collection, version, plan.labels_version, plan.model, plan.space)


def _limits() -> tuple[list[Limit], Mapping[str, float]]:
    """Draw the limits, and return them with how much each mean may drop."""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        limits = [_limit(name, least=True) for name in FIRST]
        drops = {name: _drop(name) for name in DEFAULT_DROPS}
        with (
            st.popover("More limits", help="Precision, kept chunks and lost relevant chunks."),
            st.container(horizontal=True, gap="small"),
        ):
            limits += [_limit("precision", least=True, width=WIDE)]
            drops["precision"] = _drop("precision", width=WIDE)
            limits += [_limit("kept", least=least, width=WIDE) for least in (True, False)]
            limits += [_limit("lost", least=False, width=WIDE)]
    allowed = {name: value for name, value in drops.items() if value is not None}
    return [limit for limit in limits if limit is not None], allowed


def _limit(name: str, *, least: bool, width: int = NARROW) -> Limit | None:
    share = name in SHARES
    value = st.number_input(
        f"{'Minimum' if least else 'Maximum'} {gate_words.NAMES[name]}",
        0.0, 1.0 if share else None, None, 0.01 if share else 1.0,
        key=f"gate-{'min' if least else 'max'}-{name}", placeholder="none", width=width,
        help=f"The mean over all questions must {'reach' if least else 'not exceed'} this.",
    )  # fmt: skip
    return None if value is None else Limit(name, value, least)


def _drop(name: str, *, width: int = NARROW) -> float | None:
    figure = gate_words.NAMES[name]
    return st.number_input(
        f"{figure[0].upper()}{figure[1:]} may drop", 0.0, 1.0, DEFAULT_DROPS.get(name), 0.01,
        key=f"gate-drop-{name}", placeholder="any", width=width,
        help="How far the mean may drop below the baseline before a drop that is unlikely to be "
        "chance (p < 0.05) breaks the gate. A drop of 0.5 or more in one question always does.",
    )  # fmt: skip


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


def _outcome(gate: Gate, measured: Measured) -> None:
    """Draw the verdict, every check in a line, and the questions that break them. A click opens one
    in Inspect."""
    plan, texts = measured.run.plan, {record.id: record.query for record in measured.records}
    failed = [one for one in gate.every if not one.passed]
    if failed:
        st.error(f"The gate fails: {len(failed)} of {counted(len(gate.every), 'check')} failed.")
    else:
        st.success(f"The gate passes: {counted(len(gate.every), 'check')} passed.")
    for note in gate.notes:
        say.aside(note)
    lines = (_line(one.passed, gate_words.line(one)) for one in gate.every)
    st.markdown("  \n".join(map(message, lines)))
    st.download_button(
        "Download JUnit",
        data=partial(gate_words.suite, gate, plan.collection, texts),
        file_name="gate.xml",
        mime="application/xml",
        key="gate-junit",
        icon=":material/download:",
        on_click="ignore",
        help="The checks as JUnit XML, which CI systems read, as from `ragfilter gate --junit`.",
    )
    reasons = gate_words.broken(gate)
    if not reasons:
        return
    st.markdown(prose.quiet(counted(len(reasons), "question")))
    # One that was not measured is known by its id only.
    asked = [texts.get(query, query) for query in reasons]
    clicked = grid.picked(
        pd.DataFrame({"question": asked, "why": list(reasons.values())}),
        reasons, name=f"gate-{measured.run.id}", columns=COLUMNS, height=300,
    )  # fmt: skip
    if clicked is not None and list(reasons)[clicked] in texts:
        opening.inspect(asked[clicked], plan.profile, plan.changes)


def _line(passed: bool, told: str) -> str:
    return f"{'✓' if passed else '✕'} {told[0].upper()}{told[1:]}"
