"""Parts that several reports show in the same way: the size of a side, and an answer with its
citations. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.answer.context import Context
from ragfilter.answer.stream import DOUBT, Answer, Prices
from ragfilter.model import Hit
from ragfilter.report import in_prompt
from ragfilter.settings.schema import Settings

QUOTED = "quoted from the passages, without an LLM"


@dataclass(frozen=True, slots=True)
class Size:
    """What one side sends. `cost` is that of 1,000 questions, in `currency`."""

    name: str
    chunks: int
    tokens: int
    cost: float
    currency: str


@dataclass(frozen=True, slots=True)
class Told:
    """An answer as a report shows it. `doubt` says that the context may not hold it, or that the
    LLM failed."""

    name: str
    by: str
    text: str
    cites: tuple[tuple[int, str], ...]
    doubt: str = ""


def size(name: str, hits: Sequence[Hit], settings: Settings, prices: Prices | None) -> Size:
    """A side's size in a prompt, which has the settings' budget."""
    sent, total = in_prompt(hits, settings)
    cost, currency = (prices.of_thousand(total), prices.currency) if prices else (0.0, "")
    return Size(name, sent, total, cost, currency)


def told(name: str, answer: Answer, context: Context) -> Told:
    """An answer for a report, made from a context."""
    titles = [hit.chunk.name for hit in context.chunks]
    return Told(
        name,
        QUOTED if answer.extractive else f"by {answer.model}",
        answer.text or answer.error,
        tuple((n, titles[n - 1]) for n in answer.citations if n <= len(titles)),
        (answer.error if answer.text else "")
        or (DOUBT.format(why=answer.doubt) if answer.doubt else ""),
    )
