"""Which of two answers people preferred, stored in the workspace's database with the labels. A preference concerns a
question and a pair of sides, in either order. A side is its settings and the chunks in its prompt. Each person has one
preference per pair, and their last one counts. Source: docs/design.md#preferences."""

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
from ragfilter.text.normalise import mend_characters

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

_preferences = database.table(
    "preferences", at=TIME, who=TEXT, collection=TEXT, query=TEXT, first=TEXT, second=TEXT, choice=TEXT
)
sa.Index("preferences_of_query", _preferences.c.collection, _preferences.c.query)


@dataclass(frozen=True, slots=True)
class PairSide:
    """A side of a pair: the basis of its answer. `chunks` are the ids in the prompt, in order;
    `settings` are the changes from `profile`; `model` is the model that answered."""

    profile: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    chunks: tuple[str, ...] = ()
    model: str = ""

    @property
    def text(self) -> str:
        """The side as text; equal sides have equal text."""
        basis = [self.profile, dict(self.settings), list(self.chunks), self.model]
        return json.dumps(basis, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Preference:
    """The side of a pair that one person preferred, if any; `at` is in UTC."""

    at: datetime
    who: str
    collection: str
    query: str
    first: PairSide
    second: PairSide
    choice: Choice

    def seen_from(self, left: PairSide) -> Choice:
        """The choice as seen with `left` as the first side."""
        return self.choice if left.text == self.first.text else _turned(self.choice)


class PreferenceBook(database.Book):
    """The preferences in the database at `url`."""

    called = "The book of preferences"
    tables = (_preferences,)

    def record(self, collection: str, query: str, left: PairSide, right: PairSide, choice: Choice, *, who: str) -> None:
        """Record a preference, replacing this person's earlier one on the pair."""
        first, second = sorted((left, right), key=lambda side: side.text)
        row = {
            "who": mend_characters(who),
            "collection": collection,
            "query": mend_characters(query).strip(),
            "first": first.text,
            "second": second.text,
        }
        turned = choice if first is left else _turned(choice)
        preference = _preferences.insert().values(**row, at=datetime.now(UTC), choice=turned)
        self._write(_preferences.delete().filter_by(**row), preference)

    def of(self, collection: str) -> tuple[Preference, ...]:
        """The preferences on the questions of a collection, oldest first."""
        rows = sa.select(_preferences).filter_by(collection=collection)
        return tuple(map(_preference, self._read(rows.order_by(_preferences.c.id))))


def on_pair(preferences: Iterable[Preference], left: PairSide, right: PairSide) -> tuple[Preference, ...]:
    """The preferences on exactly this pair of sides."""
    pair = {left.text, right.text}
    return tuple(each for each in preferences if {each.first.text, each.second.text} == pair)


def on_settings(preferences: Iterable[Preference], left: PairSide, right: PairSide) -> Counter[Choice]:
    """The number of preferences for each choice between answers with these two settings, over all questions."""
    tally: Counter[Choice] = Counter()
    mine, theirs = _settings(left), _settings(right)
    for each in preferences:
        pair = _settings(each.first), _settings(each.second)
        if pair == (mine, theirs):
            tally[each.choice] += 1
        elif pair == (theirs, mine):
            tally[_turned(each.choice)] += 1
    return tally


def _settings(side: PairSide) -> str:
    return json.dumps([side.profile, dict(side.settings)], sort_keys=True)


def _turned(choice: Choice) -> Choice:
    return _TURNED.get(choice, choice)


def _preference(row: sa.Row[Any]) -> Preference:
    sides = _side(row.first), _side(row.second)
    return Preference(database.in_utc(row.at), row.who, row.collection, row.query, *sides, row.choice)


def _side(text: str) -> PairSide:
    profile, settings, chunks, model = json.loads(text)
    return PairSide(profile, settings, tuple(chunks), model)
