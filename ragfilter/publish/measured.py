"""The reports of labelled queries: a run, or two sides over the same queries. Pure.

They name questions and figures, but no chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import stored, told
from ragfilter.evaluate.matching import Duel
from ragfilter.evaluate.plotted import best_distance, fixed_line, frontier, kept_counts, marks
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import settings_of, variants_of
from ragfilter.evaluate.table import (
    ABOUT_LAYERS,
    cost,
    figures_of,
    layer_gains,
    table,
)
from ragfilter.evaluate.variants import IN_FORCE, unmeasured
from ragfilter.publish import drawing
from ragfilter.publish.html import command, origin_of, render
from ragfilter.publish.question import Called
from ragfilter.stores.runs import Run

MOST_QUERIES = 30
LABELS = {
    "precision": "precision", "recall": "recall", "f1": "F1", "f2": "F2", "ndcg": "nDCG",
    "chunks": "chunks", "tokens": "tokens",
}  # fmt: skip


def of_run(
    run: Run,
    records: Sequence[QueryRecord],
    prices: Prices | None = None,
    *,
    since: Sequence[str] = (),
) -> str:
    """A report of a run: every alternative with its interval, what each layer gains, and what is
    lost. `since` is what `runs.changed_since` says."""
    variants = variants_of(run)
    rows = table(records, variants)
    lost = sorted((each for each in records if each.lost), key=lambda each: -each.lost)
    settings = settings_of(run)
    best = best_distance(records)
    return render(
        "run.html",
        run=run,
        records=records,
        said=_verdicts(run, records, since),
        f1=drawing.intervals([(row.name, row.means["f1"]) for row in rows], IN_FORCE),
        tradeoff=drawing.tradeoff(
            [(row.name, row.means["recall"], row.means["precision"]) for row in rows],
            fixed_line(records),
            frontier(records),
            [row.name for row in rows if row.group in ("settings", "plain", "oracle")],
            IN_FORCE,
        ),
        counts=drawing.counts(kept_counts(records)),
        distances=drawing.distances(
            [record.curve.distances for record in records],
            marks(records),
            best.distance if best else None,
        ),
        threshold=told.best_distance(best) if best else "",
        rows=rows,
        labels=LABELS,
        prices=prices,
        cost=cost,
        in_force=IN_FORCE,
        unmeasured=unmeasured([row.name for row in rows]),
        gains=layer_gains(records, variants),
        about_layers=ABOUT_LAYERS,
        lost=lost[:MOST_QUERIES],
        more=max(len(lost) - MOST_QUERIES, 0),
        settings=settings,
        command=_command(run, "ragfilter.toml"),
        origin=origin_of(run),
    )


def of_duel(
    made: Duel,
    names: tuple[Called, Called],
    runs: Sequence[Run],
    prices: Prices | None = None,
    *,
    since: Sequence[Sequence[str]] = ((), ()),
) -> str:
    """A report of two sides over the same queries, which are rows of these two runs. `since` is
    what `runs.changed_since` says of each."""
    run = runs[1]
    changed = [each for each in made.changes if each.gain]
    settings = (names[0].settings, names[1].settings)
    verdict = f"B is {told.compared(made.paired.gain)} A in mean F1."
    if any(told.seen(runs, settings)):
        verdict = (
            "No winner is declared, because at least one side may have been tuned on these labels."
        )
    return render(
        "duel.html",
        duel=made,
        paired=made.paired,
        prices=prices,
        names=[each.name for each in names],
        query_set=run.plan.query_set,
        notes=told.between(runs, made, settings, since),
        verdict=verdict,
        gains=drawing.gains([each.gain for each in made.changes]),
        changes=changed[:MOST_QUERIES],
        more=max(len(changed) - MOST_QUERIES, 0),
        settings=[(f"{letter.upper()}: {each.name} ({letter}.toml)", each.settings, each.profile)
                  for letter, each in zip("ab", names, strict=True)],
        commands=[_command(run, f"{letter}.toml") for letter in "ab"],
        origin=origin_of(run),
    )  # fmt: skip


def _command(run: Run, file: str) -> str:
    name, qrels, llm = stored.untitled(run.plan.query_set)
    words = ["--config", file, "--collection", run.plan.collection, "--queries", name]
    words += ["--qrels", qrels] if qrels else []
    words += ["--with-llm"] if llm else []
    return command("runs", "new", *words, user=run.plan.viewer)


def _verdicts(run: Run, records: Sequence[QueryRecord], since: Sequence[str]) -> list[str]:
    said = []
    if not run.complete:
        said.append(f"The run was stopped after {run.done} of {run.plan.queries} questions.")
    plan = run.plan
    said += [told.profiles_since(plan), *since]
    learned = told.in_sample(settings_of(run), plan.labels_version, plan.collection)
    said.append(told.over_fixed_k(records, learned))
    said += told.about_records(records, variants_of(run))
    figures = figures_of(records, IN_FORCE)
    names = ("chunks", "unlabelled", "f1", "f1_most")
    said.append(told.unlabelled(*(float(figures[name].mean()) for name in names)))
    return [sentence for sentence in said if sentence]
