"""How profile `full` was chosen, and how far it carries over to collections nobody tuned it for.

Over demo (without the source documents' three questions, in seven wordings), adsapi and Cranfield, all indexed in the
workspace, Cranfield under the name cranfield with its labels in FOLDER. Mean F1 a collection, and the mean of the
three. A grid over weight and offset is measured as it is, left out (what is best on two collections is measured on the
third) and, on demo alone, in five folds. Then what each part buys, and where questions lie that do not belong.

Run: PYTHONPATH=. python benchmarks/carry_over.py FOLDER [--rerank]
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.replay import replay
from ragfilter.evaluate import query_files, query_sets
from ragfilter.evaluate.crossval import Target, assign_folds, pick
from ragfilter.evaluate.labelled_queries import choose
from ragfilter.evaluate.metrics import prefixes_of_pools, without_nothing
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.sweep import sweep
from ragfilter.layers.layer import estimate_background
from ragfilter.model import Pool
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.settings.schema import Settings
from ragfilter.workbench import Workbench

SEED_QUESTIONS = {
    "cleric-ac6",
    "cleric-ac6-strength",
    "cleric-ac6-strength-short",
    "fighter-fighter",
    "fighter-fighter-short",
    "fighter-druid",
    "fighter-druid-short",
}
GRID: dict[str, tuple[float, ...]] = {
    "words.weight": (0.0, 1.0, 1.5, 2.0),
    "cutoff.relative_offset": (0.25, 0.3, 0.33, 0.4, 0.45),
}
# What `full` was before, and `full` without one of its parts.
PARTS: dict[str, dict[str, object]] = {
    "gap 0.1, offset 0.3, similarity 0.35 (before)": {
        "query_must.pin": False,
        "words.enabled": False,
        "quality.good_by": "similarity",
        "cutoff.strategy": "gap",
    },
    "without pins for rules": {"query_must.pin": False},
    "without shared words": {"words.enabled": False},
    "without pins for stated values": {"words.pin_values": False},
    "without quality": {"quality.enabled": False},
    "background share 0.75": {"quality.background_share": 0.75},
    "background share 0.85": {"quality.background_share": 0.85},
    "with gap 0.1, offset 0.3": {"cutoff.strategy": "gap"},
    "with otsu": {"cutoff.strategy": "otsu"},
}
RERANK = {
    "quality.mode": "always",
    "quality.max_top_k": 20,
    "quality.reranker_top_k": 20,
    "quality.reranker_threshold": 0.0,
    "quality.reranker_timeout_ms": 600_000,
}
OUT_OF_PLACE = (
    "asdf qwer zxcv",
    "How do I bake sourdough bread?",
    "capital of Mongolia",
    "When is my tax return due?",
    "python list comprehension",
    "What is a lightsaber?",
    "football world cup 2018 winner",
    "quantum chromodynamics",
    "hello",
    "how to reset my password",
    "mortgage interest rates",
    "symptoms of influenza",
    "xyzzy",
    "?!",
    "the",
)
Floats = NDArray[np.float64]


def main(folder: Path, *, rerank: bool) -> None:
    full = load(profile="full", environ={}).settings
    tried = {
        ", ".join(f"{p.partition('.')[2]} {v:g}" for p, v in zip(GRID, values, strict=True)): (
            full.with_values(dict(zip(GRID, values, strict=True)))
        )
        for values in product(*GRID.values())
    }
    rows = {"full": full} | {name: full.with_values(values) for name, values in PARTS.items()}
    if rerank:
        rows["reranked, the first 20"] = full.with_values(RERANK)
    demo_labels = query_sets.load_files("demo", None)
    sets = {
        "demo": choose(demo_labels, only=demo_labels.queries.keys() - {*SEED_QUESTIONS}),
        "adsapi": query_sets.load_files("adsapi", None),
        "cranfield": query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv"),
    }
    every = [*rows.values(), *tried.values()]
    f1: list[Floats] = []
    kept: list[Floats] = []
    fixed: list[Floats] = []
    with Workbench.open(read_deployment()) as bench:
        for name, given in sets.items():
            queries = {i: text for i, text in given.queries.items() if i in given.qrels}
            settings = full.with_values(RERANK) if rerank else full
            backends = bench.backends(name)
            pools = completed_pools(queries, settings, backends)
            swept = sweep(pools, given.qrels, every)
            f1.append(swept["f1"])
            kept.append(swept["kept"])
            fixed.append(without_nothing(prefixes_of_pools(pools, given.qrels, full))["f1"])
            out_of_place(name, pools, full, backends)
    first, means = len(rows), np.array([table.mean(axis=0) for table in f1])
    ks = np.array([table.mean(axis=0) for table in fixed])
    print(f"\n{'':50s} {'demo':>6s} {'adsapi':>6s} {'cranf.':>6s} {'mean':>6s}")
    print(line(f"one k for all: {1 + best(ks)}", ks[:, best(ks)]))
    print(line("left out, fixed k", left_out(ks)))
    for i, name in enumerate(rows):
        print(line(name, means[:, i]))
    print(line("full: chunks kept", np.array([table[:, 0].mean() for table in kept])))
    grid = means[:, first:]
    print(line("left out, of the grid", left_out(grid)))
    names = list(tried)
    for i in np.argsort(-grid.mean(axis=0))[:6]:
        print(line(names[i], grid[:, i]))
    demo, n = f1[0][:, first:], kept[0][:, first:]
    chosen = Target().held_out({"f1": demo}, assign_folds(len(demo), 5))
    print(f"demo, five folds: F1 {pick(demo, chosen).mean():.3f}, kept {pick(n, chosen).mean():.1f}")


def out_of_place(name: str, pools: dict[str, Pool], settings: Settings, backends: Backends) -> None:
    """Best distance as a share of the background: of labelled questions, and of foreign ones."""
    foreign = [gather(text, settings, backends) for text in OUT_OF_PLACE]
    share = settings.quality.background_share
    values = [nearness(pool) for pool in pools.values()]
    refused = sum(nearness(pool) > share for pool in foreign)
    empty = sum(not replay(pool, settings).kept for pool in foreign)
    print(
        f"{name}: labelled {min(values):.2f} to {max(values):.2f}, {sum(x > share for x in values)} of "
        f"{len(values)} above {share}; out of place {refused} of {len(foreign)}, {empty} kept nothing"
    )


def nearness(pool: Pool) -> float:
    return min(pool.distances) / estimate_background(pool.distances)


def best(scores: Floats) -> int:
    return int(scores.mean(axis=0).argmax())


def left_out(scores: Floats) -> Floats:
    """For each collection, the score there of what is best on the others."""
    rows = range(len(scores))
    return np.array([scores[i, best(np.delete(scores, i, axis=0))] for i in rows])


def line(name: str, values: Floats) -> str:
    figures = " ".join(f"{value:6.3f}" for value in (*values, values.mean()))
    return f"{name:50s} {figures}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), rerank="--rerank" in sys.argv)
