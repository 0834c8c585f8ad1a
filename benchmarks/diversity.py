"""What the diversity layer does: F1, recall and tokens with it and without, on three collections.

Demo, adsapi and Cranfield are indexed in the workspace, Cranfield under the name cranfield with its
labels in FOLDER. Nothing is reranked.

Run: PYTHONPATH=. python benchmarks/diversity.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import fmean
from typing import Any

from ragfilter.engine.replay import replay
from ragfilter.evaluate import query_files, query_sets
from ragfilter.evaluate.evaluation import score
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.results.summary import tokens_of
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.workbench import Workbench

PROFILES = ("full", "adaptive-gap", "query-must")
SIDES: dict[str, dict[str, Any]] = {
    "off": {"diversity.enabled": False},
    "on": {"diversity.enabled": True},
    "duplicates only": {"diversity.enabled": True, "diversity.per_part": 100},
    "duplicates from 0.5": {"diversity.enabled": True, "diversity.per_part": 100, "diversity.max_similarity": 0.5},
}


def main(folder: Path) -> None:
    sets = {
        "demo": query_sets.load_files("demo", None),
        "adsapi": query_sets.load_files("adsapi", None),
        "cranfield": query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv"),
    }
    with Workbench.open(read_deployment()) as bench:
        for name, given in sets.items():
            queries = {i: text for i, text in given.queries.items() if i in given.qrels}
            for profile in PROFILES:
                base = load(profile=profile, environ={}).settings
                near = base.with_values({"diversity.enabled": True})
                pools = completed_pools(queries, near, bench.backends(name))
                for side, values in SIDES.items():
                    settings = base.with_values(values)
                    means = score(pools, given.qrels, settings).filtered
                    used = fmean(tokens_of(replay(p, settings).kept) for p in pools.values())
                    print(
                        f"{name:9s} {profile:12s} {side:20s} recall {means.recall:.3f} "
                        f"F1 {means.f1:.3f} kept {means.mean_kept:5.2f} tokens {used:5.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
