"""Reads the hits of any store: texts, mappings, rows and objects, such as LangChain's, LlamaIndex's and Haystack's.

Objects are recognised by their attributes, so no library is imported. The metric of scores and its direction are never
guessed; scores that contradict the metric cause a warning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple, cast, get_args

from ragfilter.errors import InputError
from ragfilter.ingest.records import FIELDS, given_id, is_missing, plain_values, to_record
from ragfilter.model import Chunk, Hit, Metric, Score, Space, User
from ragfilter.text.normalise import mend_characters
from ragfilter.text.numbers import counted, first_warnings

Metrics = Metric | Mapping[str, Metric]
"""A metric, or the metric of each named score."""
METRICS = f"metric={' or '.join(', '.join(map(repr, get_args(Metric))).rsplit(', ', 1))}"
"""The metrics, as listed in messages."""

RANGE: dict[Metric, tuple[float, float]] = {
    "l2": (0.0, 4.0),
    "euclidean": (0.0, 2.0),
    "cosine": (0.0, 2.0),
    "ip": (0.0, 2.0),
    "similarity": (-1.0, 1.0),
}
"""The range of scores of unit vectors."""
INSTEAD: dict[Metric, str] = {
    "euclidean": " If they are squared, pass metric='l2'.",
    "similarity": " If they are other scores, such as BM25, pass metric='rank'.",
}
NEGATED = "to get ip distances, add 1 to each, or pass metric='similarity' with the values negated."
"""The remedy for negated inner products, as pgvector's `<#>` returns them."""
EDGE = 1e-3
"""Tolerance for values outside the range, since stores compute in single precision."""
MIN_SCORES = 3
"""Minimum number of hits for checking their scores."""
RRF_K, SOME = 60, 8
TINY = 1e-5

FORGIVEN = frozenset(("id", "title", "type", "source", "page", "refs"))
"""Fields that may have another meaning in other libraries. Fields that hide chunks do not."""
TEXTS = ("id", "text", "title", "type", "source")
CONTENTS = ("page_content", "text", "content")
"""Names of a document's text: LangChain's, the usual one, Haystack's."""
NESTED = ("payload", "entity", "_source", "fields", "metadata", "meta")
"""Keys for a document's fields, if they are not next to id and score: Qdrant, Milvus,
Elasticsearch and OpenSearch, Pinecone (records and matches), Haystack."""
OF_METRIC: Mapping[str, tuple[str, ...]] = {
    "similarity": ("similarity", "score", "_score", "_relevance_score"),
    "rank": ("_relevance_score", "score", "_score", "similarity"),
}
"""Names of a hit's score by metric; the first one present counts. In LanceDB, `_score` comes from a
full-text search, and `_relevance_score` from a reranker, for example after a hybrid search."""
DISTANCES = ("distance", "_distance", "vector_distance", "score")
"""Names of a hit's distance: vector_distance in Redis, score in Qdrant and Pinecone."""
SCORES = frozenset((*OF_METRIC["rank"], *DISTANCES))
SQUARED = {"payload": ("Qdrant", False), "entity": ("Milvus", True), "_distance": ("LanceDB", True)}
"""Stores, by a field of their hits, and whether their Euclidean distances are squared."""
SIMILAR = ("payload", "entity")
"""The stores that call similarities (COSINE, IP) a score or distance."""
OUTER = (FIELDS | {*CONTENTS}) - {"metadata", "type"}
"""Outer fields that override nested ones. LangChain's dumps have their own `type` there."""
ATTRIBUTES = OUTER | SCORES | {*NESTED, "type"}
"""The attributes that are read from an object."""
DENSE, FUSED = "dense", "fused"
Scores = Iterable[float | None] | Mapping[str, Iterable[float | None]] | None
"""A score for each document, or several by name."""
EXPONENTIAL = (
    "LlamaIndex's Chroma store reports exp(−distance) as the similarity of a node: pass "
    "[-log(score)] with the collection's own metric if these come from there."
)
ONE_QUERY = (
    "A store that answers several queries at once returns a list for each. Pass the one for your "
    "query, such as result['documents'][0] and result['distances'][0] of Chroma."
)
NO_METRIC = (
    "The documents have a score or distance, but no metric says what it is, so only their order is "
    f"used: pass {METRICS}."
)


class _Document(NamedTuple):
    """A document: the caller's object, its content, and its own score. `unsaid`: it has a score,
    but no metric was given for it. `store` is a key of `SQUARED`."""

    doc: Any
    chunk: Chunk
    warnings: tuple[str, ...] = ()
    score: Any = None
    unsaid: bool = False
    store: str = ""


def to_hits(
    docs: Iterable[Any], scores: Scores, metric: str | Mapping[str, str] | None, user: User
) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    """Convert documents to hits by ascending distance, with their space and warnings.

    Documents that `user` cannot see have no effect: they are left out, and they cause no warning
    unless their clearance is unreadable, which hides a chunk from everybody. If the user can see
    none of `docs`, all of them become hits, without any other warning.

    Without any scores, the given order is the rank. Of chunks with the same id, the nearest is kept, with the named
    scores of all. Of several named scores, ``dense`` is the distance; a hit without it counts as far as the farthest
    hit with it. If no hit has it, the given order is the rank. Raises InputError for scores without a metric, for a
    number of scores that differs from the number of documents, and for documents of unknown form."""
    metrics = check_metrics(metric)
    metric_by_name: Mapping[str, Metric] = metrics if isinstance(metrics, Mapping) else {}
    metric = None if isinstance(metrics, Mapping) else metrics
    documents = [_read(doc, place, metric) for place, doc in enumerate(_each(docs, "documents"), 1)]
    named = bool(metric_by_name) or isinstance(scores, Mapping)
    if named:
        columns = _columns(documents, scores, metric_by_name)
    else:
        columns = {"": [each.score for each in documents] if scores is None else _each(scores, "scores")}
    for column in columns.values():
        if len(column) != len(documents):
            differ = f"{counted(len(column), 'score')} for {counted(len(documents), 'document')}."
            raise InputError(differ, remedy="Pass one score per document.")
    visible = [place for place, each in enumerate(documents) if user.sees(each.chunk)]
    warned = {*visible, *(i for i, each in enumerate(documents) if each.chunk.clearance is None)}
    places = visible or range(len(documents))
    numbers = {name: [_number(column[i], i + 1) for i in places] for name, column in columns.items()}
    values: Sequence[float | None] = [None] * len(places) if named else numbers.pop("")
    chunks = _with_ids([(i + 1, documents[i].chunk) for i in places])
    unranked = [
        Hit(chunk, 0.0, 0, scores=by_name, doc=documents[i].doc)
        for chunk, by_name, i in zip(chunks, _named_scores(numbers, metric_by_name, len(places)), places, strict=True)
    ]
    dense = [hit.scores[DENSE] for hit in unranked if DENSE in hit.scores]
    if dense:
        metric = metric_by_name[DENSE]
        far = max(dense, key=lambda score: score.distance)
        values = [hit.scores.get(DENSE, far).value for hit in unranked]
    hits, space, warnings = _to_hits(unranked, values, metric, [score.value for score in dense] or values)
    warnings = (*_examine_named(numbers, metric_by_name), *warnings)
    if scores is None and not named:
        seen = [documents[i] for i in visible]
        nodes = any(not each.store and hasattr(each.doc, "node") for each in seen)
        exponential = nodes and metric == "similarity" and space != "rank"
        warnings += (EXPONENTIAL,) if exponential else ()
        warnings += _of_store(frozenset(each.store for each in seen), metric)
        warnings += (NO_METRIC,) if any(each.unsaid for each in seen) else ()
    own_warnings = first_warnings([w for i in sorted(warned) for w in documents[i].warnings])
    return hits, space, own_warnings + warnings if visible else own_warnings


def _columns(documents: Sequence[_Document], scores: Scores, named: Mapping[str, Metric]) -> dict[str, list[Any]]:
    """Each named score for all documents: the scores passed (a plain list is the fused score), and
    others from the documents' fields or their field ``scores``. Raises InputError."""
    passed = scores if isinstance(scores, Mapping) else {} if scores is None else {FUSED: scores}
    columns = {name: _each(column, "scores") for name, column in passed.items()}
    unknown = next((name for name in columns if name not in named), None)
    if unknown is not None:
        raise InputError(f"The score {unknown!r} has no metric.", remedy=f"Pass metric={{{unknown!r}: …}}.")
    fields = [each.chunk.metadata for each in documents]
    inside = [each["scores"] if isinstance(each.get("scores"), Mapping) else each for each in fields]
    return columns | {name: [_as_score(each.get(name)) for each in inside] for name in named.keys() - columns.keys()}


def _named_scores(
    columns: Mapping[str, Sequence[float | None]], metrics: Mapping[str, Metric], n: int
) -> list[dict[str, Score]]:
    """The named scores of `n` documents. Missing values and non-finite numbers are left out."""
    named_scores: list[dict[str, Score]] = [{} for _ in range(n)]
    for name, column in columns.items():
        scored = [(Score(x, metrics[name], 0), i) for i, x in enumerate(column) if x is not None and isfinite(x)]
        for rank, (score, i) in enumerate(sorted(scored, key=lambda pair: pair[0].distance), start=1):
            named_scores[i][name] = score._replace(rank=rank)
    return named_scores


def _examine_named(columns: Mapping[str, Sequence[float | None]], metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Describe named scores that are not numbers, and a distance or every score that no document has."""
    for name, column in columns.items():
        if broken := sum(score is not None and not isfinite(score) for score in column):
            what = "is not a number and is" if broken == 1 else "are not numbers and are"
            yield f"{broken} of {len(column)} scores named {name!r} {what} left out."
    absent = [name for name, column in columns.items() if column and not any(score is not None for score in column)]
    for name in absent if DENSE in absent or len(absent) == len(columns) else ():
        yield f"The metric of {name!r} is {metrics[name]}, but no document has it, so only the order given is used."


def _of_store(stores: frozenset[str], metric: Metric | None) -> tuple[str, ...]:
    """A warning if the store of these hits is known to use another metric."""
    for store in stores & SQUARED.keys():
        name, squared = SQUARED[store]
        if metric in ("cosine", "ip") and store in SIMILAR:
            return (f"{name} reports similarities for COSINE and IP: pass metric='similarity'.",)
        right, are = ("l2", "are") if squared else ("euclidean", "are not")
        if metric in ("l2", "euclidean") and metric != right:
            return (f"Euclidean distances of {name} {are} squared: pass metric={right!r}.",)
    return ()


def _to_hits(
    hits: Sequence[Hit], scores: Sequence[float | None], metric: Metric | None, known: Sequence[float | None]
) -> tuple[tuple[Hit, ...], Space, tuple[str, ...]]:
    numbers = [score for score in scores if score is not None]
    missing = len(scores) - len(numbers)
    warnings: tuple[str, ...] = ()
    if missing and (metric is not None or numbers):
        opening = "" if metric is None else f"The metric is {metric}, but "
        lack = f"{missing} of {len(scores)} scores {'is' if missing == 1 else 'are'} missing"
        warnings = (f"{opening}{lack}, so only the order given is used.",)
    elif metric is not None:
        warnings = examine([score for score in known if score is not None], metric)
    elif numbers:
        raise InputError("The scores have no metric.", remedy=f"Pass {METRICS}.")
    space: Space = "rank"
    distances: Iterable[float] = range(len(hits))
    if metric is not None and not missing and all(map(isfinite, numbers)):
        space, distances = space_of(metric), [Score(each, metric, 0).distance for each in numbers]
    nearest: dict[str, tuple[Hit, float]] = {}
    scores_of: dict[str, dict[str, Score]] = {}
    for hit, distance in sorted(zip(hits, distances, strict=True), key=itemgetter(1)):
        nearest.setdefault(hit.id, (hit, distance))
        scores_of[hit.id] = {**hit.scores, **scores_of.get(hit.id, {})}
    double = len(hits) - len(nearest)
    if double and not any(scores_of.values()):
        warnings += (f"Left out: {counted(double, 'document')} with the id of a nearer one.",)
    ranked = tuple(
        Hit(hit.chunk, float(rank) if space == "rank" else distance, rank, scores=scores_of[hit.id], doc=hit.doc)
        for rank, (hit, distance) in enumerate(nearest.values(), start=1)
    )
    return ranked, space, warnings


def _with_ids(placed: Sequence[tuple[int, Chunk]]) -> list[Chunk]:
    """Give ids to chunks at these 1-based places. A chunk without an id gets its place or, if
    another has that id, the first free number after all places."""
    used_ids = {chunk.id for _, chunk in placed}
    last = max((place for place, _ in placed), default=0)
    free = (str(number) for number in count(last + 1) if str(number) not in used_ids)
    return [
        chunk if chunk.id else replace(chunk, id=next(free) if str(place) in used_ids else str(place))
        for place, chunk in placed
    ]


def _each(values: Iterable[Any], what: str) -> list[Any]:
    """The values of a list. Raises InputError for a single value or a table."""
    kind = type(values).__name__
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InputError(f"The {what} are of the type {kind}.", remedy=f"Pass a list of {what}. {ONE_QUERY}")
    if hasattr(values, "columns"):
        remedy = "Pass its rows, such as frame.to_dict('records'), or one of its columns."
        raise InputError(f"The {what} are a {kind}.", remedy=remedy)
    return list(values)


def _read(doc: Any, place: int, metric: Metric | None) -> _Document:
    """Read one document and its score: a hit or node with its own score, a pair of both, or any other object with a
    score, if `metric` is given. Its chunk has an empty id if it has none. Raises InputError."""
    if isinstance(doc, Hit):
        return _read(doc.chunk, place, None)._replace(doc=doc, score=doc.distance)
    if isinstance(doc, Chunk):
        return _Document(doc, *_plain(doc, place))
    if isinstance(doc, str):
        return _Document(doc, Chunk("", mend_characters(doc)))
    if getattr(doc, "node", None) is not None and hasattr(doc, "score"):  # LlamaIndex
        return _read(doc.node, place, None)._replace(doc=doc, score=doc.score)
    if isinstance(doc, list):
        raise InputError(f"Document {place} is a list.", remedy=ONE_QUERY)
    fields = _fields(doc)
    if fields is None and isinstance(doc, Sequence) and len(doc) == 2:
        return _read(doc[0], place, None)._replace(score=doc[1])
    if fields is None:
        raise InputError(
            f"Document {place} is of the unknown type {type(doc).__name__}.",
            remedy="Pass texts, mappings with a text, or documents of a known library.",
        )
    raw, scores, store = _flat(fields)
    names = SCORES if metric is None else OF_METRIC.get(metric, DISTANCES)
    score = next((s for name in names if (s := _as_score(scores.get(name))) is not None), None)
    is_ours = raw is fields and isinstance(doc, Mapping)
    chunk, warnings = _to_chunk(raw, place, foreign=not is_ours and any(name in raw for name in CONTENTS))
    if metric is None:
        return _Document(doc, chunk, warnings, unsaid=score is not None)
    return _Document(doc, chunk, warnings, score, store=store)


def _fields(doc: Any) -> dict[str, Any] | None:
    """The fields of a mapping, row or object; None if it is none of these or has no text."""
    if isinstance(doc, Mapping):
        # Milvus names the id after the primary key, and also has it as an attribute.
        return {"id": getattr(doc, "id", None), **doc}
    if hasattr(doc, "get_content"):  # LlamaIndex
        return {"id": doc.node_id, "metadata": doc.metadata, "page_content": doc.get_content()}
    if hasattr(doc, "_asdict"):  # SQLAlchemy, named tuples
        fields = dict(doc._asdict())
    elif hasattr(doc, "keys"):  # sqlite3, asyncpg
        fields = {key: doc[key] for key in doc.keys()}  # noqa: SIM118
    else:
        is_langchain = hasattr(doc, "page_content")
        names = ("id", "metadata", "page_content") if is_langchain else ATTRIBUTES
        fields = {name: getattr(doc, name) for name in names if hasattr(doc, name)}
        fields = {name: value for name, value in fields.items() if not callable(value)}
        # An attribute with this name can be anything, such as a table's description.
        fields = {k: v for k, v in fields.items() if k not in NESTED or isinstance(v, Mapping)}
    return fields if _has_text(fields) or any(name in fields for name in NESTED) else None


def _has_text(fields: Mapping[str, Any]) -> bool:
    return any(fields.get(name) is not None for name in CONTENTS)


def _flat(hit: dict[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any], str]:
    """The fields of a hit's document, the mapping with its score, and the `store` by its form."""
    scores: Mapping[str, Any] = hit
    names: tuple[str, ...] = () if _has_text(hit) else NESTED
    if "page_content" in hit:
        names = ("metadata",)
    elif "content" in hit and "text" not in hit and "meta" in hit:
        names = ("meta",)
    for name in names:
        if not isinstance(hit.get(name), Mapping):
            continue
        inner, _, _ = _flat(dict(hit[name]))
        if names == NESTED and not _has_text(inner):
            continue
        outer = {key: value for key, value in hit.items() if key in OUTER and not is_missing(value)}
        replaced = {"id", "_id"} if given_id(outer) is not None else set()
        replaced |= {*CONTENTS} if _has_text(outer) else set()
        if name == "entity":
            # The name for any metric; for COSINE and IP it is a similarity.
            scores = {**hit, "score": hit.get("distance")}
        inner = {key: value for key, value in inner.items() if key not in replaced}
        return inner | outer, scores, name if name in SQUARED else ""
    return hit, scores, "_distance" if "_distance" in hit else ""


def _to_chunk(raw: dict[str, Any], place: int, *, foreign: bool) -> tuple[Chunk, tuple[str, ...]]:
    raw = dict(raw)
    nameless = given_id(raw) is None
    if nameless:
        raw["id"] = "-"
    if "page_content" in raw:
        raw["text"] = raw.pop("page_content")
    name = f"document {place}"
    try:
        record = to_record(raw, place=name)
    except InputError:
        if not foreign:
            raise
        chunk, warnings = _forgive(raw, name)
        nameless = nameless or given_id(raw) is None
    else:
        chunk, warnings = record.chunk, record.warnings
    return (replace(chunk, id="") if nameless else chunk), warnings


def _plain(chunk: Chunk, place: int) -> tuple[Chunk, tuple[str, ...]]:
    """Convert a chunk to whole characters and plain values, as if read from a mapping."""
    refs, metadata = tuple(map(mend_characters, chunk.refs)), chunk.metadata
    values: dict[str, Any] = {name: mend_characters(getattr(chunk, name)) for name in TEXTS}
    values |= {
        "refs": chunk.refs if refs == chunk.refs else refs,
        "department": chunk.department and mend_characters(chunk.department),
        "rule": chunk.rule and mend_characters(chunk.rule),
        "metadata": metadata if metadata == {} else plain_values(dict(metadata or {}), f"document {place}"),
    }
    # Most chunks need no copy, and copying takes longer than checking.
    changed = {name: value for name, value in values.items() if value is not getattr(chunk, name)}
    hidden = f"document {place}: the clearance cannot be read, so the chunk is hidden."
    warnings = (hidden,) if chunk.clearance is None else ()
    return replace(chunk, **changed) if changed else chunk, warnings


def _forgive(raw: dict[str, Any], named: str) -> tuple[Chunk, tuple[str, ...]]:
    """Read another library's document even if its text is empty. Metadata with another meaning than
    our fields of the same name stay in the chunk's own fields."""
    text, moved, warnings = raw.pop("text", None) or "", {}, []
    for name in sorted(FORGIVEN & raw.keys()):
        try:
            to_record({"id": "-", "text": "-", name: raw[name]}, place=named)
        except InputError as error:
            moved[name] = raw.pop(name)
            warnings.append(f"{error.message} It is kept as metadata only.")
    meta = raw.get("metadata")
    inside = dict(meta) if isinstance(meta, Mapping) else {} if meta is None else {"metadata": meta}
    fields = {"id": "-", **raw, "text": "-", "metadata": {**inside, **moved}}
    record = to_record(fields, place=named)
    return replace(record.chunk, text=mend_characters(text)), (*warnings, *record.warnings)


def _as_score(value: Any) -> float | None:
    """A document's score as a number; None if it is not a number, such as a grade."""
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _number(value: Any, place: int) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise InputError(f"The score of document {place} is {value!r}.", remedy="Pass numbers.") from None


# -- metrics and scores ----------------------------------------------------------------------------


def check_metric(metric: str) -> Metric:
    """The metric of this name. Raises InputError if there is none."""
    if metric not in get_args(Metric):
        raise InputError(f"There is no metric {metric!r}.", remedy=f"Choose one of: {', '.join(get_args(Metric))}.")
    return cast(Metric, metric)


def check_metrics(metric: str | Mapping[str, str] | None) -> Metrics | None:
    """The metric of this name, or of each named score. Raises InputError."""
    if isinstance(metric, Mapping):
        return {name: check_metric(each) for name, each in metric.items()}
    return None if metric is None else check_metric(metric)


def space_of(metric: Metric) -> Space:
    """The space of the distances that scores of this metric become."""
    if metric == "similarity":
        return "cosine"
    return "l2" if metric == "euclidean" else metric


def examine(scores: Sequence[float], metric: Metric) -> tuple[str, ...]:
    """Describe what in `scores`, best hit first, contradicts `metric`; () if nothing does."""
    doubts: list[str] = []
    n = len(scores)
    if broken := sum(not isfinite(score) for score in scores):
        what = "is not a number" if broken == 1 else "are not numbers"
        return (f"{broken} of {n} scores {what}, so only the order given is used.",)
    if n > 1 and len(set(scores)) == 1 and metric != "rank":
        doubts.append(f"All {n} scores are equal, so there is no gap to cut at.")
    higher = metric in ("similarity", "rank")
    steps = [right - left for left, right in pairwise(scores)]
    rising, falling = any(s > 0 for s in steps), any(s < 0 for s in steps)
    # The order of just two hits proves nothing.
    if n >= MIN_SCORES and higher and rising and not falling:
        what = "similarities" if metric == "similarity" else "scores"
        doubts.append(f"The {what} rise from hit to hit: if they are distances, pass their metric.")
    if n >= MIN_SCORES and not higher and falling and not rising:
        doubts.append(
            "The distances fall from hit to hit: if they are similarities, pass "
            "metric='similarity', and if they are other scores, metric='rank'."
        )
    if metric == "rank":
        return tuple(doubts)
    low, high = RANGE[metric]
    outside = [score for score in scores if not low - EDGE <= score <= high + EDGE]
    if metric == "ip" and is_negated(scores):
        doubts.append(f"The scores look like negative inner products of unit vectors: {NEGATED}")
    elif outside:
        doubts.append(
            f"{len(outside)} of {n} scores, such as {outside[0]:g}, lie outside {low:g} to {high:g}, the range of "
            f"{metric} for unit vectors: thresholds may mean little.{INSTEAD.get(metric, '')}"
        )
    elif metric == "similarity" and _fused(scores):
        doubts.append(
            "The scores look like reciprocal rank fusion (RRF), whose scores are no "
            "similarities: if they are, pass metric='rank'."
        )
    return tuple(doubts)


def _fused(scores: Sequence[float]) -> bool:
    """Whether the scores come from reciprocal rank fusion: sums of 1 / (k + place) over searches.

    With the usual k of 60, three searches give at most 3 / 61, and similarities are hardly ever all that low. With
    another k (Qdrant's is 2), most inverses of scores are whole numbers; above 1,000, many are so by chance."""
    distinct = set(scores)
    if len(scores) < MIN_SCORES or min(distinct) <= 0:
        return False
    if max(distinct) <= (3 if len(scores) >= SOME else 2) / (RRF_K + 1) + TINY:
        return True
    inverse = [1 / score for score in distinct if score > 1e-3]
    whole = sum(abs(each - round(each)) <= TINY * each for each in inverse)
    return whole >= max(SOME, len(distinct) / 2)


def is_negated(scores: Sequence[float]) -> bool:
    """Whether these are inner products of unit vectors with only their sign changed."""
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return -1 - EDGE <= low < -EDGE and high <= 1 + EDGE
