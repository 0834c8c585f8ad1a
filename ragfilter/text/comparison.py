"""Comparison queries: what does a query compare, and does a chunk name one of the sides?

Source: Adaptive Result Filtering, "Comparison Detection Integration"; docs/design.md#entities lists the phrasings.
These are heuristics for English wording, without a model. A query that is not clearly a comparison is treated like any
other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

from ragfilter.text.normalise import normalise
from ragfilter.text.shared_words import plural_of, singular_of

MAX_QUERY = 2000  # characters read of a query; comparisons are at the beginning
MAX_TEXT = 10_000  # characters of a chunk's text that are searched for a name
MAX_ENTITIES = 8
MAX_WORDS = 6
MAX_CHARS = 80


# Words that questions put around the sides, by the name that patterns use for them.
_WORDS = {
    "more": (
        r"(?:more|less|fewer|better|worse|best|worst|most|least|stronger|weaker|faster|slower|tougher|harder|softer|"
        r"easier|deadlier|bigger|larger|smaller|higher|lower|smarter|cheaper|heavier|lighter|longer|shorter|older|"
        r"younger|richer|safer|greater|scarier|meaner|rarer|wiser|wins?|healthier|cleaner|cooler|warmer|hotter|colder|"
        r"taller|thicker|thinner|simpler|quicker|quieter|louder|brighter|newer|tastier|nicer|wider|deeper)\b"
    ),
    "quality": (
        r"(?:performance|speed|throughput|latency|scalability|reliability|durability|security|safety|quality|"
        r"efficiency|popularity|usability|pricing|prices?|costs?|features?|syntax|benchmarks?|coverage|compatibility|"
        r"availability|accuracy|overhead|concurrency|consistency|complexity|maintenance|maintainability|documentation|"
        r"ecosystem|community|adoption|support|tooling|salar(?:y|ies)|use cases?|"
        r"(?:memory|cpu|power|energy|disk|resource) (?:usage|consumption)|(?:cold )?start(?:s|-?up)?(?: times?)?|"
        r"response times?|explained|compared|battery life|learning curve|comparison|differences?|similarities|"
        r"trade-?offs?|reviews?|pros(?: and cons)?|cons|(?:dis)?advantages?(?: (?:and|or) disadvantages?)?|benefits?|"
        r"drawbacks?)"
    ),
    "choose": (
        r"(?:use|using|buy|buying|choose|choosing|pick|picking|prefer|take|get|learn|major|go|try|select|adopt|play|"
        r"read|wear|eat|drink|order|study|install|deploy|recommend|suggest|favou?r|rent|hire|switch|move|have|invest|"
        r"visit|watch|write|drive|start|work|build|sell|keep|walk|wait)"
    ),
    "prefer": (
        r"(?:choos(?:e|ing)|pick(?:ing)?|prefer(?:ring)?|select(?:ing)?|favou?r(?:ing)?|recommend|"
        r"us(?:e|ing)|buy(?:ing)?|learn(?:ing)?|adopt(?:ing)?)"
    ),
    "I": r"(?:i|we|you|one|they|people|someone)",
    "who": r"(?:<I>|\w+s|an? \w+)",
    "be": r"(?:is|are|was|were)",
    "do": r"(?:do|does|did|can|could|will|would)",
    "why": r"(?:why|when|should|would|do|is)",
    "how": r"(?:how|in (?:what|which) \w+)",
    "to": r"(?:to|with|against|from|than)",
    "difference": r"(?:diff(?:erence)?s?|distinctions?|similarities)",
    "Proper": r"(?=(?-i:[A-Z]))",
    # The sides: one, another, and several at once.
    "X": r"(?P<left>.+?)",
    "X:": r"(?P<left>[^,:]+?)",
    "Y": r"(?P<right>.+)",
    "sides": r"(?P<sides>.+)",
}


def _regex(*parts: str) -> re.Pattern[str]:
    """Compile a pattern with names of `_WORDS` in angle brackets. Sentences have single spaces."""
    pattern, n = "".join(parts), 1
    while n:
        pattern, n = re.subn(r"(?<!\?P)<([a-zA-Z]+:?)>", lambda m: _WORDS[m[1]], pattern)
    return re.compile(pattern, re.IGNORECASE)


_SENTENCE = re.compile(
    r"[?!]+(?!\s*(?:vs|versus|or)\b|=)|[;\n]+|(?<!\b[A-Za-z])(?<!\b[A-Z][a-z])(?<!\bvs)(?<!\bVs)\.(?=\s|$)"
)
_BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F)} | {0x3000: 0x20}
"""Full-width signs, as typed on Chinese and Japanese keyboards, and their ASCII equivalents."""
_EMPHASIS = re.compile(r"(?<!\w)([*_`]{1,3})(?=\S)([^*_`]+)(?<=\S)\1(?!\w)")
_PAUSE = re.compile(r"[,:]\s+|\s+[-–—]+\s+|—")
_COMPARED = (
    r"(?<!\S)(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )(?<!\bbe )"
    r"(?:(?:(?:as )?compared|in comparison) (?:to|with|against)|as opposed to) "
)
# After "and" or "than", "vs" is not "versus" but part of a name, such as VS Code.
_VERSUS = _regex(
    r"(?<=[^\s,:])",
    *(rf"(?<!\w\s{word})" for word in ("and", "or", "than", "to", "with", "of", "over", "between")),
    r"(?P<vs> (?:vs|versus|v/s|v(?=\. | (?-i:[A-Z])))|, (?-i:vs|versus))(?:\. ?| )|",
    _COMPARED,
)
_ASKED = _regex(
    r"^(?:(?P<how>how(?: \w+)?|when|where|(?:\w+ )?(?:which|what)(?: \w+)?) |why )?",
    r"(?:(?P<verb><do>|should|must)|<be>)(?: |$)",
    r"(?P<who>(?:<I> (?:(?:rather|ever) )?\w+|<who> <choose>)(?: |$)",
    r"(?:(?:with|for|to|in|on|of|about|use) )*)?",
)
_COMPARE = _regex(r"\b(?:compare|comparing|comparison(?: (?:of|between)|(?=:)|(?= (?-i:[A-Z]))))(?!\S*\w)")
_COMPARED_FIRST = _regex(rf"^(?:relative to |{_COMPARED})([^,:]+), (.+)")
# "Kafka/RabbitMQ differences", but not "CI/CD".
_SIGN = re.compile(r"\s+[&/]\s+|(?<=[^\s/]{3})/(?=[^\s/]{3})")
_CONTRASTS = _regex(
    r"^(?!.*\b(?:or|and|to|with|against|over|than|from|as|of\s.*\sof|vs|versus)\b)",
    r".*\b(?:compar|differ|diffs?\b|similarit|distinct|which|better)",
)
_OR = _regex(r"(?:, ?| |^)or |, ")
_AND = _regex(r"(?:, ?| |^)(?:and|or) |, ")
_ANY = _regex(r"(?:, ?| |^)(?:and|against) |, ")
_TO = _regex(r" (?:to|against) ")
_WITH = _regex(r" with ")
_JOINT = _regex(r"\b(?:or|and|to|with|against|over|than|from|vs|versus)\b|,")
_BARE_OR = _regex(r"\sor\s")
_HAS_OR = _regex(r"(?:^|\s)or\s")

_THAN = (
    r"(?: (?:much|far|any|a lot|so|considered|an?|even|still|ever|always|often|\w+ly))*"
    # "Higher than the estimate" is about an amount.
    r" (?!(?:higher|lower|greater|more|less|fewer) than the (?-i:[a-z]))"
    r"(?:<more>(?: \S+){0,6}?|\w+er) than (?P<that>(?:that|those) (?:of|in|at|for) )?"
    r"(?P<right>(?!\d|one\b|\w+ed\b|the (?:limit|budget|quote|estimate|average|sum)\b).+?)(?: to (?-i:[a-z]).*)?$"
)
_PHRASINGS = tuple(
    _regex(row)
    for row in (
        # How does X differ from Y? How do X and Y differ? What sets X apart from Y?
        r"^<how> (?:<do>|is|are) <X> (?:compare|differ|different|fare|(?:stack|measure) up) <to> <Y>",
        r"^<how> (?:do|does|did|are) (?P<sides>.+? (?:and|or) .+?) (?:differ|compare)\b",
        r"^how (?:similar|different|alike) (?:is|are) (?P<sides>.+? and .+)",
        r"\bprefer(?:red|able)? <X:> to <Proper><Y>",
        r"^what (?:distinguishes|separates|differentiates|sets|makes) <X> (?:(?:apart|different) )?from <Y>",
        # The difference between X and Y; to choose between X and Y.
        r"\b(?:(?:<difference>|choice|different|trade-?offs?)\b[^,:]{0,60}?|(?:distinguish|"
        r"differentiate|choose|choosing|decide|deciding) )\b(?:between|among|b/w)(?!\w)<sides>",
        r"^(?:(?:what(?:['’]s| is| are)|the|any|main|key|similarities and) )*<difference>"
        r"(?::(?=.*,)|(?::| (?:of(?! opinions?\b)|in(?= (?-i:[A-Z])))|(?= (?-i:[A-Z])))(?=.* and ))"
        r" <sides>",
        # Who would win a fight between X and Y?
        r"\bwho(?: (?:would|will|is (?:more |most )?likely to)|['’]d)? wins?\b(?: (?:in|during))?"
        r"(?: (?:an?|the))?(?: (?:fight|fighting|battle|duel|combat|contest|match|war|melee))?"
        r"(?: (?:between|of))?(?: ?(?:[,:]|[-–—]+))?<sides>",
        # Is X better than Y? Does X have more Z than Y? Why X is better than Y.
        r"^(?!(?:why|\w+ an?)\b.* than the (?-i:[a-z]))(?:(?:why|when|how much) )?"
        rf"(?:(?P<verb><do>)|<be>|has|have) <X>{_THAN}",
        rf"^(?:why|what makes) <X>(?: (?:<be>|has|have))?{_THAN}",
        r"^how much <more>(?: \w+)? (?:is|are) <X> than <Y>",
        # Is X the same as Y? Is X different from Y? Are X and Y the same?
        r"^(?:(?:when|why) )?<be> <X:> (?:\w+ly )?(?:(?:the )?same(?: \w+)? as|as (?!soon|well|far|long)\w+ as|"
        r"(?:similar|equivalent|identical|superior|inferior|comparable|preferable) to|different (?:from|than|to)) <Y>",
        r"^<be> (?P<sides>[^,:]+? and [^,:]+?) (?:\w+ly )?"
        r"(?:(?:the )?same(?: thing)?|similar|equivalent|identical|interchangeable)$",
        r"\bhow <X:> (?:is different|differs?|compares?) (?:from|to|with) <Y>",
        # Would a griffon beat a wyvern? Is it healthier to bake than to fry? Better: tea or coffee?
        r"^<do> <X:> (?:beat|outperform) <Y>",
        r"^is it (?:(?:more|less) \w+|(?!better)<more>) to <X:> than to <Y>",
        r"^(?:better|pick one|choose(?: one)?)[:,] (?P<sides>.+? or .+)",
        # Rust faster than Go? Kafka against RabbitMQ.
        r"^<Proper>(?P<left>[^,:]*?) <more> than <Proper>(?P<right>.*)",
        r"^<Proper>(?P<left>\S*) against (?!AC\b)<Proper>(?P<right>\S*)$",
        r"^contrast <X:> (?:with|to|against) <Y>",
        # X and Y comparison; X, Y and Z compared.
        r"^(?!terms and )(?P<sides>[^:]+? and [^:]+?)(?: |: ?)"
        r"(?:compared|comparison|(?:the )?(?:main |key )?(?:differences?|similarities))$",
        # Why use X instead of Y? Why choose X over Y? Advantages of X over Y; what X has over Y.
        r"^<why>\b[^,:]{0,40}?\b<choose> <X:> (?:instead of|rather than) <Y>",
        r"(?:\b<quality> (?:(?:of|to|in) (?:<prefer> )?|(?:do|does) )|^what (?:do|does) |"
        r"^(?:do|does) (?=.* <quality> over )|^<why>\b[^,:]{0,40}?\b<prefer> )"
        r"<X:>(?: (?:have|has|offer|offers)(?: (?:\w+ )?<quality>)?)? (?P<over>over) <Y>",
        # Should I use X or Y? Do you prefer X or Y? Is it better to use X or Y?
        r"^(?:[^,:]{0,30}? )??(?:(?:should|shall|would|could) <who> (?:rather )?<choose>|"
        r"(?:do|does) <who> (?:prefer|recommend|suggest|like)|"
        r"(?:better|best|whether|when|decide|is it (?:(?:more|less) \w+|<more>)) to <choose>) "
        # Two clauses: "buy a house or rent", "take the bus or walk".
        r"(?:(?:with|for|to|in|on) )?(?!an? .* or <choose>$|the .* or \w+$)"
        r"(?P<sides>.* or (?!(?:to )?(?:<choose>|be|become|not) ).+)",
        r"^(?:which|what|who)(?: one)? (?:is|are) (?:(?:more|less) \w+|<more>|\w+er) between <sides>",
        r"^should <who> (?P<sides>\w+ or \w+)$",
        # Is X or Y better? Which is better X or Y? Which is better a X or a Y?
        r"^<be> (?P<sides>[^,:]+? or [^,:]+?) (?:(?:much|far|\w+ly) )?<more>",
        r"^(?:(?:do|does|did|can|will|would) (?=[^,:]* or )|which of )"
        r"(?P<sides>[^,:]+? (?:or|and) [^,:]+?) (?:\w+ )?<more>",
        r"^(?:which|what|who)(?: one)? (?:is|are) (?:(?:more|less) \w+|(?!more|less)<more>) "
        r"(?!(?:for|in|at|to|<quality>)\b)(?P<sides>(?:(?!\b(?:or|an?)\b)[^\s,:]+ ){1,4}or (?!an? ).+)",
        r"\b(?:which|what|whom?)\b.*?\b<more>.*?\b(?P<left>an? (?:(?!\ban?\b|\bor\b)\S+ ){1,8})or (?P<right>an? .+)",
    )
)
# X or Y: which is better?
_FIRST = _regex(
    r"^(?=[^?:;.]*\sor\s|between\s|.*\bdiffer|.*(?:[?:;,]|\s[-–—]) wh\w+(?: one)? \w+ <more>)",
    r"(?:out of )?",
    r"(?P<sides>[^?:;.]+?\s(?:or|and)\s[^?:;,.]+?)\s*(?:[?:;,]|\s[-–—])\s*(?:so )?",
    r"(?:which|what|who|how|is)\b(?=.*\b(?:<more>|should|prefer|differ|differences?)\b)",
)
_WHICH = _regex(
    r"(?:(?:in|of|for|to|at|by|on) )?which\b", r"|(?:what|whom?|whose)\b.*\b(?:<more>|\w+est|should|would|prefer)\b"
)
_NEEDED = _regex(r"\s(?:are|were) \w+ed$")

# Text that belongs to no side.
_LEAD_IN = _regex(
    r"^(?:(?:please|so|ok|okay|hi|hello|hey|well|and|or|but|then|now|either|both|between|given|can you|could you|"
    r"would you|i want to(?: know)?|i'd like to(?: know)?|(?:tell|show|give) (?:me|us)|do you know|let's|explain|"
    r"describe|discuss|summari[sz]e|about|compare|contrast|comparing|what about|how about|"
    r"(?:(?:when|where|how|which|what|why) )?to <choose>|who (?:would |will )?wins?(?: in a fight)?|"
    r"(?:what(?:'s|’s| is| are) )?(?:the |an? )?(?:distinctions?|fight|battle|duel|<quality>)"
    r"(?: (?:of(?: using)?|between)))(?: |$))+"
)
_ARTICLE = _regex(r"^(?:an?|the|some|any) ")
# A chunk is about a fighter, whatever the level.
_LEVEL = _regex(r"^(?:\d+(?:st|nd|rd|th)?[\s-]+level|level[\s-]+\d+) (?=\S)")
_ASKING = _regex(r"(?<!\S)(?:whom?|which|what|how|why|when|where|<be>|<do>|should|if|i|it)(?!\S)")
_FIRST_OF = _regex(r" first(?=,? or\s|$)")
_LAST_ARTICLE = _regex(r"^.*\b(?:an?|the) ")
_OF_A = _regex(r"^.*\bof an? ")
# "Kramer come out", "hash index matter in practice"; "Go such a popular debate", "Go popular".
_VERB = _regex(r" (?:become|get|seem|make)\s.*| \w+(?: (?:to|out|up|down|off|on|in|at|for|with|when|if)\b.*)?$")
_PREDICATE = _regex(r" (?:(?:such|so|still|often|always|really|even|very|not|an?|the)\s.*|\w+)$")
# "Security implications of OAuth", but not "Staff of Power"; with lower-case names, only if no
# article follows: "price of gold vs silver", "staff of power vs a wand".
_ASPECT_OF = re.compile(r"^(?:[a-z][a-z-]* )+?of (?=[A-Z\d.$]|.*\n(?!an?\s|the\s))")
# "Over" a time, a place or a medium does not express a preference.
_OVER_NO_SIDE = _regex(
    r"^(?:an? )?(?:the|this|that|there|here|time|night|lunch|dinner|breakfast|money|land|sea|water|heat|ages?|fire|air|"
    r"(?:river|bridge|ocean|border|road|wall|fence)s?|(?:e-?)?mail|phone|radio|text|internet|intranet|wi-?fi|bluetooth|"
    r"ethernet|usb|vpn|tcp|udp|ip|tls|ssl|ssh|https?|\d.*|\w+days?|weekends?|weeks?|months?|years?|hours?|minutes?|"
    r"(?:\w+ )?(?:networks?|line|connections?|distances?|period|limit|budget))(?!\S)"
)
_TRAILING = _regex(
    r" (?:(?:in|on|at|for|as|with|without|under|during|against) (?:an?|the|his|her|its|their|my|your|our|ac|a\.c\.|"
    r"armou?r|hp|terms|combat|battle|melee|general|detail|respect|regards?|no|\d\S*)\b"
    r"|to (?:<choose>|be|do|make|speak|understand|master|run|maintain|implement|own|raise|cook)\b"
    r"|(?:before|after|until|unless|once) (?:an?|the|my|i|we|you|they|s?he|it|\w+ing)\b"
    r"|(?:and )?(?:such|who|which|what|when|where|why|how|if|while|because|since|regarding|concerning|assuming|given|"
    r"based|according|using|than|please|<be>|<do>|should|has|have|wins?|that)\b|(?:more|most|better|best)$).*$"
)
# Aspects after the last side, and aspects that are certain only after a proper name ("speak with
# dead", "marginal cost"). "Written in Scala" and "Ruby on Rails" belong together.
_ASPECT = _regex(r"(?:(?<!ed)(?<!ten)|(?= for\b)) (?P<word>for|in|as|at|on(?! rails\b)) \S")
_QUALITIES = r"(?:\w+ and )*<quality>(?: and \w+)?$"
_OF_PROPER = _regex(rf"(?:['’]s)? (?P<word>with(?= \S)|{_QUALITIES})")
_OF_QUALITY = _regex(rf"(?:['’]s)? {_QUALITIES}")
_TRIM = re.compile(
    r"""^(?:(?!\.\w|--?\w)[\s.,;:?…"'“”‘’«»()\[\]{}_\-–—/\\|]|\*(?=\s))+"""
    r"""|(?:[\s.,;:!?…"'“”‘’«»()\[\]{}_–—/\\|]|(?<!\b[A-Za-z])-)+$"""
)
_SIGNS = re.compile(r"[-=<>&+*^~%#@$!]{1,3}")
_NO_ENTITY = _regex(
    r"(?:true|false|yes|no|not|either|neither|both|others?|another|ones?|\S+ ones?|its?|this|that|these|those|her|his|"
    r"so|such|zero|expected|planned|today|yesterday|more|less|better|worse|same|different|else|dead|alive|now|never|"
    r"always|whether|average|usual|normal|before|ever|the|vs|versus|vice versa)$"
    r"|(?:last|next|previous|this) (?:\w*day|night|week|month|quarter|season|year|time)s?$"
    r"|other way(?!\S)|(?:any|every|some|no)(?:\s?one|body|thing|where)(?!\S)"
    r"|(?:and|or|than|with|to|by|for|in|at|not|neither|it|there|i|me|you|we|(?-i:us)|they|them|him|s?he|"
    r"(?:my|your|him|her|our|them)sel(?:f|ves)|otherwise|whether|so|each|every|favou?rably|"
    r"(?-i:my|our|your|his|her|its|their)|whom?|which|what|how|why|when|where|<be>|do|does|did|should|would|could|if|"
    r"compared)(?!\S)"
)

_NOUN = _regex(r"^(?:an? |the )?(?!(?:this|that|my|your|our|the)\s)[^\W\d_]+ ([^\W\d_]+)$")
_ONE = _regex(r"^((?:an? |the )?[^\W\d_]+) ones?$")


def detect(query: str) -> tuple[str, ...]:
    """The names that `query` compares, in order and as typed; () if it is not a comparison.

    docs/design.md#entities lists the phrasings; those that allow it also take three or more sides. Articles, remarks in
    brackets, trailing clauses and the aspect of the comparison ("for analytics") are not part of a name. At most 8
    names of at most 6 words. The first sentence that compares decides."""
    sides = tuple(_sides(query))
    # For two fighters of different levels, there is no separate search for each side.
    return sides[:MAX_ENTITIES] if len(sides) > 1 else ()


def shared_name(query: str) -> str:
    """The name that all sides of a comparison share: "fighter" for two fighters of different levels; otherwise ""."""
    sides = tuple(_sides(query))
    return sides[0] if len(sides) == 1 else ""


def compares(query: str) -> bool:
    """Whether `query` is a comparison, even of two things with the same name."""
    return bool(_sides(query))


def readings(query: str, name: str) -> tuple[str, ...]:
    """The possible names of a side, longest first: grammar cannot tell "Alice in Wonderland" from "MySQL in use"."""
    typed = _sides(query).get(name, name)
    return tuple(dict.fromkeys((typed, name, _OF_QUALITY.sub("", name))))


def beginnings(name: str) -> tuple[str, ...]:
    """The beginnings of `name` without its last words, longest first."""
    words = name.split()
    return tuple(" ".join(words[:n]) for n in range(len(words) - 1, 0, -1))


def parts(query: str) -> dict[str, str]:
    """The part of the query about each side, by its name: "7th level druid (AC 9)?" for the druid. A part ends at the
    last word that joins two sides, so the first part includes the words before its side, and the last those after it.
    Empty unless the query compares different things."""
    text, sides = normalise(query[:MAX_QUERY]), detect(query)
    starts, end = [0], 0
    for side in sides:
        side_match = _pattern(side).search(text, end)
        if side_match is None:
            return {}
        if end:
            joints = [joint.end() for joint in _JOINT.finditer(text, end, side_match.start())]
            starts.append(joints[-1] if joints else side_match.start())
        end = side_match.end()
    return {side: text[start:stop] for side, start, stop in zip(sides, starts, [*starts[1:], None], strict=False)}


@lru_cache(maxsize=1024)
def _sides(query: str) -> Mapping[str, str]:
    """The distinct names of the sides that `query` compares, with the texts as typed, which may end in an aspect."""
    plain = _BRACKETS.sub(" ", query[:MAX_QUERY].translate(_WIDE))
    text = _EMPHASIS.sub(r"\2", plain)
    if _CONTRASTS.search(text):
        text = _SIGN.sub(" and ", text)
    for sentence in _SENTENCE.split(text):
        plain = " ".join(sentence.split())
        for read in (_compared, _versus, _compare, _listed, _phrased, _proper):
            typed = _completed(_entities(read(plain)))
            if len(typed) > 1:
                return _named(typed)
    first = _FIRST.search(" ".join(text.split()))
    typed = _entities(_split(first["sides"])) if first and not _ASKING.search(first["sides"]) else []
    return _named(typed) if len(typed) > 1 else {}


def _named(typed: Sequence[str]) -> Mapping[str, str]:
    *others, last = typed
    sides: dict[str, tuple[str, str]] = {}
    for name, whole in zip((*others, _without_aspect(last, others)), typed, strict=True):
        sides.setdefault(name.casefold(), (name, whole))
    return dict(sides.values())


def _without_aspect(name: str, others: Sequence[str]) -> str:
    """Remove "for analytics" or, after a proper name, "performance" from `name`, unless another side has it too."""
    for aspect in (_ASPECT, _OF_PROPER):
        match = aspect.search(name)
        if not match or any(f" {match['word']}" in other for other in others):
            continue
        left = name[: match.start()]
        if aspect is _ASPECT or not left.islower():
            name = _entity(left) or name
    return name


def _completed(typed: list[str]) -> list[str]:
    """Put the words before the previous side's number before a side that begins with one: "Python 2 vs 3"."""
    for i in range(1, len(typed)):
        before = re.match(r"(\D*[^\W\d_]\s)\d", typed[i - 1])
        if before and typed[i][0].isdigit():
            typed[i] = _entity(before[1] + typed[i]) or typed[i]
    return typed


def alternatives(query: str) -> tuple[str, ...]:
    """The sides of a query that is just "X or Y" ("hill giant or troll"); otherwise (). Such a query may also be a
    search for one thing ("black or white magic?"). So it is a comparison only if the collection has a chunk titled like
    each side (`title_is`)."""
    plain = _TRIM.sub("", " ".join(_BRACKETS.sub(" ", query[:MAX_QUERY]).split()))
    if not _BARE_OR.search(plain) or _SENTENCE.search(plain) or _ASKING.search(plain):
        return ()
    *others, last = _OR.split(plain)
    if not any(" for " in other for other in others):
        last = last.partition(" for ")[0]
    sides_typed = [_entity(part) for part in (*others, last)]
    sides = {name.casefold(): name for name in sides_typed}
    return tuple(sides.values())[:MAX_ENTITIES] if all(sides_typed) and len(sides) > 1 else ()


def mentions(entity: str, text: str) -> bool:
    """Whether a text names `entity`: its words in sequence, in any case and number, with signs as in "C++", ".NET"."""
    return _pattern(entity).search(normalise(text[:MAX_TEXT])) is not None


def title_names(entity: str, title: str) -> bool:
    """Like `mentions`, for a title. An inverted title ("Dragon, Black") names "black dragon"."""
    return any(_pattern(entity).search(each) for each in _titles(title))


def title_is(entity: str, title: str) -> bool:
    """Whether the title is just `entity`: "Light" for light, but not "Continual Light"."""
    forms = (form for each in _titles(title) for form in (each, _TRIM.sub("", each)))
    return any(map(_pattern(entity).fullmatch, forms))


def _compared(sentence: str) -> list[str]:
    """The sides of "Compared to Go, is Rust faster?", which means "Is Rust faster than Go?"."""
    match = _COMPARED_FIRST.search(sentence)
    if not match or not _entity(match[1]):
        return []
    other, question = match.groups()
    sides = _phrased(f"{question} than {other}") or _versus(f"{question} compared to {other}")
    return sides[::-1]


def _versus(sentence: str) -> list[str]:
    marks = list(_VERSUS.finditer(f"{sentence} "))
    if not marks:
        return []
    first = _LEAD_IN.sub("", _PAUSE.split(sentence[: marks[0].start()].strip())[-1])
    question_word = _ASKED.match(first)
    if question_word or _ASKING.match(first):
        # "How strong is a troll vs an ogre": the name begins after the last article or else the question words.
        first = _LAST_ARTICLE.sub("", first[question_word.end() :] if question_word else first)
    sides = [first]
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), None], strict=True):
        part = _PAUSE.split(f"{sentence} "[mark.end() : end].strip())[0]
        if mark["vs"] and not sides[-1].strip():
            sides[-1] = f"{mark['vs'].strip(', ')} {part}"
        else:
            sides.append(part)
    if question_word and len(sides) > 1 and not any(" of " in side for side in sides[1:]):
        sides[0] = _ASPECT_OF.sub("", f"{sides[0]}\n{sides[1]}").split("\n")[0]
    if question_word and not question_word["who"] and (question_word["verb"] or not question_word["how"]):
        asked_of = -1 if marks[-1]["vs"] else 0
        sides[asked_of] = (_VERB if question_word["verb"] else _PREDICATE).sub("", sides[asked_of])
    return sides


def _compare(sentence: str) -> list[str]:
    match = _COMPARE.search(sentence)
    if not match or _PHRASINGS[0].search(sentence):
        return []
    rest = re.sub(r"^\s*and\s+contrast\s+", "", sentence[match.end() :], flags=re.IGNORECASE)
    head, _, tail = rest.partition(": ")
    rest = head if _AND.search(head) or _WITH.search(head) or _TO.search(head) else tail or head
    # "to" and "with" also occur in names ("speak with dead"): they split only if they occur once.
    for separator in (_TO, _WITH):
        sides = separator.split(rest)
        if len(sides) == 2:
            return [piece for side in sides for piece in _AND.split(side)]
    return _AND.split(rest)


def _phrased(sentence: str) -> list[str]:
    for phrasing in _PHRASINGS:
        match = phrasing.search(sentence)
        if not match:
            continue
        part = match.groupdict()
        if part.get("sides"):
            sides = _split(part["sides"])
        else:
            left = _VERB.sub("", part["left"]) if part.get("verb") else part["left"]
            if part.get("that"):
                left = re.split(r"\s(?:of|in|at|for)\s", left)[-1]
            sides = [left, *_AND.split(part["right"])]
            if part.get("over") and not _alike(left, sides[1]):
                continue
        if len(_entities(sides)) > 1:
            return sides
    return []


def _alike(left: str, right: str) -> bool:
    """Whether both are short names of one form: proper names, plurals, gerunds or other words. Only
    then does "over" express a preference, rather than a time, a place or a medium."""
    first = _entity(left)
    second = _without_aspect(_entity(right), [first])
    if not first or not second or _OVER_NO_SIDE.match(right):
        return False
    short = max(len(first.split()), len(second.split())) < 4
    return short and _form(first) == _form(second)


def _form(name: str) -> str:
    return re.sub(r".*?(ing|s|)$", r"\1", name) if name[:2].islower() else "proper"


def _proper(sentence: str) -> Sequence[str]:
    """The sides of a sentence that is "X or Y" with proper names: "Ruby or Python?", "iOS or Android for games?"."""
    sides = alternatives(sentence)
    words = (word for name in (_named(sides) if sides else ()) for word in name.split())
    return sides if all(any(map(str.isupper, word)) for word in words) else ()


def _split(sides: str) -> list[str]:
    if len(_FIRST_OF.findall(sides)) == 1:
        sides = _FIRST_OF.sub("", sides)
    return (_OR if _BARE_OR.search(sides) else _ANY).split(sides)


def _listed(sentence: str) -> list[str]:
    """The list at the end of "which …, X, Y or Z": back from its last item to the question word."""
    pieces = _PAUSE.split(sentence)
    if not any(_WHICH.match(_LEAD_IN.sub("", piece)) for piece in pieces[:2]):
        return []
    last = max((i for i, piece in enumerate(pieces) if _HAS_OR.search(piece)), default=0)
    first = last
    while first > 1 and not _ASKING.search(pieces[first - 1]) and _entity(pieces[first - 1]):
        first -= 1
    # "Which documents, receipts or invoices are needed?" asks about all of them.
    if not last or _NEEDED.search(pieces[last]):
        return []
    return [part for piece in pieces[first : last + 1] for part in _OR.split(piece)]


def _entities(parts: Iterable[str]) -> list[str]:
    """The names among `parts`, up to the first part that is not a name (a trailing clause)."""
    typed = [part for part in parts if _TRIM.sub("", part)]
    # "Swiss watches" and "Japanese ones".
    noun = _NOUN.match(typed[0]) if typed else None
    if noun:
        typed = [_ONE.sub(rf"\1 {noun[1]}", part) for part in typed]
    entities = list(takewhile(bool, map(_entity, typed)))
    if len(set(map(str.casefold, entities))) < len(entities):
        # "Yahoo! vs Yahoo": the sign is part of the name if nothing else distinguishes the two.
        marked = zip(entities, typed, strict=False)
        entities = [f"{name}!" if f"{name}!" in part else name for name, part in marked]
    return entities


def _entity(part: str) -> str:
    """The name in `part` without article and trailing clause; "" if there is none."""
    text = _LEAD_IN.sub("", _TRIM.sub("", part))
    text = _OF_A.sub("", text)
    text = _TRAILING.sub("", text)
    text = _TRIM.sub("", _ARTICLE.sub("", _TRIM.sub("", text)))
    text = _LEVEL.sub("", text)
    words = text.split()
    if not words or len(words) > MAX_WORDS or len(text) > MAX_CHARS or _NO_ENTITY.match(text):
        return ""
    return text if any(map(str.isalnum, text)) or _SIGNS.fullmatch(text) else ""


def _titles(title: str) -> tuple[str, ...]:
    title = normalise(title[:MAX_TEXT])
    head, comma, tail = title.partition(",")
    return (title, f"{tail} {head}") if comma else (title,)


# A word with signs that make it a different name: C++, C#, A*, A-, Yahoo!, .NET, $PATH, -O2, -1.
_NAME = re.compile(
    r"(?P<before>(?<!\w)(?:[.$@](?=\w)|(?<!\S)--?(?=\w)|-(?=\d)))?(?P<word>\w+)(?P<after>[+#*!]+|(?<=\b\w)-(?!\w))?"
)


@lru_cache(maxsize=256)
def _pattern(entity: str) -> re.Pattern[str]:
    name = normalise(entity)
    parts = list(map(_word, _NAME.finditer(name)))
    if parts:
        return re.compile(r"\W+".join(parts))
    # Only signs: "==", not "===".
    return re.compile(rf"(?<![^\s\w`'\"(]){re.escape(name)}(?![^\s\w`'\"),.:;?])" if name else "(?!)")


def _word(match: re.Match[str]) -> str:
    before, word, after = match["before"] or "", match["word"], match["after"] or ""
    forms = "|".join(sorted(map(re.escape, {word} if after else _forms(word))))
    start = r"(?<!\w)" if before else r"(?<!\w)(?<!(?<!\w)[.$@])"
    if word[0].isdigit() and not before:
        start += r"(?<!(?<!\w)-)"
    end = r"(?![+#*])" if after else r"(?!\w)(?!\+\+|[+#](?!\w))"
    if len(word) == 1 and not after:
        end += r"(?!-(?![\w-]))"
    return f"{start}{re.escape(before)}(?:{forms}){re.escape(after)}{end}"


def _forms(word: str) -> frozenset[str]:
    """`word` and its possible singular or plural: trolls, liches, harpies, wolves. Short words and
    words with a digit have none: "C" is not CS, and "iPhone 5" is not 5s."""
    if len(word) < 3 or not word.isalpha():
        return frozenset((word,))
    forms = {word, f"{word}s", f"{word}es", singular_of(word), plural_of(word)}
    if len(word) > 3 and not word.endswith("ss"):
        forms |= {word.removesuffix("es"), word.removesuffix("s")}
    return frozenset(forms)
