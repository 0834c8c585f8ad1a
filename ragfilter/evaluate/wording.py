"""Figures, their caveats and tuning results in words, for the page, reports and the command line. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ragfilter.evaluate.crossval import FEW_QUERIES, Interval
from ragfilter.evaluate.frame import Row, flat, written
from ragfilter.evaluate.metrics import FIGURES
from ragfilter.evaluate.variants import ABOUT_ORACLE, FIXED, Variant
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.strategies.calibrated import RECALLS, lacking
from ragfilter.layers.tuned_on import seen_labels
from ragfilter.settings.schema import Calibration, Settings, field_info
from ragfilter.text.numbers import counted, distance, signed

if TYPE_CHECKING:
    from ragfilter.evaluate.labelled_queries import Labels
    from ragfilter.evaluate.query_records import QueryRecord
    from ragfilter.evaluate.tuning import Figures, Tuning

TOO_FEW = "too few questions differ"


def gain(of: Interval, digits: int = 3) -> str:
    """A gain with its 95% interval: ``+0.012 (−0.004 to +0.028)``."""
    return f"{signed(of.mean, digits)} ({ends(of, digits)})"


def ends(of: Interval, digits: int = 3) -> str:
    """The ends of a gain's interval: ``−0.004 to +0.028``."""
    return between_ends(of, partial(signed, digits=digits))


def between_ends(of: Interval, write: Callable[[float], str] = "{:.3f}".format, mark: str = " to ") -> str:
    """The ends of an interval: ``0.612 to 0.704``, or that there are too few questions for one."""
    return mark.join(map(write, of.ends)) if of.ends else TOO_FEW


def stated(of: Interval, digits: int = 3) -> str:
    """A gain in a sentence: ``+0.012 (95% interval −0.004 to +0.028)``."""
    return f"{signed(of.mean, digits)} ({'95% interval ' if of.ends else ''}{ends(of, digits)})"


def compared(of: Interval) -> str:
    """A gain in words, such as ``better than``, claiming only what its interval shows."""
    if of.shows_gain:
        return "better than"
    return "worse than" if of.shows_loss else "neither clearly better nor worse than"


def over_fixed_k(gained: Interval | None, learned: str, who: str = "The current settings") -> str:
    """Whether the settings beat the best fixed k. `learned`, from `in_sample`, says why not. Empty for one query."""
    if learned:
        return f"Not compared with the best fixed k: {learned[0].lower()}{learned[1:]}"
    return f"{who} {_verb(gained)} the {FIXED}: F1 {stated(gained)}." if gained else ""


def _verb(gained: Interval) -> str:
    if gained.shows_gain:
        return "beat"
    return "are worse than" if gained.shows_loss else "show no clear difference from"


def unlabelled(row: Mapping[str, float]) -> str:
    """How much F1 may be off because of missing labels, given means of `frame`; empty without any."""
    # Without any label, F1 is None.
    if not row["unlabelled"]:
        return ""
    return (
        f"Of {row['kept']:.1f} chunks kept, {row['unlabelled']:.1f} have no label: F1 is {row['f1']:.3f} if all of "
        f"them are irrelevant, {row['f1_most']:.3f} if all are relevant."
    )


def left_out(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> str:
    """Which rows a measurement lacks; empty if it has all."""
    queries = len({record.id for record in records})
    measured = Counter(record.variant for record in records)
    lacking = [each.name for each in variants if measured[each.name] < queries]
    why = "What was tuned or learned with another model, space or reranker does not apply there."
    return f"Not measured: {', '.join(lacking)}. {why}" if lacking else ""


def about_records(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> list[str]:
    """Caveats about what was measured."""
    relevant = {record.id: record.relevant for record in records if record.labelled}
    one = "Only one question is measured: none can be held out, so there is no best fixed k. Label a second question."
    caveats = (
        one if len(relevant) == 1 else "",
        unanswered(sum(not n for n in relevant.values())),
        left_out(records, variants),
        fell_back(len({record.id for record in records if record.waiting})),
    )
    return [*filter(None, caveats)]


def about_labels(labels: Labels) -> list[str]:
    """Caveats about figures measured on these labels."""
    answered = len(labels.answered)
    has = "has" if answered == 1 else "have"
    few = (
        f"Only {counted(answered, 'question')} {has} a chunk labelled relevant: too few for reliable figures. "
        f"Label at least {FEW_QUERIES}."
    )
    return [*filter(None, (few if answered < FEW_QUERIES else "", unanswered(len(labels.labelled) - answered)))]


def unanswered(questions: int) -> str:
    """A note that this many questions have labels, but no relevant chunk; empty for 0."""
    those = counted(questions, "question")
    note = f"No chunk is labelled relevant for {those}, so only keeping nothing is right. Label any answer there is."
    return note if questions else ""


def fell_back(questions: int) -> str:
    """A note that a layer fell back for this many questions; empty for 0."""
    note = f"A layer fell back in {counted(questions, 'question')}: a model failed or was not asked."
    return note if questions else ""


def in_sample(settings: Settings, labels_version: str, collection: str) -> str:
    """A warning if the cutoff was learned from, or the settings tuned on, the labels that they are
    measured with, or an earlier version of this collection's labels; empty otherwise."""
    seen = seen_labels(settings)
    # Hits without a collection name may come from any collection.
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


UNCHANGED = (
    "Nothing would change: chosen among all strategies, tuned settings do no better than the "
    "current ones on held-out questions."
)


def gain_in(figure: str, differences: Figures) -> str:
    """``F1 +0.012 (…)`` or ``tokens −12 (…)``."""
    return f"{FIGURES[figure].label} {stated(differences[figure], FIGURES[figure].digits)}"


def verdict(tuning: Tuning) -> str:
    """Whether the tuned settings beat the best fixed k, in words."""
    least, reached = tuning.target.recall, tuning.tuned.means["recall"].mean
    if reached < least:
        return f"The recall of {least:g} is not reached: {reached:.3f}"
    if tuning.beats_fixed_k:
        return "Tuned settings beat the best fixed k"
    return "No settings clearly beat the best fixed k"


def headline(tuning: Tuning, previous: str) -> str:
    """The gain from tuning over the `previous` settings, in a sentence; over the best fixed k if labels chose the
    previous settings."""
    tuned, target = tuning.tuned, tuning.target
    if tuned.means["recall"].mean < target.recall:
        return f"{verdict(tuning)}."
    differences, other = tuned.gain_over_before, previous
    if tuning.seen or tuning.before["recall"].mean < target.recall:
        differences, other = tuned.gain, f"the {FIXED}"
    if not tuning.seen and not differences[target.figure].mean:
        single = any(
            tuning.gain(each.gain_over_before).mean > 0 and each.means["recall"].mean >= target.recall
            for each in tuning.strategies.values()
        )
        return (
            f"Chosen among all strategies, tuned settings do no better than {previous} on questions they were not "
            f"tuned on. {'One strategy alone may' if single else 'Evaluate compares other profiles'}."
        )
    how = f"{_verb(tuning.gain(differences))} {other} on questions they were not tuned on"
    return f"Tuned settings {how}: {gain_in(target.figure, differences)}."


def changed(before: Settings, after: Settings) -> list[str]:
    """The changed settings in words, each with its old and new value. A switch has the title of its layer."""
    titles = {f"{each.name}.enabled": each.title for each in LAYERS if each.switched}
    return [
        f"{titles.get(path) or field_info(path).label}: {shown(path, before.get(path))} → {shown(path, value)}"
        for path, value in after.changed_from(before).items()
        if path != "cutoff.tuned_on"
    ]


def notes(tuning: Tuning) -> list[str]:
    """Caveats about the figures."""
    caveats = [
        "The previous settings were chosen on labels, so they were not a candidate, and tuned "
        "settings are not compared with them: on labels they have seen, they look too good."
        if tuning.seen
        else "If the previous settings were chosen on these labels, their figures look better "
        "than they would elsewhere.",
        f"Oracle, by {FIGURES[tuning.target.oracle].label}: {ABOUT_ORACLE}.",
        stands_in(tuning),
        f"Nothing was learned: {tuning.why_not}." if tuning.why_not else _missing(tuning),
    ]
    if tuning.dial:
        kept = "; ".join(f"{float(s):.0%} asked, {k:.0%} kept" for s, k in tuning.dial.items())
        caveats.append(
            "Recall dial of calibrated, as shares of the relevant hits that reach the cutoff, "
            f"before the context budget, on held-out questions: {kept}."
        )
    if tuning.budget is not None:
        caveats.append(
            f"With the target budget, calibrated has a recall of {tuning.budget['recall'].mean:.3f} "
            f"with {tuning.budget['tokens'].mean:,.0f} tokens on held-out questions."
        )
    return [note for note in caveats if note]


def stands_in(tuning: Tuning) -> str:
    """Why “before” is not the previous settings; empty if it is."""
    return tuning.stands_in and (
        f"The previous settings do not apply here: {tuning.stands_in} “Before” is therefore "
        "the strategy gap with their other values."
    )


GUESS = (
    "There are no labels, so thresholds were carried over by the distances of these questions. "
    "This is a guess: label some questions to check it."
)
SIDES = ("", "before (not held out)", "after (held out)", "difference")


def sides(tuning: Tuning) -> list[tuple[str, ...]]:
    """F1, recall and tokens before and after, and the difference on the same questions, each with its 95% interval."""
    rows = []
    for figure in ("f1", "recall", "tokens"):
        write = partial(written, figure)
        both = (tuning.before[figure], tuning.tuned.means[figure])
        means = (f"{write(each.mean)} ({between_ends(each, write)})" for each in both)
        gained = gain(tuning.tuned.gain_over_before[figure], FIGURES[figure].digits)
        rows.append((FIGURES[figure].label, *means, gained))
    return rows


def untouched_limits(settings: Settings) -> str:
    """A note that limits by score, which labels never choose, do not change; empty without any."""
    limits = settings.cutoff.limits
    return limits and (
        f"The limits by score stay as they were set by hand: {limits}. After a change of model, check what they drop."
    )


def no_worse(tuning: Tuning, margin: float) -> str:
    """Whether the new settings are shown to be no worse, and what to do if they are not."""
    difference = gain_in(tuning.judged, tuning.tuned.gain_over_before)
    if tuning.loses_at_most(margin):
        return f"The new settings are no worse than the old ones as they are: {difference}."
    return (
        f"The new settings may be worse than the old ones: {difference}, and the margin is "
        f"{margin:g}. Label more questions, or allow a larger margin."
    )


def _missing(tuning: Tuning) -> str:
    """From which share the recall dial has too few labels, and how many are missing at least."""
    share = next((each for each in RECALLS if f"{each:g}" not in tuning.dial), None)
    if share is None:
        return ""
    calibration = tuning.strategies["calibrated"].settings.cutoff.calibration
    assert calibration is not None
    missing = counted(lacking(share, calibration), "more labelled relevant chunk")
    return (
        f"For {share:.0%} and more, the recall dial needs at least {missing} that reach the "
        f"cutoff; it has {calibration.relevant}."
    )


def shown(path: str, value: Any) -> str:
    """A setting's value in one line; learned models are shortened."""
    holder = field_info(path).table
    if value and holder is not None:
        return holder.model_validate(value).summary
    if value in ("", None):
        return "none"
    if path.endswith(".enabled"):
        return "on" if value else "off"
    if isinstance(value, float):
        return distance(value)
    # As in a settings file.
    return str(value).lower() if isinstance(value, bool) else str(value)


def compared_rows(tuning: Tuning) -> list[Row]:
    """The rows that tuning compares, with those of each strategy alone, like rows of `frame` by variant."""
    least = tuning.target.recall
    compared = {
        f"Best fixed k ({tuning.k})": tuning.best_fixed_k,
        "Before (tuned on labels)" if tuning.seen else "Before": tuning.before,
        "Tuned": tuning.tuned.means,
        "Oracle": tuning.oracle,
        **{f"{name}, alone": each.means for name, each in tuning.strategies.items()},
    }
    short = {name: f" (recall under {least:g})" for name, means in compared.items() if means["recall"].mean < least}
    return [{"variant": name + short.get(name, ""), **flat(means)} for name, means in compared.items()]
