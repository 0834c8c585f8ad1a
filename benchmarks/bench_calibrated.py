"""What a cutoff learned from labels is worth, held out by query, beside every other strategy.

Over demo (without the source documents' three questions, in seven wordings), adsapi and Cranfield, all indexed in the
workspace, Cranfield under the name cranfield with its labels in FOLDER: every strategy tuned alone, `calibrated`, its
gain over each of them with the interval, the recall dial, and the seconds that tuning took.

Run: PYTHONPATH=. python benchmarks/bench_calibrated.py FOLDER [--no-rerank] [NAME ...]
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

from benchmarks.carry_over import SEED_QUESTIONS
from ragfilter.evaluate import query_files, query_sets, wording
from ragfilter.evaluate.labelled_queries import Labels, choose
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.tuning import tune, wide_settings
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.workbench import Workbench


def main(folder: Path, names: list[str], *, rerank: bool) -> None:
    full = load(profile="full", environ={}).settings
    with Workbench.open(read_deployment()) as bench:
        for name, given in sets(folder).items():
            if names and name not in names:
                continue
            queries = {i: text for i, text in given.queries.items() if i in given.qrels}
            pools = completed_pools(queries, wide_settings(full, rerank=rerank), bench.backends(name))
            begun = perf_counter()
            tuning = tune(pools, given.qrels, full, rerank=rerank)
            took = perf_counter() - begun
            print(f"\n{name}: {tuning.queries} queries, {tuning.candidates} candidates, {took:.0f} s")
            print(f"{'best fixed k':24s} {tuning.best_fixed_k['f1'].mean:.3f}")
            print(f"{'full':24s} {tuning.before['f1'].mean:.3f}  {tuning.before['kept'].mean:.1f} chunks")
            for strategy, each in tuning.strategies.items():
                gain = tuning.over_strategies.get(strategy)
                over = "" if gain is None else (f"  calibrated {wording.gain(gain['f1'])}")
                print(f"{strategy:24s} {each.means['f1'].mean:.3f}  {each.means['kept'].mean:.1f} chunks{over}")
            if learned := tuning.strategies.get("calibrated"):
                of, over_k, over_full = (
                    wording.gain(each["f1"]) for each in (learned.means, learned.gain, learned.gain_over_before)
                )
                print(f"calibrated {of}; over the fixed k {over_k}; over full {over_full}")
            print(f"{'tuned':24s} {tuning.tuned.means['f1'].mean:.3f}  {tuning.tuned.means['kept'].mean:.1f} chunks")
            print(f"{'oracle of the order':24s} {tuning.oracle['f1'].mean:.3f}")
            for share, kept in tuning.dial.items():
                print(f"recall dial at {share}: {kept:.3f}")


def sets(folder: Path) -> dict[str, Labels]:
    demo = query_sets.load_files("demo", None)
    return {
        "demo": choose(demo, only=demo.queries.keys() - {*SEED_QUESTIONS}),
        "adsapi": query_sets.load_files("adsapi", None),
        "cranfield": query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv"),
    }


if __name__ == "__main__":
    given = [arg for arg in sys.argv[1:] if not arg.startswith("--")]
    if not given:
        sys.exit(__doc__)
    main(Path(given[0]), given[1:], rerank="--no-rerank" not in sys.argv)
