"""The table of an evaluation over Cranfield's 225 queries, with pools and scores remembered.

Every honest row, and every layer added and left out. The target is 3 s. Cranfield is indexed in the workspace under the
name cranfield, with its labels in FOLDER. Run: PYTHONPATH=. python benchmarks/bench_evaluate.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter, process_time

from ragfilter.evaluate import query_files
from ragfilter.evaluate.frame import layer_gains, rows
from ragfilter.evaluate.query_records import QueryRecord, records_of, shared_pools
from ragfilter.evaluate.variants import variants
from ragfilter.model import PUBLIC
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.workbench import Workbench


def main(folder: Path) -> None:
    labels = query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv")
    named = variants(load(profile="full", environ={}).settings)
    with Workbench.open(read_deployment()) as bench:
        backends = bench.backends("cranfield")
        pools = {i: shared_pools(labels.queries[i], named, backends, PUBLIC) for i in labels.qrels}

    def records(queries: list[str]) -> list[QueryRecord]:
        return [each for i in queries for each in records_of(i, pools[i], labels.qrels[i], named)]

    # scipy is loaded once, before anybody measures twice.
    rows(records([*pools][:2]), named)
    began, cpu = perf_counter(), process_time()
    measured = records([*pools])
    table = rows(measured, named)
    gains = layer_gains(measured, named)
    took, busy = perf_counter() - began, process_time() - cpu
    print(
        f"{len(pools)} queries, {len(table)} rows, {len(gains)} layer gains: {took:.1f} s, "
        f"{busy:.1f} s of processor time (target 3 s)"
    )
    print(table[["variant", "f1", "f1_low", "f1_high", "recall", "tokens"]].to_string())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
