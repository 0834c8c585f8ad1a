"""The address bar and what it stands for: query, collection, profile, changed settings. Pure.

A link that names a profile describes the whole state: where it is opened, the environment's own
settings do not act, so that it shows the same result everywhere. No secret is ever in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragfilter import config, profiles
from ragfilter.config import Given
from ragfilter.errors import SettingsError
from ragfilter.settings import Settings

QUERY, COLLECTION, PROFILE = "q", "collection", "profile"
ORIGIN = "the link"


@dataclass(frozen=True, slots=True)
class Opened:
    """What a link asked for, and what in it could not be used (`refused`, in words)."""

    query: str
    collection: str
    profile: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()


def read(params: Mapping[str, str], environ: Mapping[str, str] | None = None) -> Opened:
    """The state that `params` stand for; what is wrong is left out and named.

    Raises SettingsError where, without a profile in the link, the environment is at fault.
    """
    refused: list[str] = []
    name = params.get(PROFILE, "")
    changes: dict[str, Any] = {}
    if name and name not in profiles.PROFILES:
        refused.append(f"There is no profile {name!r}.")
        name = ""
    if not name:
        loaded = config.load(environ=environ)
        name = loaded.profile
        changes = loaded.settings.changed_from(base(name))
    wanted = {k: v for k, v in params.items() if k not in (QUERY, COLLECTION, PROFILE)}
    for path, value in wanted.items():
        try:
            config.merge([Given(ORIGIN, {path: value})])
        except SettingsError as error:
            # Two settings that only go together (a range) are judged below, as a whole.
            if error.message.startswith(f"{path} = ") or "no setting" in error.message:
                refused.append(str(error))
                continue
        changes[path] = value
    while True:
        try:
            given = [_profile(name), Given(ORIGIN, changes)]
            settings, _ = config.merge(given)
        except SettingsError as error:
            refused.append(str(error))
            changes = {p: v for p, v in changes.items() if p not in wanted}
            wanted = {}
            if not changes:
                break
            continue
        changes = settings.changed_from(base(name))
        break
    return Opened(
        query=params.get(QUERY, "").strip(),
        collection=params.get(COLLECTION, "").strip(),
        profile=name,
        changes=changes,
        refused=tuple(refused),
    )


def write(
    *, query: str, collection: str, profile: str, changes: Mapping[str, Any]
) -> dict[str, str]:
    """The parameters that bring this state back."""
    params = {QUERY: query, COLLECTION: collection, PROFILE: profile}
    params = {name: value for name, value in params.items() if value}
    return params | {path: _text(value) for path, value in sorted(changes.items())}


def base(profile: str) -> Settings:
    """The profile's own settings."""
    return config.merge([_profile(profile)])[0]


def settings(profile: str, changes: Mapping[str, Any]) -> Settings:
    """The profile with the changes. Raises SettingsError."""
    return config.merge([_profile(profile), Given("the page", changes)])[0]


def _profile(name: str) -> Given:
    return Given(f"profile {name}", profiles.profile(name).values)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
