"""How the figures of profile `full` were chosen: a grid over the demo's labelled queries.

The three questions of the source documents (five wordings) are left out. Each figure is chosen by
the mean F2 of all other labelled queries: a lost chunk costs an answer, one too many only tokens,
so recall counts more. gap_threshold stays the sources' 0.1. The figure reported is cross-validated
in five folds: what was chosen on four is scored on the fifth. Run: python benchmarks/tune_full.py
"""

from __future__ import annotations

from itertools import product
from statistics import fmean

from ragfilter.bench import open_bench
from ragfilter.config import load
from ragfilter.corpora import demo
from ragfilter.deployment import Deployment
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
    "cutoff.distance_offset": (0.20, 0.25, 0.28, 0.30, 0.32, 0.35, 0.40),
    "cutoff.max_results": (5, 8, 10, 12, 15),
    "cutoff.min_results": (1, 2),
    "quality.score_threshold": (0.30, 0.35, 0.40, 0.45),
}
FOLDS = 5


def main() -> None:
    base = load(profile="full", environ={}).settings
    qrels = demo.qrels()
    queries = {i: t for i, t in demo.queries().items() if i in qrels and i not in SEED_QUESTIONS}
    with open_bench(Deployment()) as bench:
        widest = base.with_values({"quality.score_threshold": max(GRID["quality.score_threshold"])})
        pools = gather_all(queries, widest, bench.sources("demo"))
    candidates = [
        base.with_values(dict(zip(GRID, values, strict=True))) for values in product(*GRID.values())
    ]
    f1: dict[Settings, dict[str, float]] = {}
    f2: dict[Settings, dict[str, float]] = {}
    for settings in candidates:
        rows = score(pools, qrels, settings).rows
        f1[settings] = {row.id: row.filtered.scores.f1 for row in rows}
        f2[settings] = {
            row.id: f_beta(row.filtered.scores.precision, row.filtered.scores.recall) for row in rows
        }
    ids = list(queries)
    held_out: list[tuple[float, float]] = []
    for fold in range(FOLDS):
        train = [i for n, i in enumerate(ids) if n % FOLDS != fold]
        test = [i for n, i in enumerate(ids) if n % FOLDS == fold]
        chosen = max(candidates, key=lambda s: fmean(f2[s][i] for i in train))
        held_out += [(f1[chosen][i], f2[chosen][i]) for i in test]
        print(f"fold {fold + 1}: {figures(chosen)}")
    print(f"held out: F1 {fmean(a for a, _ in held_out):.3f}, F2 {fmean(b for _, b in held_out):.3f}")
    ranked = sorted(candidates, key=lambda s: -fmean(f2[s].values()))
    print("best on all:")
    for settings in ranked[:8]:
        print(
            f"  F2 {fmean(f2[settings].values()):.4f}  F1 {fmean(f1[settings].values()):.4f}  "
            f"{figures(settings)}"
        )
    best = score(pools, qrels, base).best_fixed_k
    print(f"best fixed k: {best.k}, F1 {best.means.f1:.3f}")


def f_beta(precision: float, recall: float, beta: float = 2.0) -> float:
    """The weighted harmonic mean; recall counts `beta` times as much as precision."""
    weighted = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / weighted if weighted else 0.0


def figures(settings: Settings) -> str:
    return ", ".join(f"{path.partition('.')[2]} {settings.get(path):g}" for path in GRID)


if __name__ == "__main__":
    main()
