"""What happens to tuned settings when the embedding model changes, and what recalibrating mends.

A collection of the workspace with its labelled questions, under the bundled model and under TF-IDF with a truncated SVD
of 128 dimensions (scikit-learn, cosine). On each, everything that `tune` tries is tuned, with reranking. What comes out
is used on the other: as it is, carried over by quantiles of the distances without labels, and recalibrated. Mean F1;
what is tuned is held out in five folds. FOLDER holds Cranfield's labels.

Run: PYTHONPATH=. python benchmarks/bench_recalibrate.py {demo,adsapi,cranfield} [FOLDER]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from ragfilter.engine.gather import Backends
from ragfilter.evaluate import query_files, query_sets
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.recalibrate import as_they_are, carried, start
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.tuning import tune, wide_settings
from ragfilter.ingest.bundled import DEMOS
from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.testing import MemoryCollection
from ragfilter.workbench import Workbench

DIMENSIONS = 128


class LatentEmbedder:
    """TF-IDF of these texts, reduced by a truncated SVD; unit vectors."""

    name = f"tfidf-svd-{DIMENSIONS}"

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = TfidfVectorizer(sublinear_tf=True, stop_words="english")
        self._topics = TruncatedSVD(DIMENSIONS, random_state=0)
        self._topics.fit(self._words.fit_transform(texts))

    def embed(self, texts: Sequence[str]) -> Vectors:
        vectors = self._topics.transform(self._words.transform(texts))
        sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(sizes, 1e-9), np.float32)


class CosineCollection(MemoryCollection):
    space = "cosine"

    def __init__(self, name: str, chunks: list[Chunk], vectors: Vectors) -> None:
        super().__init__(chunks, vectors)
        self.name = name

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: squared / 2 for i, squared in super().distances(vector).items()}


def main(name: str, folder: Path) -> None:
    full = load(profile="full", environ={}).settings
    labels = labels_of(name, folder)
    with Workbench.open(read_deployment()) as bench:
        bundled = bench.backends(name)
        ids = [*(bundled.collection.catalogue() or ())]
        chunks = [*bundled.collection.chunks(ids).values()]
        latent = LatentEmbedder([chunk.passage for chunk in chunks])
        vectors = latent.embed([chunk.passage for chunk in chunks])
        other = replace(bundled, collection=CosineCollection(name, chunks, vectors), embedder=latent)
        sides: dict[str, Backends] = {"bundled": bundled, "tfidf-svd": other}
        wide = wide_settings(full, rerank=True)
        pools = {side: completed_pools(labels.labelled, wide, each) for side, each in sides.items()}
    provenance = Provenance.of(labels)
    scratch = {side: tune(each, labels.qrels, full, provenance=provenance) for side, each in pools.items()}
    for side, was in (("tfidf-svd", "bundled"), ("bundled", "tfidf-svd")):
        here, old = pools[side], scratch[was].tuned.settings
        tried = [as_they_are(old, next(iter(here.values()))), carried(old, here.values()), full]
        used, moved, untuned = sweep(here, labels.qrels, tried)["f1"].mean(axis=0)
        begun = start(old, "full")
        new = scratch[side]
        if begun != full:
            new = tune(here, labels.qrels, begun, provenance=provenance)
        means = untuned, used, moved, new.tuned.means["f1"].mean, scratch[side].tuned.means["f1"].mean
        chosen = (each.cutoff.strategy for each in (old, new.tuned.settings))
        figures = " | ".join(f"{mean:.3f}" for mean in means)
        print(f"| {name}, {was} → {side} | {figures} | {' → '.join(chosen)} |", flush=True)


def labels_of(name: str, folder: Path) -> Labels:
    if name in DEMOS:
        return query_sets.load_files(name, None)
    return query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "."))
