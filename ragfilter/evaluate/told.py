"""Remarks on figures, in the same words on the page, in reports and on the command line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import neg
from typing import TYPE_CHECKING, Any

from ragfilter.evaluate import table
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.plotted import BestDistance
from ragfilter.evaluate.tune import FEW
from ragfilter.evaluate.variants import profiles_version
from ragfilter.layers.origin import seen_labels
from ragfilter.layers.strategies.calibrated import SHARES, lacking
from ragfilter.settings.learned import Calibration
from ragfilter.settings.schema import Settings, field
from ragfilter.text.numbers import counted, signed

if TYPE_CHECKING:
    from ragfilter.evaluate.beir import Labels
    from ragfilter.evaluate.matching import Duel
    from ragfilter.evaluate.records import QueryRecord
    from ragfilter.evaluate.tune import Tuning
    from ragfilter.evaluate.variants import Variant
    from ragfilter.stores.runs import Plan, Run

UNCHANGED = (
    "Nothing would change: chosen among all strategies, tuned settings do no better than the "
    "current ones on held-out questions."
)
ONE = (
    "Only one question is measured: nothing can be held out, so there is no best fixed k. Label a "
    "second question."
)
TOO_FEW = "too few questions that differ"
NAMES = {"f1": "F1", "f2": "F2", "tokens": "tokens"}


def gain(of: Interval, digits: int = 3) -> str:
    """``+0.012, 95% interval −0.004 to +0.028``."""
    return f"{signed(of.mean, digits)}, {'95% interval ' if of.ends else ''}{ends(of, digits)}"


def gain_in(figure: str, of: Interval) -> str:
    """``F1 +0.012, 95% interval …``. A gain in tokens means tokens saved, so it reads ``tokens
    −12``."""
    if figure == "tokens":
        return f"tokens {gain(of.mapped(neg), 0)}"
    return f"{NAMES[figure]} {gain(of)}"


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


def over_fixed_k(records: Sequence[QueryRecord], learned: str) -> str:
    """Whether the run's settings beat the best fixed k, or why this is not said: `learned` is what
    `in_sample` says of them. Empty with fewer than two queries."""
    if learned:
        return f"Not compared with the best fixed k: {learned[0].lower()}{learned[1:]}"
    if len(records) < 2:
        return ""
    found = table.over_fixed_k(records)
    return (
        f"The current settings are {compared(found)} the {table.FIXED} (cross-validated): F1 "
        f"{gain(found)}."
    )


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


def left_out(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> str:
    """Which rows a run lacks; empty if it has all."""
    there = {each.name for each in table.measured(records, variants)}
    lacking = [each.name for each in variants if each.name not in there]
    if not records or not lacking:
        return ""
    return (
        f"Not measured: {', '.join(lacking)}. What was tuned or learned with another model, space "
        "or reranker does not apply there, or the run is of an earlier version."
    )


def about_records(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> list[str]:
    """Caveats about what a run has measured."""
    said = (
        ONE if len(records) == 1 else "",
        unanswered(sum(not record.relevant for record in records)),
        left_out(records, variants),
        fell_back(sum(record.waiting for record in records)),
    )
    return [*filter(None, said)]


def about_labels(labels: Labels) -> list[str]:
    """Caveats about figures measured on these labels."""
    answered = len(labels.answered)
    said = (few(answered), unanswered(len(labels.labelled) - answered))
    return [*filter(None, said)]


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
    if questions >= FEW:
        return ""
    has = "has" if questions == 1 else "have"
    return (
        f"Only {counted(questions, 'question')} {has} a chunk labelled relevant: too few for "
        f"reliable figures. Label at least {FEW}."
    )


def in_sample(settings: Settings, labels_version: str, collection: str) -> str:
    """A warning if the cutoff was learned from, or the settings were tuned on, the very labels they
    are measured with, or labels of this collection that have changed since; empty otherwise."""
    found = seen_labels(settings)
    # Hits without a collection's name may be of any.
    same = found is not None and collection and found.collection == collection
    if found is None or not (found.labels == labels_version or same):
        return ""
    learned = isinstance(found, Calibration)
    what = "The cutoff was learned from" if learned else "The settings were tuned on"
    if found.labels == labels_version:
        said = "these same labels, so the figures here say nothing about new questions"
    else:
        said = (
            f"labels of this collection ({found.summary}) and may have seen some of these "
            "questions, so the figures here may be better than on new ones"
        )
    return f"{what} {said}. Tuning measures on held-out questions."


def seen(runs: Sequence[Run], settings: tuple[Settings, Settings]) -> tuple[str, ...]:
    """For each side, A and B, what `in_sample` says of its settings."""
    return tuple(
        in_sample(own, run.plan.labels_version, run.plan.collection)
        for run, own in zip(runs, settings, strict=True)
    )


def profiles_since(plan: Plan) -> str:
    """That the profiles, or what is counted, have changed since a run was planned, or that this is
    not known; empty if they have not."""
    if not plan.profiles:
        return "It is not known whether the profiles have changed since then."
    if plan.profiles == profiles_version():
        return ""
    return (
        "An earlier version of ragfilter measured this, with other profiles or counting something "
        "differently: measure again."
    )


def between(
    runs: Sequence[Run],
    made: Duel,
    settings: tuple[Settings, Settings],
    since: Sequence[Sequence[str]],
) -> list[str]:
    """Caveats about comparing two runs, A and B. `settings` are those of the compared row of each,
    and `since` is what `runs.changed_since` says of each."""
    a, b = (run.plan for run in runs)
    notes, learned = [], seen(runs, settings)
    if a.collection != b.collection:
        notes.append(f"A measured the collection {a.collection}, B {b.collection}.")
    elif a.collection_version != b.collection_version:
        notes.append("The collection changed between the two runs: measure both again.")
    if a.labels_version != b.labels_version:
        notes.append(
            "The two sides were measured with different questions or labels: measure both again."
        )
    if a.viewer != b.viewer:
        notes.append(
            "The two sides were measured as different users, who may see different chunks. To "
            "measure both as the same, ask as one user, with the layer clearance on in both or off."
        )
    if a.profiles and b.profiles and a.profiles != b.profiles:
        notes.append(
            "Two versions of ragfilter measured these, with other profiles or counting something "
            "differently: measure both again."
        )
    else:
        notes += filter(None, dict.fromkeys(map(profiles_since, (a, b))))
    for side, (letter, run) in enumerate(zip("AB", runs, strict=True)):
        if not run.complete:
            done = f"{run.done} of {counted(run.plan.queries, 'question')}"
            notes.append(f"{letter} is measured for {done} only.")
        notes += [f"{letter}: {note[0].lower()}{note[1:]}" for note in since[side]]
        if learned[side]:
            notes.append(f"{letter}: {learned[side]}")
        names = ("chunks", "unlabelled", "f1", "f1_most")
        bare = unlabelled(*(made.mean(name, side) for name in names))
        if bare:
            notes.append(f"{letter}: {bare[0].lower()}{bare[1:]}")
    if made.paired.gain.ends and made.paired.queries < FEW:
        notes.append(
            f"Only {counted(made.paired.queries, 'labelled question')}, so the interval is wide."
        )
    return notes


def verdict(made: Tuning) -> str:
    """Whether the tuned settings beat the best fixed k, in words."""
    least, reached = made.target.recall, made.tuned.means.recall
    if reached < least:
        return f"The recall of {least:g} is not reached: {reached:.3f}"
    if made.beats_fixed_k:
        return "Tuned settings beat the best fixed k"
    if _alone(made):
        return "The choice among all strategies is not shown to beat the best fixed k"
    return "No settings are shown to beat the best fixed k"


def _alone(made: Tuning) -> list[str]:
    """The strategies that beat the best fixed k when tuned alone, with their gains."""
    return [
        f"{name} ({gain_in(made.target.figure, each.gain.of)})"
        for name, each in made.strategies.items()
        if each.gain.of.shows_gain and each.means.recall >= made.target.recall
    ]


def fixed_k(settings: Settings) -> str:
    """That the cutoff keeps the same number of chunks for every question; empty if it does not."""
    cutoff = settings.cutoff
    if not cutoff.enabled or (
        cutoff.strategy != "fixed" and cutoff.max_results > cutoff.min_results
    ):
        return ""
    return (
        f"The cutoff is a fixed k of {cutoff.max_results}, as in a plain search: no distance "
        "changes it."
    )


def notes(made: Tuning) -> list[str]:
    """Caveats about the figures."""
    alone = [] if made.beats_fixed_k else _alone(made)
    told = [
        f"Tuned alone, {' and '.join(alone)} beat it, but picking winners among "
        f"{len(made.strategies)} strategies overstates their gains."
        if alone
        else "",
        "The previous settings were chosen on labels, so they were not a candidate, and tuned "
        "settings are not compared with them: on labels they have seen, they look too good."
        if made.seen
        else "If the previous settings were chosen on these labels, their figures look better "
        "than they would elsewhere.",
        f"Oracle, by {NAMES[made.target.oracle]}: {table.ABOUT_ORACLE}.",
    ]
    if made.stands_in:
        told.append(
            f"The previous settings do not apply here: {made.stands_in} “Before” is therefore the "
            "strategy gap with their other values."
        )
    told.append(f"Nothing was learned: {made.why_not}." if made.why_not else _missing(made))
    if made.dial:
        kept = "; ".join(f"{float(s):.0%} asked, {kept:.0%} kept" for s, kept in made.dial.items())
        told.append(
            "Recall dial of calibrated, as shares of the relevant hits that reach the cutoff, "
            f"before the context budget, on held-out questions: {kept}."
        )
    if made.budget is not None:
        told.append(
            f"With the target budget, calibrated has a recall of {made.budget.recall:.3f} with "
            f"{made.budget.tokens:,.0f} tokens on held-out questions."
        )
    return [note for note in told if note]


def _missing(made: Tuning) -> str:
    """From which share on the recall dial has too few labels, and how many are missing at least."""
    share = next((each for each in SHARES if f"{each:g}" not in made.dial), None)
    if share is None:
        return ""
    known = made.strategies["calibrated"].settings.cutoff.calibration
    assert known is not None
    missing = counted(lacking(share, known), "more labelled relevant chunk")
    return (
        f"For {share:.0%} and more, the recall dial needs at least {missing} that reach the "
        f"cutoff; it has {known.relevant}."
    )


def shown(path: str, value: Any) -> str:
    """A setting's value in one line, shortening what was learned."""
    holder = field(path).table
    if value and holder is not None:
        return holder.read(value).summary
    if value == "":
        return "none"
    # As in a settings file.
    return str(value).lower() if isinstance(value, bool) else str(value)
