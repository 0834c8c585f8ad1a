"""What an indexing did."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing did. `total` is the number of chunks in the collection afterwards,
    `embedded` the number of texts that the model embedded, and `not_in_source` the number of chunks
    that only an earlier run brought."""

    collection: str
    total: int
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    embedded: int = 0
    not_in_source: int = 0
    written: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)
