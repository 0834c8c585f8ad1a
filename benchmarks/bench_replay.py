"""Replay of a pool of 500 hits with every layer on: milliseconds, median of many runs."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median
from time import perf_counter

from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Entity, Hit, Judgement, Pool, Verdict
from ragfilter.results.verdicts import judge_prompt
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

N = 500
RUNS = 200


def pool() -> Pool:
    """500 hits: a third with one of 84 rules, all scored, some with references."""
    rng = random.Random(7)
    rules = [f'{{"contain_one_of":[["cleric","druid"],["armor class {i}","ac {i}"]]}}' for i in range(84)]
    distances = sorted(rng.uniform(0.6, 1.4) for _ in range(N))
    hits = tuple(
        Hit(
            Chunk(
                f"c{i}",
                text="some words of a rule about hitting " * 12,
                title=f"Chunk {i}",
                refs=(f"c{(i * 7) % N}", f"c{(i * 11) % N}"),
                clearance=rng.choice([0, 0, 0, 1]),
                rule=rules[i % 84] if i % 3 == 0 else None,
            ),
            distance,
            i + 1,
            rerank_score=rng.random(),
        )
        for i, distance in enumerate(distances)
    )
    return Pool(
        "what does a 7th level cleric need to hit armor class 6?",
        "bench",
        "l2",
        hits,
        entities=(Entity("chunk 3", ("c3", "c9")),),
        reranker="late_interaction",
    )


def judged(pool: Pool, settings: Settings) -> Pool:
    """The pool with a verdict on every chunk that comes to the judge; each fifth is expanded."""
    ready = judge_prompt(replay(pool, settings))
    assert ready is not None
    verdicts = tuple(Verdict(i, "EXPAND" if n % 5 == 0 else "KEEP", 3) for n, i in enumerate(ready.asked))
    judgement = Judgement(ready.asked, verdicts, ready.left_out, prompt_key=ready.key)
    return replace(pool, judgements=(judgement,))


def main() -> None:
    settings = load(profile="full", environ={}).settings.with_values(
        {
            "judge.enabled": True,
            "judge.max_chunks": 200,
            "judge.max_prompt_tokens": 40_000,
            "judge.oversample": 1.0,
            "quality.mode": "always",
            "quality.min_top_k": 3,
            "quality.max_top_k": 500,
            "quality.reranker_top_k": 200,
            "quality.reranker_threshold": 0.0,
            "cutoff.max_results": 200,
            "cutoff.strategy": "fixed",
            "diversity.enabled": True,
            "diversity.per_part": 100,
        }
    )
    gathered = judged(pool(), settings)
    assert not replay(gathered, settings).needs
    times = []
    for _ in range(RUNS):
        started = perf_counter()
        result = replay(gathered, settings)
        times.append((perf_counter() - started) * 1000)
    counts = ", ".join(f"{t.layer} {t.n_out}" for t in result.traces if t.enabled)
    print(f"{N} hits, median {median(times):.2f} ms, slowest {max(times):.2f} ms ({counts})")


if __name__ == "__main__":
    main()
