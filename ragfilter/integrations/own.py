"""Filter a caller's own documents, and hand back the same objects."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ragfilter.documents import to_chunks
from ragfilter.model import User
from ragfilter.result import Result
from ragfilter.scores import Metric

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
    user: User,
) -> tuple[list[Document], Result]:
    """Those of `docs` that `flt` keeps, in its order, and its result.

    Where a score is missing, the order given is the rank. Raises InputError, SettingsError.
    """
    chunks, warnings = to_chunks(docs)
    for warning in warnings:
        log.warning("%s", warning)
    known = [score for score in scores if score is not None]
    result = flt(
        query, chunks, known if len(known) == len(chunks) else None, metric=metric, user=user
    )
    # By identity: two documents may have the same id, or be equal.
    own = {id(chunk): doc for chunk, doc in zip(chunks, docs, strict=True)}
    return [own[id(hit.chunk)] for hit in result], result
