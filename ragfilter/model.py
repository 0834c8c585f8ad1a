"""The values that flow through the filter. All are frozen; none knows a store, a model or a page.

Gathering fills a `Pool` (with effects). Replaying turns the pool into a `PoolResult` (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from math import nan
from typing import Any, Literal, NamedTuple

from ragfilter.errors import InputError
from ragfilter.settings.schema import Settings
from ragfilter.settings.schema import Space as Space
from ragfilter.text.normalise import mend_characters

Outcome = Literal["kept", "dropped", "pinned", "expanded", "fallback"]
Status = Literal["ok", "low_quality_results", "insufficient_clearance", "incomplete_collection"]
"""``incomplete_collection``: the best chunks may be missing because the store cannot find them."""
NeedKind = Literal["rerank", "judge", "prune"]


MAX_LEVEL = 2**63 - 1
"""The highest level that a store can hold."""


def readable_level(value: object) -> int | None:
    """Return `value` if it is an int ≥ 0; None for anything else ("abc", "2", 1.5, True, -1)."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_LEVEL else None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of the corpus.

    `clearance` is 0 for public; higher is more secret. It is None, which hides the chunk, if the stored clearance is
    not a level or the department is not text. `rule` is the `query_must` JSON text as stored, readable or not. `loaded`
    is False if the text was not fetched: text, page and metadata are missing. `metadata` holds the source's own fields
    as plain JSON values; no bundled layer reads them."""

    id: str
    text: str = field(default="", repr=False)
    title: str = ""
    type: str = ""
    source: str = ""
    page: int | None = None
    refs: tuple[str, ...] = ()
    clearance: int | None = 0
    department: str | None = None
    rule: str | None = field(default=None, repr=False)
    loaded: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False, repr=False)

    def __post_init__(self) -> None:
        department: object = self.department
        is_department = department is None or isinstance(department, str)
        if not is_department:
            object.__setattr__(self, "department", None)
        if not is_department or readable_level(self.clearance) is None:
            object.__setattr__(self, "clearance", None)

    @property
    def name(self) -> str:
        """The title, or the id if there is none."""
        return self.title or self.id

    @property
    def passage(self) -> str:
        """The text to embed and rerank: title and text."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class User:
    """The user who asks. `level` is 0 for the public, and higher levels see more. Only users of a
    department see its chunks.

    Only `sees` decides who sees what, and it fails closed. An `unrestricted` user sees everything, as does a call
    without a user if the clearance layer is off. Raises InputError if the level is not a whole number ≥ 0 or a
    department is not text."""

    level: int = 0
    departments: Collection[str] = ()
    unrestricted: bool = False

    def __post_init__(self) -> None:
        if readable_level(self.level) is None:
            remedy = f"It must be a whole number from 0 to {MAX_LEVEL}."
            raise InputError(f"The user's level is {self.level!r}.", remedy=remedy)
        given: object = self.departments
        names = (given,) if isinstance(given, str) else given
        if not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
            raise InputError(f"The user's departments are {given!r}.", remedy="Each must be text.")
        # Sorted, so that users with the same departments are equal.
        departments = sorted({mend_characters(name) for name in names if name})
        object.__setattr__(self, "departments", tuple(departments))

    def sees(self, chunk: Chunk) -> bool:
        """Whether the user can see `chunk`."""
        if self.unrestricted:
            return True
        level, department = chunk.clearance, chunk.department
        return level is not None and level <= self.level and (department is None or department in self.departments)

    def refusal(self, chunk: Chunk) -> str:
        """Why `chunk` is hidden from the user, in words; empty if the user can see it."""
        if self.sees(chunk):
            return ""
        if chunk.clearance is None:
            return "clearance unreadable, hidden"
        if chunk.clearance > self.level:
            return f"clearance {chunk.clearance} > {self.level}"
        return f"department {chunk.department}, not {', '.join(self.departments) or 'none'}"


PUBLIC = User()
"""A user who sees only public chunks."""
UNRESTRICTED = User(unrestricted=True)
"""A user who sees everything."""


Metric = Literal["l2", "euclidean", "cosine", "ip", "similarity", "rank"]
"""``l2`` (squared), ``cosine`` and ``ip`` are distances as Chroma defines them; ``euclidean`` is
not squared. For all four, lower is nearer. ``similarity`` is a cosine similarity. ``rank`` is any
other score, such as BM25 or RRF; only its order counts. For these two, higher is nearer."""


class Score(NamedTuple):
    """A hit's score as a search or model returned it, and the hit's 1-based rank by that score."""

    value: float
    metric: Metric
    rank: int

    @property
    def distance(self) -> float:
        """The score as a distance (lower is nearer): 1 − s for a similarity s, the square of a
        Euclidean distance. For ``rank``, only the order counts."""
        if self.metric == "similarity":
            return 1.0 - self.value
        if self.metric == "rank":
            return -self.value
        return abs(self.value) * self.value if self.metric == "euclidean" else self.value


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that a search found.

    `distance` is always to the *query*, in the collection's space. `found_by` names the search that found the chunk:
    ``query``, ``rules`` (an exact search of the clean chunks), ``lexical``, ``entity:<name>`` or ``expansion:<chunk
    id>``. `rank` is the 1-based rank by distance, or 0 for a chunk added by expansion. `rerank_score` is 0..1; higher
    is better. `scores` holds the scores of other searches by name: ``lexical``, ``fused``, a caller's own.
    `contributions` is a pruner's estimate of what each piece of the text adds to the answer, 0..1. `struck` lists the
    spans of the text that the context leaves out, in order. `doc` is the object that a caller passed, or None if a
    search found the hit."""

    chunk: Chunk
    distance: float
    rank: int
    found_by: str = "query"
    rerank_score: float | None = None
    scores: Mapping[str, Score] = field(default_factory=dict, hash=False, repr=False)
    contributions: tuple[float, ...] | None = field(default=None, repr=False)
    struck: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    doc: Any = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        return self.chunk.id


@dataclass(frozen=True, slots=True)
class Entity:
    """One side of a comparison query, with the ids that a search for it found, best first. If there
    was no such search (`retrieved` is False), the ids are all those that the query itself found."""

    name: str
    ids: tuple[str, ...]
    retrieved: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """The LLM's verdict on one chunk: ``KEEP``, ``DISCARD`` or ``EXPAND_n`` (depth 1, 3 or 5)."""

    chunk_id: str
    action: Literal["KEEP", "DISCARD", "EXPAND"]
    depth: int = 0

    @property
    def written(self) -> str:
        """The action as the judge writes it: ``KEEP``, ``EXPAND_3``."""
        return f"EXPAND_{self.depth}" if self.depth else self.action


@dataclass(frozen=True, slots=True)
class Judgement:
    """One answer of the judge about the chunks in `asked` (ids, in prompt order).

    `error` is a message, empty on success. `verdicts` then holds the readable decisions, and `remarks` says what was
    ignored; both name only chunks in `asked`. `unreadable` lists chunks that the answer mentions without a clear
    decision. `left_out` lists chunks for which the prompt had no room, and `shortened` those whose text was cut.
    `prompt_version` is the variant's name@version, and `prompt_key` a hash of the prompt; the answer is valid for no
    other prompt. Both are empty if no prompt was made. `cached`: no call was made now, and tokens and milliseconds
    describe the original call. `reply` is the beginning of the raw answer; it can name hidden chunks, so only operators
    see it."""

    asked: tuple[str, ...]
    verdicts: tuple[Verdict, ...] = ()
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    error: str = ""
    model: str = ""
    prompt_version: str = ""
    prompt_key: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ms: float = field(default=0.0, compare=False)
    cached: bool = field(default=False, compare=False)
    reply: str = field(default="", compare=False, repr=False)
    shortened: tuple[str, ...] = ()


MODEL_OF: Mapping[NeedKind, str] = {"rerank": "reranker", "judge": "judge", "prune": "pruner"}
"""The kind of model that meets each kind of need."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A model that failed: a reranker by its `reranker_key`, or a pruner by its name. `replay` turns it into a visible
    fallback. `lasting`: it will fail until something is installed or another model is chosen."""

    kind: NeedKind
    model: str
    error: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """Everything that was gathered for one query; with the settings and the user, all that `replay` needs.

    `hits` are sorted by ascending distance to the query. `reachable` are the chunks that the judge's expansions could
    add (by id, the breadth-first closure of `refs`). `references` are the chunks that hits and reachable chunks refer
    to, without their texts (`loaded` False). `judgements` are the judge's answers, one for each prompt, the latest
    last. `embedder` names the embedding model, if it is known. `scores_are_ranks`: the rerank scores have no known
    scale, so only their order counts. `lexical_user` is the user whose chunks were also searched by words; the
    ``lexical`` and ``fused`` scores are valid for no other user. `source_pattern` is the file pattern that limited the
    search. `exhaustive`: the pool holds every chunk that the user can see. `incomplete` says why the collection may
    lack chunks; it is empty if the collection is complete. `warnings` say what looked wrong in the caller's scores and
    documents. `queries` counts the searches, each once, even if hidden chunks made it ask the store again."""

    query: str
    collection: str
    space: Space
    hits: tuple[Hit, ...] = field(repr=False)
    entities: tuple[Entity, ...] = field(default=(), repr=False)
    judgements: tuple[Judgement, ...] = field(default=(), repr=False)
    reachable: tuple[Hit, ...] = field(default=(), repr=False)
    references: tuple[Chunk, ...] = field(default=(), repr=False)
    failures: tuple[Failure, ...] = ()
    reranker: str = ""
    scores_are_ranks: bool = False
    embedder: str = ""
    lexical_user: User | None = None
    source_pattern: str = ""
    exhaustive: bool = False
    incomplete: str = ""
    warnings: tuple[str, ...] = ()
    queries: int = 0
    gather_ms: float = field(default=0.0, compare=False)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the hits, the reachable chunks, and the chunks that these refer to."""
        return (*(hit.chunk for hit in (*self.hits, *self.reachable)), *self.references)

    @property
    def distances(self) -> list[float]:
        """The distances of the hits that the query itself found."""
        return [hit.distance for hit in self.hits if hit.found_by == "query"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something a layer lacks. The page offers a button for it, except that it gets ``prune`` at
    once. The library and the command line get everything."""

    kind: NeedKind
    layer: str
    chunk_ids: tuple[str, ...]
    why: str


def undecided(needs: Iterable[Need]) -> bool:
    """Whether meeting the needs could change which chunks are kept. ``prune`` only changes how they are sent."""
    return any(need.kind != "prune" for need in needs)


class Decision(NamedTuple):
    """What one layer did with one chunk, the value and limit it compared, and the path of the setting that decided.

    A named tuple, because a query makes a thousand; a frozen dataclass takes four times as long."""

    chunk_id: str
    layer: str
    outcome: Outcome
    reason: str
    value: float | None = None
    limit: float | None = None
    setting: str = ""


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the iterative re-query: the ids asked for, and their outcome."""

    number: int
    retrieved: tuple[str, ...]
    excluded: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rounds:
    """The replayed re-query loop: `kept` are its first k clean ids, `short` how many it lacks."""

    k: int
    rounds: tuple[Round, ...]
    kept: tuple[str, ...]
    short: int


class Gap(NamedTuple):
    """The step from the hit at 1-based `after_rank` to the next one."""

    after_rank: int
    size: float
    skipped: bool = False
    cliff: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a cutoff strategy cut a list of values, and why.

    `kept` counts the values that stay, and `strategy_kept` those that the strategy kept, if more stay. `limit` is the
    absolute limit, if that decided. `cliff_after_rank` (1-based) and `gap` describe the winning cliff."""

    strategy: str
    kept: int
    reason: str
    gaps: tuple[Gap, ...] = field(default=(), repr=False)
    cliff_after_rank: int | None = None
    gap: float | None = None
    limit: float | None = None
    strategy_kept: int | None = None


ValueKind = Literal["distance", "lowered", "rerank", "probability", "place", "named"]
"""What a cutoff compares: ``lowered`` is a distance after the words layer, ``named`` any score."""
VALUE_NAMES: Mapping[ValueKind, str] = {
    "distance": "distance",
    "lowered": "distance minus shared words",
    "rerank": "1 − rerank score",
    "probability": "1 − probability",
    "place": "place in the order",
}


@dataclass(frozen=True, slots=True)
class CutoffDetail:
    """The cut, with its ids and values. `score` is the name of the score if the kind is ``named``. `background` is the
    value of unrelated chunks, if known. `fallback_reason` says why another strategy cut instead of the chosen one."""

    cut: Cut
    ids: tuple[str, ...]
    values: tuple[float, ...]
    value_kind: ValueKind
    background: float | None = None
    fallback_reason: str = ""
    score: str = ""

    @property
    def value_name(self) -> str:
        """The kind of values, in words."""
        return VALUE_NAMES.get(self.value_kind) or f"distance by {self.score}"


@dataclass(frozen=True, slots=True)
class ExpandedChunk:
    """A chunk that an expansion added, `step` references away from its root; `via` refers to it."""

    chunk_id: str
    root: str
    via: str
    step: int


@dataclass(frozen=True, slots=True)
class JudgeDetail:
    """The judgement that was obeyed or failed, and the chunks its expansions added, in order."""

    judgement: Judgement
    brought: tuple[ExpandedChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class WidthCheck:
    """The first `width` hits: how many of them are good, and the best similarity."""

    width: int
    good: int
    best: float


@dataclass(frozen=True, slots=True)
class Widening:
    """The widths that the quality layer tried, increasing until one had a good hit."""

    threshold: float
    widths: tuple[WidthCheck, ...]


@dataclass(frozen=True, slots=True)
class PrunedPiece:
    """A piece ``text[start:end]`` of a kept chunk, its contribution, and whether the context leaves it out."""

    start: int
    end: int
    value: float
    struck: bool


@dataclass(frozen=True, slots=True)
class Pruning:
    """The limit that pieces had to reach, and the pieces of each pruned chunk, by its id.
    `before` and `after` are the tokens of all chunks in the prompt."""

    limit: float
    pieces: Mapping[str, tuple[PrunedPiece, ...]] = field(repr=False, hash=False)
    before: int
    after: int


Detail = Rounds | CutoffDetail | JudgeDetail | Widening | Pruning | None


@dataclass(frozen=True, slots=True)
class LayerTrace:
    """What one layer let through. `failed`: a model failed, so the layer fell back. `reranked`: a
    reranker set the order. `ms` does not count for equality."""

    layer: str
    enabled: bool
    n_in: int
    n_out: int
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    detail: Detail = field(default=None, repr=False)
    note: str = ""
    ms: float = field(default=0.0, compare=False)
    failed: bool = False
    reranked: bool = False

    def count(self, outcome: Outcome) -> int:
        """The number of decisions with this outcome."""
        return sum(decision.outcome == outcome for decision in self.decisions)


@dataclass(frozen=True, slots=True)
class PoolResult:
    """The decisions about one pool for `user`, who is unrestricted if nothing was hidden. `hits` are the hits that
    entered the first layer and the chunks that an expansion brought in; `kept` are the kept ones, in order."""

    query: str
    settings: Settings
    pool: Pool
    hits: tuple[Hit, ...]
    kept: tuple[Hit, ...]
    traces: tuple[LayerTrace, ...]
    needs: tuple[Need, ...] = ()
    status: Status = "ok"
    message: str = ""
    user: User = PUBLIC

    @property
    def retrieved(self) -> int:
        """The number of hits, not counting chunks that only an expansion added."""
        return sum(hit.rank > 0 for hit in self.hits)

    @property
    def fallbacks(self) -> list[str]:
        """The layers that fell back, because a model failed or was not asked."""
        waiting = {need.layer for need in self.needs}
        return [t.layer for t in self.traces if t.failed or t.layer in waiting]

    def trace(self, layer: str) -> LayerTrace:
        """The trace of `layer`, also if it is off. Raises KeyError for an unknown name."""
        return {trace.layer: trace for trace in self.traces}[layer]

    @property
    def judgement(self) -> Judgement | None:
        """The judgement of exactly these chunks, obeyed or failed; None if there is none."""
        details = (trace.detail for trace in self.traces)
        return next((d.judgement for d in details if isinstance(d, JudgeDetail)), None)

    def outcomes(self) -> dict[str, Decision]:
        """The final decision on every chunk: its drop, unless an expansion undid that, or the last one to keep it."""
        last: dict[str, Decision] = {}
        for decision in chain.from_iterable(trace.decisions for trace in self.traces):
            earlier = last.get(decision.chunk_id)
            if earlier is None or earlier.outcome != "dropped" or decision.outcome == "expanded":
                last[decision.chunk_id] = decision
        return last


def similarity(distance: float, space: Space) -> float:
    """Convert a distance to a similarity: 1 − d/2 for squared l2 on unit vectors, otherwise 1 − d. NaN, which reaches
    no threshold, if the store returns no distances."""
    if space == "rank":
        return nan
    return 1.0 - distance / 2.0 if space == "l2" else 1.0 - distance


def by_distance(pair: tuple[str, float]) -> tuple[float, str]:
    """A sort key for pairs: by distance, ties by id."""
    return pair[1], pair[0]


def with_chunks(hits: Iterable[Hit], change: Callable[[Chunk], Chunk]) -> tuple[Hit, ...]:
    """The hits with changed chunks."""
    pairs = [(hit, change(hit.chunk)) for hit in hits]
    return tuple([hit if hit.chunk is chunk else replace(hit, chunk=chunk) for hit, chunk in pairs])
