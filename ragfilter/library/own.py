"""Filters a caller's own documents, and returns the same objects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TypeVar

from ragfilter.library.result import Result
from ragfilter.library.scores import Metric
from ragfilter.model import User

log = logging.getLogger(__name__)

Document = TypeVar("Document")
FilterCall = Callable[..., Result]
"""A `Filter`, as its adapters call it."""


def keep(
    flt: FilterCall,
    query: str,
    docs: Sequence[Document],
    scores: Iterable[float | None],
    *,
    metric: Metric | None,
    user: User | None,
) -> tuple[list[Document], Result]:
    """Those of `docs` that `flt` keeps, in its order, and its result.

    If a score is missing, the order given is the rank. The documents alone do not say why nothing
    is kept, or what a layer lacked, so that is logged. Raises InputError, SettingsError.
    """
    result = flt(query, docs, scores, metric=metric, user=user)
    if result.status != "ok":
        log.warning("%s: %s", result.status, result.message)
    for kind in dict.fromkeys(need.kind for need in result.needs):
        _lacks(kind)
    return [hit.doc for hit in result], result


@cache
def _lacks(kind: str) -> None:
    """Say once what the filter lacks, since that is the same for every query."""
    what = "reranker" if kind == "rerank" else kind
    log.warning(
        "The filter has no %s: pass one to Filter(…, %s=…). Its layer falls back", what, what
    )
