"""The interface of a layer: a pure `apply(hits, inputs) -> LayerOutput`, and a `LayerSpec` that describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from statistics import fmean
from typing import Any, Literal

from ragfilter.model import Decision, Detail, Hit, LayerTrace, Need, Pool, PoolResult, Status, User, similarity
from ragfilter.rules.match import Scan
from ragfilter.settings.schema import Settings

EPSILON = 1e-9
"""Tolerance for values that equal a limit except for rounding."""
BACKGROUND_FROM = 50
"""Smallest pool from which the background distance is estimated."""
SHARED_TITLES, NEARER = 0.2, 2 / 3
"""From which share of hits with another one's title hits count as passages, and how far their background then counts
as. Chosen with `benchmarks/offsets.py`."""


def background_reach(hits: Sequence[Hit]) -> float:
    """How much of the way to the background counts: all of it, or two thirds if many `hits` share their titles. Such
    hits are passages cut from longer texts, of which one to three answer a question. Records have titles of their own.
    Chunks without titles count as records, since they could be either."""
    titles = Counter(hit.chunk.title for hit in hits)
    shared = sum(n for title, n in titles.items() if title and n > 1)
    return NEARER if shared > SHARED_TITLES * len(hits) else 1.0


def estimate_background(values: Sequence[float]) -> float:
    """The mean of the farther half of `values`: the background as estimated from a list of hits."""
    ordered = sorted(values)
    return fmean(ordered[len(ordered) // 2 :])


@dataclass(frozen=True, slots=True)
class LayerInput:
    """A layer's input: the settings, the pool, the `scan` of rules, the user, the pins with their reasons, whether an
    earlier layer put the hits in a reranker's order, and the distances that it adjusted. `shared` caches what layers
    compute once for all of them. Without `explain`, nobody reads decisions, details and notes, so a layer can leave
    them out."""

    settings: Settings
    pool: Pool
    scan: Scan
    user: User
    pinned: Mapping[str, str] = field(default_factory=dict)
    reranked: bool = False
    adjusted_distances: Mapping[str, float] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict, compare=False)
    explain: bool = True

    @property
    def own_hits(self) -> tuple[Hit, ...]:
        """The first pool_size hits that the query itself found and the user can see, even if the pool was doubled."""
        if "own_hits" not in self.shared:
            own = (h for h in self.pool.hits if h.found_by == "query" and self.user.sees(h.chunk))
            self.shared["own_hits"] = tuple(islice(own, self.settings.retrieval.pool_size))
        hits: tuple[Hit, ...] = self.shared["own_hits"]
        return hits

    @property
    def raw_background(self) -> float | None:
        """The background of the query's own hits, even if only their order counts; None if there are too few."""
        if "raw_background" not in self.shared:
            distances = [hit.distance for hit in self.own_hits]
            self.shared["raw_background"] = (
                estimate_background(distances) if len(distances) >= BACKGROUND_FROM else None
            )
        found: float | None = self.shared["raw_background"]
        return found

    @property
    def background(self) -> float | None:
        """The distance of chunks unrelated to the query. None also if the store gives no distances."""
        return None if self.pool.space == "rank" else self.raw_background

    def split(self, hits: tuple[Hit, ...]) -> tuple[tuple[Hit, ...], tuple[Hit, ...]]:
        """The pinned hits and the others, each in order."""
        if not self.pinned:
            return (), hits
        pins = tuple([hit for hit in hits if hit.chunk.id in self.pinned])
        return pins, tuple([hit for hit in hits if hit.chunk.id not in self.pinned])

    def similarity(self, hit: Hit) -> float:
        return similarity(hit.distance, self.pool.space)

    def after(self, output: LayerOutput) -> LayerInput:
        """The input of the next layer."""
        if not (output.pinned or output.adjusted_distances or output.reranked):
            return self
        # `replace` takes five times as long, and the matrix of rules calls this often.
        pinned = {**output.pinned, **self.pinned}
        adjusted = output.adjusted_distances or self.adjusted_distances
        changed = (pinned, self.reranked or output.reranked, adjusted)
        return LayerInput(self.settings, self.pool, self.scan, self.user, *changed, self.shared, self.explain)


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """A layer's output: the hits that it lets through, in order, and every decision.

    `failed`: a model failed, so the layer fell back. `reranked`: the order is now a reranker's. `adjusted_distances`
    decide the order, if the hits' own do not."""

    hits: tuple[Hit, ...]
    decisions: tuple[Decision, ...] = ()
    needs: tuple[Need, ...] = ()
    detail: Detail = None
    note: str = ""
    status: Status = "ok"
    message: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)
    reranked: bool = False
    adjusted_distances: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


def place_words(place: int, hit: Hit) -> str:
    """How the reason for a hit that is too far down begins: with its place in the layer's input, if not its rank."""
    return "" if place == hit.rank else f"place {place} in this order, "


Layer = Callable[[tuple[Hit, ...], LayerInput], LayerOutput]
Relax = Callable[[LayerTrace, PoolResult], tuple[str, dict[str, Any]] | None]
Cost = Literal["free", "store query", "local model", "API call", "LLM call"]


@dataclass(frozen=True, slots=True)
class Mark:
    """The look of a layer or an outcome. `sign` is text, `symbol` a plotly marker; `about` says what else it means."""

    sign: str
    symbol: str
    light: str
    dark: str
    about: str = ""

    def colour(self, *, dark: bool) -> str:
        return self.dark if dark else self.light


def no_more(settings: Settings) -> int:
    """For `candidates`: the layer needs no more chunks than the others do."""
    return 0


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer. Settings, switch, funnel, trace, explanations, docs and link are derived from it.

    Only the first four fields are required. All functions are pure. The layer's settings are the section of `Settings`
    with its name, if there is one; its switch is `enabled` there, whose description says what the layer does."""

    name: str
    title: str
    mark: Mark
    apply: Layer
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """Marks for hits that it drops for other reasons than `mark` stands for, by the path of the
    setting that decided."""
    reads: tuple[str, ...] = ()
    """The names of other layers whose settings it reads, even if those layers are off."""
    acts: Callable[[Settings], bool] = lambda settings: True
    """Whether a layer without a switch acts."""
    line: Callable[[LayerTrace, PoolResult], str] = lambda trace, _: (
        trace.note or f"keeps {trace.n_out} of {trace.n_in}"
    )
    """Says what it did for this query, in the funnel, sidebar and trace."""
    off: Callable[[Settings], str] = lambda settings: "off"
    """Says what happens without it."""
    cost: Callable[[Settings], Cost] = lambda settings: "free"
    first: tuple[str, ...] = ()
    """Settings that the sidebar shows at once, in this order; the others are one click away."""
    unused: Callable[[Settings], frozenset[str]] = lambda settings: frozenset()
    """Settings of its section that have no effect given the other settings."""
    relax: Relax = lambda trace, _: None
    """The label of a button and the settings it changes, offered if the layer let nothing through.
    Without settings, the text says why nothing is offered. None: offer to switch the layer off."""
    limits: bool = False
    """Whether it decides how many stay. The summary quotes the last such one to change the number of hits."""
    candidates: Callable[[Settings], int] | None = None
    """The most chunks that it looks at after clearance and rules; their texts are fetched. None if
    that is not known: it then gets all that the page would gather, with their texts."""
    compares: int = 0
    """How many chunks it compares by text: a search finds that many more, with their texts."""
    reads_pool: Callable[[Settings], bool] = lambda settings: False
    """Whether it compares with the pool's far end, so that a pool of full size is gathered."""
    plain: Callable[[Decision, Hit, PoolResult], str] | None = None
    """Says why it dropped a hit, without jargon, as the end of a sentence after "83 of them": ``did
    not match well enough``. None: name the layer instead."""
    unreached: Callable[[LayerTrace, PoolResult], dict[str, int | str]] = lambda trace, result: {}
    """Limits that dropped nothing because they were not reached: the path of each setting, with the
    number of chunks that came in or a text such as ``the largest gap is 0.050``."""
    holds: str = ""
    """The path of a setting that keeps hits that other settings would drop."""
    explains: int = 2
    """How well its decision explains a kept hit: 2 if it compares, 1 if it counts, 0 not at all."""

    @property
    def settings_names(self) -> tuple[str, ...]:
        """The names of its own settings."""
        section = Settings.model_fields.get(self.name)
        return () if section is None else tuple(type(section.default).model_fields)

    @property
    def switched(self) -> bool:
        """Whether a setting switches it on and off."""
        return "enabled" in self.settings_names

    def enabled(self, settings: Settings) -> bool:
        """Whether it acts with these settings."""
        switch = getattr(getattr(settings, self.name, None), "enabled", None)
        return self.acts(settings) if switch is None else bool(switch)

    def used(self, settings: Settings) -> tuple[str, ...]:
        """Its settings that have an effect now, except the switch; those in `first` come first."""
        unused = self.unused(settings) | {"enabled"}
        ordered = dict.fromkeys((*self.first, *self.settings_names))
        return tuple(name for name in ordered if name not in unused)
