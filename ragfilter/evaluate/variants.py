"""The settings that a measurement compares. Pure.

A run always has the same rows: the current settings, a plain search, every cutoff strategy and
every profile. Then the layers are added one by one, and each is left out once. The best fixed k and
the oracle are not settings; `evaluate.frame` computes them.

Users are not compared, so clearance is either on in all rows or off in all. A run calls an LLM only if the current
settings do; the other rows have no judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ragfilter.evaluate.metrics import DEEPEST
from ragfilter.layers.judge import settings_without_judge
from ragfilter.layers.registry import SWITCHES
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.layers.tuned_on import origin
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

Group = Literal["plain", "strategy", "profile", "settings", "added", "left out", "oracle"]
UNFILTERED = "unfiltered"
CURRENT = "current settings"
NO_JUDGE = "no judge"
FIXED, ORACLE = "best fixed k", "oracle"
ABOUT_ORACLE = (
    f"the best prefix of each query's unfiltered ranking, within its first {DEEPEST} chunks, "
    "chosen by the labels; settings that reorder these chunks, or drop some from the middle, can "
    "exceed it"
)


@dataclass(frozen=True, slots=True)
class Variant:
    """Settings with a name."""

    name: str
    group: Group
    settings: Settings

    @property
    def plain(self) -> bool:
        """Whether it is the first k of a plain search."""
        return self.group == "plain"

    @property
    def about(self) -> str:
        """Details that the name omits: k, and what the settings were learned from."""
        if self.plain:
            return f"the first {self.settings.retrieval.k}"
        learned = origin(self.settings)
        if learned is None:
            return ""
        return (
            f"{learned.summary}; its figures on those are better than on new ones, and Tune shows "
            "how good it is on held-out questions"
        )


def filtered_and_plain(settings: Settings) -> tuple[Variant, Variant]:
    """The settings, and the unfiltered first k."""
    plain = settings.with_values({"judge.enabled": False}) if settings.judge.enabled else settings
    return Variant(CURRENT, "settings", settings), Variant(UNFILTERED, "plain", plain)


def variants(settings: Settings) -> tuple[Variant, ...]:
    """The variants of a run, including `settings`. Equal settings are one object."""
    current, plain = filtered_and_plain(settings)
    base = plain.settings
    every = (
        current,
        plain,
        *(
            Variant(spec.name, "strategy", base.with_values({"cutoff.enabled": True, "cutoff.strategy": spec.name}))
            for spec in strategies().values()
            # A learned strategy is included only if it has been learned.
            if spec.values_of is None or settings.cutoff.calibration
        ),
        *_profiles(settings),
        *layer_variants(base),
    )
    distinct: dict[Settings, Settings] = {}
    return tuple(replace(each, settings=distinct.setdefault(each.settings, each.settings)) for each in every)


def judged(named: Mapping[str, Settings], prompts: Sequence[str]) -> tuple[Variant, ...]:
    """Each of the `named` settings without the judge, then judged with each prompt. Raises ValueError for an unknown
    prompt."""
    variants: list[Variant] = []
    for name, settings in named.items():
        on = settings.with_values({"judge.enabled": True})
        prefix = f"{name} " if len(named) > 1 else ""
        variants.append(Variant(f"{prefix}{NO_JUDGE}", "settings", settings_without_judge(on)))
        variants += (
            Variant(f"{prefix}{prompt}", "settings", on.with_values({"judge.prompt": prompt})) for prompt in prompts
        )
    return tuple(variants)


def with_unfiltered(variants: Sequence[Variant]) -> tuple[Variant, ...]:
    """`variants`, preceded by an unfiltered search for every k among them. It searches all files if any variant with
    this k does."""
    off = {f"{layer}.enabled": False for layer in SWITCHES}
    every = sorted((v.settings for v in variants), key=lambda s: s.retrieval.source_pattern)
    # The last one counts.
    by_k = {each.retrieval.k: each for each in reversed(every)}
    plain = (Variant(f"{UNFILTERED}, k {k}", "plain", by_k[k].with_values(off)) for k in sorted(by_k))
    return (*plain, *variants)


def layer_variants(settings: Settings) -> tuple[Variant, ...]:
    """Variants with the enabled layers added one by one, in order, and with each left out once. Clearance stays on.
    `added` begins without any other layer."""
    on = [n for n in SWITCHES if n != "clearance" and settings.get(f"{n}.enabled")]
    off = {f"{name}.enabled": False for name in on}
    added = [Variant("no layer", "added", settings.with_values(off))]
    for name in on:
        off = off | {f"{name}.enabled": True}
        added.append(Variant(f"+ {name}", "added", settings.with_values(off)))
    without = [Variant(f"− {name}", "left out", settings.with_values({f"{name}.enabled": False})) for name in on]
    return (*added, *without)


def _profiles(settings: Settings) -> list[Variant]:
    """Every profile that calls no LLM, with the same user, files and reranker."""
    kept = ["clearance.enabled", "retrieval.source_pattern"]
    if settings.quality.reranker != "none":
        kept += ["quality.reranker", "quality.reranker_model"]
    same = {path: settings.get(path) for path in kept}
    return [
        # The plain search with the current k already has this name.
        Variant("profile unfiltered" if profile == UNFILTERED else profile, "profile", own.with_values(same))
        for profile, own in ((profile, of_profile(profile)) for profile in PROFILES)
        if not own.judge.enabled
    ]
