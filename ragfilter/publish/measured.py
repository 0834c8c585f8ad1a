"""The reports of labelled queries: a run, or two sides over the same queries. Pure.

They name questions and figures, but no chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import frame, prefixes, query_sets, wording
from ragfilter.evaluate.frame import ABOUT_LAYERS, interval_of
from ragfilter.evaluate.runs import ComparedRuns, MeasuredRun, settings_name
from ragfilter.evaluate.variants import CURRENT, unmeasured
from ragfilter.publish import drawing
from ragfilter.publish.reports import Called, command, origin_of, render
from ragfilter.stores.runs import Run

MAX_QUERIES = 30
LABELS = {
    "precision": "precision", "recall": "recall", "f1": "F1", "f2": "F2", "ndcg": "nDCG",
    "kept": "chunks", "tokens": "tokens",
}  # fmt: skip


def of_run(
    measured: MeasuredRun,
    prices: Prices | None = None,
    *,
    since: Sequence[str] = (),
    sets: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A report of a run: every alternative with its interval, what each layer gains, and what is
    lost. `since` is what `runs.changed_since` says, and `sets` are as for `runs.settings_name`."""
    run, curves, queries = measured.run, measured.curves, measured.questions
    rows = frame.cells(measured.rows)
    lost = queries[queries["lost"] > 0].sort_values("lost", ascending=False, kind="stable")
    ends = {row["variant"]: {name: interval_of(row, name) for name in LABELS} for row in rows}
    return render(
        "run.html",
        run=run,
        called=settings_name(run, sets),
        questions=len(queries),
        said=_verdicts(measured, since),
        f1=drawing.intervals(
            [(name, each["f1"]) for name, each in ends.items() if each["f1"]], CURRENT
        ),
        tradeoff=drawing.tradeoff(
            [(row["variant"], row["recall"], row["precision"]) for row in rows],
            prefixes.fixed_line(curves),
            prefixes.frontier(curves),
            [row["variant"] for row in rows if row["group"] in ("settings", "plain", "oracle")],
            CURRENT,
        ),
        rows=rows,
        ends=ends,
        labels=LABELS,
        prices=prices,
        cost=frame.cost,
        current=CURRENT,
        unmeasured=unmeasured([*ends]),
        gains=[
            {"layer": row["layer"], "group": row["group"]}
            | {name: interval_of(row, name) for name in ("f1", "recall", "tokens")}
            for row in frame.cells(measured.gains)
        ],
        about_layers=ABOUT_LAYERS,
        lost=frame.cells(lost.head(MAX_QUERIES)),
        more=max(len(lost) - MAX_QUERIES, 0),
        settings=measured.settings,
        command=_command(run, "ragfilter.toml"),
        origin=origin_of(run),
    )


def of_runs(
    compared: ComparedRuns, names: tuple[Called, Called], prices: Prices | None = None
) -> str:
    """A report of two sides over the same queries, which are rows of two runs."""
    run, changes = compared.runs[1], compared.changes
    changed = [each for each in changes if each["gain"]]
    verdict = f"B is {wording.compared(compared.paired.gain)} A in mean F1."
    if any(compared.in_sample):
        verdict = (
            "No winner is declared, because at least one side may have been tuned on these labels."
        )
    return render(
        "runs.html",
        compared=compared,
        prices=prices,
        names=[each.name for each in names],
        query_set=run.plan.query_set,
        verdict=verdict,
        gains=drawing.gains([each["gain"] for each in changes]),
        changes=changed[:MAX_QUERIES],
        more=max(len(changed) - MAX_QUERIES, 0),
        settings=[(f"{letter.upper()}: {each.name} ({letter}.toml)", each.settings, each.profile)
                  for letter, each in zip("ab", names, strict=True)],
        commands=[_command(run, f"{letter}.toml") for letter in "ab"],
        origin=origin_of(run),
    )  # fmt: skip


def _command(run: Run, file: str) -> str:
    name, qrels, llm = query_sets.untitled(run.plan.query_set)
    words = ["--config", file, "--collection", run.plan.collection, "--queries", name]
    words += ["--qrels", qrels] if qrels else []
    words += ["--with-llm"] if llm else []
    saved = run.name or f"run {run.id}"
    return command("eval", *words, "--save", saved, user=run.plan.viewer)


def _verdicts(measured: MeasuredRun, since: Sequence[str]) -> list[str]:
    run, own = measured.run, measured.row(CURRENT)
    verdicts = [
        "" if run.complete else
        f"The run was stopped after {run.done} of {run.plan.queries} questions.",
        *since,
        wording.over_fixed_k(measured.over_fixed_k, measured.in_sample),
        *wording.about_records(measured.records, measured.variants),
        wording.unlabelled_of(own) if own else "",
    ]  # fmt: skip
    return [sentence for sentence in verdicts if sentence]
