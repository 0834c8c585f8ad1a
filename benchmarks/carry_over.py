"""Which cutoff carries over to collections that nobody tuned it for: `full` and others beside it.

Over demo (without the source documents' questions), adsapi and Cranfield, all indexed in the
workspace, Cranfield under the name cranfield with its labels in FOLDER. Nothing is reranked. Mean
F1 a collection, and the mean of the three. "Left out" is the honest row: what is best on two
collections is measured on the third. "Lost" counts labelled chunks of the unfiltered first k that
are dropped on the source documents' questions, where none may be.

Run: PYTHONPATH=. python benchmarks/carry_over.py FOLDER
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.tune_full import SEED_QUESTIONS
from ragfilter.evaluate import beir, labels
from ragfilter.evaluate.run import gather_all, score
from ragfilter.evaluate.sweep import Outcome, prefixes, sweep
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.workbench import open_workbench, read_deployment

SHOWN = 8


def main(folder: Path) -> None:
    full = load(profile="full", environ={}).settings
    tried = {"full": full} | candidates(full)
    cranfield = beir.read(folder / "queries.jsonl", folder / "qrels.tsv")
    sets = {
        "demo": labels.choose(labels.load("demo", None), leave_out=SEED_QUESTIONS),
        "adsapi": labels.load("adsapi", None),
        "cranfield": cranfield,
    }
    seeds = labels.choose(labels.load("demo", None), only=SEED_QUESTIONS)
    f1, fixed = [], []
    with open_workbench(read_deployment()) as bench:
        for name, given in sets.items():
            queries = {i: text for i, text in given.queries.items() if i in given.qrels}
            pools = gather_all(queries, full, bench.backends(name))
            f1.append(means(sweep(pools, given.qrels, list(tried.values()))))
            fixed.append(means(prefixes(pools, given.qrels, full)))
        asked = gather_all(seeds.queries, full, bench.backends("demo"))
    scores, ks = np.array(f1), np.array(fixed)
    lost = {
        name: sum(len(row.lost) for row in score(asked, seeds.qrels, settings).rows)
        for name, settings in tried.items()
    }
    print(f"{'':28s} {'demo':>6s} {'adsapi':>6s} {'cranf.':>6s} {'mean':>6s} {'lost':>4s}")
    print(line(f"one k for all: {1 + best(ks)}", ks[:, best(ks)]))
    print(line("left out, fixed k", left_out(ks)))
    print(line("left out, these", left_out(scores)))
    names = list(tried)
    order = np.argsort(-scores.mean(axis=0))[:SHOWN]
    lossless = [i for i in np.argsort(-scores.mean(axis=0)) if not lost[names[i]]][:SHOWN]
    for i in dict.fromkeys([0, *order, *lossless]):
        print(line(names[i], scores[:, i]), f"{lost[names[i]]:4d}")


def candidates(full: Settings) -> dict[str, Settings]:
    """`full` with the strategies that need no scale, with and without its quality layer."""
    found = {}
    for quality in (True, False):
        base = full.with_values({"quality.enabled": quality})
        suffix = "" if quality else ", quality off"
        for n in (10, 12, 15, 20, 25, 30):
            found[f"otsu {n}{suffix}"] = base.with_values(
                {"cutoff.strategy": "otsu", "cutoff.max_results": n}
            )
        for share, k in product((0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6), (10, 15)):
            found[f"relative {share:.2f}, k {k}{suffix}"] = base.with_values(
                {
                    "cutoff.strategy": "relative",
                    "cutoff.relative_offset": share,
                    "cutoff.max_results": k,
                }
            )
    return found


def means(table: list[list[Outcome]]) -> NDArray[np.float64]:
    """The mean F1 of every candidate."""
    f1 = np.array([[one.scores.f1 for one in row] for row in table])
    return np.asarray(f1.mean(axis=0), dtype=np.float64)


def best(scores: NDArray[np.float64]) -> int:
    return int(scores.mean(axis=0).argmax())


def left_out(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each collection, the score there of what is best on the others."""
    rows = range(len(scores))
    return np.array([scores[i, best(np.delete(scores, i, axis=0))] for i in rows])


def line(name: str, values: NDArray[np.float64]) -> str:
    figures = " ".join(f"{value:6.3f}" for value in (*values, values.mean()))
    return f"{name:28s} {figures}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
