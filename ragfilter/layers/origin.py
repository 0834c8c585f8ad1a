"""Where tuned or learned settings come from, so that they are refused where they do not apply.

The origin is stored in settings as JSON. docs/design.md#tune.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ragfilter.errors import SettingsError, complaint
from ragfilter.layers.quality import Quality, always_reranks, reranker_key
from ragfilter.model import Pool, Space
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings

Read = TypeVar("Read", bound=BaseModel)


class CarriedValue(BaseModel):
    """What settings carry along beside their own values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def to_json(self) -> str:
        """The text that `parse` reads."""
        return self.model_dump_json(exclude_defaults=True)


class Origin(CarriedValue):
    """The labels behind a value, and what its scale depends on. `queries` counts those that had
    labels; an empty `reranker` is none."""

    collection: str
    embedder: str
    space: Space
    reranker: str
    labels: str
    queries: int
    date: str

    @property
    @abstractmethod
    def summary(self) -> str:
        """What was made of which labels, in a few words."""

    @property
    def by_distance(self) -> bool:
        """Whether values mean something only where the same is cut: distances, or the
        scores of one reranker for every query."""
        return False

    @property
    def place(self) -> str:
        """The collection's name, or words for hits that a caller passed."""
        return self.collection or "hits without a collection name"

    def differences(self, pool: Pool, quality: Quality) -> str:
        """What is not as it was: ``distances l2, not cosine``; empty if all is. A pool that does
        not know its embedding model is taken at its word."""
        reranks = always_reranks(quality) if self.by_distance else bool(self.reranker)
        reranker = reranker_key(quality) if reranks else ""
        pairs = (
            ("distances", self.space, pool.space),
            ("the embedding model", self.embedder, pool.embedder or self.embedder),
            ("the reranker", self.reranker or "none", reranker or "none"),
        )
        return ", ".join(
            f"{what} {ours or '(not named)'}, not {theirs}"
            for what, ours, theirs in pairs
            if ours != theirs
        )


class TunedOn(Origin):
    """What labels chose: the strategy (empty if there is no cutoff), and values by dotted path."""

    strategy: str
    values: Mapping[str, int | float] = {}
    values_only: bool = False
    """Whether labels chose only the values, as by a click on the map, of a strategy that was set
    by hand."""

    @property
    def summary(self) -> str:
        """``gap, tuned on 149 queries of demo``."""
        chosen = self.strategy or "limits"
        return f"{chosen}, tuned on {counted(self.queries, 'query')} of {self.place}"

    @property
    def by_distance(self) -> bool:
        return True

    def is_in_force(self, settings: Settings) -> bool:
        """Whether the strategy and the values still are what was chosen."""
        cutoff = settings.cutoff
        return self.strategy == (cutoff.strategy if cutoff.enabled else "") and (
            self.still(settings) == self.values
        )

    def chose(self, settings: Settings) -> bool:
        """Whether the strategy, and what always reranks for it, still are what was chosen, however
        their values were moved since."""
        cutoff, quality = settings.cutoff, settings.quality
        reranker = reranker_key(quality) if always_reranks(quality) else ""
        now = cutoff.strategy if cutoff.enabled else "", reranker
        chosen = bool(self.strategy) and not self.values_only
        return chosen and now == (self.strategy, self.reranker)

    def still(self, settings: Settings) -> dict[str, int | float]:
        """The values that still are what was chosen."""
        return {path: value for path, value in self.values.items() if _at(settings, path) == value}

    def check_fits(self, names: tuple[str, ...], pool: Pool, quality: Quality) -> None:
        """Raises SettingsError if values called `names`, which have a scale, were tuned with
        another space, embedding model or reranker."""
        other = self.differences(pool, quality)
        if other:
            raise SettingsError(
                f"{' and '.join(f'cutoff.{name}' for name in names)} "
                f"{'was' if len(names) == 1 else 'were'} tuned on {self.place} with {other}.",
                remedy="Tune again on labels of this collection, go back to what they were tuned "
                "with, or set your own values.",
            )


def _at(settings: Settings, path: str) -> Any:
    """The value at a path that may be written by hand; None if there is none."""
    section, _, name = path.partition(".")
    return getattr(getattr(settings, section, None), name, None)


@lru_cache(maxsize=64)
def read_tuned(text: str) -> TunedOn:
    """What `TunedOn.to_json` gave. Raises ValueError."""
    return parse(TunedOn, text, "record of tuning")


def parse(what: type[Read], text: str, name: str) -> Read:
    """The value that a text of JSON holds; `name` is what messages call it. Raises ValueError."""
    try:
        return what.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"no {name} ({place or 'JSON'}: {complaint(first['msg'])})") from None
