"""The address bar and what it holds: query, collection, profile, changed settings. Pure.

A link that names a profile describes the whole state: the reader's environment is ignored, so it
shows the same result everywhere. It never contains a secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ragfilter.errors import SettingsError
from ragfilter.model import PUBLIC, User
from ragfilter.settings import config, profiles
from ragfilter.settings.config import Config, Given, of_profile
from ragfilter.settings.schema import Settings
from ragfilter.text.characters import whole

QUERY, COLLECTION, PROFILE = "q", "collection", "profile"
CHUNK, PANEL, PLACES, VIEW = "chunk", "panel", "places", "view"
FILTER, RULE = "filter", "rule"
"""What is open on the page. Only a copied link has these, since updating the address bar takes the
browser as long as drawing a small chart."""
LOOKS = (CHUNK, PANEL, PLACES, FILTER, RULE, VIEW)
UNSCORED = "unscored"
"""Present if rerank scores were wanted but not fetched, so that the link shows the same again."""
LEVEL, DEPARTMENTS = "level", "departments"
"""The user of the page. These are not settings, and have their own part of the link."""
PRESENT = "present"
"""Present if the page is shown to an audience."""
SIDES = ("a", "b")
QUERY_SET = "set"
"""What the Compare page compares: each side by its word, ``a=full``, with the settings in which it
differs from a profile, ``a.cutoff.k=5``; and the query set, if there is one."""
NAMES = (
    QUERY, COLLECTION, PROFILE, UNSCORED, LEVEL, DEPARTMENTS, PRESENT, *LOOKS, *SIDES, QUERY_SET,
)  # fmt: skip
ORIGIN = "the link"


@dataclass(frozen=True, slots=True)
class OpenedLink:
    """What a link asked for, and which of its values could not be used (`refused`, in words)."""

    query: str
    collection: str
    profile: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    unscored: bool = False
    user: User = PUBLIC
    look: Mapping[str, str] = field(default_factory=dict)
    present: bool = False
    compared: Mapping[str, str] = field(default_factory=dict)


def read(params: Mapping[str, str], environ: Mapping[str, str] | None = None) -> OpenedLink:
    """Parse the state in `params`. Invalid values are skipped and listed in `refused`.

    Raises SettingsError if the link names no profile and the environment is invalid.
    """
    params = {whole(name): whole(value) for name, value in params.items()}
    refused: list[str] = []
    changes: dict[str, Any] = {}
    name = params.get(PROFILE, "")
    unknown = "" if name in profiles.PROFILES else name
    if unknown or not name:
        name = config.load(environ=environ).profile
        changes = beginning(name, environ)
    if unknown:
        refused.append(f"There is no profile {unknown!r}; {name} is used instead.")
    wanted = {k: v for k, v in params.items() if k not in NAMES and not _is_compared(k)}
    changes, errors = _take(name, changes, wanted)
    level = params.get(LEVEL, "0")
    if not (level.isascii() and level.isdigit() and len(level) < 10):
        errors.append(f"The level {level!r} is not a whole number; 0 is used instead.")
        level = "0"
    return OpenedLink(
        query=params.get(QUERY, "").strip(),
        collection=params.get(COLLECTION, "").strip(),
        profile=name,
        changes=settings(name, changes).changed_from(of_profile(name)),
        refused=(*refused, *errors),
        unscored=UNSCORED in params,
        user=User(int(level), departments(params.get(DEPARTMENTS, ""))),
        look={name: params[name].strip() for name in LOOKS if params.get(name, "").strip()},
        present=PRESENT in params,
        compared={k: v.strip() for k, v in params.items() if _is_compared(k) and v.strip()},
    )


def _is_compared(name: str) -> bool:
    return name in (*SIDES, QUERY_SET) or name.startswith(tuple(f"{side}." for side in SIDES))


def departments(text: str) -> tuple[str, ...]:
    """The departments in ``ops, referee``, each once."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def _take(
    profile: str, changes: dict[str, Any], wanted: dict[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """`changes` with the wanted values that can be used, and errors for the others."""
    errors: list[str] = []
    good: dict[str, str] = {}
    for path, value in wanted.items():
        error = _fault(profile, {path: value})
        section = path.partition(".")[0]
        # An error about the whole section may be fixed by another value of the link; see below.
        if error is None or error.message.startswith(f"{section}: "):
            good[path] = value
        else:
            errors.append(str(error))
    while (error := _fault(profile, {**changes, **good})) is not None:
        section = error.message.partition(":")[0]
        errors.append(str(error))
        rest = {p: v for p, v in good.items() if not p.startswith(f"{section}.")}
        if len(rest) == len(good):
            return changes, errors
        good = rest
    return {**changes, **good}, errors


def _fault(profile: str, values: Mapping[str, Any]) -> SettingsError | None:
    try:
        of_profile(profile, Given(ORIGIN, values))
    except SettingsError as error:
        return error
    return None


def write(
    *,
    query: str,
    collection: str,
    profile: str,
    changes: Mapping[str, Any],
    unscored: bool = False,
    user: User = PUBLIC,
    present: bool = False,
) -> dict[str, str]:
    """The link parameters that restore this state."""
    params = {QUERY: query, COLLECTION: collection, PROFILE: profile}
    params[UNSCORED] = "true" if unscored else ""
    params[PRESENT] = "true" if present else ""
    params[LEVEL] = str(user.level) if user.level else ""
    params[DEPARTMENTS] = ",".join(user.departments)
    params = {name: value for name, value in params.items() if value}
    return params | {path: _text(value) for path, value in sorted(changes.items())}


def write_side(letter: str, word: str, changes: Mapping[str, Any]) -> dict[str, str]:
    """The parameters of one side of a comparison."""
    return {letter: word} | {f"{letter}.{path}": _text(v) for path, v in sorted(changes.items())}


def beginning(profile: str, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What the environment changes in a profile: the changes with which a session starts.

    Raises SettingsError.
    """
    return own(profile, environ).settings.changed_from(of_profile(profile))


def own(profile: str, environ: Mapping[str, str] | None = None) -> Config:
    """The profile with the environment's changes, which a reset restores.

    Raises SettingsError.
    """
    every = os.environ if environ is None else environ
    return _own(profile, frozenset((k, v) for k, v in every.items() if config.reads(k)))


@lru_cache(maxsize=64)
def _own(profile: str, environ: frozenset[tuple[str, str]]) -> Config:
    return config.load(profile=profile, environ=dict(environ))


def settings(profile: str, changes: Mapping[str, Any]) -> Settings:
    """The profile with the changes. Raises SettingsError."""
    return of_profile(profile, Given("the page", changes))


def from_file(
    content: bytes, name: str, profile: str = profiles.DEFAULT
) -> tuple[str, dict[str, Any]]:
    """The profile and the changes in a settings file; `profile` is used if the file names none.
    Raises SettingsError."""
    given, named = config.parse_toml(content, name)
    profile = profiles.profile(named or profile, origin=name).name
    return profile, of_profile(profile, given).changed_from(of_profile(profile))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
