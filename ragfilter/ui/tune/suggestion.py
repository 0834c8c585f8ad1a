"""Settings suggested by cross-validation: before and after, applied only by a click."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import streamlit as st

from ragfilter.evaluate import caveats, tuning_words
from ragfilter.evaluate.crossval import Target
from ragfilter.evaluate.labelled_queries import Labels, labels_version
from ragfilter.evaluate.tune import TunedMeans, Tuning, tune_questions
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


def ask(visit: Visit, labels: Labels) -> None:
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
        _begin(visit, labels)


def _begin(visit: Visit, labels: Labels) -> None:
    """Start tuning, unless it is already running. An earlier suggestion is replaced, because it was
    compared with the settings of that time."""
    backends = visit.resources.backends(state.session().collection)
    settings, user = visit.settings, state.user()
    target, rerank = st.session_state.tune_as

    def work(job: Job[Tuning]) -> Tuning:
        return tune_questions(
            labels, settings, backends, user, target=target, rerank=rerank,
            gathered=job.step, replayed=partial(job.step, what="Replaying"),
        )  # fmt: skip

    visit.resources.jobs.start(user, _key(visit, labels), work, again=True)


def draw(visit: Visit, labels: Labels) -> None:
    """Draw the suggestion, if one was requested."""
    job = visit.resources.jobs.find(_key(visit, labels))
    made = progress.result(job, "tuning", "Gathering", stop=STOP)
    if made is not None:
        _draw(made, visit)


def _draw(tuning: Tuning, visit: Visit) -> None:
    with st.container(key="suggestion", border=True, gap="small"):
        facts, text = st.empty(), st.empty()
        for note in tuning_words.notes(tuning):
            elements.aside(note)
        _draw_strategies(tuning)
        with st.container(
            key="apply-bar", horizontal=True, vertical_alignment="bottom", gap="small"
        ):
            name = st.selectbox(
                "Strategy", [BEST, *tuning.strategies], key="tuned-strategy", width=200,
                help="The best strategy, or one of your choice even if others score higher: "
                "calibrated has the recall dial, for example.",
            )  # fmt: skip
            chosen = tuning if name == BEST else tuning.only(name)
            changed = chosen.tuned.settings.changed_from(visit.settings)
            st.button(
                "Apply", key="apply-tuning", type="primary", icon=":material/check:",
                on_click=_apply, args=(changed,), disabled=not changed,
                help="Applies the tuned settings. Save in the sidebar keeps them.",
            )  # fmt: skip
        with facts:
            means = tuning_words.compared_means(chosen).items()
            elements.facts("Suggestion", (_fact(name, each, chosen.target) for name, each in means))
        text.markdown(_summary(chosen, changed))


def _summary(tuning: Tuning, changed: Mapping[str, Any]) -> str:
    """Whether the tuned settings are better, how that was measured, and what changes."""
    figure, tuned, means = tuning.target.figure, tuning.tuned, tuning.tuned.means
    changes = ", ".join(
        f"{path} = {tuning_words.shown(path, value)}" for path, value in changed.items()
    )
    over_before = tuning_words.gain_in(figure, tuned.gain_over_before.of)
    against = "" if tuning.seen else f"; against the settings when suggested {over_before}"
    sentences = (
        tuning_words.gain_in(figure, tuned.gain.of) + f"{against}.",
        f"{tuning.queries} questions, {tuning.folds}-fold cross-validation, {tuning.candidates} "
        "candidates.",
        f"Changes: {changes}." if changes else "These are the current settings.",
        tuning_words.fixed_k(tuned.settings),
        caveats.unlabelled(means.kept, means.unlabelled, means.f1, means.f1_most),
    )
    return (
        f"**{message(tuning_words.verdict(tuning))}**: {message(' '.join(filter(None, sentences)))}"
    )


def _apply(changed: Mapping[str, Any]) -> None:
    """Apply the suggestion, and fetch the scores that it needs for the current question."""
    state.change(changed)
    state.session().settle = True


def _draw_strategies(tuning: Tuning) -> None:
    """Draw every strategy tuned alone, and how much better the learned one is."""
    gains = {
        name: tuning_words.gain_in(tuning.target.figure, gain.of)
        for name, gain in tuning.over_strategies.items()
    }
    with st.expander("Every strategy, tuned alone", key="tuned-alone"):
        st.dataframe(
            [
                {"strategy": name}
                | tuning_words.cells(each.means, tuning.target)
                | {"calibrated is better by": gains.get(name, "")}
                for name, each in tuning.strategies.items()
            ],
            hide_index=True,
        )


def _fact(name: str, means: TunedMeans, target: Target) -> Fact:
    row = tuning_words.cells(means, target)
    shown = [row["95% interval"]]
    shown += [f"F1 upper bound {row['F1 upper bound']}"] if means.unlabelled else []
    shown += [f"recall {row['recall']}"] if target.figure != "f1" else []
    size = f"{row['chunks']} chunks, {numbers.tokens(round(means.tokens))}"
    figure = tuning_words.NAMES[target.figure]
    return name, f"{figure} {row[figure]}", ", ".join([*shown, size])


def _key(visit: Visit, labels: Labels) -> tuple[object, ...]:
    """The key of a suggestion. It does not include the cutoff's settings, so applying the
    suggestion does not discard it."""
    settings = visit.settings.model_dump(exclude={"cutoff", "quality"})
    version = visit.resources.bench.collection(state.session().collection).version
    return (
        "tuning", state.session().collection, version, labels_version(labels), state.user(),
        str(settings), state.session().profile, st.session_state.get("tune_as"),
    )  # fmt: skip
