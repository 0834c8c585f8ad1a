"""The reports of one question: under one set of settings, or under two. Pure.

They contain only what their user may see, even if an operator makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.answer.extractive import unmentioned
from ragfilter.answer.stream import Prices
from ragfilter.engine.replay import unfiltered
from ragfilter.model import PoolResult
from ragfilter.protocols import Embedder
from ragfilter.publish import drawing, told
from ragfilter.publish.html import ReportOrigin, command, render
from ragfilter.publish.told import Told
from ragfilter.report import rows, seen
from ragfilter.report.contrast import contrast
from ragfilter.report.story import Story, called, sentences, story
from ragfilter.settings.schema import Settings

MOST_DROPPED = 30


@dataclass(frozen=True, slots=True)
class Called:
    """Settings with their name, and the profile they started from."""

    name: str
    profile: str
    settings: Settings


def of_query(
    result: PoolResult,
    profile: str,
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[Told] = (),
    embedder: Embedder | None = None,
) -> str:
    """A report of one question: what was dropped and why, and its effect on prompt and answer.
    `embedder` knows the common words: what does not mention an uncommon one of the question is not
    called needed."""
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
        said=_said(account, result, prices, embedder),
        sides=[
            told.size(f"without the filter (first {k})", plain, result.settings, prices),
            told.size("with the filter", result.kept, result.settings, prices),
        ],
        priced=prices is not None,
        curve=drawing.curve(listed, k),
        answers=answers,
        kept=[(row, texts[row.id]) for row in kept],
        falls=account.falls,
        dropped=dropped[:MOST_DROPPED],
        more=max(len(dropped) - MOST_DROPPED, 0),
        settings=result.settings,
        profile=profile,
        command=_command(result, "ragfilter.toml"),
        origin=origin,
    )


def of_two(
    results: tuple[PoolResult, PoolResult],
    names: tuple[Called, Called],
    origin: ReportOrigin,
    *,
    prices: Prices | None = None,
    answers: Sequence[Told] = (),
    embedder: Embedder | None = None,
) -> str:
    """A report of one question with two settings: who keeps what, and why the other does not."""
    a, b = (seen(result) for result in results)
    made = contrast(a, b)
    labels = [f"{letter}: {each.name}" for letter, each in zip("AB", names, strict=True)]
    return render(
        "contrast.html",
        query=a.query,
        incomplete=a.pool.incomplete or b.pool.incomplete,
        names=[each.name for each in names],
        said=[(label, _said(story(each), each, prices, embedder))
              for label, each in zip(labels, (a, b), strict=True)],
        sides=[told.size(label, each.kept, each.settings, prices)
               for label, each in zip(labels, (a, b), strict=True)],
        priced=prices is not None,
        lists=drawing.lists(made),
        groups=[("Only A keeps", made.only("a")), ("Both keep", made.only("both")),
                ("Only B keeps", made.only("b"))],
        answers=answers,
        settings=[(f"{label} ({letter}.toml)", each.settings, each.profile)
                  for letter, label, each in zip("ab", labels, names, strict=True)],
        commands=[_command(each, f"{letter}.toml")
                  for letter, each in zip("ab", (a, b), strict=True)],
        origin=origin,
    )  # fmt: skip


def _said(
    account: Story, result: PoolResult, prices: Prices | None, embedder: Embedder | None
) -> tuple[str, ...]:
    price = (prices.prompt, prices.currency) if prices else ()
    lacks = embedder and result.kept and unmentioned(result.query, result.kept, embedder)
    return sentences(account, *price, word=called(result, doubt=bool(lacks)))


def _command(result: PoolResult, file: str) -> str:
    words = ("--collection", result.pool.collection, "--config", file)
    return command("query", result.query, *words, user=result.user)
