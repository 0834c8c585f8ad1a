"""How long it takes to find families and propose their rules, and which families are found.

Eight of ten chunks are random sentences above one notice, one of ten stands in groups of fifty
texts that differ in a random sentence, and one of ten in families of five texts that differ
in a country and a number. With ``vectors``, each chunk has a random one: the page and the command
line compare vectors, too. Target: 100,000 chunks in minutes.
Run: PYTHONPATH=. python benchmarks/measure_family_texts.py [CHUNKS] [vectors]
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from benchmarks.measure_rule_matrix import timed
from ragfilter.ingest import demo
from ragfilter.model import Chunk
from ragfilter.rules.families import find_families
from ragfilter.rules.proposals import propose

CHUNKS, WIDTH = 100_000, 384
COUNTRIES = ("Germany", "France", "Spain", "Italy", "Poland", "Norway", "Greece")
NOTICE = "All rights reserved by the publisher, ask there for copies."
FAMILY = 5
ALIKE = 50


class Sentences:
    """Random text in which each word follows one that it follows in the demo collection."""

    def __init__(self) -> None:
        self.chance = random.Random(1)
        self._words = " ".join(str(record["text"]) for record in demo.records()).split()
        self._next: dict[str, list[str]] = defaultdict(list)
        for word, following in zip(self._words, self._words[1:], strict=False):
            self._next[word].append(following)

    def make(self, length: int) -> str:
        made = [self.chance.choice(self._words)]
        while len(made) < length:
            made.append(self.chance.choice(self._next[made[-1]] or self._words))
        return " ".join(made)


def make_chunks(n: int) -> list[Chunk]:
    """`n` chunks; the ids of a family's begin alike: ``family-17-``."""
    text = Sentences()
    made = [Chunk(f"plain-{i}", f"{text.make(110)} {NOTICE}") for i in range(n * 8 // 10)]
    for number in range(n // 10 // FAMILY):
        base = text.make(60)
        for country in text.chance.sample(COUNTRIES, FAMILY):
            days = text.chance.randint(5, 99)
            said = f"{base} in {country} receive {days} days of {base[:40]}"
            made.append(Chunk(f"family-{number}-{country}", said))
    for number in range(n // 10 // ALIKE):
        base = text.make(80)
        for i in range(ALIKE):
            made.append(Chunk(f"alike-{number}-{i}", f"{base} {text.make(9)} {base[:60]}"))
    text.chance.shuffle(made)
    return made


def random_vectors(ids: Sequence[str]) -> npt.NDArray[np.float32]:
    print(f"  {len(ids):,} chunks state enough values to be compared by their vectors")
    vectors = np.random.default_rng(0).normal(size=(len(ids), WIDTH)).astype(np.float32)
    unit: npt.NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def main() -> None:
    sizes = [int(given) for given in sys.argv[1:] if given.isdigit()]
    n = sizes[0] if sizes else CHUNKS
    chunks = make_chunks(n)
    vectors_of = random_vectors if "vectors" in sys.argv[1:] else None
    start = time.perf_counter()
    found = timed(f"find families among {n:,} chunks", partial(find_families, chunks, vectors_of))
    texts = [chunk.text for chunk in chunks]
    made = timed("propose their rules", partial(propose, found, texts))
    print(f"  {len(made):,} proposals, {time.perf_counter() - start:,.0f} s by the clock")
    whole = by_chance = 0
    for family in found:
        kinds = {member.chunk.id.rpartition("-")[0] for member in family.members}
        if len(kinds) == 1 and next(iter(kinds)).startswith("family"):
            whole += len(family.members) == FAMILY
        else:
            by_chance += 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"  {whole:,} of {n // 10 // FAMILY:,} whole, {by_chance} by chance, {memory:,} MB")


if __name__ == "__main__":
    main()
