"""Fits and checks the mapping of late interaction's raw score to 0..1, and measures what it gains.

    PYTHONPATH=. python benchmarks/fit_late_interaction.py FOLDER

FOLDER holds corpus.jsonl, queries.jsonl and qrels.tsv (BEIR form; Cranfield is the one the
constants in `ragfilter.models.rerankers` come from). Every other labelled query, from the first,
is fitted on; the others check. Only the first 20 hits by plain order count, relevant or not.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import ir_measures
import numpy as np
import numpy.typing as npt
from ir_measures import nDCG
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score

from ragfilter.evaluate import query_files
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.ingest.load import load
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.rerankers import OFFSET, SLOPE, LateInteraction

FIRST = 20
Floats = npt.NDArray[np.float64]
Run = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    labels = query_files.read_labels(folder / "queries.jsonl", folder / "qrels.tsv")
    embedder = BundledEmbedder()
    plain, late = runs(folder, labels, embedder)
    labelled = [i for i in labels.queries if i in labels.qrels]

    for title, some in (("first 40 queries", labelled[:40]), ("all queries", labelled)):
        before, after = (ndcg(run, labels, some) for run in (plain, late))
        print(f"nDCG@10, {title} ({len(some)}): plain {before:.4f}, late interaction {after:.4f}")

    fitted, checked = labelled[::2], labelled[1::2]
    raw, relevant = samples(late, labels, fitted)
    # Next to no regularisation: one slope and one offset over thousands of samples.
    model = LogisticRegression(C=1e9).fit(raw[:, None], relevant)
    print(f"fitted: {model.coef_[0][0]:.3f} s {model.intercept_[0]:+.3f}")
    print(f"in use: {SLOPE:.3f} s {OFFSET:+.3f}")
    for title, some in (("fitted half", fitted), ("other half", checked)):
        raw, relevant = samples(late, labels, some)
        scores = 1 / (1 + np.exp(-(SLOPE * raw + OFFSET)))
        prior = np.full(len(raw), relevant.mean())
        print(
            f"{title}: {len(raw)} hits, {relevant.mean():.3f} relevant, mean score "
            f"{scores.mean():.3f}, log-loss {log_loss(relevant, scores):.4f} (prior alone "
            f"{log_loss(relevant, prior):.4f}), AUC {roc_auc_score(relevant, scores):.4f}"
        )
        hit, miss = raw[relevant == 1], raw[relevant == 0]
        print(
            f"  raw score: relevant {hit.mean():.3f} ± {hit.std():.3f}, irrelevant {miss.mean():.3f} ± {miss.std():.3f}"
        )


def runs(folder: Path, labels: Labels, embedder: BundledEmbedder) -> tuple[Run, Run]:
    """The first hits of every labelled query: scored by cosine, and by raw late interaction."""
    chunks = [record.chunk for record in load(folder / "corpus.jsonl")]
    vectors = embedder.embed([chunk.passage for chunk in chunks])
    # Room for the token vectors of a whole small corpus.
    reranker = LateInteraction(embedder, cache_bytes=4 * 2**30)
    plain: Run = {}
    late: Run = {}
    for number, query_id in enumerate(labels.qrels, start=1):
        query = labels.queries[query_id]
        cosines = vectors @ embedder.embed([query])[0]
        first = np.argsort(-cosines, kind="stable")[:FIRST]
        plain[query_id] = {chunks[i].id: float(cosines[i]) for i in first}
        raw = reranker.raw(query, [chunks[i].passage for i in first])
        late[query_id] = {chunks[i].id: s for i, s in zip(first, raw, strict=True)}
        progress("queries", number, len(labels.qrels))
    return plain, late


def samples(run: Run, labels: Labels, queries: list[str]) -> tuple[Floats, Floats]:
    """Raw scores, and 1 where the hit is relevant."""
    pairs = [
        (score, float(labels.qrels[q].get(chunk_id, 0) > 0)) for q in queries for chunk_id, score in run[q].items()
    ]
    array = np.array(pairs)
    return array[:, 0], array[:, 1]


def ndcg(run: Run, labels: Labels, queries: list[str]) -> float:
    measure = nDCG @ 10
    qrels = {q: dict(labels.qrels[q]) for q in queries}
    scores = ir_measures.calc_aggregate([measure], qrels, {q: run[q] for q in queries})
    return float(scores[measure])


def progress(what: str, done: int, total: int) -> None:
    end = "\n" if done == total else ""
    print(f"\r{what}: {done}/{total}", end=end, flush=True)


if __name__ == "__main__":
    main()
