"""How long rules take: compile 10,000 distinct rules once, then decide all of them for a query.

Target: at most 1 ms a query after compilation (median). Run: PYTHONPATH=. python benchmarks/bench_rules.py
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

from ragfilter.rules.match import CompiledRules

N_RULES = 10_000
N_HITS = 500
QUERY = "What does a 7th level cleric with strength 17 need to roll to hit armor class 6 in a forest?"
CLASSES = ("cleric", "druid", "monk", "fighter", "paladin", "ranger", "thief", "magic-user")


def rules(n: int) -> tuple[str, ...]:
    """`n` distinct rules of the demo's form: a class group, a spelling group, every third more."""
    texts = []
    for i in range(n):
        name, value = CLASSES[i % len(CLASSES)], i // len(CLASSES)
        spellings = [f"{a} {b}{value}" for a in ("armor class", "ac", "a.c.") for b in ("", "of ")]
        rule: dict[str, object] = {"contain_one_of": [[name, f"{name}s"], [*spellings, f"ac{value}"]]}
        if i % 3 == 0:
            rule["contain_none_of"] = ["undead", f"ghost {i}"]
        texts.append(json.dumps(rule))
    return tuple(texts)


def median_ms(run: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main() -> None:
    texts = rules(N_RULES)
    start = time.perf_counter()
    book = CompiledRules(texts)
    compiled = (time.perf_counter() - start) * 1000
    shown = texts[:N_HITS]
    long_query = (QUERY + " ") * (1_000_000 // len(QUERY))
    print(f"compile {len(book.count_passes(())):,} distinct rules   {compiled:8.1f} ms")
    print(f"all rules against one query      {median_ms(lambda: book.scan(QUERY), 300):8.3f} ms")

    def checked() -> None:
        scan = book.scan(QUERY)
        for text in shown:
            scan.check(text)

    print(f"the same, and {N_HITS} reasons worded {median_ms(checked, 100):8.3f} ms")
    print(f"all rules against a query of 1 MB{median_ms(lambda: book.scan(long_query), 3):8.1f} ms")


if __name__ == "__main__":
    main()
