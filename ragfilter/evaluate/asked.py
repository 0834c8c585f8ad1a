"""Prepares a question for replays with rules removed, as the matrix of rules needs. Pure.

*Retrieved* is what a search for the next chunks whose rules hold goes through: the hits down to the
last one that a later layer can look at, and hits behind it that are pinned by their rule. A rule
may also block other chunks there, to no effect, unless references are pinned: then they count, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from ragfilter.engine.replay import keep, replay, retrieved, with_rules
from ragfilter.engine.retrieve import used
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.metrics import Scores, precision_recall_f1, relevant_of
from ragfilter.layers.base import LayerInput, LayerSpec
from ragfilter.layers.clearance import visible, with_clearance
from ragfilter.layers.query_must import TOGETHER
from ragfilter.layers.registry import LAYERS
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool, User
from ragfilter.rules.match import RuleBook, Scan
from ragfilter.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class PreparedQuestion:
    """A prepared question. `seen` are the retrieved hits that the user may see. `kept` and `scores`
    are those with all rules applied.

    Removing a rule that blocks lets its chunks join the `survivors` of the rules, and changes
    nothing else: what is pinned, and what the layers `behind` may look at, stays the same.
    `blocked` has by id how many survivors come before a chunk, and the chunk without its rule.
    """

    id: str
    pool: Pool
    settings: Settings
    user: User
    scan: Scan
    seen: tuple[Hit, ...]
    survivors: tuple[Hit, ...]
    blocked: Mapping[str, tuple[int, Hit]]
    behind: tuple[LayerSpec, ...]
    inputs: LayerInput
    relevant: frozenset[str]
    kept: tuple[str, ...] = ()
    scores: Scores | None = None
    waiting: bool = False

    def let_pass(self, freed: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        """What is kept if the rules of `freed` (blocked ids, in retrieval order) do not count, and
        whether a layer lacks something."""
        if self.settings.judge.enabled or _follows(self.settings, self.inputs.pinned):
            # The judge's expansions reach chunks that were not retrieved, where rules count as
            # well. A chunk that comes in may be the one whose references are pinned.
            return self.with_rules(dict.fromkeys(freed))
        hits = list(self.survivors)
        for place, hit in reversed([self.blocked[i] for i in freed]):
            hits.insert(place, hit)
        kept, needs = keep(self.behind, tuple(hits), self.inputs)
        return _ids(kept), bool(needs)

    def with_rules(self, rules: Mapping[str, str | None]) -> tuple[tuple[str, ...], bool]:
        """The same with other rules on some chunks; a rule that holds may pin its chunks."""
        changed = with_rules(self.pool, rules)
        result = replay(changed, self.settings, self.user, self.scan, explain=False)
        return _ids(result.kept), bool(result.needs)

    def ruled_by(self, rule: str) -> frozenset[str]:
        """The ids of all chunks with this rule, including those that were not retrieved: if the
        first of them are no longer pinned, the next would be."""
        hits = (*self.pool.hits, *self.pool.reachable)
        return frozenset(hit.id for hit in hits if hit.chunk.rule == rule)


def ready(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User
) -> list[PreparedQuestion]:
    """Prepare the questions of `pools` (by id). Rules count even if `settings` switch them off."""
    settings = settings.with_values({"query_must.enabled": True})
    if not settings.judge.enabled:
        # Nothing hidden is left, so clearance need not be checked again and again. A judge's prompt
        # depends on the whole pool, so with a judge the pool stays as it was.
        pools = {i: visible(pool, user) for i, pool in pools.items()}
        user = UNRESTRICTED
    settings = with_clearance(settings, user)
    rules = {hit.chunk.rule: None for pool in pools.values() for hit in pool.hits}
    book = RuleBook(filter(None, rules))
    unruled: dict[str, Chunk] = {}

    def without_rule(chunk: Chunk) -> Chunk:
        return unruled.get(chunk.id) or unruled.setdefault(chunk.id, replace(chunk, rule=None))

    ask = partial(_prepare, book=book, settings=settings, user=user, without_rule=without_rule)
    return [ask(i, pool, qrels.get(i)) for i, pool in pools.items()]


def _prepare(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int] | None,
    *,
    book: RuleBook,
    settings: Settings,
    user: User,
    without_rule: Callable[[Chunk], Chunk],
) -> PreparedQuestion:
    scan = book.scan(pool.query)
    hits = tuple(hit for hit in retrieved(pool, settings, user) if user.sees(hit.chunk))
    on = [layer for layer in LAYERS if layer.enabled(settings)]
    at = [layer.name for layer in on].index("query_must")
    inputs = LayerInput(settings, pool, scan, user, explain=False)
    step = on[at].apply(hits, inputs)
    seen = _seen(hits, pool, settings, scan)
    # Later layers look at none of the hits behind, except pinned ones, which they put first.
    found = {hit.id for hit in seen}
    seen += [hit for hit in step.hits if hit.id in step.pinned and hit.id not in found]
    found.update(step.pinned)
    if _follows(settings, step.pinned):
        blocked = (hit for hit in hits if not scan.passes(hit.chunk.rule))
        seen += [hit for hit in blocked if hit.id not in found]
    survivors = tuple(hit for hit in step.hits if hit.id in found)
    asked = PreparedQuestion(
        id=query_id,
        pool=pool,
        settings=settings,
        user=user,
        scan=scan,
        seen=tuple(seen),
        survivors=survivors,
        blocked=_blocked(hits, survivors, found, scan, without_rule),
        behind=tuple(on[at + 1 :]),
        inputs=inputs.after(step),
        relevant=relevant_of(labels or {}),
    )
    kept, waiting = asked.let_pass(())
    scores = None if labels is None else precision_recall_f1(kept, asked.relevant)
    return replace(asked, kept=kept, scores=scores, waiting=waiting)


def _follows(settings: Settings, pinned: Mapping[str, str]) -> bool:
    """Whether references may be pinned: then a chunk that was blocked may come in from anywhere."""
    return settings.query_must.references > 0 and len(pinned) >= TOGETHER


def _seen(hits: Iterable[Hit], pool: Pool, settings: Settings, scan: Scan) -> list[Hit]:
    """The hits down to the last one that a later layer can look at. The sides of a comparison may
    be pinned, and then take nobody's place."""
    sides = {i for e in pool.entities for i in e.ids} if settings.entities.enabled else set()
    wanted = used(settings)
    seen = []
    for hit in hits:
        if hit.id in sides:
            seen.append(hit)
        elif wanted:
            seen.append(hit)
            wanted -= scan.passes(hit.chunk.rule)
    return seen


def _blocked(
    hits: Sequence[Hit],
    survivors: Iterable[Hit],
    found: Container[str],
    scan: Scan,
    without_rule: Callable[[Chunk], Chunk],
) -> dict[str, tuple[int, Hit]]:
    stays = {hit.id for hit in survivors}
    before = accumulate((hit.id in stays for hit in hits), initial=0)
    return {
        hit.id: (place, replace(hit, chunk=without_rule(hit.chunk)))
        for hit, place in zip(hits, before, strict=False)
        if hit.id in found and not scan.passes(hit.chunk.rule)
    }


def _ids(hits: Iterable[Hit]) -> tuple[str, ...]:
    return tuple(hit.id for hit in hits)
