"""What the metadata of a Chroma collection says about it. Source: docs/design.md#chroma."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import cast

from chromadb.api.models.Collection import Collection as RawCollection

from ragfilter.model import Space

FORMAT = "ragfilter:format"
EMBEDDER = "ragfilter:embedder"
VERSION = "ragfilter:version"
CONTENT = "ragfilter:content"
WITHHELD = "ragfilter:withheld"


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in a list. `embedder` is empty if it is not known; `incomplete` says why chunks
    are missing, and is empty if none are."""

    name: str
    count: int
    space: Space
    embedder: str
    ours: bool
    incomplete: str

    @property
    def complete(self) -> bool:
        return not self.incomplete


def mark(raw: RawCollection, key: str) -> str:
    """What is written under `key`; empty if nothing is."""
    return str((raw.metadata or {}).get(key, ""))


def is_ours(raw: RawCollection) -> bool:
    """Whether ragfilter made it."""
    return FORMAT in (raw.metadata or {})


def space_of(raw: RawCollection) -> Space:
    """The space of its distances."""
    # Not `raw.configuration`: that builds the stored embedding function, which may be foreign code.
    configuration = raw.configuration_json
    index = configuration.get("hnsw") or configuration.get("spann") or {}
    return cast(Space, index.get("space", "l2"))


def new_token() -> str:
    """A version that no collection had before."""
    return uuid.uuid4().hex
