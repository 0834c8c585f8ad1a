"""Guards a run: its figures as a baseline file, and the command that compares with them in CI."""

from __future__ import annotations

import shlex

import streamlit as st

from ragfilter.evaluate import gate
from ragfilter.evaluate.query_sets import untitled
from ragfilter.evaluate.runs import MeasuredRun
from ragfilter.stores.export import content_of
from ragfilter.stores.runs import Plan, Run
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
        baseline = gate.to_baseline(
            gate.reached(measured.records), _origin(measured.run, resources)
        )
        st.download_button(
            "Use this run as baseline",
            data=baseline.dumps,
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
