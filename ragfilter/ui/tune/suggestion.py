"""Settings suggested by cross-validation: before and after, applied only by a click."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.candidates import gathering
from ragfilter.evaluate.caveats import between_ends, unlabelled
from ragfilter.evaluate.crossval import Interval, Target
from ragfilter.evaluate.labels import labels_version
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.told import NAMES, fixed_k, gain_in, notes, shown, verdict
from ragfilter.evaluate.tune import TunedMeans, Tuning, tune
from ragfilter.text import numbers
from ragfilter.ui.kit import progress
from ragfilter.ui.look import elements
from ragfilter.ui.look.elements import Fact
from ragfilter.ui.look.prose import message
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job
from ragfilter.ui.session.visit import Visit
from ragfilter.ui.tune.tuning_map import STOP

FIGURES: Mapping[str, str] = {"f1": "F1", "f2": "F2", "tokens": "fewest tokens"}
BEST = "the best of all"


def ask(visit: Visit, given: Labels) -> None:
    """Draw the target of the tuning, whether to try reranking, and the button."""
    with st.container(key="ask-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        figure = st.selectbox(
            "Tune for", list(FIGURES), key="tune-for", persist_state="session", width=160,
            format_func=lambda name: FIGURES[name],
            help="F1 weighs precision and recall alike, F2 counts recall twice. Fewest tokens "
            "looks for the shortest context at a recall that you set.",
        )  # fmt: skip
        recall = 0.0
        if figure == "tokens":
            recall = st.number_input(
                "Recall", min_value=0.05, max_value=1.0, value=0.7, step=0.05, key="tune-recall",
                persist_state="session", width=110,
                help="The mean share of the relevant chunks that must stay.",
            )  # fmt: skip
        rerank = st.toggle(
            "Try reranking", key="tune-rerank", persist_state="session", value=True,
            help="Also tries settings that rerank. Scoring the first 50 hits of every question "
            "takes most of the time.",
        )  # fmt: skip
        pressed = st.button(
            "Suggest settings",
            key="suggest",
            icon=":material/auto_awesome:",
            help="Tries every strategy by cross-validation, and learns from the labels. Nothing "
            "changes until you apply it.",
        )
    target = Target("f2" if figure == "f2" else "tokens" if recall else "f1", recall)
    st.session_state.tune_as = (target, rerank)
    if pressed:
        _begin(visit, given)


def _begin(visit: Visit, given: Labels) -> None:
    """Start tuning, unless it is already running. An earlier suggestion is replaced, because it was
    compared with the settings of that time."""
    if len(given.qrels) < 2:
        st.error("Cross-validation needs at least two labelled questions. Label more on Inspect.")
        return
    key, jobs = _key(visit, given), visit.resources.jobs
    backends = visit.resources.backends(state.session().collection)
    settings, user = visit.settings, state.user()
    target, rerank = st.session_state.tune_as
    provenance = Provenance(labels_version(given), date.today().isoformat())

    def work(job: Job[Tuning]) -> Tuning:
        wide = gathering(settings, rerank=rerank)
        pools = gather_all(given.labelled, wide, backends, user, progress=job.step)
        return tune(
            pools, given.qrels, settings, user, target=target, rerank=rerank,
            provenance=provenance, progress=partial(job.step, what="Replaying"),
        )  # fmt: skip

    jobs.start(user, key, work, again=True)


def draw(visit: Visit, given: Labels) -> None:
    """Draw the suggestion, if one was requested."""
    job = visit.resources.jobs.find(_key(visit, given))
    made = progress.result(job, "tuning", "Gathering", stop=STOP)
    if made is not None:
        _draw(made, visit)


def _draw(found: Tuning, visit: Visit) -> None:
    with st.container(key="suggestion", border=True, gap="small"):
        strip, said = st.empty(), st.empty()
        for note in notes(found):
            elements.aside(note)
        _table(found)
        with st.container(
            key="apply-bar", horizontal=True, vertical_alignment="bottom", gap="small"
        ):
            name = st.selectbox(
                "Strategy", [BEST, *found.strategies], key="tuned-strategy", width=200,
                help="The best strategy, or one of your choice even if others score higher: "
                "calibrated has the recall dial, for example.",
            )  # fmt: skip
            made = found if name == BEST else found.only(name)
            changed = made.tuned.settings.changed_from(visit.settings)
            st.button(
                "Apply",
                key="apply-tuning",
                type="primary",
                icon=":material/check:",
                on_click=_apply,
                args=(changed,),
                disabled=not changed,
                help="Applies the tuned settings. Save them as TOML under Settings in the sidebar.",
            )
        with strip:
            _facts(made)
        with said:
            _say(made, changed)


def _facts(made: Tuning) -> None:
    rows = (
        ("When suggested (tuned on labels)" if made.seen else "When suggested", made.before),
        (f"Best fixed k ({made.k})", made.best_fixed_k),
        ("Tuned", made.tuned.means),
        ("Oracle", made.oracle),
    )
    elements.facts("Suggestion", (_fact(name, means, made.target) for name, means in rows))


def _say(made: Tuning, changed: Mapping[str, Any]) -> None:
    told = ", ".join(f"{path} = {shown(path, value)}" for path, value in changed.items())
    told = f"Changes: {told}." if told else "These settings are in force."
    figure, tuned = made.target.figure, made.tuned
    means = tuned.means
    bare = unlabelled(means.kept, means.unlabelled, means.f1, means.f1_most)
    against = (
        ""
        if made.seen
        else f"; against the settings when suggested {gain_in(figure, tuned.gain_over_before.of)}"
    )
    st.markdown(
        f"**{message(verdict(made))}**: {message(gain_in(figure, tuned.gain.of) + against)}. "
        f"{made.queries} questions, {made.folds}-fold cross-validation, {made.candidates} "
        f"candidates. {message(told)} {message(fixed_k(tuned.settings))} {message(bare)}"
    )


def _apply(changed: Mapping[str, Any]) -> None:
    """Apply the suggestion, and fetch the scores that it needs for the current question."""
    state.change(changed)
    state.session().settle = True


def _table(made: Tuning) -> None:
    """Draw every strategy tuned alone, and how much better the learned one is."""
    with st.expander("Every strategy, tuned alone", key="tuned-alone"):
        st.dataframe(
            [
                {
                    "strategy": name,
                    FIGURES[made.target.figure]: _number(each.means.of.mean, made.target),
                    "95% interval": _range(each.means.of, made.target),
                    "precision": f"{each.means.precision:.3f}",
                    "recall": f"{each.means.recall:.3f}",
                    "F1 upper bound": f"{each.means.f1_most:.3f}",
                    "chunks": f"{each.means.kept:.1f}",
                    "calibrated is better by": gain_in(
                        made.target.figure, made.over_strategies[name].of
                    )
                    if name in made.over_strategies
                    else "",
                }
                for name, each in made.strategies.items()
            ],
            hide_index=True,
        )


def _fact(name: str, means: TunedMeans, target: Target) -> Fact:
    of = means.of
    extra = "" if target.figure == "f1" else f"recall {means.recall:.3f}, "
    if means.unlabelled:
        extra = f"F1 upper bound {means.f1_most:.3f}, {extra}"
    size = f"{means.kept:.1f} chunks, {numbers.tokens(round(means.tokens))}"
    value = f"{NAMES[target.figure]} {_number(of.mean, target)}"
    return name, value, f"{_range(of, target)}, {extra}{size}"


def _number(value: float, target: Target) -> str:
    return f"{value:,.0f}" if target.figure == "tokens" else f"{value:.3f}"


def _range(of: Interval, target: Target) -> str:
    return between_ends(of, partial(_number, target=target))


def _key(visit: Visit, given: Labels) -> tuple[object, ...]:
    """The key of a suggestion. It does not include the cutoff's settings, so applying the
    suggestion does not discard it."""
    settings = visit.settings.model_dump(exclude={"cutoff", "quality"})
    version = visit.resources.bench.collection(state.session().collection).version
    return (
        "tuning", state.session().collection, version, labels_version(given), state.user(),
        str(settings), state.session().profile, st.session_state.get("tune_as"),
    )  # fmt: skip
