"""Reads any store's documents as hits: texts, mappings, objects of LangChain, LlamaIndex, Haystack.

Objects are recognised by their attributes, so none of these libraries is imported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from math import isfinite
from numbers import Real
from operator import attrgetter, itemgetter
from typing import Any

from ragfilter.errors import InputError
from ragfilter.ingest.records import given_id, plain_values, to_record, whole_number
from ragfilter.library.scores import Metric, check_metric, examine, space_of, to_distances
from ragfilter.model import Chunk, Hit, Space, User
from ragfilter.text.characters import whole
from ragfilter.text.numbers import counted

log = logging.getLogger(__name__)

FORGIVEN = frozenset(("id", "title", "type", "source", "page", "refs"))
"""Fields that may mean something else in another library. Those that hide chunks do not."""
TEXTS = ("id", "text", "title", "type", "source")
MOST_TOLD = 5
"""Warnings that are given for each document."""

EXPONENTIAL = (
    "LlamaIndex's Chroma store reports exp(−distance) as the similarity of a node: pass "
    "[-log(score)] with the collection's own metric if these come from there."
)
ONE_QUERY = (
    "A store that answers several queries at once returns a list for each. Pass that of your "
    "query, such as result['documents'][0] and result['distances'][0] of Chroma."
)
NO_METRIC = (
    "The documents have a score or distance, but no metric says what it is, so only their order is "
    "used: pass metric='l2', 'cosine', 'ip' or 'similarity'."
)


_VALUES = attrgetter(*(f.name for f in fields(Chunk)))


@dataclass(frozen=True, slots=True)
class Placed(Chunk):
    """A chunk of `to_chunks` that knows its 0-based place among the documents passed, also once a
    copy is made that leaves out references. Ids cannot tell: two documents may have the same."""

    place: int = 0

    @classmethod
    def at(cls, place: int, chunk: Chunk) -> Placed:
        return cls(*(*_VALUES(chunk), place))


def to_hits(
    docs: Iterable[Any], scores: Iterable[float] | None, metric: Metric | None, user: User
) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    """The hits by ascending distance, the space of their distances, and warnings.

    Documents that `user` may not see change nothing: they are left out, and problems with them are
    only logged. If the user may see none of `docs`, the hits are all of them, without a warning.

    If there are no scores at all, the given order is the rank. Of chunks with the same id, the
    nearest is kept. Raises InputError for scores without a metric, if their number is not that of
    the documents, and for an unknown form.
    """
    check_metric(metric)
    each = _each(docs, "documents")
    given = [_unpack(doc, metric) for doc in each]
    values = [score for _, score in given] if scores is None else _each(scores, "scores")
    if len(values) != len(given):
        raise InputError(
            f"{counted(len(values), 'score')} for {counted(len(given), 'document')}.",
            remedy="Pass one score per document.",
        )
    read = to_chunks([doc for doc, _ in given])
    seen = [place for place, (chunk, _) in enumerate(read) if user.sees(chunk)]
    places = seen or range(len(read))
    known = set(seen)
    log_all([warning for i, (_, said) in enumerate(read) if i not in known for warning in said])
    numbers = [_number(value, place) for place, value in enumerate(values, start=1)]
    chunks = _with_ids([(i + 1, read[i][0]) for i in places])
    hits, space, warnings = _to_hits(chunks, [numbers[i] for i in places], metric)
    if metric == "similarity" and space != "rank":
        nodes = any(hasattr(given[i][0], "get_content") for i in places)
        warnings += (EXPONENTIAL,) if nodes else ()
    if scores is None and metric is None and any(_score_of(each[i]) is not None for i in seen):
        warnings += (NO_METRIC,)
    said = bounded([warning for i in seen for warning in read[i][1]])
    return hits, space, (*said, *warnings) if seen else ()


def _to_hits(
    chunks: Sequence[Chunk], scores: Sequence[float | None], metric: Metric | None
) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    numbers = [score for score in scores if score is not None]
    missing = len(scores) - len(numbers)
    warnings: tuple[str, ...] = ()
    if missing and (metric is not None or numbers):
        given = "" if metric is None else f"The metric is {metric}, but "
        lack = f"{missing} of {len(scores)} scores {'is' if missing == 1 else 'are'} missing"
        warnings = (f"{given}{lack}, so only the order given is used.",)
    elif metric is not None:
        warnings = examine(numbers, metric)
    elif numbers:
        raise InputError(
            "The scores have no metric.",
            remedy="Say what they are: metric='l2', 'cosine', 'ip' or 'similarity'.",
        )
    if metric is None or missing or not all(map(isfinite, numbers)):
        hits, more = _unique([(chunk, 0.0) for chunk in chunks])
        hits = tuple(replace(hit, distance=float(hit.rank)) for hit in hits)
        return hits, "rank", warnings + more
    distances = to_distances(numbers, metric)
    hits, more = _unique(sorted(zip(chunks, distances, strict=True), key=itemgetter(1)))
    return hits, space_of(metric), warnings + more


def to_chunks(docs: Sequence[Any]) -> list[tuple[Chunk, tuple[str, ...]]]:
    """Each document as a chunk, and what of it could not be used; one without an id has an empty
    one. Raises InputError."""
    return [_to_chunk(doc, place) for place, doc in enumerate(docs, start=1)]


def _with_ids(placed: Sequence[tuple[int, Chunk]]) -> list[Chunk]:
    """The chunks of these 1-based places. One without an id gets its place, or where that is the id
    of another, the first free number after all places."""
    taken = {chunk.id for _, chunk in placed}
    last = max((place for place, _ in placed), default=0)
    free = (str(number) for number in count(last + 1) if str(number) not in taken)

    def unused(place: int) -> str:
        return next(free) if str(place) in taken else str(place)

    return [chunk if chunk.id else replace(chunk, id=unused(place)) for place, chunk in placed]


def bounded(warnings: Sequence[str]) -> tuple[str, ...]:
    """The first few warnings, and how many more there are."""
    rest = len(warnings) - MOST_TOLD
    more = (f"… and {counted(rest, 'more such warning')}.",) if rest > 0 else ()
    return (*warnings[:MOST_TOLD], *more)


def log_all(warnings: Sequence[str]) -> None:
    """Write the warnings into the log, bounded."""
    for warning in bounded(warnings):
        log.warning("%s", warning)


def _to_chunk(doc: Any, place: int) -> tuple[Chunk, tuple[str, ...]]:
    if isinstance(doc, Placed):
        return doc, ()
    if isinstance(doc, Hit):
        return _plain(doc.chunk, place), ()
    if isinstance(doc, Chunk):
        return _plain(doc, place), ()
    if isinstance(doc, str):
        return Chunk("", whole(doc)), ()
    foreign = not isinstance(doc, Mapping)
    raw = _fields(doc) if foreign else dict(doc)
    if isinstance(doc, list):
        raise InputError(f"Document {place} is a list.", remedy=ONE_QUERY)
    if raw is None:
        raise InputError(
            f"Document {place} is of the unknown type {type(doc).__name__}.",
            remedy="Pass texts, mappings with a text, or documents of a known library.",
        )
    nameless = given_id(raw) is None
    if nameless:
        raw["id"] = "-"
    if "page_content" in raw and "text" not in raw:
        raw["text"] = raw.pop("page_content")
    named = f"document {place}"
    try:
        made = to_record(raw, place=named)
    except InputError:
        if not foreign:
            raise
        chunk, warnings = _forgive(raw, named)
        nameless = nameless or given_id(raw) is None
    else:
        chunk, warnings = made.chunk, made.warnings
    return (replace(chunk, id="") if nameless else chunk), warnings


def _plain(chunk: Chunk, place: int) -> Chunk:
    """The chunk in whole characters and plain values, as a mapping would give it. Raises
    InputError."""
    wrong = [name for name in TEXTS if not isinstance(getattr(chunk, name), str)]
    page = None if chunk.page is None else whole_number(chunk.page)
    if chunk.page is not None and page is None:
        wrong.append("page")
    if not all(isinstance(ref, str) for ref in chunk.refs):
        wrong.append("refs")
    rule: object = chunk.rule
    if rule is not None and not isinstance(rule, str):
        wrong.append("rule")
    if wrong:
        raise InputError(
            f"Document {place} is a Chunk whose {wrong[0]} is {getattr(chunk, wrong[0])!r}.",
            remedy="Pass a whole number." if wrong[0] == "page" else "Pass text.",
        )
    refs, metadata = tuple(map(whole, chunk.refs)), chunk.metadata
    made: dict[str, Any] = {name: whole(getattr(chunk, name)) for name in TEXTS}
    made |= {
        "page": page,
        "refs": chunk.refs if refs == chunk.refs else refs,
        "department": chunk.department and whole(chunk.department),
        "rule": chunk.rule and whole(chunk.rule),
        "metadata": metadata
        if metadata == {}
        else plain_values(dict(metadata or {}), f"document {place}"),
    }
    # Most chunks need no copy, and copying takes longer than looking.
    changed = {name: value for name, value in made.items() if value is not getattr(chunk, name)}
    return replace(chunk, **changed) if changed else chunk


def _forgive(raw: dict[str, Any], named: str) -> tuple[Chunk, tuple[str, ...]]:
    """Another library's document whose text is empty, or whose metadata mean something else than
    our fields of the same name: those stay among the chunk's own fields."""
    text, own, said = raw.pop("text") or "", {}, []
    for name in sorted(FORGIVEN & raw.keys()):
        try:
            to_record({"id": "-", "text": "-", name: raw[name]}, place=named)
        except InputError as error:
            own[name] = raw.pop(name)
            said.append(f"{error.message} It is kept as metadata only.")
    meta = raw.get("metadata")
    inside = dict(meta) if isinstance(meta, Mapping) else {} if meta is None else {"metadata": meta}
    asked = {"id": "-", **raw, "text": "-", "metadata": {**inside, **own}}
    made = to_record(asked, place=named)
    return replace(made.chunk, text=whole(text)), (*said, *made.warnings)


def _each(values: Iterable[Any], what: str) -> list[Any]:
    """The values of a list. Raises InputError for what is one thing, or a table."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(
            f"The {what} are of the type {type(values).__name__}.",
            remedy=f"Pass a list of {what}. {ONE_QUERY}",
        )
    if hasattr(values, "columns"):
        raise InputError(
            f"The {what} are a {type(values).__name__}.",
            remedy="Pass its rows, such as frame.to_dict('records'), or one of its columns.",
        )
    return list(values)


def _unpack(doc: Any, metric: Metric | None) -> tuple[Any, float | None]:
    """The document and the score it brings along: a pair, a node or hit with a score, or a mapping
    with one, if the metric says what it is."""
    if isinstance(doc, Hit):
        return doc, doc.distance
    if isinstance(doc, tuple) and len(doc) == 2:
        return doc
    if isinstance(doc, Mapping):
        return doc, _score_of(doc, metric) if metric else None
    node = getattr(doc, "node", None)
    if node is not None and hasattr(doc, "score"):
        return node, doc.score
    return doc, getattr(doc, "score", None)


def _score_of(doc: Any, metric: Metric | None = None) -> float | None:
    """The score that a mapping has; a distance is no similarity."""
    if not isinstance(doc, Mapping):
        return None
    names = ("score",) if metric == "similarity" else ("distance", "score")
    return next((doc[name] for name in names if isinstance(doc.get(name), Real)), None)


def _fields(doc: Any) -> dict[str, Any] | None:
    """The fields of another library's document; None if its form is not known."""
    if hasattr(doc, "page_content"):  # LangChain
        own = {"id": doc.id} if doc.id else {}
        return {**(doc.metadata or {}), **own, "text": doc.page_content}
    if hasattr(doc, "get_content"):  # LlamaIndex
        return {**(doc.metadata or {}), "id": doc.node_id, "text": doc.get_content()}
    if hasattr(doc, "content") and hasattr(doc, "meta"):  # Haystack
        return {**(doc.meta or {}), "id": doc.id, "text": doc.content}
    return None


def _number(value: Any, place: int) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise InputError(
            f"The score of document {place} is {value!r}.", remedy="Pass numbers."
        ) from None


def _unique(
    pairs: Sequence[tuple[Chunk, float]],
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    nearest: dict[str, tuple[Chunk, float]] = {}
    for chunk, distance in pairs:
        nearest.setdefault(chunk.id, (chunk, distance))
    double = len(pairs) - len(nearest)
    told = f"Left out: {counted(double, 'document')} with the id of a nearer one."
    hits = (Hit(chunk, d, rank) for rank, (chunk, d) in enumerate(nearest.values(), start=1))
    return tuple(hits), (told,) if double else ()
