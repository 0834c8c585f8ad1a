"""Caveats and other sentences about figures, the same on the page, in reports and on the command
line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import neg
from typing import TYPE_CHECKING

from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.prefixes import BestDistance
from ragfilter.evaluate.variants import FIXED, Variant
from ragfilter.layers.origin import seen_labels
from ragfilter.settings.learned import Calibration
from ragfilter.settings.schema import Settings
from ragfilter.text.numbers import counted, signed

if TYPE_CHECKING:
    from ragfilter.evaluate.labelled_queries import Labels
    from ragfilter.evaluate.measure import QueryRecord

FEW_QUERIES = 20
"""With fewer labelled queries, the figures say little."""
ONE = (
    "Only one question is measured: nothing can be held out, so there is no best fixed k. Label a "
    "second question."
)
TOO_FEW = "too few questions that differ"
LABELLED = ("kept", "unlabelled", "f1", "f1_most")
"""What `unlabelled_of` reads."""


def gain(of: Interval, digits: int = 3) -> str:
    """``+0.012, 95% interval −0.004 to +0.028``."""
    return f"{signed(of.mean, digits)}, {'95% interval ' if of.ends else ''}{ends(of, digits)}"


def gain_short(of: Interval, digits: int = 3) -> str:
    """``+0.012 (−0.004 to +0.028)``."""
    return f"{signed(of.mean, digits)} ({ends(of, digits)})"


def ends(of: Interval, digits: int = 3) -> str:
    """The ends of a gain's interval: ``−0.004 to +0.028``."""
    return between_ends(of, partial(signed, digits=digits))


def between_ends(
    of: Interval, write: Callable[[float], str] = "{:.3f}".format, mark: str = " to "
) -> str:
    """The ends of an interval: ``0.612 to 0.704``, or that there are too few questions for one."""
    return mark.join(map(write, of.ends)) if of.ends else TOO_FEW


def compared(of: Interval) -> str:
    """A gain in words, such as ``better than``, claiming only what its interval shows."""
    if of.shows_gain:
        return "better than"
    return "worse than" if of.shows_loss else "not shown to differ from"


def over_fixed_k(gained: Interval | None, learned: str, who: str = "The current settings") -> str:
    """Whether the settings beat the best fixed k, or why this is not said: `learned` is what
    `in_sample` says of them. Empty with fewer than two queries."""
    if learned:
        return f"Not compared with the best fixed k: {learned[0].lower()}{learned[1:]}"
    if gained is None:
        return ""
    if not (gained.shows_gain or gained.shows_loss):
        return f"{who} are not shown to beat the {FIXED}: F1 {gain_short(gained)}."
    verb = "beat" if gained.shows_gain else "are worse than"
    size = gained if gained.shows_gain else gained.mapped(neg)
    return f"{who} {verb} the {FIXED} by {size.mean:.3f} in F1 ({between_ends(size)})."


def unlabelled(kept: float, bare: float, f1: float, most: float) -> str:
    """How much F1 may be off because of missing labels; empty if every kept chunk has one."""
    if not bare:
        return ""
    return (
        f"Of {kept:.1f} chunks kept, {bare:.1f} have no label: F1 is {f1:.3f} if all of them are "
        f"irrelevant, {most:.3f} if all are relevant."
    )


def best_distance(best: BestDistance) -> str:
    """How good a plain threshold on the distance would be."""
    return (
        f"The best single distance threshold is {best.distance:.3f} (F1 {best.f1:.3f} on held-out "
        "questions)."
    )


def unlabelled_of(row: Mapping[str, float]) -> str:
    """The same of a row of `frame` by variant."""
    return unlabelled(*(row[name] for name in LABELLED))


def left_out(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> str:
    """Which rows a measurement lacks; empty if it has all."""
    queries = len({record.id for record in records})
    measured = Counter(record.variant for record in records)
    lacking = [each.name for each in variants if measured[each.name] < queries]
    if not lacking:
        return ""
    return (
        f"Not measured: {', '.join(lacking)}. What was tuned or learned with another model, space "
        "or reranker does not apply there."
    )


def about_records(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> list[str]:
    """Caveats about what was measured."""
    relevant = {record.id: record.relevant for record in records if record.labelled}
    caveats = (
        ONE if len(relevant) == 1 else "",
        unanswered(sum(not n for n in relevant.values())),
        left_out(records, variants),
        fell_back(len({record.id for record in records if record.waiting})),
    )
    return [*filter(None, caveats)]


def about_labels(labels: Labels) -> list[str]:
    """Caveats about figures measured on these labels."""
    answered = len(labels.answered)
    caveats = few(answered), unanswered(len(labels.labelled) - answered)
    return [*filter(None, caveats)]


def unanswered(questions: int) -> str:
    """That this many questions have labels, and none of them relevant; empty for none."""
    if not questions:
        return ""
    has, is_ = ("has", "it counts") if questions == 1 else ("have", "they count")
    return (
        f"{counted(questions, 'question')} {has} no chunk labelled relevant, so {is_} as having no "
        "answer: only keeping nothing is right. If there is an answer, label it."
    )


def fell_back(questions: int) -> str:
    """That a layer fell back in this many questions; empty for none."""
    if not questions:
        return ""
    return (
        f"In {counted(questions, 'question')}, a layer fell back: a model failed or was not asked."
    )


def few(questions: int) -> str:
    """A warning if there are too few questions with something relevant for reliable figures; empty
    otherwise."""
    if questions >= FEW_QUERIES:
        return ""
    has = "has" if questions == 1 else "have"
    return (
        f"Only {counted(questions, 'question')} {has} a chunk labelled relevant: too few for "
        f"reliable figures. Label at least {FEW_QUERIES}."
    )


def in_sample(settings: Settings, labels_version: str, collection: str) -> str:
    """A warning if the cutoff was learned from, or the settings were tuned on, the very labels they
    are measured with, or labels of this collection that have changed since; empty otherwise."""
    seen = seen_labels(settings)
    # Hits without a collection's name may be of any.
    same = seen is not None and collection and seen.collection == collection
    if seen is None or not (seen.labels == labels_version or same):
        return ""
    learned = isinstance(seen, Calibration)
    what = "The cutoff was learned from" if learned else "The settings were tuned on"
    if seen.labels == labels_version:
        labels = "these same labels, so the figures here say nothing about new questions"
    else:
        labels = (
            f"labels of this collection ({seen.summary}) and may have seen some of these "
            "questions, so the figures here may be better than on new ones"
        )
    return f"{what} {labels}. Tuning measures on held-out questions."
