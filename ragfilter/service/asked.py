"""The bodies of requests, and which settings and user they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ragfilter.errors import SettingsError
from ragfilter.library.scores import Metric
from ragfilter.model import MAX_LEVEL, User
from ragfilter.service.problems import Refused
from ragfilter.service.tokens import Caller
from ragfilter.settings.config import Given, merge
from ragfilter.settings.profiles import PROFILES, profile
from ragfilter.settings.schema import Settings

MAX_HITS = 1000
MAX_DOCUMENTS = 200
"""Each has to be read by a model, which takes a tenth of a second."""
MAX_K = 200
OPERATORS = ("quality.reranker_model",)
"""Settings that only the operator chooses: they name what is loaded from the disk."""

Question = Annotated[str, Field(min_length=1, max_length=10_000)]
Value = bool | int | float | str


class AskedUser(BaseModel):
    """For whom to answer, if not for the token's own user. They may see no more than that one."""

    model_config = ConfigDict(extra="forbid")

    level: int | None = Field(default=None, ge=0, le=MAX_LEVEL)
    departments: list[str] | None = Field(default=None, max_length=1000)


class Asked(BaseModel):
    """What requests share."""

    model_config = ConfigDict(extra="forbid")

    question: Question
    profile: Literal[tuple(PROFILES)] | None = Field(  # type: ignore[valid-type]
        None, description="How to filter, if not as the service does."
    )
    settings: dict[str, Value] = Field(
        default={}, description="Single settings by path.", examples=[{"cutoff.max_results": 5}]
    )
    user: AskedUser = AskedUser()

    def viewer(self, caller: Caller) -> User:
        """The user who asks. Raises Refused."""
        return caller.as_user(self.user.level, self.user.departments)


class SearchAsked(Asked):
    """A question about a collection of the workspace."""

    collection: str | None = Field(None, description="If not the service's own.")


class FilterAsked(Asked):
    """A question, and hits of your own for it: as the library takes them, with their scores."""

    hits: list[dict[str, JsonValue]] = Field(
        max_length=MAX_HITS, examples=[[{"id": "a", "text": "Trolls regenerate.", "score": 0.7}]]
    )
    metric: Metric | None = Field(None, description="What their scores are.")


class RerankAsked(BaseModel):
    """What the clients of Cohere and Jina send. Other fields are ignored."""

    query: Question
    documents: list[str | dict[str, JsonValue]] = Field(max_length=MAX_DOCUMENTS)
    model: str = Field("", description="A profile; the service's own settings if it is none.")
    top_n: int | None = Field(None, ge=1)
    return_documents: bool = False


class DifySetting(BaseModel):
    """How much Dify wants."""

    top_k: int = Field(default=4, ge=1, le=MAX_K)
    score_threshold: float | None = Field(default=0.0, ge=0, le=1)


class DifyAsked(BaseModel):
    """What Dify sends to an external knowledge base, which is a collection. Other fields are
    ignored."""

    knowledge_id: str
    query: Question
    retrieval_setting: DifySetting = DifySetting()
    metadata_condition: dict[str, JsonValue] | None = None

    def check(self) -> None:
        """Raises Refused for a condition, since leaving it out would return what it excludes."""
        if self.metadata_condition and self.metadata_condition.get("conditions"):
            raise Refused(
                422, "Conditions on metadata are not supported.", remedy="Leave them out."
            )


def settings_for(
    default: Settings, profile_name: str | None, values: Mapping[str, Any]
) -> Settings:
    """The settings of a request: its profile or the service's own, and its values. Raises
    SettingsError."""
    refused = next((path for path in OPERATORS if path in values), None)
    if refused is not None:
        raise SettingsError(f"A request cannot set {refused}.", remedy="Ask the operator.")
    if profile_name is None and not values:
        return default
    base = profile(profile_name).values if profile_name else default.changed_from(Settings())
    return merge([Given("the service", base), Given("the request", values)])[0]
