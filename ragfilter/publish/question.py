"""The reports of one question: under one set of settings, or under two. Pure.

They contain only what their user may see, even if an operator makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.answer.context import Context
from ragfilter.answer.stream import DOUBT, Answer, Prices
from ragfilter.engine.replay import unfiltered
from ragfilter.model import Hit, PoolResult
from ragfilter.publish import drawing
from ragfilter.publish.html import ReportOrigin, command, render
from ragfilter.report import in_prompt, rows, seen
from ragfilter.report.contrast import contrast
from ragfilter.report.story import Story, sentences, story
from ragfilter.settings.schema import Settings

MOST_DROPPED = 30
QUOTED = "quoted from the passages, without an LLM"


@dataclass(frozen=True, slots=True)
class Called:
    """Settings with their name, and the profile they started from."""

    name: str
    profile: str
    settings: Settings


@dataclass(frozen=True, slots=True)
class Size:
    """What one side sends. `cost` is that of 1,000 questions, in `currency`."""

    name: str
    chunks: int
    tokens: int
    cost: float
    currency: str


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer as a report shows it. `doubt` says that the context may not hold it, or that the
    LLM failed."""

    name: str
    by: str
    text: str
    cites: tuple[tuple[int, str], ...]
    doubt: str = ""


def of_query(
    result: PoolResult,
    profile: str,
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[ShownAnswer] = (),
    called: str = "",
) -> str:
    """A report of one question: what was dropped and why, and its effect on prompt and answer.
    `called` names the settings."""
    result = seen(result)
    listed = rows(result)
    texts = {hit.id: hit.chunk.text for hit in result.kept}
    kept = sorted((row for row in listed if row.place is not None), key=lambda row: row.place or 0)
    dropped = [row for row in listed if row.place is None]
    k = result.settings.retrieval.k
    plain = unfiltered(result.pool, result.settings, result.user)
    account = story(result)
    return render(
        "query.html",
        query=result.query,
        incomplete=result.pool.incomplete,
        said=_said(account, prices),
        sides=[
            size(f"without the filter (first {k})", plain, result.settings, prices),
            size("with the filter", result.kept, result.settings, prices),
        ],
        priced=prices is not None,
        curve=drawing.curve(listed, k),
        answers=answers,
        kept=[(row, texts[row.id]) for row in kept],
        falls=account.falls,
        dropped=dropped[:MOST_DROPPED],
        why={i: fall.words for fall in account.falls for i in fall.ids},
        more=max(len(dropped) - MOST_DROPPED, 0),
        settings=result.settings,
        profile=profile,
        called=called,
        command=_command(result, "ragfilter.toml"),
        origin=origin,
    )


def of_two(
    results: tuple[PoolResult, PoolResult],
    names: tuple[Called, Called],
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[ShownAnswer] = (),
) -> str:
    """A report of one question with two settings: who keeps what, and why the other does not."""
    a, b = (seen(result) for result in results)
    contrasted = contrast(a, b)
    labels = [f"{letter}: {each.name}" for letter, each in zip("AB", names, strict=True)]
    return render(
        "contrast.html",
        query=a.query,
        incomplete=a.pool.incomplete or b.pool.incomplete,
        names=[each.name for each in names],
        said=[(label, _said(story(each), prices))
              for label, each in zip(labels, (a, b), strict=True)],
        sides=[size(label, each.kept, each.settings, prices)
               for label, each in zip(labels, (a, b), strict=True)],
        priced=prices is not None,
        lists=drawing.lists(contrasted),
        groups=[("Only A keeps", contrasted.only("a")), ("Both keep", contrasted.only("both")),
                ("Only B keeps", contrasted.only("b"))],
        answers=answers,
        settings=[(f"{label} ({letter}.toml)", each.settings, each.profile)
                  for letter, label, each in zip("ab", labels, names, strict=True)],
        commands=[_command(each, f"{letter}.toml")
                  for letter, each in zip("ab", (a, b), strict=True)],
        origin=origin,
    )  # fmt: skip


def _said(account: Story, prices: Prices | None) -> tuple[str, ...]:
    return sentences(account, *((prices.prompt, prices.currency) if prices else ()))


def _command(result: PoolResult, file: str) -> str:
    words = ("--collection", result.pool.collection, "--config", file)
    return command("query", result.query, *words, user=result.user)


def size(name: str, hits: Sequence[Hit], settings: Settings, prices: Prices | None) -> Size:
    """A side's size in a prompt, which has the settings' budget."""
    sent, total = in_prompt(hits, settings)
    cost, currency = (prices.of_thousand(total), prices.currency) if prices else (0.0, "")
    return Size(name, sent, total, cost, currency)


def shown_answer(name: str, answer: Answer, context: Context) -> ShownAnswer:
    """An answer for a report, made from a context."""
    titles = [hit.chunk.name for hit in context.chunks]
    return ShownAnswer(
        name,
        QUOTED if answer.extractive else f"by {answer.model}",
        answer.text or answer.error,
        tuple((n, titles[n - 1]) for n in answer.citations if n <= len(titles)),
        (answer.error if answer.text else "")
        or (DOUBT.format(why=answer.doubt) if answer.doubt else ""),
    )
