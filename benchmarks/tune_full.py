"""How the figures of profile `full` were chosen: a grid over the demo's labelled queries.

The three questions of the source documents (five wordings) are left out. The measure is the mean F2
of all other labelled queries: a lost chunk costs an answer, one too many only tokens, so recall
counts more. Many settings are as good as the best one within what 150 queries can tell: of those
whose mean F2 falls short of the best by at most one standard error of the paired difference, the
one with the highest recall is taken. gap_threshold stays the sources' 0.1. What is reported is
cross-validated in five folds: chosen on four, scored on the fifth.

Run: PYTHONPATH=. python benchmarks/tune_full.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean, stdev

from ragfilter.bench import open_bench
from ragfilter.config import load
from ragfilter.corpora import demo
from ragfilter.deployment import Deployment
from ragfilter.evaluate.metrics import Scores
from ragfilter.evaluate.run import gather_all, score
from ragfilter.settings import Settings

SEED_QUESTIONS = {
    "cleric-ac6",
    "cleric-ac6-strength",
    "cleric-ac6-strength-short",
    "fighter-fighter",
    "fighter-druid",
}
GRID: dict[str, tuple[float, ...]] = {
    "cutoff.distance_offset": (0.20, 0.25, 0.30, 0.35, 0.40),
    "cutoff.max_results": (5, 8, 12, 15),
    "cutoff.min_results": (1, 2),
    "quality.score_threshold": (0.30, 0.35, 0.40),
}
FOLDS = 5
Scored = dict[str, Scores]


def main() -> None:
    base = load(profile="full", environ={}).settings.with_values(
        {"quality.min_top_k": 15, "quality.max_top_k": 15, "cutoff.gap_threshold": 0.1}
    )
    qrels = demo.qrels()
    queries = {i: t for i, t in demo.queries().items() if i in qrels and i not in SEED_QUESTIONS}
    with open_bench(Deployment()) as bench:
        widest = base.with_values({"quality.score_threshold": max(GRID["quality.score_threshold"])})
        # A small pool replays faster; no figure here looks beyond its first 50 clean chunks.
        small = widest.with_values({"retrieval.pool_size": 50})
        pools = gather_all(queries, small, bench.sources("demo"))
    candidates = [
        base.with_values(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    ]
    scores: dict[Settings, Scored] = {}
    for settings in candidates:
        rows = score(pools, qrels, settings).rows
        scores[settings] = {row.id: row.filtered.scores for row in rows}
    ids = list(queries)
    held_out: list[Scores] = []
    for fold in range(FOLDS):
        chosen = choose(scores, [i for n, i in enumerate(ids) if n % FOLDS != fold])
        held_out += [scores[chosen][i] for n, i in enumerate(ids) if n % FOLDS == fold]
        print(f"fold {fold + 1}: {figures(chosen)}")
    print(f"held out: {means(held_out)}")
    chosen = choose(scores, ids)
    print(f"chosen on all: {means(list(scores[chosen].values()))}  {figures(chosen)}")
    print("best F2 on all:")
    for settings in sorted(candidates, key=lambda s: -mean_f2(scores[s], ids))[:5]:
        print(f"  {means(list(scores[settings].values()))}  {figures(settings)}")
    best = score(pools, qrels, base).best_fixed_k
    print(f"best fixed k: {best.k}, F1 {best.means.f1:.3f}")


def choose(scores: Mapping[Settings, Scored], ids: Sequence[str]) -> Settings:
    """The highest recall among the settings that are as good as the best F2 over `ids`."""
    best = max(scores, key=lambda s: mean_f2(scores[s], ids))

    def as_good(settings: Settings) -> bool:
        short = [f2(scores[best][i]) - f2(scores[settings][i]) for i in ids]
        return fmean(short) <= stdev(short) / len(short) ** 0.5

    def quality(settings: Settings) -> tuple[float, float]:
        recall = fmean(scores[settings][i].recall for i in ids)
        return recall, mean_f2(scores[settings], ids)

    return max((s for s in scores if as_good(s)), key=quality)


def mean_f2(scored: Scored, ids: Sequence[str]) -> float:
    return fmean(f2(scored[i]) for i in ids)


def f2(scores: Scores) -> float:
    """The weighted harmonic mean in which recall counts twice as much as precision."""
    weighted = 4 * scores.precision + scores.recall
    return 5 * scores.precision * scores.recall / weighted if weighted else 0.0


def means(scores: Sequence[Scores]) -> str:
    columns = {
        "P": fmean(s.precision for s in scores),
        "R": fmean(s.recall for s in scores),
        "F1": fmean(s.f1 for s in scores),
        "F2": fmean(f2(s) for s in scores),
    }
    return " ".join(f"{name} {value:.3f}" for name, value in columns.items())


def figures(settings: Settings) -> str:
    return ", ".join(f"{path.partition('.')[2]} {settings.get(path):g}" for path in GRID)


if __name__ == "__main__":
    main()
