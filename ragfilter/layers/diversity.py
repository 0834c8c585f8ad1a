"""diversity: collapse near-duplicates, and keep a few chunks for every part of the question.

Source: docs/design.md#diversity. It acts after the cutoff, which needs the cliffs among all hits, and before the judge,
which need not read the same text twice. Texts are alike if they share runs of three words (Broder's resemblance). Words
that more than half of the chunks have do not count. A chunk with none of the words is kept, since it was found by its
meaning. Pinned chunks are kept. Chunks beyond the first 50 are not examined."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ragfilter.layers.layer import EPSILON, LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, PoolResult
from ragfilter.settings.schema import Diversity
from ragfilter.text import numbers
from ragfilter.text.normalise import normalise

RUN = 3
LOOKED_AT = 50
SHOWN_WORDS = 3
SIMILARITY_PATH, PER_PART_PATH = "diversity.max_similarity", "diversity.per_part"

_WORD = re.compile(r"\w+")


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Drop hits that resemble a better kept chunk, or whose words enough better chunks have."""
    settings = inputs.settings.diversity
    first, rest = hits[:LOOKED_AT], hits[LOOKED_AT:]
    words = _telling_words(inputs.pool.query, first)
    alike = _Alike()
    covered: Counter[str] = Counter()
    kept: list[Hit] = []
    decisions: list[Decision] = []
    for hit in first:
        decision = _decide(hit, alike, words[hit.id], covered, settings)
        if hit.id in inputs.pinned:
            decision = Decision(hit.id, "diversity", "pinned", inputs.pinned[hit.id])
        decisions.append(decision)
        if decision.outcome != "dropped":
            kept.append(hit)
            alike.add(hit)
            covered.update(words[hit.id])
    beyond = f"beyond the first {LOOKED_AT}; only those are compared"
    decisions += [Decision(hit.id, "diversity", "kept", beyond) for hit in rest]
    return LayerOutput((*kept, *rest), tuple(decisions))


def _decide(hit: Hit, alike: _Alike, held: frozenset[str], covered: Counter[str], settings: Diversity) -> Decision:
    value, other = alike.nearest(hit)
    limit = settings.max_similarity
    if other is not None and value >= limit - EPSILON:
        reason = f"text similarity {value:.3f} ≥ {limit:.3f} to {other.chunk.name}"
        return Decision(hit.id, "diversity", "dropped", reason, value, limit, SIMILARITY_PATH)
    least, per_part = min((covered[word] for word in held), default=0), settings.per_part
    if least >= per_part:
        word_list = numbers.first_of([f"“{word}”" for word in sorted(held)], SHOWN_WORDS)
        reason = f"{word_list}: in {least} better chunks; {per_part} are enough"
        return Decision(hit.id, "diversity", "dropped", reason, least, per_part, PER_PART_PATH)
    reason = "unlike every better chunk"
    if other is not None:
        reason = f"text similarity {numbers.apart(value, '<', limit)} to {other.chunk.name}"
    return Decision(hit.id, "diversity", "kept", reason, value, limit, SIMILARITY_PATH)


class _Alike:
    """The kept texts, to find the one that most resembles another text."""

    def __init__(self) -> None:
        self._kept: list[tuple[Hit, int]] = []
        self._with: defaultdict[str, list[int]] = defaultdict(list)

    def add(self, hit: Hit) -> None:
        runs = _text(hit.chunk.passage).runs
        for run in runs:
            self._with[run].append(len(self._kept))
        self._kept.append((hit, len(runs)))

    def nearest(self, hit: Hit) -> tuple[float, Hit | None]:
        """The highest share of common runs, and the hit that has it; of equals, the better hit."""
        runs = _text(hit.chunk.passage).runs
        common: Counter[int] = Counter()
        for run in runs:
            if run in self._with:
                common.update(self._with[run])
        best, other = 0.0, None
        for place, n in sorted(common.items()):
            kept, size = self._kept[place]
            value = n / (len(runs) + size - n)
            if value > best:
                best, other = value, kept
        return best, other


class _Text(NamedTuple):
    words: frozenset[str]
    runs: frozenset[str]


@lru_cache(maxsize=4096)
def _text(text: str) -> _Text:
    words = _WORD.findall(normalise(text))
    # A shorter text is a single run.
    last = max(1, len(words) - RUN + 1)
    runs = frozenset(" ".join(words[place : place + RUN]) for place in range(last))
    return _Text(frozenset(words), runs if words else frozenset())


def _telling_words(query: str, hits: Sequence[Hit]) -> dict[str, frozenset[str]]:
    """The words of the question that each hit contains, except words that most hits contain."""
    query_words = _text(query).words
    words_by_id = {hit.id: query_words & _text(hit.chunk.passage).words for hit in hits}
    count = Counter(word for words in words_by_id.values() for word in words)
    telling = frozenset(word for word, n in count.items() if n <= len(hits) / 2)
    return {i: words & telling for i, words in words_by_id.items()}


def _line(trace: LayerTrace, result: PoolResult) -> str:
    n = trace.count("dropped")
    return f"{numbers.chunk_count(n)} add nothing" if n != 1 else "1 chunk adds nothing"


def _plain(decision: Decision, hit: Hit, result: PoolResult) -> str:
    same = decision.setting == SIMILARITY_PATH
    return "said the same as a better one" if same else "were already covered by better ones"


SPEC: LayerSpec = LayerSpec(
    name="diversity",
    title="Diversity",
    mark=Mark("⬡", "hexagon-open", "#10140f", "#5b6d8f"),
    apply=apply,
    line=_line,
    off=lambda settings: "off; near-duplicates stay",
    candidates=no_more,
    compares=LOOKED_AT,
    plain=_plain,
    explains=1,
)
