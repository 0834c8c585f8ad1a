"""Guards a run: its figures as a baseline file, and the command that compares with them in CI."""

from __future__ import annotations

import shlex
from functools import partial

import streamlit as st

from ragfilter.evaluate import baseline as baselines
from ragfilter.evaluate import limits
from ragfilter.evaluate.baseline import About
from ragfilter.evaluate.stored import untitled
from ragfilter.stores.export import content_of
from ragfilter.stores.runs import Plan, Run
from ragfilter.ui.kit.runs.measured import MeasuredRun
from ragfilter.ui.look import elements
from ragfilter.ui.session.resources import Resources

FILE = "baseline.json"


def draw(measured: MeasuredRun, resources: Resources) -> None:
    """Draw the button that opens the baseline and the command."""
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
        reached, about = limits.of_records(measured.records), _about(measured.run, resources)
        st.download_button(
            "Use this run as baseline",
            data=partial(baselines.dumps, baselines.of_reached(reached, about)),
            file_name=FILE,
            mime="application/json",
            key="guard-baseline",
            icon=":material/download:",
            on_click="ignore",
            help="What every question of this run reaches. A small file for git.",
        )
        st.code(command(measured.run.plan), language="bash", wrap_lines=True)


def command(plan: Plan) -> str:
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
    return shlex.join([*words, "--baseline", FILE])


def _about(run: Run, resources: Resources) -> About:
    """What the run measured. The collection has the same fingerprint wherever the same files are
    indexed, but only as long as it is what the run saw."""
    plan = run.plan
    collection = resources.bench.collection(plan.collection)
    same = collection.version == plan.collection_version
    workspace = resources.bench.workspace
    version = content_of(workspace, collection, plan.viewer) if same else plan.collection_version
    return About(plan.collection, version, plan.labels_version, plan.model, plan.space)


def _written(value: object) -> str:
    """A setting's value as `--set` reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
