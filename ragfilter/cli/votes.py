"""`ragfilter labels preferences`: which of two answers people prefer.

Source: docs/design.md#preferences.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragfilter.cli import parts
from ragfilter.cli.app import command
from ragfilter.cli.labels import labels
from ragfilter.cli.options import Json, Place, Viewing
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    from ragfilter.stores.preferences import Answered, Vote


@command(labels, "preferences")
def preferences(place: Place, viewing: Viewing, as_json: Json = False) -> None:
    """List the votes on pairs of answers. Votes on hidden or deleted chunks are left out."""
    user, collection = viewing.viewer, place.collection
    with place.open("labels") as bench:
        catalogue = bench.collection(collection).entries()
        every = bench.preferences.votes(collection)
    votes = [
        each
        for each in every
        if user.unrestricted
        or all(i in catalogue and user.sees(catalogue[i])
               for side in (each.first, each.second) for i in side.chunks)
    ]  # fmt: skip
    parts.emit([_document(each) for each in votes] if as_json else _text(collection, votes))


def _document(vote: Vote) -> dict[str, Any]:
    return {
        "query": vote.query,
        "choice": vote.choice,
        "first": asdict(vote.first),
        "second": asdict(vote.second),
        "who": vote.who,
        "at": vote.at.isoformat(timespec="seconds"),
    }


def _text(collection: str, votes: list[Vote]) -> str:
    from ragfilter.stores.preferences import CHOICES

    if not votes:
        return f"{collection}: no votes yet. The Answer panel and the Compare page take them.\n"
    lines = [f"{collection}: {counted(len(votes), 'vote')}"]
    for vote in votes:
        pair = f"{_named(vote.first)} (first) or {_named(vote.second)} (second)"
        lines.append(f"  {vote.query}: {pair}: {CHOICES[vote.choice]}, says {vote.who}")
    return "\n".join(lines) + "\n"


def _named(side: Answered) -> str:
    changed = f" with {counted(len(side.settings), 'change')}" if side.settings else ""
    return f"{side.profile}{changed}, {counted(len(side.chunks), 'chunk')}"
