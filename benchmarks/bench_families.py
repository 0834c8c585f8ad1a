"""What the proposals for families restore of the handwritten rules' noise reduction.

All rules of the demo are taken away; the proposals are accepted, and compared with the handwritten rules of the same
chunks, over the labelled questions. Target: 95%, with no labelled recall lost. With a folder of BEIR's corpus.jsonl as
argument, also for how many of its chunks rules are proposed (target on Cranfield, which has no families: at most 1%).
Run: PYTHONPATH=. python benchmarks/bench_families.py [FOLDER] (it indexes the demo in a temporary folder).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ragfilter.engine.gather import Backends
from ragfilter.evaluate import evaluation
from ragfilter.evaluate.effect import GatheredQuestions, make_labelled, suggest
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.ingest import bundled
from ragfilter.ingest.records import to_record
from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk
from ragfilter.rules.families import find_families, propose
from ragfilter.rules.match import check
from ragfilter.rules.rule import Changes, Rule, read_rule, texts_of
from ragfilter.settings.config import load
from ragfilter.stores import indexer

PROFILES = ("query-must", "full")


def noise_reduction(labelled: GatheredQuestions) -> float:
    figures = evaluation.score(labelled.pools, labelled.qrels, labelled.settings)
    assert figures.noise_reduction is not None
    return figures.noise_reduction


def of_profile(profile: str, backends: Backends) -> None:
    settings = load(profile=profile, environ={}).settings
    # A busy machine must not make the reranker fall back.
    values = {"clearance.enabled": False, "quality.reranker_timeout_ms": 60_000}
    settings = settings.with_values(values)
    queries, qrels = bundled.queries("demo"), bundled.qrels("demo")
    pools = completed_pools({i: t for i, t in queries.items() if i in qrels}, settings, backends)
    written = make_labelled(pools, qrels, settings)
    catalogue = backends.collection.catalogue() or {}
    bare = written.renew(with_rules(catalogue, dict.fromkeys(catalogue)))
    chunks = backends.collection.chunks(list(catalogue)).values()
    start = time.perf_counter()
    suggestion = suggest(chunks, queries.values(), bare)
    took = time.perf_counter() - start
    every = {each.chunk.id: each.rule for each in suggestion.proposals if not each.doubt}
    sure = {i: rule for i, rule in every.items() if i not in suggestion.losses}
    print(f"{profile}: {len(every)} proposals for {len(suggestion.families)} families in {took:.1f} s")
    compare("all families", bare, every, sure, catalogue)
    matrices = {i: rule for i, rule in every.items() if i.startswith("attack-matrix")}
    compare("attack matrices", bare, matrices, {i: sure[i] for i in matrices if i in sure}, catalogue)


def with_rules(catalogue: Mapping[str, Chunk], changes: Changes) -> dict[str, Chunk]:
    return {i: replace(catalogue[i], rule=text) for i, text in texts_of(changes).items()}


def compare(which: str, bare: GatheredQuestions, every: Changes, sure: Changes, catalogue: Mapping[str, Chunk]) -> None:
    by_hand = {i: read_rule(catalogue[i].rule) for i in every}
    before, handwritten = noise_reduction(bare), noise_reduction(bare.renew(with_rules(catalogue, by_hand)))
    print(f"  {which}: noise reduction without rules {before:.4f}, with the handwritten {handwritten:.4f}")
    for what, rules in (("handwritten", by_hand), ("proposed", every), ("without doubts", sure)):
        after = noise_reduction(bare.renew(with_rules(catalogue, rules)))
        restored = (after - before) / (handwritten - before)
        lost = [(row.query, i) for row in bare.effect(rules).rows for i in row.lost_relevant]
        # The others pass their rules, and another layer drops them, as others are kept instead.
        dropped = [i for query, i in lost if isinstance(rule := rules.get(i), Rule) and not check(rule, query).passes]
        print(
            f"    {what}: {len(rules)} rules, {after:.4f}, restored {restored:.1%}, relevant "
            f"chunks lost: {len(dropped)} {dropped}, {len(lost) - len(dropped)} displaced"
        )


def of_corpus(folder: Path) -> None:
    lines = (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.strip()]
    chunks = [Chunk(r["_id"], r.get("text", ""), r.get("title", "")) for r in records]
    start = time.perf_counter()
    proposals = propose(find_families(chunks), [chunk.text for chunk in chunks])
    took = time.perf_counter() - start
    share = len(proposals) / len(chunks)
    named = f"{len(proposals)} of {len(chunks):,} chunks ({share:.1%})"
    print(f"{folder.name}: rules for {named}, {took:.1f} s")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, open_workspace(folder) as bench:
        records = [to_record(record, place="demo") for record in bundled.demo_rows()]
        indexer.index(records, name="demo", workspace=bench.workspace, embedder=bench.embedder)
        for profile in PROFILES:
            of_profile(profile, bench.backends("demo"))
        for name in sys.argv[1:]:
            of_corpus(Path(name))


if __name__ == "__main__":
    main()
