"""The table of an evaluation over Cranfield's 225 queries, with pools and scores remembered.

Every honest row, and every layer added and left out. The target is 3 s. Cranfield is indexed in the
workspace under the name cranfield, with its labels in FOLDER. Run:
PYTHONPATH=. python benchmarks/bench_evaluate.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter, process_time

from ragfilter.evaluate import query_files
from ragfilter.evaluate.measuring import gather_for
from ragfilter.evaluate.records import record
from ragfilter.evaluate.table import layer_gains, table
from ragfilter.evaluate.caveats import between_ends
from ragfilter.evaluate.variants import variants
from ragfilter.model import PUBLIC
from ragfilter.settings.config import load
from ragfilter.workbench import open_workbench, read_deployment


def main(folder: Path) -> None:
    labels = query_files.read(folder / "queries.jsonl", folder / "qrels.tsv")
    named = variants(load(profile="full", environ={}).settings)
    with open_workbench(read_deployment()) as bench:
        backends = bench.backends("cranfield")
        pools = {i: gather_for(labels.queries[i], named, backends, PUBLIC) for i in labels.qrels}
    # scipy is loaded once, before anybody measures twice.
    few = [record(i, pool, labels.qrels[i], named) for i, pool in [*pools.items()][:2]]
    table(few, named)
    began, cpu = perf_counter(), process_time()
    records = [record(i, pool, labels.qrels[i], named) for i, pool in pools.items()]
    rows = table(records, named)
    gains = layer_gains(records, named)
    took, busy = perf_counter() - began, process_time() - cpu
    print(f"{len(records)} queries, {len(rows)} rows, {len(gains)} layer gains: {took:.1f} s, "
          f"{busy:.1f} s of processor time (target 3 s)")  # fmt: skip
    for row in rows:
        f1, tokens = row.means["f1"], row.means["tokens"].mean
        print(f"{row.name:24s} F1 {f1.mean:.3f} ({between_ends(f1)}), "
              f"recall {row.means['recall'].mean:.3f}, {tokens:,.0f} tokens")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
