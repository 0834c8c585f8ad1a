"""Makes text from outside consist of whole characters, so that it can be stored and sent as UTF-8.

JSON, command lines and streams can contain halves of characters (surrogates). Two that belong
together become one character. A single one is replaced by U+FFFD. All text passes through here
where it enters, so no other code has to care.
"""

from __future__ import annotations

import json
import re
from typing import Any

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HALVES = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """`text` with pairs of surrogates joined and lone ones replaced; any other text as it is."""
    if text.isascii() or not _HALVES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def joined(text: str) -> str:
    """`text` with pairs of surrogates joined. Single ones stay, so callers can refuse them."""
    if text.isascii() or not _HALVES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def has_halves(text: str) -> bool:
    """Whether `text` holds a surrogate, so that it cannot be encoded as UTF-8."""
    return _HALVES.search(text) is not None


def ends_in_half(text: str) -> bool:
    """Whether `text` ends in the first half of a character, whose second half may follow."""
    return "\ud800" <= text[-1:] <= "\udbff"


def in_one_line(text: str) -> str:
    """`text` with line ends and other control characters as they are written in code: ``\\n``."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def loads(text: str) -> Any:
    """The JSON value in `text`, every text in it in whole characters. Raises ValueError and
    RecursionError as `json.loads` does."""
    value = json.loads(text)
    # Only an escape can bring in a half that the text itself does not hold.
    if "\\u" not in text and not has_halves(text):
        return value
    return json.loads(whole(json.dumps(value, ensure_ascii=False)))
