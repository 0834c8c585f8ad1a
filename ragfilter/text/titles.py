"""Short forms of titles, and ids and names for questions. The same text always has the same id."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from hashlib import blake2b

from ragfilter.text.normalise import mend_characters
from ragfilter.text.shared_words import FUNCTION_WORDS

ELLIPSIS = "…"
NAMED_BY = 2  # words kept before a distinctive one: ``Armor Class 6``
MOST_RARE = 2  # distinctive words of a title that are kept first


def telling_titles(titles: Sequence[str], width: int) -> list[str]:
    """Shorten titles that are shown together, each to at most `width` characters. A long title keeps the words that the
    fewest others have: ``… CLERICS … Armor Class 6``. If different titles would look the same, the later ones are
    numbered if `width` has room for it."""
    return list(_telling(tuple(" ".join(title.split()) for title in titles), width))


def short_title(title: str, width: int) -> str:
    """Shorten a single title to at most `width` characters: its beginning and its end, cut between
    words if possible: ``I.A. ATTACK MATRIX … Armor Class 6``."""
    title = " ".join(title.split())
    if len(title) <= width:
        return title
    room = width - len(ELLIPSIS) - 2
    if room < 4:
        return title[: max(width - 1, 0)].rstrip() + ELLIPSIS if width > 0 else ""
    words = title.split()
    tail = _fitting(reversed(words), room // 2)
    tail_text = " ".join(reversed(tail)) or title[-(room // 2) :].lstrip()
    head = _fitting(words, room - len(tail_text))
    head_text = " ".join(head) or title[: room - len(tail_text)].rstrip()
    return f"{head_text} {ELLIPSIS} {tail_text}"


@lru_cache(maxsize=64)
def _telling(titles: tuple[str, ...], width: int) -> tuple[str, ...]:
    different = list(dict.fromkeys(titles))
    title_counts = Counter(word for title in different for word in set(map(_key, title.split())))
    shortened: dict[str, list[str]] = defaultdict(list)
    for title in different:
        short = title if len(title) <= width else _rarest(title, title_counts, len(different), width)
        shortened[short].append(title)
    names = {title: short for short, alike in shortened.items() for title in alike}
    for alike in filter(lambda alike: len(alike) > 1, shortened.values()):
        # What all of these have in common does not tell them apart.
        counts = Counter(word for title in alike for word in set(map(_key, title.split())))
        common = {word for word, count in counts.items() if count == len(alike)}
        names |= {title: _rarest(title, title_counts, len(different), width, common) for title in alike}
    shown: dict[str, str] = {}
    used: set[str] = set()
    for title in different:
        short = names[title]
        name, n = short, 1
        while name in used and len(f" ({n + 1})") < width:
            n += 1
            number = f" ({n})"
            name = short_title(short, width - len(number)) + number
        used.add(name)
        shown[title] = name
    return tuple(shown[title] for title in titles)


def _rarest(title: str, held: Mapping[str, int], n: int, width: int, common: Set[str] = frozenset()) -> str:
    """The rarest words of a title among `n` titles, with the words before them, and then others
    until `width` is full. `held` counts the titles that have a word. Words in `common` are not rare."""
    words = title.split()
    rare = [at for at, word in enumerate(words) if held[_key(word)] < n and _key(word) not in common]
    rare.sort(key=lambda at: (held[_key(words[at])], not _tells(words[at]), at))
    chosen: list[int] = []
    for at in rare[:MOST_RARE]:
        if len(_joined(words, [*chosen, at])) <= width:
            chosen.append(at)
    if not chosen:
        return short_title(title, width)
    last = max(chosen)
    for more in (range(last - 1, max(last - NAMED_BY, 0) - 1, -1), range(len(words))):
        for at in more:
            if len(_joined(words, [*chosen, at])) > width:
                break
            chosen.append(at)
    return _joined(words, chosen)


def _key(word: str) -> str:
    return word.strip(",;:.!?()[]\"'").casefold()


def _tells(word: str) -> bool:
    """Whether a word is a name or a number; a heading such as ``I.A.`` tells readers nothing."""
    key = _key(word)
    is_name = len(key) > 3 and key.isalpha() and key not in FUNCTION_WORDS
    return is_name or any(char.isdigit() for char in key)


def _joined(words: Sequence[str], chosen: Iterable[int]) -> str:
    """Join the chosen words in order, with an ellipsis for each omission."""
    parts: list[str] = []
    before = -1
    for at in sorted(set(chosen)):
        if at > before + 1:
            if not any(map(str.isalnum, words[at])):
                continue
            if parts:
                parts[-1] = parts[-1].rstrip(",;:-–—") or parts[-1]
            parts.append(ELLIPSIS)
        parts.append(words[at])
        before = at
    if before < len(words) - 1:
        parts.append(ELLIPSIS)
    return " ".join(parts)


def _fitting(words: Iterable[str], room: int) -> list[str]:
    fitting: list[str] = []
    for word in words:
        room -= len(word) + bool(fitting)
        if room < 0:
            break
        fitting.append(word)
    while fitting and not any(char.isalnum() for char in fitting[-1]):
        fitting.pop()
    return fitting


def query_id(text: str) -> str:
    """The id of a question, made from its text."""
    plain = mend_characters(text).strip()
    return "q-" + blake2b(plain.encode("utf-8", "replace"), digest_size=5).hexdigest()


def query_name(given: str, text: str, width: int) -> str:
    """A question's name in a table: its id, or its text if the id was made from the text."""
    return short_title(text if given == query_id(text) else given, width)
