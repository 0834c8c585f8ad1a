"""The settings that an evaluation compares. Pure.

The rows are always the same: the current settings, a plain search, every cutoff strategy and every
profile. Then the layers are added one after the other, and each is left out once. The best fixed k
and the oracle are not settings; `evaluate.table` computes them.

Users are not compared, so clearance is on everywhere or nowhere. An LLM is called only if the
current settings call it; the other rows have no judge.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from typing import Literal

from ragfilter.layers.registry import SWITCHES
from ragfilter.layers.strategies.registry import STRATEGIES
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

Group = Literal["plain", "strategy", "profile", "settings", "added", "left out"]
COUNTING = 3
"""Raised when what is counted for a query changes, so that earlier runs are told apart."""
UNFILTERED = "unfiltered"
IN_FORCE = "current settings"


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings with a name. `plain`: the first k of a plain search."""

    name: str
    group: Group
    settings: Settings
    plain: bool = False


def variants(settings: Settings) -> tuple[Variant, ...]:
    """The variants to measure, including `settings`. Equal settings are one object."""
    base = settings.with_values({"judge.enabled": False})
    every = (
        Variant(IN_FORCE, "settings", settings),
        Variant(UNFILTERED, "plain", base, plain=True),
        *(
            Variant(
                spec.name,
                "strategy",
                base.with_values({"cutoff.enabled": True, "cutoff.strategy": spec.name}),
            )
            for spec in STRATEGIES
            # A learned strategy joins the others once it has been learned.
            if spec.weigh is None or settings.cutoff.calibration
        ),
        *_profiles(settings),
        *layer_variants(base),
    )
    one: list[Settings] = []
    for each in every:
        if each.settings not in one:
            one.append(each.settings)
    return tuple(replace(each, settings=one[one.index(each.settings)]) for each in every)


def unmeasured(rows: Collection[str]) -> str:
    """The profiles and strategies without a row of their own, in words; `rows` are the names of
    those that are measured."""
    names = [name for name in PROFILES if of_profile(name).judge.enabled]
    said = f"Profiles that ask an LLM ({', '.join(names)}) are measured only if they are in use."
    for spec in STRATEGIES:
        if spec.weigh is not None and spec.name not in rows:
            said += f" The strategy {spec.name} is measured once Tune has learned it from labels."
    return said


@cache
def profiles_version() -> str:
    """A hash that changes with any value of any profile, and with what is counted."""
    values = [str(COUNTING), *(of_profile(name).model_dump_json() for name in PROFILES)]
    return blake2b("".join(values).encode(), digest_size=6).hexdigest()


def layer_variants(settings: Settings) -> tuple[Variant, ...]:
    """The layers that are on, added one after the other in their order, and each left out once.

    Clearance stays on. `added` begins without any of the others.
    """
    on = [n for n in SWITCHES if n != "clearance" and settings.get(f"{n}.enabled")]
    off = {f"{name}.enabled": False for name in on}
    added = [Variant("no layer", "added", settings.with_values(off))]
    for name in on:
        off = off | {f"{name}.enabled": True}
        added.append(Variant(f"+ {name}", "added", settings.with_values(off)))
    without = [
        Variant(f"− {name}", "left out", settings.with_values({f"{name}.enabled": False}))
        for name in on
    ]
    return (*added, *without)


def _profiles(settings: Settings) -> list[Variant]:
    """Every profile that calls no LLM, for the same user and with the same reranker."""
    same = {"clearance.enabled": settings.clearance.enabled}
    if settings.quality.reranker != "none":
        same |= {
            path: settings.get(path) for path in ("quality.reranker", "quality.reranker_model")
        }
    made = []
    for profile in PROFILES:
        own = of_profile(profile)
        if not own.judge.enabled:
            # The plain search with the current k already has this name.
            name = "profile unfiltered" if profile == UNFILTERED else profile
            made.append(Variant(name, "profile", own.with_values(same)))
    return made
