"""The two sides of a comparison: what each side means, and how to choose, swap and copy it.

`compared` in the session has the link parameters, and is the only record of the sides. A side is a word (a profile, the
current settings, a strategy, a run), or a profile with its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragfilter.errors import InputError, RagfilterError
from ragfilter.evaluate.measured_runs import run_label, settings_of
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.layers.visibility import with_clearance_for
from ragfilter.publish.reports import NamedSettings
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.stores.run_store import Run
from ragfilter.text.numbers import counted
from ragfilter.ui.session import link, state

CURRENT, CUT_BY, RUN = "settings", "by-", "run-"
OWN = "own"
"""The choice for a side's own settings, which have no other name."""
DEFAULTS = {"a": "unfiltered", "b": CURRENT}


@dataclass(frozen=True, slots=True)
class ComparedSide(NamedSettings):
    """One side, ready to be replayed."""

    letter: str
    word: str
    run: Run | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from its profile."""
        return self.settings.changed_from(of_profile(self.profile))


Sides = tuple[ComparedSide, ComparedSide]


def choices(letter: str, current: Settings, runs: Mapping[int, Run]) -> dict[str, str]:
    """The choices for a side, with their labels. A strategy that must be learned is offered once it is."""
    called, changes, learned = state.profile_label(), _own(letter), bool(current.cutoff.calibration)
    labels = {CURRENT: "current settings" + (f", {called}" if called != state.session().profile else "")}
    if changes:
        labels[OWN] = f"{_word(letter)} with {counted(len(changes), 'change')}"
    labels |= {name: f"profile {name}" for name in PROFILES}
    cuts = [each.name for each in strategies().values() if each.values_of is None or learned]
    labels |= {f"{CUT_BY}{name}": f"current settings, cut by {name}" for name in cuts}
    return labels | {f"{RUN}{number}": f"run {run_label(run)}" for number, run in runs.items()}


def chosen(letter: str) -> str:
    """The selected choice."""
    return OWN if _own(letter) else _word(letter)


def read(letter: str, current: Settings, runs: Mapping[int, Run]) -> ComparedSide:
    """The chosen side. If it is invalid, the page says why and the default takes its place."""
    try:
        return _read(letter, current, runs)
    except RagfilterError as error:
        state.notice(f"Side {letter.upper()}: {error}")
        put(letter, DEFAULTS[letter], {})
        return _read(letter, current, runs)


def put(letter: str, word: str, changes: Mapping[str, Any]) -> None:
    """Choose a side."""
    kept = {k: v for k, v in state.session().compared.items() if k != letter and not k.startswith(f"{letter}.")}
    state.session().compared = kept | link.write_side(letter, word, changes)


def swap() -> None:
    """Swap A and B."""
    a, b = ((_word(letter), _own(letter)) for letter in link.SIDES)
    put("a", *b)
    put("b", *a)


def copy(side: ComparedSide) -> None:
    """Copy A to B; current settings become a snapshot to compare later changes with."""
    live = side.word == CURRENT or side.word.startswith(CUT_BY)
    put("b", *((side.profile, side.changes) if live else (side.word, _own("a"))))


def query_set() -> str:
    """The query set to compare over; empty for a single question."""
    return state.session().compared.get(link.QUERY_SET, "")


def put_query_set(name: str) -> None:
    """Compare over a query set or, with an empty name, over one question."""
    kept = {k: v for k, v in state.session().compared.items() if k != link.QUERY_SET}
    state.session().compared = kept | ({link.QUERY_SET: name} if name else {})


def parameters() -> dict[str, str]:
    """The comparison as link parameters."""
    return {letter: _word(letter) for letter in link.SIDES} | state.session().compared


def _read(letter: str, current: Settings, runs: Mapping[int, Run]) -> ComparedSide:
    word, labels = _word(letter), choices(letter, current, runs)
    if word not in labels:
        raise InputError(f"There is no {word!r} to compare with.", remedy="Choose one from the list.")
    profile, settings, run = state.session().profile, current, None
    if word.startswith(CUT_BY):
        strategy = word.removeprefix(CUT_BY)
        settings = current.with_values({"cutoff.enabled": True, "cutoff.strategy": strategy, "judge.enabled": False})
    elif word.startswith(RUN):
        run = runs[int(word.removeprefix(RUN))]
        profile, settings = run.plan.profile, settings_of(run)
    elif word in PROFILES:
        profile, settings = word, state.settings_of(word, _own(letter))
    # With clearance on, unless it was switched off by hand.
    settings = with_clearance_for(settings, state.user())
    return ComparedSide(labels[chosen(letter)], profile, settings, letter, word, run)


def _word(letter: str) -> str:
    return state.session().compared.get(letter, DEFAULTS[letter])


def _own(letter: str) -> dict[str, str]:
    """A side's own settings, by path. Only a profile can have any."""
    if _word(letter) not in PROFILES:
        return {}
    prefix = f"{letter}."
    return {k.removeprefix(prefix): v for k, v in state.session().compared.items() if k.startswith(prefix)}
