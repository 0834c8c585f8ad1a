"""The bodies of requests, with their settings and user, and the bodies of answers.

Answers are made from results as their users see them, so they contain nothing hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any, Literal
from uuid import uuid4

from pydantic import BaseModel, Discriminator, Field, JsonValue, Tag

from ragfilter.errors import SettingsError
from ragfilter.library.result import Result
from ragfilter.model import MAX_LEVEL, Chunk, Metric, Status, User, similarity
from ragfilter.results.rows import ChunkRow, rerank_score
from ragfilter.service.access import Caller, Refused
from ragfilter.settings.config import Given, merge
from ragfilter.settings.profiles import PROFILES, profile
from ragfilter.settings.schema import Settings
from ragfilter.text.shared_words import estimate_tokens

MAX_HITS = 1000
MAX_DOCUMENTS = 200
"""Maximum number of documents. A model reads each of them, which takes a tenth of a second."""
MAX_K = 200
RESERVED = "quality.reranker_model"
"""The setting reserved for the operator, since it names a folder to load."""

Question = Annotated[str, Field(min_length=1, max_length=10_000)]
Value = bool | int | float | str


class UserBody(BaseModel, extra="forbid"):
    """The user to answer for, if not the token's own. They cannot see more than the token's."""

    level: int | None = Field(default=None, ge=0, le=MAX_LEVEL)
    departments: list[str] | None = Field(default=None, max_length=1000)


class QuestionBody(BaseModel, extra="forbid"):
    """The fields that requests share."""

    question: Question
    profile: Literal[tuple(PROFILES)] | None = Field(  # type: ignore[valid-type]
        None, description="How to filter. Default: the service's own settings."
    )
    settings: dict[str, Value] = Field(
        default={}, description="Single settings by path.", examples=[{"cutoff.max_results": 5}]
    )
    user: UserBody = UserBody()

    def viewer(self, caller: Caller) -> User:
        """The user who asks. Raises Refused if they would see more than the token's own."""
        own, named = caller.user, self.user.model_dump(exclude_none=True)
        user = User(**{"level": own.level, "departments": own.departments, **named})
        if user.level > own.level or not set(user.departments) <= set(own.departments):
            raise Refused(403, "This token cannot ask as that user.", remedy="Leave out the user.")
        return user


class SearchBody(QuestionBody):
    """A question about a collection of the workspace."""

    collection: str | None = Field(None, description="Default: the service's own.")


class FilterBody(QuestionBody):
    """A question and your own hits with their scores, in any form that the library accepts."""

    hits: list[dict[str, JsonValue]] = Field(
        max_length=MAX_HITS, examples=[[{"id": "a", "text": "Trolls regenerate.", "score": 0.7}]]
    )
    metric: Metric | dict[str, Metric] | None = Field(
        None, description="What their scores are: one metric, or one for each named score."
    )


class RerankDocument(BaseModel, extra="allow"):
    """A document with fields, which are read like a hit's fields."""

    text: str
    title: str | None = None


def _kind(document: Any) -> str:
    return "text" if isinstance(document, str) else "fields"


class RerankBody(BaseModel):
    """The request of Cohere's and Jina's clients. Other fields are ignored."""

    query: Question
    documents: list[
        Annotated[Annotated[str, Tag("text")] | Annotated[RerankDocument, Tag("fields")], Discriminator(_kind)]
    ] = Field(max_length=MAX_DOCUMENTS)
    model: str = Field("", description=f"One of {', '.join(PROFILES)}. Default: the service's own settings.")
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False

    @property
    def profile(self) -> str | None:
        """The profile that `model` names. Raises Refused for another name."""
        if self.model and self.model not in PROFILES:
            remedy = f"Leave it empty, or choose one of: {', '.join(PROFILES)}."
            raise Refused(404, f"There is no model {self.model!r}.", remedy=remedy)
        return self.model or None

    @property
    def hits(self) -> list[dict[str, Any]]:
        """The documents as hits, whose ids are their places."""
        every = (RerankDocument(text=each) if isinstance(each, str) else each for each in self.documents)
        return [{**each.model_dump(), "id": str(i), "title": each.title or ""} for i, each in enumerate(every)]


class DifySetting(BaseModel):
    """The limits that Dify sets."""

    top_k: int = Field(default=4, ge=1, le=MAX_K)
    score_threshold: float | None = Field(default=0.0, ge=0, le=1)


class DifyBody(BaseModel):
    """Dify's request to an external knowledge base, which is a collection. Other fields are ignored."""

    knowledge_id: str
    query: Question
    retrieval_setting: DifySetting = DifySetting()
    metadata_condition: dict[str, JsonValue] | None = None

    def check(self) -> None:
        """Raise Refused for a condition, since ignoring it would return chunks that it excludes."""
        if self.metadata_condition and self.metadata_condition.get("conditions"):
            raise Refused(422, "Conditions on metadata are not supported.", remedy="Leave them out.")


def merged(default: Settings, profile_name: str | None, values: Mapping[str, Any]) -> Settings:
    """The settings of a request: its profile or the service's settings, plus its values. Raises SettingsError."""
    if RESERVED in values:
        raise SettingsError(f"A request cannot set {RESERVED}.", remedy="Ask the operator.")
    if profile_name is None and not values:
        return default
    base = profile(profile_name).values if profile_name else default.changed_from(Settings())
    return merge([Given("the service", base), Given("the request", values)])[0]


class KeptChunk(BaseModel):
    """A kept chunk, in ranking order."""

    id: str
    title: str
    text: str
    type: str
    source: str
    page: int | None
    refs: list[str]
    distance: float
    similarity: float | None
    rerank_score: float | None
    layer: str
    reason: str
    metadata: dict[str, JsonValue]


@dataclass(slots=True)
class DroppedChunk:
    """A dropped chunk, with the layer that dropped it and the reason."""

    id: str
    title: str
    rank: int
    distance: float
    layer: str
    reason: str
    value: float | None
    limit: float | None


class FilterAnswer(BaseModel):
    """The kept and the dropped chunks, and the context for a prompt."""

    question: str
    collection: str
    status: Status
    message: str
    kept: list[KeptChunk]
    dropped: list[DroppedChunk]
    context: str = Field(description="The kept chunks, numbered and packed for a prompt.")
    context_tokens: int
    fell_back: list[str] = Field(description="Layers that lacked a model or whose model failed.")
    warnings: list[str]


class RankedDocument(BaseModel):
    """A kept document: its place in the request, from 0, and its score, from 0 to 1."""

    index: int
    relevance_score: float
    document: dict[str, JsonValue] | None = None


class RerankAnswer(BaseModel):
    """The answer that Cohere's and Jina's clients expect, without dropped documents."""

    id: str
    model: str
    object: str = "list"
    results: list[RankedDocument]
    usage: dict[str, int]
    meta: dict[str, JsonValue]


class DifyRecord(BaseModel):
    """A chunk for Dify."""

    content: str
    score: float
    title: str
    metadata: dict[str, JsonValue]


class DifyRecords(BaseModel):
    """The answer that Dify expects."""

    records: list[DifyRecord]


def filter_answer(result: Result, rows: Sequence[ChunkRow]) -> FilterAnswer:
    """Make the answer to a search or a filter request. `rows` come from the result."""
    by_id = {row.id: row for row in rows}
    context = result.context
    # Not validated, since every answer has hundreds of our own rows.
    return FilterAnswer.model_construct(
        question=result.query,
        collection=result.pool.collection,
        status=result.status,
        message=result.message,
        kept=[_kept(hit.chunk, by_id[hit.id]) for hit in result.kept],
        dropped=[_dropped(row) for row in rows if row.place is None],
        context=context.text,
        context_tokens=context.tokens,
        fell_back=result.fallbacks,
        warnings=list(result.warnings),
    )


def _kept(chunk: Chunk, row: ChunkRow) -> KeptChunk:
    return KeptChunk(**row._asdict(), text=chunk.text, refs=list(chunk.refs), metadata=dict(chunk.metadata))


def _dropped(row: ChunkRow) -> DroppedChunk:
    value = None if row.value is None else float(row.value)
    limit = None if row.limit is None else float(row.limit)
    return DroppedChunk(row.id, row.title, row.rank, row.distance, row.layer, row.reason, value, limit)


def rerank_answer(result: Result, asked: RerankBody) -> RerankAnswer:
    """The kept documents, with their texts if requested."""
    tokens = sum(map(estimate_tokens, [asked.query, *(hit["text"] for hit in asked.hits)]))
    results = [
        RankedDocument(
            index=int(hit.id),
            relevance_score=score,
            document={"text": hit.chunk.text} if asked.return_documents else None,
        )
        for hit, score in zip(result.kept[: asked.top_n], _relevances(result), strict=False)
    ]
    meta: dict[str, JsonValue] = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    return RerankAnswer(id=str(uuid4()), model=asked.model, results=results, usage={"total_tokens": tokens}, meta=meta)


def dify_records(result: Result, *, most: int, least: float) -> DifyRecords:
    """The first `most` kept chunks with a score of at least `least`."""
    records = []
    for chunk, score in zip((hit.chunk for hit in result.kept[:most]), _relevances(result), strict=False):
        own: dict[str, Any] = {"id": chunk.id, "type": chunk.type, "source": chunk.source, "page": chunk.page}
        record = DifyRecord(content=chunk.text, score=score, title=chunk.name, metadata={**chunk.metadata, **own})
        records += [record] if score >= least else []
    return DifyRecords(records=records)


def _relevances(result: Result) -> list[float]:
    """A score from 0 to 1 for each kept chunk: the rerank score if all have one, otherwise the
    similarity. Scores never rise, so that clients that sort by them keep the filter's order."""
    scores = [rerank_score(result, hit) for hit in result.kept]
    if None in scores:
        scores = [similarity(hit.distance, result.pool.space) for hit in result.kept]
    # If the store gives no distances, the similarity is NaN, which `min` skips as its second argument.
    falling = accumulate((score or 0.0 for score in scores), min, initial=1.0)
    return [max(0.0, score) for score in falling][1:]
