"""Clean chunks: those that may be in a result, however they were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragfilter.layers.clearance import viewer
from ragfilter.model import Chunk, User
from ragfilter.rules.match import Scan

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings


def is_clean(chunk: Chunk, settings: Settings, rules: Scan, user: User) -> bool:
    """Whether the user may see `chunk`, and its rule holds where rules are on."""
    if not viewer(user, settings).sees(chunk):
        return False
    return not settings.query_must.enabled or rules.passes(chunk.rule)
