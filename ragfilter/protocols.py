"""What the core needs from stores and models. Adapters and test fakes implement these protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ragfilter.model import Chunk, Space, User

Vectors = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total); may raise to stop the work."""


@dataclass(frozen=True, slots=True)
class Where:
    """The part of a filter that is pushed into the store; None means no condition.

    `user`: only chunks that this user may see. `sources`: only chunks of these sources, exactly as
    the catalogue names them.
    """

    user: User | None = None
    sources: tuple[str, ...] | None = None


class Embedder(Protocol):
    """Texts to unit vectors."""

    @property
    def name(self) -> str: ...

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors, shape (len(texts), dimension). Raises ModelError."""
        ...


@runtime_checkable
class Vocabulary(Protocol):
    """What an embedder may offer besides: which words its model has whole."""

    def knows(self, word: str) -> bool:
        """Whether the model reads `word` (lower case) as one token. Raises ModelError."""
        ...


class Catalogue(dict[str, Chunk]):
    """Every chunk of a collection by id, without text (`loaded` False), as of one version of it; it
    is not changed. What is asked of all of them together is worked out once."""

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """The distinct rule texts."""
        return tuple(dict.fromkeys(chunk.rule for chunk in self.values() if chunk.rule))

    @cached_property
    def audiences(self) -> tuple[Chunk, ...]:
        """One chunk for every distinct source, clearance and department: who may see what of."""
        found = {(c.source, c.clearance, c.department): c for c in self.values()}
        return tuple(found.values())

    def share(self, user: User) -> float:
        """Which share of the chunks `user` may see; 1 where there are none."""
        seen = sum(n for chunk, n in self._crowds if user.sees(chunk))
        return seen / len(self) if self else 1.0

    @cached_property
    def _crowds(self) -> tuple[tuple[Chunk, int], ...]:
        counts = Counter((c.clearance, c.department) for c in self.values())
        return tuple(
            (Chunk("", clearance=level, department=department), n)
            for (level, department), n in counts.items()
        )


class Collection(Protocol):
    """One collection of chunks in a vector store. Raises StoreError from every method."""

    @property
    def name(self) -> str: ...

    @property
    def space(self) -> Space:
        """``rank`` where the store gives an order and no distances."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever a chunk is added, edited or removed; the key for caches."""
        ...

    @property
    def incomplete(self) -> str:
        """Why a query may miss chunks (indexing was interrupted, the index is damaged) and what to
        do about it; empty where the collection is whole. A store may leave this property out."""
        ...

    def count(self) -> int: ...

    def nearest(
        self,
        vector: Vectors,
        n: int,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> list[tuple[str, float]]:
        """Up to `n` (id, distance), ascending, equal ones by id; among `ids` only where given. An
        `n` below 1 gives [].

        In the space ``rank`` the numbers are not read, only the order.
        """
        ...

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        """The chunks with these ids, whole; unknown ids are left out."""
        ...

    def catalogue(self) -> Mapping[str, Chunk] | None:
        """Every chunk by id without text: what rules and clearance need. None where the
        collection is too large for that: then clearance is a condition of every search, and rules
        are read with the hits."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """Scores 0..1 of chunks for a query, higher is better, in the order given."""

    @property
    def name(self) -> str: ...

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text. Raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Message:
    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call, as the endpoint counted them (estimated where it did not)."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a streamed answer; the last one carries the usage."""

    text: str = ""
    usage: Usage | None = None


@runtime_checkable
class ChatModel(Protocol):
    """A chat model behind the OpenAI protocol, or anything that streams text."""

    @property
    def name(self) -> str: ...

    def stream(
        self,
        messages: Sequence[Message],
        *,
        timeout_s: float,
        schema: Mapping[str, object] | None = None,
    ) -> Iterator[Delta]:
        """The answer in pieces; `schema` asks for JSON of that shape. Raises ChatError."""
        ...


class Texts(Protocol):
    """Keeps texts by key, for as long as there is room; what it cannot keep it leaves. Raises
    nothing."""

    def get(self, key: str) -> str | None: ...

    def put(self, key: str, text: str) -> None: ...


class RuleStore(Protocol):
    """Where a chunk's `query_must` text can be read and replaced. Raises StoreError."""

    @property
    def name(self) -> str: ...

    def rule(self, chunk_id: str) -> str | None:
        """The stored rule text, None where the chunk has none.

        Raises StoreError: unknown id, or not certain yet, since a `set_rule` failed.
        """
        ...

    def set_rule(self, chunk_id: str, rule: str | None) -> None:
        """Replace (or, with None, remove) the rule; idempotent. Raises StoreError: unknown id."""
        ...

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The rule texts of these chunks; unknown ids are left out. Raises as `rule` does."""
        ...

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        """`set_rule` for many at once. Where it raises, some may be written and others not."""
        ...
