"""Labels proposed by an LLM, with its own prompt, through the judge's client and cache.

Source: docs/design.md#labels. The decisions:

- It labels the first hits of the unfiltered ranking, and the hits that people have labelled, so
  both can be compared. It is not asked twice about the same chunk.
- It sees a few chunks at a time, so they fit uncut, without rank and score.
- Only explicit labels count. A chunk that it leaves out has no label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

from ragfilter.engine.gather import Backends, gather
from ragfilter.errors import InputError, ModelError
from ragfilter.evaluate.query_records import NO_LLM
from ragfilter.judge import call
from ragfilter.judge.prompt import JudgePrompt, build_prompt
from ragfilter.judge.prompts import PromptVariant
from ragfilter.layers.visibility import effective_user
from ragfilter.model import User
from ragfilter.protocols import Prices, Usage
from ragfilter.results.rows import ChunkRow
from ragfilter.settings.schema import Settings
from ragfilter.stores.label_book import Label, LabelBook
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.text.shared_words import estimate_tokens

TOGETHER = 5
"""Chunks in one prompt: few enough to fit uncut."""
MAX_FAILED = 3
"""Maximum number of consecutive failed calls."""
WORDS = PromptVariant(
    name="labels",
    version="1",
    about="labels for an evaluation.",
    instructions="""\
You label search results, to measure a search. Give every chunk a line. Judge each by itself and
by what it says, however well it is written. Actions:
KEEP: relevant. It answers the query, or a part of it
EXPAND_1: partly relevant. It helps only beside other chunks
DISCARD: not relevant. It has the topic or the words, but nothing that answers""",
    fields=("title", "type"),
)
GRADES: Mapping[str, int] = {"KEEP": 2, "EXPAND": 1, "DISCARD": 0}


@dataclass(frozen=True, slots=True)
class Request:
    """The calls for one question, one per prompt."""

    question: str
    prompts: tuple[JudgePrompt, ...]


@dataclass(frozen=True, slots=True)
class Bill:
    """The estimated cost of requests. `remembered` calls are cached and cost nothing. Tokens are
    estimates; `cost` is in `currency`, None without prices."""

    questions: int
    chunks: int
    calls: int
    remembered: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    currency: str = ""

    @property
    def sentence(self) -> str:
        """The cost in one sentence."""
        if not self.chunks:
            return "There is nothing left to label: the LLM has labelled all of these chunks."
        money = "" if self.cost is None else f", about {numbers.money(self.cost, self.currency)}"
        again = f" {counted(self.remembered, 'call')} are remembered." if self.remembered else ""
        return (
            f"{counted(self.questions, 'question')}, {numbers.chunk_count(self.chunks)}: "
            f"{counted(self.calls, 'call')}, about {numbers.count(self.prompt_tokens)} tokens sent "
            f"and {numbers.count(self.completion_tokens)} written{money}.{again}"
        )


@dataclass(frozen=True, slots=True)
class LabelProposal:
    """The outcome of one call: chunk id → grade, or why there is none."""

    question: str
    grades: Mapping[str, int]
    error: str = ""


def requests(
    questions: Iterable[str],
    standing: Sequence[Label],
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    depth: int,
) -> Iterator[Request]:
    """Yield the request for every question. It contains only chunks that the user can see. Raises InputError if no LLM
    is configured, and what `gather` raises."""
    if backends.chat is None:
        raise InputError("Proposing labels needs an LLM, and none is configured.", remedy=NO_LLM)
    model = backends.chat.name
    judge, viewed = settings.judge, effective_user(user, settings)
    plain = settings.with_values({"judge.enabled": False, "retrieval.source_pattern": ""})
    for question in dict.fromkeys(text.strip() for text in questions):
        labels = [label for label in standing if label.query == question]
        done = {label.chunk_id for label in labels if (label.made_by, label.who) == ("llm", model)}
        people = {label.chunk_id for label in labels if label.made_by == "human"}
        pool = gather(question, plain, backends, user, wide=True)
        visible = (h for h in pool.hits if h.found_by == "query" and viewed.sees(h.chunk))
        wanted = [
            hit for place, hit in enumerate(visible) if (place < depth or hit.id in people) and hit.id not in done
        ]
        whole = backends.collection.chunks([hit.id for hit in wanted])
        hits = [replace(hit, chunk=whole.get(hit.id, hit.chunk)) for hit in wanted]
        # Read again: a chunk's clearance may have changed since the pool was gathered.
        hits = [hit for hit in hits if viewed.sees(hit.chunk)]
        prompts = [
            build_prompt(question, hits[start : start + TOGETHER], judge, pool.space, WORDS)
            for start in range(0, len(hits), TOGETHER)
        ]
        yield Request(question, tuple(prompt for prompt in prompts if prompt.asked))


def bill(requests: Sequence[Request], backends: Backends, prices: Prices | None = None) -> Bill:
    """The cost of the requests."""
    assert backends.chat is not None
    name, remembered = backends.chat.name, backends.judgements
    prompts = [prompt for request in requests for prompt in request.prompts]
    new = [p for p in prompts if remembered is None or (name, p.key) not in remembered]
    sent = sum(prompt.tokens for prompt in new)
    answers = [[{"chunk_id": i, "action": "EXPAND_1"} for i in prompt.asked] for prompt in new]
    written = sum(estimate_tokens(json.dumps({"decisions": answer})) for answer in answers)
    return Bill(
        questions=len(requests),
        chunks=sum(len(prompt.asked) for prompt in prompts),
        calls=len(new),
        remembered=len(prompts) - len(new),
        prompt_tokens=sent,
        completion_tokens=written,
        cost=None if prices is None else prices.of(Usage(sent, written)),
        currency="" if prices is None else prices.currency,
    )


def keep(proposal: LabelProposal, book: LabelBook, collection: str, backends: Backends) -> int:
    """Store the proposed labels as made by the model. Returns how many. Raises StoreError."""
    assert backends.chat is not None
    labels = [(proposal.question, i, grade) for i, grade in proposal.grades.items()]
    return book.add(collection, labels, who=backends.chat.name, made_by="llm") if labels else 0


def propose(
    requests: Iterable[Request], settings: Settings, backends: Backends, *, timeout_s: float
) -> Iterator[LabelProposal]:
    """Make the calls one after the other. Raises ModelError if `MAX_FAILED` calls in a row fail."""
    assert backends.chat is not None
    judge = settings.judge.model_copy(update={"timeout_ms": int(1000 * timeout_s)})
    failed = 0
    for request in requests:
        for prompt in request.prompts:
            judgement = call.ask(prompt, backends.chat, judge, cache=backends.judgements)
            failed = failed + 1 if judgement.error else 0
            grades = {verdict.chunk_id: GRADES[verdict.action] for verdict in judgement.verdicts}
            yield LabelProposal(request.question, grades, judgement.error)
            if failed == MAX_FAILED:
                raise ModelError(
                    f"The LLM failed {failed} times in a row: {judgement.error.rstrip('.')}.",
                    remedy="Check the endpoint. The labels so far are kept; propose again to continue.",
                )


Grades = Mapping[str, Mapping[str, int]]
"""Question → chunk id → grade."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement over the pairs that both have labelled. `kappa` is Cohen's, for relevant or
    not; None if there are no pairs, or if chance alone would give full agreement."""

    pairs: int
    agreed: int
    kappa: float | None

    @property
    def sentence(self) -> str:
        """The agreement in one sentence."""
        if not self.pairs:
            return (
                "No chunk is labelled by both people and the LLM, so their agreement is unknown: "
                "label some of the LLM's chunks."
            )
        kappa = "not defined" if self.kappa is None else f"{self.kappa:.2f}"
        return f"LLM and people agree on {self.agreed} of {self.pairs} pairs (relevant or not), Cohen's kappa {kappa}."


def agreement(human: Grades, llm: Grades) -> Agreement:
    """Cohen's kappa: (observed − expected) / (1 − expected) agreement on what is relevant.

    Source: Cohen, "A coefficient of agreement for nominal scales", 1960."""
    both = [
        (grade > 0, llm[query][chunk] > 0)
        for query, grades in human.items()
        for chunk, grade in grades.items()
        if chunk in llm.get(query, {})
    ]
    n = len(both)
    if not n:
        return Agreement(0, 0, None)
    agreed = sum(one == other for one, other in both)
    ours, theirs = (sum(pair[i] for pair in both) / n for i in (0, 1))
    expected = ours * theirs + (1 - ours) * (1 - theirs)
    kappa = None if expected == 1 else (agreed / n - expected) / (1 - expected)
    return Agreement(n, agreed, kappa)


FIRST, BESIDE, SAMPLED = 6, 4, 6
"""How many chunks to label are offered for a question: the first ranks, which complete the
question; then those next to the cut; then a sample of the rest."""
RANKS = 50
"""Chunks are offered down to this rank."""


def to_label(rows: Sequence[ChunkRow], cut: Sequence[str], query: str, *, blind: bool) -> list[str]:
    """The chunks to label for a question: the first `FIRST` ranks, then those nearest the cut, whose labels say most
    about where it belongs, then a sample of the rest. `cut` has the ids in the order in which they reached the cut.
    `blind`: the same chunks, ordered by a hash of question and chunk."""
    ranked = [row.id for row in rows if row.rank][:RANKS]
    kept = {row.id for row in rows if row.kept}
    first = ranked[:FIRST]
    here = {row.id for row in rows}
    line = list(dict.fromkeys([*(i for i in cut if i in here), *ranked]))[:RANKS]
    last = max((place for place, i in enumerate(line) if i in kept), default=-1)
    # Chunks from an expansion and pinned chunks are also on the kept side of the cut.
    line[last + 1 : last + 1] = beyond = [row.id for row in rows if row.kept and row.id not in line]
    last += len(beyond)
    nearest = sorted(range(len(line)), key=lambda place: abs(place - last - 0.5))
    beside = [line[place] for place in nearest if line[place] not in first][:BESIDE]
    rest = sorted({*line} - {*first, *beside}, key=lambda i: _mixed(query, i))[:SAMPLED]
    order = [*first, *beside, *rest]
    return sorted(order, key=lambda i: _mixed(query, i)) if blind else order


def _mixed(query: str, chunk_id: str) -> bytes:
    return blake2b(f"{query}\n{chunk_id}".encode("utf-8", "replace")).digest()
