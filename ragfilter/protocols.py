"""The protocols that stores and models must implement. Adapters and test fakes implement them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ragfilter.model import Chunk, Space, User

Vectors = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total); can raise to stop the work."""


@dataclass(frozen=True, slots=True)
class Where:
    """The conditions that are pushed down to the store; None means no condition.

    `user`: only chunks that this user can see. `sources`: only chunks from these sources, spelled as in the catalogue.
    `rules`: only chunks without a rule or with one of these; only a `DistinctRules` collection receives it."""

    user: User | None = None
    sources: tuple[str, ...] | None = None
    rules: tuple[str, ...] | None = None


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension). Raises ModelError."""


@runtime_checkable
class Vocabulary(Protocol):
    """Optional for an embedder: says which words are a single token of its model."""

    def knows(self, word: str) -> bool:
        """Whether the model reads `word` (lower case) as one token. Raises ModelError."""


class Catalogue(dict[str, Chunk]):
    """Every chunk of one version of a collection by id, without text (`loaded` False). It never changes, so its methods
    compute their answers once."""

    @cached_property
    def distinct_rules(self) -> tuple[str, ...]:
        """The distinct rule texts."""
        return tuple(dict.fromkeys(chunk.rule for chunk in self.values() if chunk.rule))

    @cached_property
    def audiences(self) -> tuple[Chunk, ...]:
        """One chunk for every combination of source, clearance and department."""
        return tuple({(c.source, c.clearance, c.department): c for c in self.values()}.values())

    def visible(self, user: User) -> int:
        """How many chunks `user` can see."""
        return sum(n for chunk, n in self._crowds if user.sees(chunk))

    def share(self, user: User) -> float:
        """The share of the chunks that `user` can see; 1 if there are none."""
        return self.visible(user) / len(self) if self else 1.0

    @cached_property
    def _crowds(self) -> tuple[tuple[Chunk, int], ...]:
        counts = Counter((c.clearance, c.department) for c in self.values())
        return tuple((Chunk("", clearance=level, department=of), n) for (level, of), n in counts.items())


class Collection(Protocol):
    """One collection of chunks in a vector store. Raises StoreError from every method."""

    @property
    def name(self) -> str: ...

    @property
    def space(self) -> Space:
        """The distance space; ``rank`` if the store returns an order but no distances."""

    @property
    def version(self) -> str:
        """Changes whenever a chunk is added, edited or removed; the key for caches."""

    @property
    def incomplete(self) -> str:
        """Why a query may miss chunks (indexing was interrupted, the index is damaged) and what to do about it; empty
        if the collection is complete. This property is optional."""

    def count(self) -> int: ...

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        """Up to `n` pairs (id, distance), ascending, with ties sorted by id; only from `ids` if given; none if `n` is
        below 1. In the space ``rank``, only the order counts, not the numbers."""

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """The complete chunks with these ids. Unknown ids are left out."""

    def catalogue(self) -> Mapping[str, Chunk] | None:
        """Every chunk by id, without text, for rules and clearance. None if the collection is too large for that: every
        search then checks clearance, and rules are read with the hits."""


@runtime_checkable
class DistinctRules(Protocol):
    """Optional for a collection: filters a search by rules (`Where.rules`), so that memory grows
    with the number of distinct rules, not of chunks."""

    def distinct_rules(self) -> tuple[str, ...]:
        """The distinct rule texts. Raises StoreError."""


@runtime_checkable
class TextSearch(Protocol):
    """Optional for a collection: a search by words. A chunk's score must not depend on other chunks."""

    def matching(self, query: str, n: int, *, where: Where | None = None) -> list[tuple[str, float]]:
        """Up to `n` pairs (id, score above 0) of chunks that share words with the query, highest
        first, with ties sorted by id. Raises StoreError."""


@runtime_checkable
class Reranker(Protocol):
    """Scores texts for a query, from 0 to 1, in the order given. Higher is better."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, texts: list[str], /) -> Iterable[float]:
        """One score per text. Raises ModelError."""


class PrunePassage(NamedTuple):
    """A chunk as a pruner reads it: its title, and its sentences, headings, tables, lists and code in order."""

    title: str
    pieces: tuple[str, ...]


@runtime_checkable
class Pruner(Protocol):
    """Estimates how much each piece of a text contributes to answering a query, from 0 (nothing) to
    1. The values of a passage must depend only on the query and that passage."""

    @property
    def name(self) -> str: ...

    def contributions(self, query: str, passages: Sequence[PrunePassage], /) -> Sequence[Sequence[float]]:
        """One value for each piece of each passage. Raises ModelError."""


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of one call: the endpoint's count, or an estimate if there is none."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices per million tokens in any currency; `currency` is empty if none is given."""

    prompt: float = 0.0
    completion: float = 0.0
    currency: str = ""

    def of(self, usage: Usage) -> float:
        """The cost of these tokens."""
        return (usage.prompt_tokens * self.prompt + usage.completion_tokens * self.completion) / 1e6

    def of_thousand(self, tokens: float) -> float:
        """The cost of 1,000 prompts with this many tokens each."""
        return tokens * self.prompt / 1000


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer. The last piece has the usage."""

    text: str = ""
    usage: Usage | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A chat model behind the OpenAI protocol, or anything that streams text."""

    @property
    def name(self) -> str: ...

    def stream(
        self, messages: Sequence[Message], *, timeout_s: float, schema: Mapping[str, object] | None = None
    ) -> Iterator[Delta]:
        """Yield the answer in pieces. `schema` asks for JSON of that schema. Raises ChatError."""


class ReplyStore(Protocol):
    """Stores the replies of LLMs by key while there is room. It drops what it cannot store, and never raises."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


class RuleStore(Protocol):
    """Reads and replaces the `query_must` texts of chunks. Raises StoreError."""

    @property
    def name(self) -> str: ...

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The stored rule texts of these chunks, None for a chunk without one; unknown ids are left
        out. Raises StoreError, also while a failed `set_rules` leaves a text uncertain."""

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        """Replace rules, or remove them with None; idempotent. Raises StoreError, also for an
        unknown id. After an error, some rules may be written and others not."""
