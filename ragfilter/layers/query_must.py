"""query_must: drop chunks whose own rule the query does not meet. A chunk without a rule passes.

Source: Filtering, layers 2 and 3. The iterative re-query of layer 3 is replayed from the pool:
`replay_rounds` gives what the loop of `$nin` queries would have asked for and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, islice

from ragfilter.layers.base import LayerInput, LayerOutput
from ragfilter.layers.spec import LayerSpec, Mark
from ragfilter.model import Decision, Hit, LayerTrace, Outcome, Result, Round, Rounds
from ragfilter.rules.another import another
from ragfilter.settings.field import Section, setting


class QueryMust(Section):
    enabled: bool = setting(False, "Drop chunks whose query_must rule the query does not meet.")
    pin: bool = setting(
        False,
        "Pin the nearest chunks whose rule the query meets, at most as many as the unfiltered k, "
        "so that no threshold of a later layer drops them. A met rule is stronger evidence than "
        "a distance.",
        label="Pin chunks whose rule is met",
    )
    max_rounds: int = setting(
        3,
        "Maximum number of rounds of the replayed re-query loop. For display only: it does not "
        "affect the result.",
        unit="rounds", ge=1, le=20, ceiling=10, label="Max re-query rounds",
    )  # fmt: skip


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Keep hits whose rule holds. If a rule cannot be read, its chunk passes, and the decision says
    so.

    With `pin`, the nearest chunks whose rule holds are pinned: a chunk without a rule merely
    passes, but one whose rule holds was meant for such a query.
    """
    settings = inputs.settings
    passes = [inputs.rules.passes(hit.chunk.rule) for hit in hits]
    kept = tuple(compress(hits, passes))
    pinned: dict[str, str] = {}
    if settings.query_must.pin:
        checks = ((hit.id, inputs.rules.check(hit.chunk.rule)) for hit in kept)
        met = ((i, check.reason) for i, check in checks if check.holds)
        pinned = dict(islice(met, settings.retrieval.k))
    if not inputs.explain:
        return LayerOutput(kept, pinned=pinned)
    decisions: list[Decision] = []
    for hit, ok in zip(hits, passes, strict=True):
        outcome: Outcome = "pinned" if hit.id in pinned else "kept" if ok else "dropped"
        reason = inputs.rules.check(hit.chunk.rule).reason
        decisions.append(Decision(hit.id, "query_must", outcome, reason))
    found_by_query = [
        (hit.id, ok) for hit, ok in zip(hits, passes, strict=True) if hit.found_by == "query"
    ]
    rounds = replay_rounds(
        [i for i, _ in found_by_query],
        [ok for _, ok in found_by_query],
        k=settings.retrieval.k,
        max_rounds=settings.query_must.max_rounds,
    )
    return LayerOutput(kept, tuple(decisions), detail=rounds, pinned=pinned)


def replay_rounds(ids: Sequence[str], passes: Sequence[bool], *, k: int, max_rounds: int) -> Rounds:
    """What asking for k, excluding everything seen, and asking again would have done.

    `ids` are sorted by ascending distance. Stops at k kept, at a round that excluded nothing, at
    `max_rounds`, or where nothing is left. Kept ids are excluded from the next round too, so each
    chunk is counted once (docs/design.md#contradictions).
    """
    rounds: list[Round] = []
    kept: list[str] = []
    start = 0
    while len(rounds) < max_rounds and start < len(ids):
        stop = min(start + k, len(ids))
        retrieved = tuple(ids[start:stop])
        ok = tuple(i for i, p in zip(retrieved, passes[start:stop], strict=True) if p)
        excluded = tuple(i for i, p in zip(retrieved, passes[start:stop], strict=True) if not p)
        rounds.append(Round(len(rounds) + 1, retrieved, excluded, ok))
        kept.extend(ok)
        start = stop
        if len(kept) >= k or not excluded:
            break
    first = tuple(kept[:k])
    clean = sum(passes)
    return Rounds(k, tuple(rounds), first, short=min(k, clean) - len(first))


def _line(trace: LayerTrace, result: Result) -> str:
    n = trace.count("dropped")
    if not n:
        return "every chunk passes its rule"
    return "1 chunk fails its rule" if n == 1 else f"{n} chunks fail their rule"


def _plain(decision: Decision, hit: Hit, result: Result) -> str:
    kind = another(hit.chunk.rule, result.query)
    return f"were about another {kind}" if kind else "were for other questions"


SPEC: LayerSpec = LayerSpec(
    name="query_must",
    title="query_must",
    mark=Mark("✕", "x-thin", "#9f5712", "#c7764c"),
    apply=apply,
    section=QueryMust,
    candidates=lambda settings: settings.retrieval.k,
    line=_line,
    off=lambda settings: "off; rules are ignored",
    plain=_plain,
)
