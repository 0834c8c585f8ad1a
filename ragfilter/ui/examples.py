"""Example questions: a demo's own, or a few titles of another collection."""

from __future__ import annotations

from functools import cache

from ragfilter.errors import RagfilterError
from ragfilter.ui import ask
from ragfilter.ui.resources import Resources

DEMO = "demo"
ADSAPI = "adsapi"
WANTED = (
    "cleric-ac6",
    "fighter-fighter",
    "fighter-druid",
    "hill giant or troll",
    "Black Dragon vs Gold Dragon",
    "owlbears",
)
ADSAPI_WANTED = {
    "sd-authenticate": "authenticate",
    "create-campaign": "create a campaign",
    "category-target": "target a category",
    "retry-429": "status 429",
    "audience-upload": "upload an audience",
    "request-report": "request a report",
}
MOST = 6


def of(collection: str, resources: Resources) -> tuple[tuple[str, str], ...]:
    """(label, question) for a collection; read from it once, and then remembered."""
    if collection == DEMO:
        return demo()
    if collection == ADSAPI:
        return adsapi()
    found = resources.examples.get(collection)
    if found is None:
        found = resources.examples.put(collection, _titles(collection, resources))
    return found


def _titles(collection: str, resources: Resources) -> tuple[tuple[str, str], ...]:
    try:
        source = resources.bench.collection(collection)
        ids = sorted(source.catalogue())
        picked = ids[:: max(1, len(ids) // MOST)][:MOST]
        titles = [chunk.title for chunk in source.chunks(picked).values() if chunk.title]
    except RagfilterError:
        return ()
    return tuple((ask.short(title), title) for title in titles)


@cache
def demo() -> tuple[tuple[str, str], ...]:
    """(label, question) of the demo's seed questions."""
    from ragfilter.corpora.demo import queries

    every = queries()
    chosen: list[tuple[str, str]] = []
    for wanted in WANTED:
        if wanted in every:
            chosen.append((ask.LABELS.get(wanted, ask.short(every[wanted])), every[wanted]))
            continue
        found = next((q for q in every.values() if wanted.lower() in q.lower()), None)
        if found:
            chosen.append((ask.short(found), found))
    return tuple(chosen[:MOST])


@cache
def adsapi() -> tuple[tuple[str, str], ...]:
    """(label, question) of some of the advertising API's questions."""
    from ragfilter.corpora.adsapi import queries

    every = queries()
    return tuple((label, every[wanted]) for wanted, label in ADSAPI_WANTED.items())
