"""How long the workbench of rules takes: many rules, a log of questions, the matrix.

Targets: 100,000 distinct rules compile in 5 s and decide a question in 1 ms; a log of 10,000
questions against 10,000 rules in 10 s; the matrix of 1,000 rules over 200 questions in 2 s.
Run: PYTHONPATH=. python benchmarks/bench_rule_matrix.py
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from benchmarks.bench_rules import CLASSES, QUERY, median_ms, rules
from ragfilter.evaluate.effect import make_labelled
from ragfilter.evaluate.rule_matrix import build_matrix
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool
from ragfilter.rules.match import CompiledRules
from ragfilter.rules.rule import read_rule
from ragfilter.settings.config import load

T = TypeVar("T")
POOL = 200
CLOSE = 40
"""Of a pool's hits so many are chunks with rules of the same class, as in a family of tables."""


def timed(what: str, run: Callable[[], T]) -> T:
    """Run once; print wall and processor seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{what:<54} {wall:7.2f} s, {cpu:7.2f} s of processor time")
    return result


def pools(chunks: list[Chunk], n: int) -> dict[str, Pool]:
    """`n` questions, each with hits of which many have rules that it does not meet."""
    chance = random.Random(1)
    ruled = [chunk for chunk in chunks if chunk.rule] or chunks
    by_number = {}
    for number in range(n):
        name = chance.choice(CLASSES)
        query = f"What does a {name} need against armor class {chance.randrange(120)}?"
        near = chance.sample(ruled, CLOSE)
        rest = chance.sample(chunks, POOL)
        chosen = list(dict.fromkeys([*chance.sample(near + rest[:CLOSE], 2 * CLOSE), *rest]))[:POOL]
        hits = (Hit(c, 0.6 + 0.002 * i, i) for i, c in enumerate(chosen, start=1))
        by_number[str(number)] = Pool(query, "bench", "l2", tuple(hits))
    return by_number


def main() -> None:
    many = rules(100_000)
    book = timed("compile 100,000 distinct rules", lambda: CompiledRules(many))
    print(f"all of them against one question {median_ms(lambda: book.scan(QUERY), 50):28.2f} ms")
    few = CompiledRules(rules(10_000))
    log = [f"{QUERY} {number}" for number in range(10_000)]
    timed("10,000 questions against 10,000 rules", lambda: few.count_passes(log))
    texts: list[str | None] = [*rules(1_000), *[None] * 1_000]
    chunks = [Chunk(f"c{i}", "text " * 50, f"title {i}", rule=r) for i, r in enumerate(texts)]
    gathered = pools(chunks, 200)
    qrels = {i: {hit.id: 1 for hit in pool.hits[:5]} for i, pool in gathered.items()}
    for profile in ("query-must", "full"):
        settings = load(profile=profile, environ={}).settings
        matrix = timed(
            f"matrix of 1,000 rules over 200 questions, {profile}",
            partial(build_matrix, gathered, qrels, chunks, settings),
        )
    print(f"  with {sum(row.blocks for row in matrix.rules):,} blocks each")
    proposed = [Chunk(f"c{i}", "", f"title {i}", rule=r) for i, r in enumerate(many[:40_000])]
    gathered = pools([replace(chunk, rule=None) for chunk in proposed] + chunks[1_000:], 200)
    qrels = {i: {hit.id: 1 for hit in pool.hits[:5]} for i, pool in gathered.items()}
    known = make_labelled(gathered, qrels, load(profile="full", environ={}).settings, UNRESTRICTED)
    changes = {chunk.id: read_rule(chunk.rule) for chunk in proposed}
    timed("40,000 proposals measured on 200 questions, full", lambda: known.effect(changes))


if __name__ == "__main__":
    main()
