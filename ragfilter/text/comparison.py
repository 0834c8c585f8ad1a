"""Comparison queries: which things does a query compare, and does a chunk name one of them?

Source: Adaptive Result Filtering, "Comparison Detection Integration"; docs/design.md#entities lists
the phrasings. These are heuristics over English wording, without a model. A query that is not
clearly a comparison is treated like any other.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

MAX_QUERY = 2000
"""Characters of the query that are read; a comparison is at its beginning."""
MAX_TEXT = 10_000
"""Characters of a chunk's text that are searched for a name."""
MAX_ENTITIES = 8
MAX_WORDS = 6
MAX_CHARS = 80


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


_SENTENCE = re.compile(r"[?!;\n]+|(?<!\b[A-Za-z])(?<!\b[A-Z][a-z])(?<!\bvs)(?<!\bVs)\.(?=\s|$)")
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_PAUSE = re.compile(r"[,:]\s+|\s+[-–—]+\s+|—")
_VERSUS = re.compile(
    r"(?<!\S)(?:(?:vs|versus)(?:\.\s*|\s+)|(?:as\s+)?compared\s+(?:to|with|against)\s+)",
    re.IGNORECASE,
)
_COMPARE = _words(r"compare|comparing|comparison\s+(?:of|between)")
_HOW_COMPARE = re.compile(
    r"^how\s+(?:do|does|did|would|will|can)\s+(?P<left>.+?)\s+compare\s+(?:to|with|against)\s+",
    re.IGNORECASE,
)
_DIFFERENCE = _words(r"(?:differences?|distinctions?)\b[^,:]{0,60}?\bbetween")
_WHO_WINS = re.compile(
    r"\bwho(?:\s+(?:would|will|is\s+(?:more\s+|most\s+)?likely\s+to)|['’]d)?\s+wins?\b"
    r"(?:\s+(?:in|during))?(?:\s+(?:an?|the))?"
    r"(?:\s+(?:fight|fighting|battle|duel|combat|contest|match|war|melee))?"
    r"(?:\s+(?:between|of))?",
    re.IGNORECASE,
)
_QUESTION = _words("which|what|who|whom")
_COMPARATIVE = _words(
    "more|less|fewer|better|worse|best|worst|most|least|stronger|weaker|faster|slower|tougher|"
    "harder|softer|easier|deadlier|bigger|larger|smaller|higher|lower|smarter|cheaper|heavier|"
    "lighter|longer|shorter|older|younger|richer|safer|greater|scarier|meaner|rarer|wiser|wins?"
)
_TWO_WITH_ARTICLES = re.compile(
    r"\b(?P<left>an?\s+(?:(?!\ban?\b|\bor\b)\S+\s+){1,8})or\s+(?P<right>an?\s+.+)$", re.IGNORECASE
)

_OR = re.compile(r"(?:,\s*|\s+|^)or\s+|,\s+", re.IGNORECASE)
_JOINT = re.compile(r"\b(?:or|and|to|with|against|vs|versus)\b|,", re.IGNORECASE)
_BARE_OR = re.compile(r"\sor\s", re.IGNORECASE)
_AND = re.compile(r"(?:,\s*|\s+|^)and\s+|,\s+", re.IGNORECASE)
_ANY = re.compile(r"(?:,\s*|\s+|^)(?:or|and|against|vs\.?|versus)\s+|,\s+", re.IGNORECASE)
_TO = re.compile(r"\s+(?:to|against)\s+", re.IGNORECASE)
_WITH = re.compile(r"\s+with\s+", re.IGNORECASE)

_LEAD_IN = re.compile(
    r"^(?:(?:please|so|ok|okay|hi|hello|hey|well|and|or|but|then|now|either|both|between|"
    r"can\s+you|could\s+you|would\s+you|i\s+want\s+to(?:\s+know)?|i'd\s+like\s+to(?:\s+know)?|"
    r"tell\s+me|tell\s+us|show\s+me|give\s+me|let's|explain|describe|discuss|summari[sz]e|about|"
    r"compare|contrast|comparing|a\s+comparison\s+(?:of|between)|comparison\s+(?:of|between)|"
    r"(?:the\s+|a\s+)?(?:fight|battle|duel)\s+(?:between|of)|"
    r"what\s+about|how\s+about|who\s+(?:would\s+|will\s+)?wins?(?:\s+in\s+a\s+fight)?|"
    r"(?:what(?:'s|’s|\s+is|\s+are)\s+)?(?:the\s+)?(?:differences?|distinctions?)\s+between)"
    r"(?:\s+|$))+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:an?|the|some|any)\s+", re.IGNORECASE)
# What a chunk is about is a fighter, whichever its level.
_LEVEL = re.compile(r"^(?:\d+(?:st|nd|rd|th)?[\s-]+level|level[\s-]+\d+)\s+(?=\S)", re.IGNORECASE)
_ASKING = re.compile(
    r"(?<!\S)(?:who|whom|which|what|how|why|when|where|is|are|was|were|does|do|did|can|could|should|"
    r"would|will|if|i|it)(?!\S)",
    re.IGNORECASE,
)
_LAST_ARTICLE = re.compile(r"^.*\b(?:an?|the)\s+", re.IGNORECASE)
_OF_A = re.compile(r"^.*\bof\s+an?\s+", re.IGNORECASE)
_TRAILING = re.compile(
    r"\s+(?:"
    r"(?:in|on|at|for|with|without|under|during|against)\s+"
    r"(?:an?|the|his|her|its|their|my|your|our|ac|a\.c\.|armou?r|hp|terms|combat|battle|melee|"
    r"general|detail|respect|regards?|no|\d\S*)\b"
    r"|(?:who|which|what|when|where|if|while|because|since|regarding|concerning|assuming|given|"
    r"based|according|using|than|please|is|are|was|were|would|will|does|do|did|can|could|should|"
    r"has|have|wins?|that)\b"
    r").*$",
    re.IGNORECASE,
)
_EDGES = " \t\r\n.,;:!?…\"'“”‘’«»()[]{}*_-–—/\\|"
_NO_ENTITY = re.compile(
    r"(?:true|false|yes|no|not|either|neither|both|others?|another|ones?|its?|this|that|these|those|"
    r"they|them|s?he|her|him|his|me|my|you|your|we|us|i|so|such|nothing|something|anything|"
    r"everything|more|less|better|worse|same|different|else|dead|alive|now|never|always|whether)$"
    r"|(?:and|or|vs|versus|than|with|to|by|not|neither|it|they|s?he|whether|so)(?!\S)"
    r"|(?:who|whom|which|what|how|why|when|where|is|are|was|were|do|does|did|should|would|could|if)"
    r"(?!\S)",
    re.IGNORECASE,
)


def detect(query: str) -> tuple[str, ...]:
    """The names that `query` compares, in order and as typed; () if it is no comparison.

    Known phrasings: "X vs Y" (versus, compared to), "compare X and|with|to Y", "how does X compare
    to Y", "difference between X and Y", "which|what …, (a) X or (a) Y", "who would win … X or Y";
    also with three or more sides. Articles, remarks in brackets and trailing clauses are not part
    of a name. At most 8 names of at most 6 words. The first sentence that compares decides.
    """
    sides = _sides(query)
    # Two fighters of different level: nothing to retrieve for each on its own.
    return sides[:MAX_ENTITIES] if len(sides) > 1 else ()


def shared_name(query: str) -> str:
    """The name that all sides of a comparison bear: "fighter" where two of different level are
    compared; "" otherwise."""
    sides = _sides(query)
    return sides[0] if len(sides) == 1 else ""


def compares(query: str) -> bool:
    """True if `query` is a comparison, also of two with the same name."""
    return bool(_sides(query))


def parts(query: str) -> dict[str, str]:
    """What the query says of each side, by its name: "7th level druid (AC 9)?" of the druid. A part
    ends at the last word that joins two sides, so the first has what is said before it, and the
    last what is said after it. Empty if the query is no comparison of different things.
    """
    text, sides = _folded(query[:MAX_QUERY]), detect(query)
    starts, end = [0], 0
    for side in sides:
        found = _pattern(side).search(text, end)
        if found is None:
            return {}
        if end:
            joints = [joint.end() for joint in _JOINT.finditer(text, end, found.start())]
            starts.append(joints[-1] if joints else found.start())
        end = found.end()
    return {
        side: text[start:stop]
        for side, start, stop in zip(sides, starts, [*starts[1:], None], strict=False)
    }


@lru_cache(maxsize=1024)
def _sides(query: str) -> tuple[str, ...]:
    """The different names of the sides that `query` compares."""
    text = _BRACKETS.sub(" ", query[:MAX_QUERY])
    for sentence in _SENTENCE.split(text):
        plain = " ".join(sentence.split())
        for read in (_versus, _compare, _difference, _who_wins, _listed, _with_articles):
            found = _entities(read(plain))
            if len(found) > 1:
                sides: dict[str, str] = {}
                for name in found:
                    sides.setdefault(name.casefold(), name)
                return tuple(sides.values())
    return ()


def alternatives(query: str) -> tuple[str, ...]:
    """The sides of a query that is only "X or Y" ("hill giant or troll"); otherwise ().

    Such a query may also be one search in two words ("black or white magic?"). So it is a
    comparison only if the collection has a chunk titled like each side (`title_is`).
    """
    plain = _BRACKETS.sub(" ", query[:MAX_QUERY]).strip(_EDGES)
    if not _BARE_OR.search(plain) or _SENTENCE.search(plain) or _ASKING.search(plain):
        return ()
    found = [_entity(part) for part in _OR.split(plain)]
    sides = {name.casefold(): name for name in found}
    return tuple(sides.values())[:MAX_ENTITIES] if all(found) and len(sides) > 1 else ()


def names(entity: str, text: str) -> bool:
    """True if a text names `entity`: its words in a row, in any case, singular or plural."""
    return _pattern(entity).search(_folded(text)) is not None


def title_names(entity: str, title: str) -> bool:
    """As `names`, of a title. An inverted one ("Dragon, Black") names "black dragon"."""
    return any(_pattern(entity).search(each) for each in _titles(title))


def title_is(entity: str, title: str) -> bool:
    """True if the title is `entity` and no more: "Light" for light, not "Continual Light"."""
    return any(_pattern(entity).fullmatch(each.strip(_EDGES)) for each in _titles(title))


def _versus(sentence: str) -> list[str]:
    parts = _VERSUS.split(sentence + " ")
    if len(parts) < 2:
        return []
    first, *rest = parts
    first = _LEAD_IN.sub("", _PAUSE.split(first.strip())[-1])
    if _ASKING.match(first):
        # "How strong is a troll vs an ogre": only an article tells where the name begins.
        first, found = _LAST_ARTICLE.subn("", first)
        first = first if found else ""
    return [first, *(_PAUSE.split(part.strip())[0] for part in rest)]


def _compare(sentence: str) -> list[str]:
    how = _HOW_COMPARE.search(sentence)
    if how:
        return [how["left"], *_AND.split(sentence[how.end() :])]
    found = _COMPARE.search(sentence)
    if not found:
        return []
    rest = re.sub(r"^\s*and\s+contrast\s+", "", sentence[found.end() :], flags=re.IGNORECASE)
    head, _, tail = rest.partition(": ")
    rest = head if _AND.search(head) or _WITH.search(head) or _TO.search(head) else tail or head
    # "to" and "with" also stand in names ("speak with dead"): they split where they stand once.
    for separator in (_TO, _WITH):
        sides = separator.split(rest)
        if len(sides) == 2:
            return [piece for side in sides for piece in _AND.split(side)]
    return _AND.split(rest)


def _difference(sentence: str) -> list[str]:
    found = _DIFFERENCE.search(sentence)
    return _AND.split(sentence[found.end() :]) if found else []


def _who_wins(sentence: str) -> list[str]:
    found = _WHO_WINS.search(sentence)
    if not found:
        return []
    rest = re.sub(r"^\s*(?:[,:]|[-–—]+)\s*", "", sentence[found.end() :])
    return _ANY.split(rest)


def _listed(sentence: str) -> list[str]:
    """The list at the end of "which …, X, Y or Z": from its last piece back to what asks."""
    pieces = _PAUSE.split(sentence)
    if len(pieces) < 2 or not _QUESTION.search(pieces[0] + " " + pieces[1]):
        return []
    last = len(pieces) - 1
    while last > 0 and not re.search(r"(?:^|\s)or\s", pieces[last], re.IGNORECASE):
        last -= 1
    if last == 0:
        return []
    first = last
    while first > 1 and not _ASKING.search(pieces[first - 1]) and _entity(pieces[first - 1]):
        first -= 1
    return [part for piece in pieces[first : last + 1] for part in _OR.split(piece)]


def _with_articles(sentence: str) -> list[str]:
    """ "which is stronger a troll or an ogre": no comma, but both sides begin with an article."""
    found = _TWO_WITH_ARTICLES.search(sentence)
    if not found:
        return []
    before = sentence[: found.start()]
    if not (_QUESTION.search(before) and _COMPARATIVE.search(before)):
        return []
    return [found["left"], found["right"]]


def _entities(parts: Iterable[str]) -> list[str]:
    """The names among `parts`, up to the first part that is none (a trailing clause)."""
    found: list[str] = []
    for part in parts:
        if not part.strip(_EDGES):
            continue
        entity = _entity(part)
        if not entity:
            break
        found.append(entity)
    return found


def _entity(part: str) -> str:
    """The name in `part` without article and trailing clause; "" where there is none."""
    text = _LEAD_IN.sub("", part.strip(_EDGES))
    text = _OF_A.sub("", text)
    text = _TRAILING.sub("", text)
    text = _ARTICLE.sub("", text.strip(_EDGES)).strip(_EDGES)
    text = _LEVEL.sub("", text)
    words = text.split()
    if not words or len(words) > MAX_WORDS or len(text) > MAX_CHARS:
        return ""
    if _NO_ENTITY.match(text) or not any(map(str.isalnum, text)):
        return ""
    return text


def _titles(title: str) -> tuple[str, ...]:
    title = _folded(title)
    head, comma, tail = title.partition(",")
    return (title, f"{tail} {head}") if comma else (title,)


def _folded(text: str) -> str:
    text = text[:MAX_TEXT]
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).casefold()


@lru_cache(maxsize=256)
def _pattern(entity: str) -> re.Pattern[str]:
    words = re.findall(r"\w+", _folded(entity))
    if not words:
        return re.compile(r"(?!)")
    forms = ("|".join(sorted(map(re.escape, _forms(word)))) for word in words)
    return re.compile(r"(?<!\w)" + r"\W+".join(f"(?:{form})" for form in forms) + r"(?!\w)")


def _forms(word: str) -> frozenset[str]:
    """`word` and what may be its singular or plural: trolls, liches, harpies, wolves."""
    forms = {word, f"{word}s", f"{word}es"}
    for plural, singular in (
        ("ies", "y"),
        ("ves", "f"),
        ("ves", "fe"),
        ("men", "man"),
        ("es", ""),
        ("s", ""),
    ):
        if word.endswith(plural) and len(word) > len(plural) + 1 and not word.endswith("ss"):
            forms.add(word.removesuffix(plural) + singular)
        if singular and word.endswith(singular):
            forms.add(word.removesuffix(singular) + plural)
    return frozenset(forms)
