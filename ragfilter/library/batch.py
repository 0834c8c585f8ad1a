"""Filters many questions in processes of their own, one for each core.

A result comes back as bytes and is decoded when it is first read. Decoding takes about a quarter of the time of a
decision, and the process that asked would have to do it for all the others."""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from functools import partial
from gc import freeze
from multiprocessing import get_context
from operator import attrgetter
from typing import Any

from ragfilter.library.result import FIELDS, FilterCall, Result
from ragfilter.model import Chunk, Decision, Hit, LayerTrace

CHUNK = 8
"""Number of questions sent to a process at once."""


class Workers(ProcessPoolExecutor):
    """One process per core, each with a copy of the filter."""

    def __init__(self, flt: FilterCall) -> None:
        super().__init__(mp_context=get_context("spawn"), initializer=_adopt, initargs=(flt,))

    def filter(self, queries: Iterable[str], hits: Iterable[Iterable[Any]], **options: Any) -> list[Result]:
        """The results, in the order of `queries`. `options` are passed to each call of the filter."""
        jobs = ((query, list(docs)) for query, docs in zip(queries, hits, strict=True))
        every = self.map(partial(_filter, **options), jobs, chunksize=CHUNK)
        return [Result.from_bytes(written) for written in every]


_adopted: FilterCall
"""The filter of this process, if it is one of the workers."""


def _adopt(flt: FilterCall) -> None:
    global _adopted
    _adopted = flt
    # What has been imported stays, so the garbage collector need not look at it again.
    freeze()


def _filter(job: tuple[str, list[Any]], **options: Any) -> bytes:
    query, docs = job
    return encode(_adopted(query, docs, **options))


def encode(result: Result) -> bytes:
    """The fields of a result as bytes, for `Result.from_bytes`."""
    return pickle.dumps(tuple(getattr(result, name) for name in FIELDS), pickle.HIGHEST_PROTOCOL)


_TRACE = [field.name for field in fields(LayerTrace) if field.name != "decisions"]


def _trace_as_call(trace: LayerTrace) -> tuple[Any, ...]:
    return _trace, ([tuple(decision) for decision in trace.decisions], *(getattr(trace, name) for name in _TRACE))


def _trace(decisions: list[tuple[Any, ...]], *others: Any) -> LayerTrace:
    return LayerTrace(decisions=tuple(map(Decision._make, decisions)), **dict(zip(_TRACE, others, strict=True)))


def _pickle_as_call(kind: type) -> None:
    values = attrgetter(*(field.name for field in fields(kind)))
    copyreg.pickle(kind, lambda value: (kind, values(value)))


# What a result has many of is pickled as calls with plain values, in a third of the usual time.
copyreg.pickle(LayerTrace, _trace_as_call)
_pickle_as_call(Chunk)
_pickle_as_call(Hit)
