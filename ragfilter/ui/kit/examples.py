"""Example questions: a demo's own; of another collection, labelled ones or a few titles."""

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
MAX_EXAMPLES = 6
LONGEST = 34


class Example(NamedTuple):
    """A question, and its short name."""

    label: str
    question: str


EXAMPLES: ShelfSpec[tuple[Example, ...]] = ShelfSpec(16)


DEMO_WANTED = {
    "cleric-ac6": "cleric vs AC 6",
    "fighter-fighter": "fighter vs fighter",
    "fighter-druid": "fighter vs druid",
    "monsters-09": "hill giant or troll",
    "monsters-11": "two dragons",
    "monsters-07": "owlbears",
}
DEMO_SECRETS = (
    Example("the dice", "When may the referee override the dice?"),
    Example("false maps", "Which treasure maps are false?"),
)
ADSAPI_WANTED = {
    "sd-authenticate": "authenticate",
    "create-campaign": "create a campaign",
    "category-target": "target a category",
    "retry-429": "status 429",
    "audience-upload": "upload an audience",
    "request-report": "request a report",
}


def of(collection: str, resources: Resources) -> tuple[Example, ...]:
    """The examples of a collection. Its titles are read once and cached."""
    if collection in (DEMO, ADSAPI):
        return built_in(collection)
    with suppress(RagfilterError):
        if labelled := [*chosen.labelled_questions(resources, collection)][:MAX_EXAMPLES]:
            return tuple(Example(short(question), question) for question in labelled)
    return resources.shelf(EXAMPLES).of(collection, lambda: _titles(collection, resources))


@cache
def built_in(collection: str) -> tuple[Example, ...]:
    """Some of a demo's labelled questions."""
    # Imported here, because only one of them is needed.
    every = import_module(f"ragfilter.ingest.{collection}").queries()
    wanted, more = (DEMO_WANTED, DEMO_SECRETS) if collection == DEMO else (ADSAPI_WANTED, ())
    labelled = (Example(label, every[i]) for i, label in wanted.items())
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
        picked = ids[:: max(1, len(ids) // MAX_EXAMPLES)][:MAX_EXAMPLES]
        titles = [chunk.title for chunk in there.chunks(picked).values() if chunk.title]
    except RagfilterError:
        return ()
    return tuple(Example(short(title), title) for title in titles)
