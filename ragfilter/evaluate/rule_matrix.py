"""The effect of every rule over many questions: how often it decides, and if it helps or harms.

Source: docs/design.md#rules. The columns come from labelling-function analysis in Snorkel; rules
are its functions. Pools are gathered once, and replayed to measure them without a rule.

queries      coverage: the questions for which the rule decides about a retrieved chunk
blocks       retrieved chunks that the rule drops, over all questions; `passes`: that it keeps
overlap      blocks that change nothing, since another layer would have dropped the chunk anyway
conflicts    blocks of chunks that are labelled relevant
precision    the share of its blocks that are not labelled relevant
delta_f1     mean F1 without the rule minus mean F1 with it; > 0: it harms. Also `delta_recall`.

*Retrieved* are the hits down to the last one that a later layer can look at, and hits further down that their rule
pins. If a rule blocks chunks even further down, this has no effect and is not counted, unless references are pinned.

Chunks whose rules mean the same share a row. A part of a rule (a group, a term) decides about a chunk
if the rule without it would decide differently, or no longer pin the chunk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ragfilter.engine.gather import usable_count
from ragfilter.engine.pool import entering_hits, with_rules
from ragfilter.engine.replay import replay
from ragfilter.evaluate.labelled_queries import Qrels, relevant_of
from ragfilter.evaluate.metrics import Scores, precision_recall_f1
from ragfilter.layers.layer import LayerInput, LayerSpec
from ragfilter.layers.query_must import TOGETHER
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.visibility import effective_user, visible_pool, with_clearance_for
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Need, Pool, User, undecided
from ragfilter.rules.match import CompiledRules, Scan
from ragfilter.rules.rule import AnyRule, Rule, read_rule, read_text
from ragfilter.settings.schema import Settings

OFTEN = 2
"""Minimum number of questions for which a crowding chunk is irrelevant."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule, or its part at `place`. Figures that need labels are None without them. `conflicts` are (query id,
    chunk id)."""

    rule: AnyRule
    chunk_ids: tuple[str, ...]
    place: str = ""
    queries: int = 0
    blocks: int = 0
    passes: int = 0
    overlap: int = 0
    conflicts: tuple[tuple[str, str], ...] = ()
    precision: float | None = None
    delta_f1: float | None = None
    delta_recall: float | None = None

    @property
    def fires(self) -> str:
        """``never``: it blocks nothing that was retrieved; ``always``: it lets nothing pass."""
        if not self.blocks:
            return "never"
        return "sometimes" if self.passes else "always"


@dataclass(frozen=True, slots=True)
class CrowdRow:
    """A chunk without a rule that is retrieved more often as irrelevant than as relevant; without a
    label, it counts as irrelevant. `kept` is the number of questions that keep it anyway."""

    chunk_id: str
    retrieved: int
    irrelevant: int
    kept: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """`rules` are sorted by harm, `crowding` by how often a chunk is wrongly kept. `waiting` is
    how many questions had a layer that lacked something and fell back."""

    queries: int
    labelled: int
    rules: tuple[RuleRow, ...]
    crowding: tuple[CrowdRow, ...]
    waiting: int = 0


@dataclass(slots=True)
class _Tally:
    """The counts of a row."""

    queries: int = 0
    blocks: int = 0
    passes: int = 0
    overlap: int = 0
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    f1: float = 0.0
    recall: float = 0.0

    def add(self, question: _Question, freed: frozenset[str], passes: int, kept: Sequence[str]) -> None:
        """Count a question: without the rule or part, `freed` would pass the rules and `kept` would be kept."""
        self.queries += 1
        self.blocks += len(freed)
        self.passes += passes
        self.overlap += len(freed.difference(kept))
        self.conflicts += ((question.id, i) for i in sorted(freed & question.relevant))
        if question.scores is not None and set(kept) != set(question.kept):
            scores = precision_recall_f1(kept, question.relevant)
            self.f1 += scores.f1 - question.scores.f1
            self.recall += scores.recall - question.scores.recall

    def row(self, rule: AnyRule, ids: Sequence[str], place: str, labelled: int) -> RuleRow:
        right, conflicts = self.blocks - len(self.conflicts), tuple(self.conflicts)
        counts = self.queries, self.blocks, self.passes, self.overlap, conflicts
        return RuleRow(
            rule,
            tuple(ids),
            place,
            *counts,
            precision=right / self.blocks if self.blocks and labelled else None,
            delta_f1=self.f1 / labelled if labelled else None,
            delta_recall=self.recall / labelled if labelled else None,
        )


def build_matrix(
    pools: Mapping[str, Pool], qrels: Qrels, chunks: Iterable[Chunk], settings: Settings, user: User | None = None
) -> Matrix:
    """Build the matrix of the rules of `chunks` over the questions of `pools` (by id). Pure. Rules count even if
    `settings` switch them off. If only some questions have labels, pass only those; pass the rest separately with empty
    `qrels`. Chunks that `user` cannot see, and their rules, are left out."""
    viewed = effective_user(user, settings)
    questions = _prepare_all(pools, qrels, settings, viewed)
    meanings: dict[str | None, AnyRule] = {}
    ids: dict[AnyRule, list[str]] = defaultdict(list)
    for chunk in chunks:
        if chunk.rule and viewed.sees(chunk):
            meaning = meanings[chunk.rule] = read_text(chunk.rule)
            ids[meaning].append(chunk.id)
    tallies = {rule: _Tally() for rule in ids}
    for question in questions:
        of_rule: dict[AnyRule, list[Chunk]] = defaultdict(list)
        for hit in question.reached:
            if hit.chunk.rule in meanings:
                of_rule[meanings[hit.chunk.rule]].append(hit.chunk)
        for rule, found in of_rule.items():
            passes, chunk_ids = question.scan.passes(found[0].rule), [chunk.id for chunk in found]
            kept = question.kept
            if not passes:
                kept, _ = question.let_pass(chunk_ids)
            elif question.settings.query_must.pin:
                kept, _ = question.with_rules(dict.fromkeys(question.ruled_by(rule)))
            freed = frozenset() if passes else frozenset(chunk_ids)
            tallies[rule].add(question, freed, len(chunk_ids) * passes, kept)
    labelled = sum(question.scores is not None for question in questions)
    rows = [tally.row(rule, ids[rule], "", labelled) for rule, tally in tallies.items()]
    return Matrix(
        len(questions),
        labelled,
        tuple(sorted(rows, key=_harm)),
        _crowding(questions),
        waiting=sum(question.waiting for question in questions),
    )


def build_parts(
    rule: Rule,
    pools: Mapping[str, Pool],
    qrels: Qrels,
    chunks: Iterable[Chunk],
    settings: Settings,
    user: User | None = None,
) -> tuple[RuleRow, ...]:
    """A row for every group and every term of the rule, most harmful first. Pure."""
    viewed = effective_user(user, settings)
    ids = [chunk.id for chunk in chunks if read_rule(chunk.rule) == rule and viewed.sees(chunk)]
    labelled = sum(i in qrels for i in pools)
    met = {i: p for i, p in pools.items() if any(read_rule(hit.chunk.rule) == rule for hit in p.hits)}
    questions = _prepare_all(met, qrels, settings, viewed)
    rests = {place: rule.without(place).text for place in rule.removable}
    tallies = {place: _Tally() for place in rests}
    compiled = CompiledRules(rests.values())
    for question in questions:
        reached_ids = frozenset(hit.id for hit in question.reached if read_rule(hit.chunk.rule) == rule)
        every = question.ruled_by(rule)
        was, scan = question.scan.check(rule.text), compiled.scan(question.pool.query)
        for place, rest in rests.items():
            now = scan.check(rest)
            pins = now.holds != was.holds and question.settings.query_must.pin
            if now.passes == was.passes and not pins:
                continue
            kept, _ = question.with_rules(dict.fromkeys(every, rest))
            # Chunks that were not retrieved count only if they are now pinned and so kept.
            decided = reached_ids | every.intersection(kept)
            if decided:
                freed = frozenset() if was.passes else decided
                tallies[place].add(question, freed, len(decided) * was.passes, kept)
    rows = [tally.row(rule, ids, place, labelled) for place, tally in tallies.items()]
    return tuple(sorted(rows, key=_harm))


def _crowding(questions: Iterable[_Question]) -> tuple[CrowdRow, ...]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for question in questions:
        if question.scores is None:
            continue
        for hit in question.reached:
            if not hit.chunk.rule:
                irrelevant = hit.id not in question.relevant
                count = counts[hit.id]
                count[0] += 1
                count[1] += irrelevant
                count[2] += irrelevant and hit.id in question.kept
    rows = (CrowdRow(i, *count) for i, count in counts.items())
    crowding = [r for r in rows if r.irrelevant >= OFTEN and r.irrelevant > r.retrieved / 2]
    return tuple(sorted(crowding, key=lambda r: (-r.kept, -r.irrelevant, r.chunk_id)))


def _harm(row: RuleRow) -> tuple[float, int, float, float, int]:
    """Sort key by harm: the gain in recall without the rule, then the relevant chunks that it
    blocks, then the gain in F1; among the rest, rules that do least come first."""
    return (
        -(row.delta_recall or 0.0),
        -len(row.conflicts),
        -(row.delta_f1 or 0.0),
        1.0 if row.precision is None else row.precision,
        row.blocks - row.overlap,
    )


@dataclass(frozen=True, slots=True)
class _Question:
    """A prepared question. `reached` are the retrieved hits that the user can see. `kept` and
    `scores` are the results with all rules applied.

    If a blocking rule is removed, its chunks join the `survivors` of the rules. Nothing else changes: pins and what the
    layers `behind` can look at stay the same. `blocked` has, by chunk id, the number of survivors before the chunk, and
    the chunk without its rule."""

    id: str
    pool: Pool
    settings: Settings
    user: User
    scan: Scan
    reached: tuple[Hit, ...]
    survivors: tuple[Hit, ...]
    blocked: Mapping[str, tuple[int, Hit]]
    behind: tuple[LayerSpec, ...]
    inputs: LayerInput
    relevant: frozenset[str]
    kept: tuple[str, ...] = ()
    scores: Scores | None = None
    waiting: bool = False

    def let_pass(self, freed: Sequence[str]) -> tuple[tuple[str, ...], bool]:
        """The kept ids without the rules of `freed` (in retrieval order), and whether a layer lacks something."""
        if self.settings.judge.enabled or _follows(self.settings, self.inputs.pinned):
            # The judge's expansions reach chunks that were not retrieved, where rules count as
            # well. A chunk that comes in may be the one whose references are pinned.
            return self.with_rules(dict.fromkeys(freed))
        hits = list(self.survivors)
        for place, hit in reversed([self.blocked[i] for i in freed]):
            hits.insert(place, hit)
        kept, needs = _keep(self.behind, tuple(hits), self.inputs)
        return _ids(kept), undecided(needs)

    def with_rules(self, rules: Mapping[str, str | None]) -> tuple[tuple[str, ...], bool]:
        """As `let_pass`, but with other rules on some chunks; rules that hold may pin chunks."""
        changed = with_rules(self.pool, rules)
        result = replay(changed, self.settings, self.user, self.scan, explain=False)
        return _ids(result.kept), undecided(result.needs)

    def ruled_by(self, rule: AnyRule) -> frozenset[str]:
        """The ids of all chunks with this rule, even those that were not retrieved: if the first ones are no longer
        pinned, the next ones would be."""
        hits = (*self.pool.hits, *self.pool.reachable)
        return frozenset(hit.id for hit in hits if read_rule(hit.chunk.rule) == rule)


def _prepare_all(pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User) -> list[_Question]:
    """Prepare the questions of `pools` (by id). Rules count even if `settings` switch them off."""
    settings = settings.with_values({"query_must.enabled": True})
    if not settings.judge.enabled:
        # Hidden chunks are removed once, so replays need not check clearance. A judge's prompt
        # depends on the whole pool, so the pool stays whole if there is a judge.
        pools = {i: visible_pool(pool, user) for i, pool in pools.items()}
        user = UNRESTRICTED
    settings = with_clearance_for(settings, user)
    rules = {hit.chunk.rule: None for pool in pools.values() for hit in pool.hits}
    compiled = CompiledRules(filter(None, rules))
    unruled: dict[str, Chunk] = {}

    def without_rule(hit: Hit) -> Hit:
        chunk = hit.chunk
        bare = unruled.get(chunk.id) or unruled.setdefault(chunk.id, replace(chunk, rule=None))
        return replace(hit, chunk=bare)

    on = [layer for layer in LAYERS if layer.enabled(settings)]
    at = [layer.name for layer in on].index("query_must")

    def prepare(query_id: str, pool: Pool, labels: Mapping[str, int] | None) -> _Question:
        scan = compiled.scan(pool.query)
        hits = tuple(hit for hit in entering_hits(pool, settings, user) if user.sees(hit.chunk))
        inputs = LayerInput(settings, pool, scan, user, explain=False)
        step = on[at].apply(hits, inputs)
        reached = _reached(hits, pool, settings, scan)
        # Later layers ignore the hits further down, except pinned ones, which they put first.
        reached_ids = {hit.id for hit in reached}
        reached += [hit for hit in step.hits if hit.id in step.pinned and hit.id not in reached_ids]
        reached_ids.update(step.pinned)
        stopped = [hit for hit in hits if not scan.passes(hit.chunk.rule)]
        if _follows(settings, step.pinned):
            reached += [hit for hit in stopped if hit.id not in reached_ids]
        survivors = tuple(hit for hit in step.hits if hit.id in reached_ids)
        stays = {hit.id for hit in survivors}
        before = dict(
            zip((hit.id for hit in hits), accumulate((hit.id in stays for hit in hits), initial=0), strict=False)
        )
        question = _Question(
            id=query_id,
            pool=pool,
            settings=settings,
            user=user,
            scan=scan,
            reached=tuple(reached),
            survivors=survivors,
            behind=tuple(on[at + 1 :]),
            blocked={hit.id: (before[hit.id], without_rule(hit)) for hit in stopped if hit.id in reached_ids},
            inputs=inputs.after(step),
            relevant=relevant_of(labels or {}),
        )
        kept, waiting = question.let_pass(())
        scores = None if labels is None else precision_recall_f1(kept, question.relevant)
        return replace(question, kept=kept, scores=scores, waiting=waiting)

    return [prepare(i, pool, qrels.get(i)) for i, pool in pools.items()]


def _follows(settings: Settings, pinned: Mapping[str, str]) -> bool:
    """Whether references may be pinned. If so, a blocked chunk may come in from anywhere."""
    return settings.query_must.references > 0 and len(pinned) >= TOGETHER


def _reached(hits: Iterable[Hit], pool: Pool, settings: Settings, scan: Scan) -> list[Hit]:
    """The hits down to the last one that a later layer can look at. The sides of a comparison, which may be pinned, do
    not count towards its limit."""
    sides = {i for e in pool.entities for i in e.ids} if settings.entities.enabled else set()
    wanted = usable_count(settings)
    reached = []
    for hit in hits:
        if hit.id in sides:
            reached.append(hit)
        elif wanted:
            reached.append(hit)
            wanted -= scan.passes(hit.chunk.rule)
    return reached


def _ids(hits: Iterable[Hit]) -> tuple[str, ...]:
    return tuple(hit.id for hit in hits)


def _keep(
    layers: Iterable[LayerSpec], hits: tuple[Hit, ...], inputs: LayerInput
) -> tuple[tuple[Hit, ...], tuple[Need, ...]]:
    """Apply `layers` to `hits` in turn. Returns the kept hits and the layers' needs."""
    needs: list[Need] = []
    for layer in layers:
        step = layer.apply(hits, inputs)
        hits, inputs = step.hits, inputs.after(step)
        needs += step.needs
    return hits, tuple(needs)
