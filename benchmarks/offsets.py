"""How far `full` should cut, on every set of `benchmark.py` and without labels at hand.

Of each offset, what `full` gains in F1 over the best fixed k of the other folds if shared titles make no difference.
Then whether something tells questions with short answers from others: on all sets but one, the best split by a feature
of the curve or of the question's words, with an offset for each side, measured on the set that was left out beside the
constant offset of `full`. Last, the same for shared titles alone, where hits with few of them are cut as before.

Run: PYTHONPATH=. python benchmarks/offsets.py OUT [CRANFIELD [PAGES]], as benchmark.py
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.benchmark import measured_sets
from ragfilter.evaluate.crossval import Target, folds_of, interval
from ragfilter.evaluate.metrics import best_fixed_k, prefixes_of_pools
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.sweep import sweep
from ragfilter.evaluate.tuning import wide_settings
from ragfilter.evaluate.wording import gain
from ragfilter.layers import layer
from ragfilter.layers.layer import estimate_background
from ragfilter.model import Pool
from ragfilter.settings.config import load

Floats = NDArray[np.float64]
FULL = load(profile="full", environ={}).settings
OFFSETS = (0.1, 0.15, 0.2, 0.25, 0.27, 0.3, 0.33, 0.36, 0.4, 0.45)
CONSTANT = OFFSETS.index(FULL.cutoff.relative_offset)
FEATURES = (
    *("nearness of the best hit", "2nd hit", "3rd hit", "5th hit", "10th hit", "15th hit", "hits within 0.2"),
    *("hits within 0.3", "widest gap of the first six", "words", "capitals", "digits", "who, when or where"),
    *("how many", "share of words in the best hit", "share of hits with another one's title"),
)


class Split(NamedTuple):
    """Questions whose feature is at most `limit` are cut at the offset `low`, the others at `high`."""

    f1: float
    feature: int
    limit: float
    low: int
    high: int


def main(out: Path, cranfield: Path | None, pages: Path | None) -> None:
    layer.NEARER = 1.0
    f1: dict[str, Floats] = {}
    features: dict[str, Floats] = {}
    print(f"|F1 over k|{'|'.join(map(str, OFFSETS))}|\n|---|{'---|' * len(OFFSETS)}")
    for name, labels, backends in measured_sets(out, cranfield, pages):
        pools = completed_pools(labels.labelled, wide_settings(FULL, rerank=False), backends)
        cuts = [FULL.with_values({"cutoff.relative_offset": offset}) for offset in OFFSETS]
        f1[name] = np.asarray(sweep(pools, labels.qrels, cuts)["f1"])
        features[name] = np.array([features_of(pool) for pool in pools.values()], float)
        folds = folds_of([pool.query for pool in pools.values()], 5)
        _, fixed = best_fixed_k(prefixes_of_pools(pools, labels.qrels, FULL, None), folds, Target("f1"))
        gains = (gain(interval(column - fixed["f1"])) for column in f1[name].T)
        print(f"|{name}|{'|'.join(gains)}|", flush=True)
    every, titles = range(len(FEATURES) - 1), range(len(FEATURES) - 1, len(FEATURES))
    for tried, lows in ((every, range(len(OFFSETS))), (titles, [CONSTANT])):
        for name, own in f1.items():
            split = best_split(f1, features, f1.keys() - {name}, tried, lows)
            cut = chosen(own, features[name], split).mean() - own[:, CONSTANT].mean()
            print(
                f"{name}, left out: {OFFSETS[split.low]} if {FEATURES[split.feature]} <= {split.limit:.2f},"
                f" else {OFFSETS[split.high]}: {cut:+.3f}"
            )


def features_of(pool: Pool) -> list[float]:
    """The features of a question, in the order of FEATURES. Places are shares of the way to the background."""
    distances = np.array([hit.distance for hit in pool.hits[: FULL.retrieval.pool_size]])
    background = estimate_background(list(distances))
    places = (distances - distances[0]) / max(background - distances[0], 1e-9)
    titles = Counter(hit.chunk.title for hit in pool.hits[: FULL.retrieval.pool_size])
    words, passage = pool.query.split(), pool.hits[0].chunk.passage.lower()
    stems = set(re.findall(r"[a-z]{4,}", pool.query.lower()))
    return [
        distances[0] / background,
        *places[[1, 2, 4, 9, 14]],
        (places < 0.2).sum(),
        (places < 0.3).sum(),
        np.diff(places[:6]).max(),
        len(words),
        sum(word[:1].isupper() for word in words[1:]),
        bool(re.search(r"\d", pool.query)),
        bool(re.match(r"(who|when|where|which)\b", pool.query.lower())),
        bool(re.match(r"how (many|much)\b", pool.query.lower())),
        len(stems & set(re.findall(r"[a-z]{4,}", passage))) / max(1, len(stems)),
        sum(n for title, n in titles.items() if title and n > 1) / len(distances),
    ]


def best_split(
    f1: dict[str, Floats], features: dict[str, Floats], names: Collection[str], tried: range, lows: Sequence[int]
) -> Split:
    """The split with the highest mean F1 among the features `tried`, in which each of these sets counts alike. `lows`
    are the offsets for values up to the limit."""
    splits = []
    for feature in tried:
        values = np.concatenate([features[name][:, feature] for name in names])
        limits = np.unique(np.quantile(values, np.linspace(0.1, 0.9, 9)))
        for limit, low, high in product(limits, lows, range(len(OFFSETS))):
            split = Split(0, feature, float(limit), low, high)
            mean = np.mean([chosen(f1[name], features[name], split).mean() for name in names])
            splits.append(split._replace(f1=float(mean)))
    return max(splits)


def chosen(f1: Floats, features: Floats, split: Split) -> Floats:
    """Each question's F1 at the offset of its side."""
    return np.where(features[:, split.feature] <= split.limit, f1[:, split.low], f1[:, split.high])


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:]]
    if not given:
        sys.exit(__doc__)
    main(given[0], *[*given[1:3], None, None][:2])
