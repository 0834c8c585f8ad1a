"""query_must: drop chunks whose own rule the query does not meet. Chunks without a rule pass.

Source: Filtering, layers 2 and 3. The iterative re-query of layer 3 is replayed from the pool: `replay_rounds` computes
what the loop of `$nin` queries would have asked for and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, islice

from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark
from ragfilter.model import Decision, Hit, LayerTrace, Outcome, PoolResult, Round, Rounds
from ragfilter.rules.explain import differing_quantity
from ragfilter.text.numbers import chunk_count

REFERENCES_PATH = "query_must.references"
TOGETHER = 2
"""If this many pinned chunks refer to the same chunk, the answer spans several chunks."""


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep hits whose rule holds. If a rule cannot be read, its chunk passes, and the decision says so.

    With `pin`, pin the nearest chunks whose rule holds: a chunk without a rule merely passes, but a rule that holds was
    written for such a query. With `references`, if two or more pins refer to the best other chunk, also pin the chunks
    it refers to (docs/design.md#references)."""
    settings = inputs.settings
    passes = [inputs.scan.passes(hit.chunk.rule) for hit in hits]
    kept = tuple(compress(hits, passes))
    met: dict[str, str] = {}
    if settings.query_must.pin:
        checks = ((hit.id, inputs.scan.check(hit.chunk.rule)) for hit in kept if hit.chunk.rule)
        holding = ((i, check.reason) for i, check in checks if check.holds)
        met = dict(islice(holding, settings.retrieval.k))
    referenced = _references(kept, met, inputs)
    pinned = {**met, **referenced}
    if not inputs.explain:
        return LayerOutput(kept, pinned=pinned)
    decisions: list[Decision] = []
    for hit, ok in zip(hits, passes, strict=True):
        i = hit.chunk.id
        outcome: Outcome = "pinned" if i in pinned else "kept" if ok else "dropped"
        reason = referenced.get(i) or inputs.scan.check(hit.chunk.rule).reason
        by = REFERENCES_PATH if i in referenced else ""
        decisions.append(Decision(i, "query_must", outcome, reason, None, None, by))
    own = [hit.found_by == "query" for hit in hits]
    ids = [hit.chunk.id for hit in compress(hits, own)]
    k, max_rounds = settings.retrieval.k, settings.query_must.max_rounds
    rounds = replay_rounds(ids, list(compress(passes, own)), k=k, max_rounds=max_rounds)
    return LayerOutput(kept, tuple(decisions), detail=rounds, pinned=pinned)


def _references(kept: Sequence[Hit], met: Mapping[str, str], inputs: LayerInput) -> dict[str, str]:
    """The reasons, by id, for pinning hits that the best chunk refers to."""
    most = inputs.settings.query_must.references
    best = next((hit for hit in kept if hit.id not in met), None) if len(met) >= TOGETHER else None
    if best is None or sum(hit.id in met and best.id in hit.chunk.refs for hit in kept) < TOGETHER:
        return {}
    own_ids = {hit.id for hit in inputs.own_hits}
    referred = (hit for hit in kept if hit.id in best.chunk.refs and hit.id in own_ids)
    why = f"the best chunk, “{best.chunk.name}”, refers to it"
    return {hit.id: why for hit in islice(referred, most)}


def replay_rounds(ids: Sequence[str], passes: Sequence[bool], *, k: int, max_rounds: int) -> Rounds:
    """Simulate asking for k ids, excluding everything seen, and asking again.

    `ids` are sorted by ascending distance. Stops once k are kept, after a round that excluded nothing, at `max_rounds`,
    or if no ids are left. The next round also excludes kept ids, so each chunk is counted once
    (docs/design.md#contradictions)."""
    rounds: list[Round] = []
    kept: list[str] = []
    for start in range(0, len(ids), k)[:max_rounds]:
        asked = list(zip(ids[start : start + k], passes[start : start + k], strict=True))
        ok, excluded = (tuple(i for i, p in asked if p == met) for met in (True, False))
        rounds.append(Round(len(rounds) + 1, tuple(i for i, _ in asked), excluded, ok))
        kept.extend(ok)
        if len(kept) >= k or not excluded:
            break
    first = tuple(kept[:k])
    return Rounds(k, tuple(rounds), first, short=min(k, sum(passes)) - len(first))


def _line(trace: LayerTrace, result: PoolResult) -> str:
    n = trace.count("dropped")
    references = sum(decision.setting == REFERENCES_PATH for decision in trace.decisions)
    line = "1 chunk fails its rule" if n == 1 else f"{n} chunks fail their rule" if n else "every chunk passes its rule"
    return f"{line}; pins {chunk_count(references)} that the best one refers to" if references else line


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    kind = differing_quantity(hit.chunk.rule, result.query)
    return f"were about another {kind}" if kind else "were for other questions"


SPEC: LayerSpec = LayerSpec(
    name="query_must",
    title="Rules",
    mark=Mark("✕", "x-thin", "#9f5712", "#c7764c"),
    apply=apply,
    candidates=lambda settings: settings.retrieval.k,
    line=_line,
    off=lambda settings: "off; rules are ignored",
    unused=lambda settings: frozenset() if settings.query_must.pin else frozenset({"references"}),
    # A rule can hold for a chunk at any depth, so every pool must be equally deep.
    reads_pool=lambda settings: settings.query_must.pin,
    plain=_plain,
)
