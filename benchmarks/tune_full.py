"""How the figures of profile `full` were chosen: a grid over the demo's labelled queries.

The three questions of the source documents (five wordings) are left out. The measure is the mean F2
of all other labelled queries: a lost chunk costs an answer, one too many only tokens, so recall
counts more. Not tuned: gap_threshold stays the sources' 0.1, and max_results is the unfiltered k:
distances decide, never the count. In each of five folds the best of the other four is chosen and
scored on the fifth; the profile holds what most folds chose.

Run: PYTHONPATH=. python benchmarks/tune_full.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from statistics import fmean

from ragfilter.evaluate.metrics import Scores
from ragfilter.evaluate.run import gather_all, score
from ragfilter.ingest import demo
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.workbench import open_workbench, read_deployment

SEED_QUESTIONS = {
    "cleric-ac6",
    "cleric-ac6-strength",
    "cleric-ac6-strength-short",
    "fighter-fighter",
    "fighter-druid",
}
GRID: dict[str, tuple[float, ...]] = {
    "cutoff.distance_offset": (0.20, 0.25, 0.30, 0.35, 0.40),
    "cutoff.min_results": (1, 2),
    "quality.score_threshold": (0.30, 0.35, 0.40),
}
FOLDS = 5
Scored = dict[str, Scores]


def main() -> None:
    base = load(profile="full", environ={}).settings.with_values(
        {"quality.min_top_k": 15, "quality.max_top_k": 15, "cutoff.max_results": 15}
    )
    qrels = demo.qrels()
    queries = {i: t for i, t in demo.queries().items() if i in qrels and i not in SEED_QUESTIONS}
    with open_workbench(read_deployment()) as bench:
        widest = base.with_values({"quality.score_threshold": max(GRID["quality.score_threshold"])})
        # A small pool replays faster; no figure here looks beyond its first 50 clean chunks.
        small = widest.with_values({"retrieval.pool_size": 50})
        pools = gather_all(queries, small, bench.backends("demo"))
    candidates = [
        base.with_values(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    ]
    scores: dict[Settings, Scored] = {}
    for settings in candidates:
        rows = score(pools, qrels, settings).rows
        scores[settings] = {row.id: row.filtered.scores for row in rows}
    ids = list(queries)
    held_out: list[Scores] = []
    votes: Counter[Settings] = Counter()
    for fold in range(FOLDS):
        chosen = choose(scores, [i for n, i in enumerate(ids) if n % FOLDS != fold])
        votes[chosen] += 1
        held_out += [scores[chosen][i] for n, i in enumerate(ids) if n % FOLDS == fold]
        print(f"fold {fold + 1}: {figures(chosen)}")
    print(f"held out: {means(held_out)}")
    chosen, _ = votes.most_common(1)[0]
    print(f"most folds: {means(list(scores[chosen].values()))}  {figures(chosen)}")
    print("best F2 on all:")
    for settings in sorted(candidates, key=lambda s: -mean_f2(scores[s], ids))[:5]:
        print(f"  {means(list(scores[settings].values()))}  {figures(settings)}")
    best = score(pools, qrels, base).best_fixed_k
    print(f"best fixed k: {best.k}, F1 {best.means.f1:.3f}")


def choose(scores: Mapping[Settings, Scored], ids: Sequence[str]) -> Settings:
    """The settings with the best mean F2 over `ids`."""
    return max(scores, key=lambda s: mean_f2(scores[s], ids))


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
