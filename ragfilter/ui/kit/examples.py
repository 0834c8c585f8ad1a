"""Example questions: a demo's own with what each shows; of another collection, labelled ones or a
few titles."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import NamedTuple

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit.runs import chosen
from ragfilter.ui.session.resources import Resources, ShelfSpec

DEMO = "demo"
ADSAPI = "adsapi"
MOST = 6
LONGEST = 34


class Example(NamedTuple):
    """A question, its short name on a chip, and what it shows ("" for a collection of the user)."""

    label: str
    question: str
    shows: str = ""


EXAMPLES: ShelfSpec[tuple[Example, ...]] = ShelfSpec(16)


DEMO_WANTED = {
    "cleric-ac6": (
        "cleric vs AC 6",
        "84 tables look alike. Their rules leave only the one you asked for.",
    ),
    "fighter-fighter": (
        "fighter vs fighter",
        "Two opponents of the same class: a table for each, and what modifies the roll.",
    ),
    "fighter-druid": (
        "fighter vs druid",
        "A comparison: each side is searched separately and its best chunk is pinned.",
    ),
    "monsters-09": (
        "hill giant or troll",
        "Both monsters stay, although one is far behind. Most other giants are dropped.",
    ),
    "monsters-11": (
        "two dragons",
        "Dragons of every colour look alike; two were asked for.",
    ),
    "monsters-07": ("owlbears", "One monster among owls, bears and bugbears."),
}
DEMO_SECRETS = (
    Example(
        "the dice",
        "When may the referee override the dice?",
        "A note for players: a guest, who may not see it, gets the nearest visible chunks instead.",
    ),
    Example(
        "false maps",
        "Which treasure maps are false?",
        "A referee's secret: a guest or player does not see it, however they ask.",
    ),
)
ADSAPI_WANTED = {
    "sd-authenticate": (
        "authenticate",
        "The operations match the question; the schemas they need are only referenced.",
    ),
    "create-campaign": ("create a campaign", "Several products have campaigns; one was asked for."),
    "category-target": ("target a category", "An operation and the schemas it takes."),
    "retry-429": ("status 429", "Limits and errors are described in several places."),
    "audience-upload": ("upload an audience", "One step of a longer procedure."),
    "request-report": ("request a report", "The reports of all products compete."),
}


def of(collection: str, resources: Resources) -> tuple[Example, ...]:
    """The examples of a collection. Its titles are read once and cached."""
    if collection in (DEMO, ADSAPI):
        return built_in(collection)
    with suppress(RagfilterError):
        if labelled := [*chosen.labelled_questions(resources, collection)][:MOST]:
            return tuple(Example(short(question), question) for question in labelled)
    return resources.shelf(EXAMPLES).of(collection, lambda: _titles(collection, resources))


@cache
def built_in(collection: str) -> tuple[Example, ...]:
    """Some of a demo's labelled questions."""
    # Imported here, because only one of them is needed.
    every = import_module(f"ragfilter.ingest.{collection}").queries()
    wanted, more = (DEMO_WANTED, DEMO_SECRETS) if collection == DEMO else (ADSAPI_WANTED, ())
    labelled = (Example(label, every[i], shows) for i, (label, shows) in wanted.items())
    return (*labelled, *more)


def short(question: str) -> str:
    """A question shortened to fit on a chip."""
    plain = question.strip().rstrip("?")
    if len(plain) <= LONGEST:
        return question.strip()
    return plain[: LONGEST - 1].rsplit(" ", 1)[0] + " …"


def _titles(collection: str, resources: Resources) -> tuple[Example, ...]:
    try:
        there = resources.bench.collection(collection)
        # Not every user of the page may see every chunk, so examples come from chunks that all may
        # see.
        every = (there.catalogue() or {}).values()
        ids = sorted(c.id for c in every if c.clearance == 0 and c.department is None)
        picked = ids[:: max(1, len(ids) // MOST)][:MOST]
        titles = [chunk.title for chunk in there.chunks(picked).values() if chunk.title]
    except RagfilterError:
        return ()
    return tuple(Example(short(title), title) for title in titles)
