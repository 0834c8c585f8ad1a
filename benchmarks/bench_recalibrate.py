"""What happens to tuned settings when the embedding model changes, and what recalibrating mends.

A collection of the workspace with its labelled questions (the first N of them), under the bundled
model and under TF-IDF with a truncated SVD of 128 dimensions (scikit-learn, cosine). Settings are
tuned on each model, and used on the other: as they are, carried over by quantiles of the distances
without labels, and recalibrated. Twice: with the strategy that is best, and with `gap`, which cuts
by distances. Mean F1; what is tuned or recalibrated is held out in five folds. FOLDER holds
Cranfield's labels.

Run: PYTHONPATH=. python benchmarks/bench_recalibrate.py {demo,adsapi,cranfield} [FOLDER] [N]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from ragfilter.engine.search import Backends
from ragfilter.evaluate import query_files, query_sets
from ragfilter.evaluate.candidates import gathering
from ragfilter.evaluate.carrying import as_they_are, carried
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.recalibrate import recalibrate
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.tune import tune
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.settings.config import load
from ragfilter.testing import MemoryCollection
from ragfilter.workbench import Workbench, read_deployment

DIMENSIONS = 128


class LatentEmbedder:
    """TF-IDF of these texts, reduced by a truncated SVD; unit vectors."""

    name = f"tfidf-svd-{DIMENSIONS}"

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        self._topics = TruncatedSVD(DIMENSIONS, random_state=0)
        self._topics.fit(self._words.fit_transform(texts))

    def embed(self, texts: Sequence[str]) -> Vectors:
        made = self._topics.transform(self._words.transform(texts))
        sizes = np.linalg.norm(made, axis=1, keepdims=True)
        return np.asarray(made / np.maximum(sizes, 1e-9), np.float32)


class CosineCollection(MemoryCollection):
    space = "cosine"

    def __init__(self, name: str, chunks: list[Chunk], vectors: Vectors) -> None:
        super().__init__(chunks, vectors)
        self.name = name

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: squared / 2 for i, squared in super().distances(vector).items()}


def main(name: str, folder: Path, first: int) -> None:
    full = load(profile="full", environ={}).settings
    labels = labels_of(name, folder).first(first)
    with Workbench.open(read_deployment()) as bench:
        bundled = bench.backends(name)
        ids = [*(bundled.collection.catalogue() or ())]
        chunks = [*bundled.collection.chunks(ids).values()]
        latent = LatentEmbedder([chunk.passage for chunk in chunks])
        vectors = latent.embed([chunk.passage for chunk in chunks])
        other = replace(
            bundled, collection=CosineCollection(name, chunks, vectors), embedder=latent
        )
        sides: dict[str, Backends] = {"bundled": bundled, "tfidf-svd": other}
        wide = gathering(full, rerank=False)
        pools = {side: gather_all(labels.labelled, wide, each) for side, each in sides.items()}
    tuned = {side: tune(each, labels.qrels, full, rerank=False) for side, each in pools.items()}
    for side, was in (("tfidf-svd", "bundled"), ("bundled", "tfidf-svd")):
        here = pools[side]
        scratch = tuned[side].tuned.means.f1
        for old in (tuned[was].tuned.settings, tuned[was].strategies["gap"].settings):
            made = recalibrate(here, labels.qrels, old, profile="full", rerank=False)
            tried = [as_they_are(old, next(iter(here.values()))), carried(old, here.values())]
            used = sweep(here, labels.qrels, tried)["f1"].mean(axis=0)
            print(
                f"| {name}, {was} → {side} | {old.cutoff.strategy} "
                f"| {used[0]:.3f} | {used[1]:.3f} | {made.tuning.tuned.means.f1:.3f} "
                f"| {scratch:.3f} | {'yes' if made.no_worse else 'no'} |",
                flush=True,
            )


def labels_of(name: str, folder: Path) -> Labels:
    if name in query_sets.DEMOS:
        return query_sets.load_files(name, None)
    return query_files.read(folder / "queries.jsonl", folder / "qrels.tsv")


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(given[1], Path(given.get(2, ".")), int(given.get(3, "1000")))
