"""The result that the library and its adapters return."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ragfilter import model
from ragfilter.answer.answer import messages
from ragfilter.answer.context_packing import Context, pack
from ragfilter.engine.replay import replay_as_user
from ragfilter.layers.cutoff import unknown_score_warning
from ragfilter.layers.visibility import visible_pool, without_hidden_refs
from ragfilter.library.documents import FUSED, Metrics
from ragfilter.model import MODEL_OF, Hit, NeedKind, User
from ragfilter.protocols import Message
from ragfilter.results.document import document, explain
from ragfilter.results.rows import ChunkRow, frame, rows
from ragfilter.results.summary import summary

if TYPE_CHECKING:
    import pandas as pd


log = logging.getLogger(__name__)

Document = TypeVar("Document")


class DroppedRow(ChunkRow):
    """The row of a dropped hit, with the caller's object."""

    doc: Any = None


class Result(model.PoolResult):
    """A filter's decisions: a sequence of the kept hits, best first. Contains nothing that its `user` cannot see."""

    __slots__ = ("_bytes",)
    _bytes: bytes

    @classmethod
    def from_bytes(cls, content: bytes) -> Result:
        """A result that is decoded when it is first read; `content` is from `batch.encode`."""
        result: Result = object.__new__(cls)
        object.__setattr__(result, "_bytes", content)
        return result

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Only called for a field without a value.
            if name not in FIELDS:
                raise AttributeError(f"A result has no {name!r}.")
            # Only once, so that every thread reads the same hits.
            with _decoding:
                if self._bytes:
                    for field, value in zip(FIELDS, pickle.loads(self._bytes), strict=True):
                        object.__setattr__(self, field, value)
                    object.__setattr__(self, "_bytes", b"")
            return object.__getattribute__(self, name)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.kept)

    @overload
    def __getitem__(self, place: int) -> Hit: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        """The kept hit at a 0-based place, or the hits of a slice."""
        return self.kept[place]

    def __len__(self) -> int:
        """The number of kept hits."""
        return len(self.kept)

    def __repr__(self) -> str:
        result_summary = summary(self)
        why = result_summary.why.removeprefix(f"keeps {result_summary.kept} with ")
        return f"<Result: {result_summary.kept} of {result_summary.retrieved} kept, {why}>"

    def __bool__(self) -> bool:
        """Always True, even if nothing is kept."""
        return True

    @property
    def dropped(self) -> tuple[DroppedRow, ...]:
        """The dropped hits, by rank, with layer, reason, compared value and limit, and the caller's object (`doc`)."""
        docs = {hit.id: hit.doc for hit in self.hits}
        dropped = [DroppedRow(*row) for row in rows(self) if not row.kept]
        for row in dropped:
            row.doc = docs[row.id]
        return tuple(dropped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Problems with the input, and failures of models."""
        failed = [f"The {MODEL_OF[each.kind]} failed: {each.error}" for each in self.pool.failures]
        failed += [f"The judge failed: {each.error}" for each in self.pool.judgements if each.error]
        return (*self.pool.warnings, *failed, *filter(None, [unknown_score_warning(self)]))

    @property
    def context(self) -> Context:
        """The kept chunks as sent to the LLM: numbered, within the token budget, without what prune struck."""
        return pack(self.kept, self.settings)

    def prompt(self, *, reorder: bool = False) -> tuple[Message, ...]:
        """The messages that ask an LLM to answer the query from the context.

        With `reorder`, the best chunks come first and last and the weakest in the middle, where an LLM overlooks most
        (Liu et al., Lost in the Middle, 2023). Each chunk keeps its number."""
        return messages(self.query, pack(self.kept, self.settings, reorder=reorder))

    def explain(self, chunk_id: str) -> str:
        """Every layer's decision about one chunk, as text. Raises InputError if it is not a hit."""
        return explain(self, chunk_id)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with one row per hit. Needs pandas."""
        return frame(rows(self))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of the command line: hits, texts of kept chunks, decisions."""
        return document(self)


FIELDS = tuple(field.name for field in fields(model.PoolResult))
_decoding = threading.RLock()

Watcher = Callable[[Result, int], None]
"""Called with every result and the time when its question came (nanoseconds since 1970)."""
_watcher: Watcher | None = None


def watch(watcher: Watcher | None) -> None:
    """Call `watcher` with every result in this process from now on; None stops this."""
    global _watcher
    _watcher = watcher


def to_result(decided: model.PoolResult, started_ns: int) -> Result:
    """The engine's result as its user can see it: no part of it contains hidden chunks."""
    mine = _redacted(replay_as_user(decided))
    result = Result(**{f.name: getattr(mine, f.name) for f in fields(mine)})
    if _watcher is not None:
        _watcher(result, started_ns)
    return result


def _redacted(result: model.PoolResult) -> model.PoolResult:
    """Remove what names or describes hidden chunks from a result of visible hits, and the LLM's raw answers."""
    user = result.user
    if user.unrestricted:
        return result
    pool = visible_pool(result.pool, user)
    change = without_hidden_refs(pool, user)
    known = {hit.id for hit in (*pool.hits, *pool.reachable)}
    judgements = (j for j in pool.judgements if known.issuperset((*j.asked, *j.left_out)))
    pool_hits = model.with_chunks(pool.hits, change)
    return replace(
        result,
        # Usually the same hits, which are compared by identity first.
        hits=pool_hits if result.hits == pool.hits else model.with_chunks(result.hits, change),
        kept=model.with_chunks(result.kept, change),
        traces=tuple(map(_without_reply, result.traces)),
        pool=replace(
            pool,
            hits=pool_hits,
            reachable=model.with_chunks(pool.reachable, change),
            references=tuple(map(change, pool.references)),
            judgements=tuple(replace(judgement, reply="") for judgement in judgements),
        ),
    )


def _without_reply(trace: model.LayerTrace) -> model.LayerTrace:
    if not isinstance(trace.detail, model.JudgeDetail):
        return trace
    return replace(trace, detail=replace(trace.detail, judgement=replace(trace.detail.judgement, reply="")))


FilterCall = Callable[..., Result]
"""A `Filter`, as its adapters call it."""


def kept_documents(
    flt: FilterCall,
    query: str,
    docs: Sequence[Document],
    scores: Iterable[float | None],
    *,
    metric: Metrics | None,
    user: User | None,
) -> list[Document]:
    """The documents that `flt` keeps, in its order.

    If a score is missing, the given order is the rank. If there are several named scores, `scores` are the fused ones.
    Logs why nothing is kept or what a layer lacks, since the documents alone do not show it. Raises InputError,
    SettingsError."""
    fused = not isinstance(metric, Mapping) or FUSED in metric
    result = flt(query, docs, scores if fused else None, metric=metric, user=user)
    if result.status != "ok":
        log.warning("%s: %s", result.status, result.message)
    for kind in dict.fromkeys(need.kind for need in result.needs):
        _lacks(kind)
    return [hit.doc for hit in result]


@cache
def _lacks(kind: NeedKind) -> None:
    """Log what the filter lacks, only once, since it is the same for every query."""
    what = MODEL_OF[kind]
    log.warning("The filter has no %s: pass one to Filter(…, %s=…). Its layer falls back", what, what)
