"""Whether filtering helps, on every labelled set that can be had freely: docs/benchmark.md.

Of each set, held out in five folds by question: mean F1 of the best fixed k, of `full` as it comes, of each strategy
and of everything tuned, and of the best prefix of the plain order. Then what `full` and tuning gain over the best fixed
k, with the interval. demo, adsapi and Python's reference need nothing. CRANFIELD is the Cranfield collection in BEIR
form, PAGES the Markdown of Debian's package nodejs-doc, unpacked. SciFact and NFCorpus are fetched from BEIR if there
is a network, and left out, with a notice, if there is none. OUT holds the workspace and the sets that are built; it may
exist.

Run: PYTHONPATH=. python benchmarks/benchmark.py OUT [CRANFIELD [PAGES]]
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import md5
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import httpx

from benchmarks import short_answers
from benchmarks.carry_over import SEED_QUESTIONS
from ragfilter.engine.gather import Backends
from ragfilter.evaluate import query_files, query_sets
from ragfilter.evaluate.crossval import folds_of, interval
from ragfilter.evaluate.labelled_queries import Labels, choose
from ragfilter.evaluate.metrics import best_fixed_k, prefixes_of_pools
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.tuning import Figures, Tuning, tune, wide_settings
from ragfilter.evaluate.wording import gain
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.settings.schema import STRATEGIES
from ragfilter.workbench import Workbench

ARCHIVE = "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/{}.zip"
PUBLIC = {
    # Claims CC BY 4.0, abstracts ODC-By 1.0.
    "scifact": "5f7d1de60b170fc8027bb7898e2efca1",
    # Free for academic use.
    "nfcorpus": "a89dba18a62ef92f7d323ec890a0d38d",
}
"""Sets of BEIR, with the MD5 of the archive that BEIR publishes."""


def main(out: Path, cranfield: Path | None, pages: Path | None) -> None:
    full = load(profile="full", environ={}).settings
    made: dict[str, Tuning] = {}
    of_full: list[str] = []
    for name, labels, backends in measured_sets(out, cranfield, pages):
        pools = completed_pools(labels.labelled, wide_settings(full, rerank=True), backends)
        tuning = made[f"{name}, {len(pools)}"] = tune(pools, labels.qrels, full)
        folds = folds_of([pool.query for pool in pools.values()], tuning.folds)
        plain = prefixes_of_pools(pools, labels.qrels, full, None)
        _, fixed = best_fixed_k(plain, folds, tuning.target)
        untuned = sweep(pools, labels.qrels, [full])["f1"][:, 0]
        of_full.append(gain(interval(untuned - fixed["f1"])))
        print(name, file=sys.stderr)
    rows = {
        "best fixed k": [of_f1(each.best_fixed_k) for each in made.values()],
        "`full`": [of_f1(each.before) for each in made.values()],
        **{f"`{name}`": [of_f1(each.strategies[name].means) for each in made.values()] for name in STRATEGIES},
        "tuned": [of_f1(each.tuned.means) for each in made.values()],
        "best prefix": [of_f1(each.oracle) for each in made.values()],
        "`full` over k": of_full,
        "tuned over k": [gain(each.tuned.gain["f1"]) for each in made.values()],
        "chunks: k, `full`, tuned": [chunks(each) for each in made.values()],
    }
    print(f"|mean F1|{'|'.join(made)}|\n|---|{'---|' * len(made)}")
    for row, cells in rows.items():
        print(f"|{row}|{'|'.join(cells)}|")


def of_f1(figures: Figures) -> str:
    """The mean and half the width of its interval: ``0.544±0.041``."""
    mean, ends = figures["f1"].mean, figures["f1"].ends
    return f"{mean:.3f}" + (f"±{(ends[1] - ends[0]) / 2:.3f}" if ends else "")


def chunks(made: Tuning) -> str:
    return ", ".join(f"{each['kept'].mean:.1f}" for each in (made.best_fixed_k, made.before, made.tuned.means))


def measured_sets(out: Path, cranfield: Path | None, pages: Path | None) -> Iterator[tuple[str, Labels, Backends]]:
    """Each set by name: its labels, and its collection in the workspace, indexed if it is not."""
    os.environ["RAGFILTER_DATA_DIR"] = str(out / "workspace")
    built = short_answers.build(out, pages) | dict(fetched(out))
    sources = {"demo": Path("demo"), "adsapi": Path("adsapi")}
    sources |= {} if cranfield is None else {"cranfield": cranfield / "corpus.jsonl"}
    sources |= {name: folder / "corpus.jsonl" for name, folder in built.items()}
    for name, source in sources.items():
        command = [sys.executable, "-m", "ragfilter", "index", str(source), "-c", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with Workbench.open(read_deployment()) as bench:
        for name, source in sources.items():
            folder = source.parent
            if source == Path(name):
                labels = query_sets.load_files(name, None)
                if name == "demo":
                    labels = choose(labels, only=labels.queries.keys() - {*SEED_QUESTIONS})
            else:
                qrels = folder / "qrels" / "test.tsv" if name in PUBLIC else folder / "qrels.tsv"
                labels = query_files.read_labels(folder / "queries.jsonl", qrels)
            yield name, labels, bench.backends(name)


def fetched(out: Path) -> Iterator[tuple[str, Path]]:
    """The folder of each public set by name, fetched if it is not there yet."""
    for name, checksum in PUBLIC.items():
        folder = out / name
        if not folder.exists():
            try:
                answer = httpx.get(ARCHIVE.format(name), timeout=60).raise_for_status()
            except httpx.HTTPError as error:
                print(f"{name} is left out: it cannot be fetched ({error}).", file=sys.stderr)
                continue
            if md5(answer.content).hexdigest() != checksum:
                sys.exit(f"{name} is not the archive that BEIR published.")
            ZipFile(BytesIO(answer.content)).extractall(out)
        yield name, folder


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    if not given:
        sys.exit(__doc__)
    main(given[0], *[*given[1:3], None, None][:2])
