"""Votes on which of two answers is better, stored in the workspace's database with the labels. A vote concerns a
question and a pair of sides, in either order. A side is its settings and the chunks in its prompt. Each person has one
vote per pair, and their last one counts. Source: docs/design.md#preferences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME
from ragfilter.errors import extra
from ragfilter.text.normalise import whole

with extra("chroma"):
    import sqlalchemy as sa

Choice = Literal["first", "second", "both", "neither"]
CHOICES: Mapping[Choice, str] = {
    "first": "the first is better",
    "second": "the second is better",
    "both": "both fine",
    "neither": "both poor",
}
_TURNED: Mapping[Choice, Choice] = {"first": "second", "second": "first"}

_votes = database.table(
    "preferences", at=TIME, who=TEXT, collection=TEXT, query=TEXT, first=TEXT, second=TEXT, choice=TEXT
)
sa.Index("preferences_of_query", _votes.c.collection, _votes.c.query)


@dataclass(frozen=True, slots=True)
class Answered:
    """A side of a pair: the basis of its answer. `chunks` are the ids in the prompt, in order;
    `settings` are the changes from `profile`; `model` is the model that answered."""

    profile: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    chunks: tuple[str, ...] = ()
    model: str = ""

    @property
    def text(self) -> str:
        """The side as text; equal sides have equal text."""
        own = [self.profile, dict(self.settings), list(self.chunks), self.model]
        return json.dumps(own, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's vote on a pair; `at` is in UTC."""

    at: datetime
    who: str
    collection: str
    query: str
    first: Answered
    second: Answered
    choice: Choice

    def seen_from(self, left: Answered) -> Choice:
        """The choice as seen with `left` as the first side."""
        return self.choice if left.text == self.first.text else _turned(self.choice)


class Preferences(database.Book):
    """The votes in the database at `url`."""

    what = "preferences"
    called = "The book of preferences"
    tables = (_votes,)

    def vote(self, collection: str, query: str, left: Answered, right: Answered, choice: Choice, *, who: str) -> None:
        """Record a vote, replacing this person's earlier one on the pair."""
        first, second = sorted((left, right), key=lambda side: side.text)
        row = {
            "who": whole(who),
            "collection": collection,
            "query": whole(query).strip(),
            "first": first.text,
            "second": second.text,
        }
        turned = choice if first is left else _turned(choice)
        vote = _votes.insert().values(**row, at=datetime.now(UTC), choice=turned)
        self._write(_votes.delete().filter_by(**row), vote)

    def votes(self, collection: str) -> tuple[Vote, ...]:
        """The votes on the questions of a collection, oldest first."""
        mine = sa.select(_votes).filter_by(collection=collection)
        return tuple(map(_vote, self._read(mine.order_by(_votes.c.id))))


def on_pair(votes: Iterable[Vote], left: Answered, right: Answered) -> tuple[Vote, ...]:
    """The votes on exactly this pair of sides."""
    pair = {left.text, right.text}
    return tuple(each for each in votes if {each.first.text, each.second.text} == pair)


def on_settings(votes: Iterable[Vote], left: Answered, right: Answered) -> Counter[Choice]:
    """The number of votes for each choice between answers with these two settings, over all questions."""
    tally: Counter[Choice] = Counter()
    mine, theirs = _settings(left), _settings(right)
    for each in votes:
        pair = _settings(each.first), _settings(each.second)
        if pair == (mine, theirs):
            tally[each.choice] += 1
        elif pair == (theirs, mine):
            tally[_turned(each.choice)] += 1
    return tally


def _settings(side: Answered) -> str:
    return json.dumps([side.profile, dict(side.settings)], sort_keys=True)


def _turned(choice: Choice) -> Choice:
    return _TURNED.get(choice, choice)


def _vote(row: sa.Row[Any]) -> Vote:
    sides = _side(row.first), _side(row.second)
    return Vote(database.in_utc(row.at), row.who, row.collection, row.query, *sides, row.choice)


def _side(text: str) -> Answered:
    profile, settings, chunks, model = json.loads(text)
    return Answered(profile, settings, tuple(chunks), model)
