"""What any store returned, as hits: texts, mappings, LangChain, LlamaIndex and Haystack documents.

Objects are told apart by their attributes, so none of these libraries is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from ragfilter.errors import InputError
from ragfilter.ingest.records import to_record
from ragfilter.model import Chunk, Hit, Space
from ragfilter.scores import Metric, check_metric, examine, space_of, to_distances
from ragfilter.text.characters import whole

EXPONENTIAL = (
    "LlamaIndex's Chroma store reports exp(−distance) as the similarity of a node: pass "
    "[-log(score)] with the collection's own metric if these come from there."
)


def to_hits(
    docs: Iterable[Any], scores: Iterable[float] | None, metric: Metric | None
) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    """The hits by ascending distance, the space of their distances, and warnings.

    Where there are no scores at all, the order given is the rank. Of chunks with the same id the
    nearest stays. Raises InputError: scores without a metric, not one a document, an unknown form.
    """
    given = [_unpack(doc) for doc in docs]
    own = [score for _, score in given]
    values = list(scores) if scores is not None else own
    if len(values) != len(given):
        raise InputError(
            f"There are {len(values)} scores for {len(given)} documents.",
            remedy="Pass one score a document.",
        )
    chunks = [to_chunk(doc, place) for place, (doc, _) in enumerate(given, start=1)]
    if any(value is None for value in values):
        return _ranked(chunks)
    if metric is None:
        if values:
            raise InputError(
                "The scores have no metric.",
                remedy="Say what they are: metric='l2', 'cosine', 'ip' or 'similarity'.",
            )
        return (), "rank", ()
    check_metric(metric)
    numbers = [_number(value, place) for place, value in enumerate(values, start=1)]
    warnings = examine(numbers, metric)
    if metric == "similarity" and any(hasattr(doc, "get_content") for doc, _ in given):
        warnings += (EXPONENTIAL,)
    if not all(map(isfinite, numbers)):
        hits, space, more = _ranked(chunks)
        return hits, space, warnings + more
    pairs = sorted(
        zip(chunks, to_distances(numbers, metric), strict=True), key=lambda pair: pair[1]
    )
    hits, more = _unique(pairs)
    return hits, space_of(metric), warnings + more


def to_chunk(doc: Any, place: int) -> Chunk:
    """A document as a chunk; one without an id gets its 1-based place. Raises InputError."""
    if isinstance(doc, Hit):
        return doc.chunk
    if isinstance(doc, Chunk):
        return doc
    if isinstance(doc, str):
        return Chunk(str(place), whole(doc))
    raw = dict(doc) if isinstance(doc, Mapping) else _fields(doc)
    if raw is None:
        raise InputError(
            f"Document {place} is of the unknown type {type(doc).__name__}.",
            remedy="Pass texts, mappings with a text, or documents of a known library.",
        )
    if raw.get("id", raw.get("_id")) in (None, ""):
        raw["id"] = str(place)
    if "page_content" in raw and "text" not in raw:
        raw["text"] = raw.pop("page_content")
    return to_record(raw, place=f"document {place}").chunk


def _unpack(doc: Any) -> tuple[Any, float | None]:
    """The document and the score it brings along: a pair, a node or hit with a score."""
    if isinstance(doc, Hit):
        return doc, doc.distance
    if isinstance(doc, tuple) and len(doc) == 2:
        return doc
    node = getattr(doc, "node", None)
    if node is not None and hasattr(doc, "score"):
        return node, doc.score
    return doc, getattr(doc, "score", None)


def _fields(doc: Any) -> dict[str, Any] | None:
    """The fields of another library's document; None where its form is not known."""
    if hasattr(doc, "page_content"):  # LangChain
        return {"id": doc.id, **(doc.metadata or {}), "text": doc.page_content}
    if hasattr(doc, "get_content"):  # LlamaIndex
        return {**(doc.metadata or {}), "id": doc.node_id, "text": doc.get_content()}
    if hasattr(doc, "content") and hasattr(doc, "meta"):  # Haystack
        return {**(doc.meta or {}), "id": doc.id, "text": doc.content}
    return None


def _number(value: Any, place: int) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"The score of document {place} is {value!r}.", remedy="Pass numbers."
        ) from None


def _ranked(chunks: Sequence[Chunk]) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    hits, warnings = _unique([(chunk, float(i)) for i, chunk in enumerate(chunks, start=1)])
    return tuple(replace(hit, distance=float(hit.rank)) for hit in hits), "rank", warnings


def _unique(
    pairs: Sequence[tuple[Chunk, float]],
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    nearest: dict[str, tuple[Chunk, float]] = {}
    for chunk, distance in pairs:
        nearest.setdefault(chunk.id, (chunk, distance))
    double = len(pairs) - len(nearest)
    told = f"{double} documents repeat the id of a nearer one and are left out."
    hits = (Hit(chunk, d, rank) for rank, (chunk, d) in enumerate(nearest.values(), start=1))
    return tuple(hits), (told,) if double else ()
