"""An id for a question without one; the same text always has the same id."""

from __future__ import annotations

from hashlib import blake2b

from ragfilter.text.characters import whole


def query_id(text: str) -> str:
    """The id of a question, made from its text."""
    plain = whole(text).strip()
    return "q-" + blake2b(plain.encode("utf-8", "replace"), digest_size=5).hexdigest()
