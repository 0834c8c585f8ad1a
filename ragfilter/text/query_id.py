"""An id for a question without one, and a name for any question. The same text always has the same
id."""

from __future__ import annotations

from hashlib import blake2b

from ragfilter.text.characters import whole
from ragfilter.text.titles import short_title


def query_id(text: str) -> str:
    """The id of a question, made from its text."""
    plain = whole(text).strip()
    return "q-" + blake2b(plain.encode("utf-8", "replace"), digest_size=5).hexdigest()


def query_name(given: str, text: str, width: int) -> str:
    """A question's name in a table: its id, or its text if the id was only made from that."""
    return short_title(text if given == query_id(text) else given, width)
