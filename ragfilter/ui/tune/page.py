"""The Tune page: settings suggested by cross-validation, applied only by a click, and a map for exploring by hand."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd
import streamlit as st

from ragfilter.errors import SettingsError
from ragfilter.evaluate import wording
from ragfilter.evaluate.crossval import Target
from ragfilter.evaluate.frame import flat
from ragfilter.evaluate.labelled_queries import Labels, labels_version
from ragfilter.evaluate.query_records import completed_pools
from ragfilter.evaluate.recalibrate import RECORDS, carried, start
from ragfilter.evaluate.sweep import changes
from ragfilter.evaluate.tuning import MARGIN, Tuning, tune_questions, wide_settings
from ragfilter.layers.quality import always_reranks
from ragfilter.layers.tuned_on import learned_elsewhere
from ragfilter.model import Pool, User
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Settings
from ragfilter.stores.label_book import ASKED
from ragfilter.text.numbers import counted
from ragfilter.ui import jobs
from ragfilter.ui.jobs import Job
from ragfilter.ui.kit import labelled_sets, measuring, problems
from ragfilter.ui.look import elements
from ragfilter.ui.session import state
from ragfilter.ui.session.page_run import PageRun
from ragfilter.ui.tune import tuning_map


@problems.show_errors(retry=True)
def draw(page_run: PageRun) -> None:
    """Draw the bar and the suggestion, and below it the map for exploring by hand."""
    if not page_run.ready:
        problems.draw_empty(page_run, None)
        return
    problems.draw_incomplete(page_run.incomplete)
    query_set, collection = labelled_sets.chosen_set(page_run), page_run.collection
    labels = query_set.measurable
    assert collection is not None
    elsewhere = learned_elsewhere(page_run.settings, Fit(collection.name, collection.embedder, collection.space))
    with elements.row("tune-bar", "bottom"):
        labelled_sets.choose(query_set)
        request = draw_bar(page_run, labels, elsewhere=bool(elsewhere))
    labelled_sets.explain(query_set)
    if elsewhere:
        elements.aside(f"{elsewhere} Recalibrate to derive them again.")
    if labels is None:
        _carried_over(page_run)
        if elements.button("Label questions", "tune-label", icon="edit_note"):
            state.session().labelling = True
            st.switch_page("pages/evaluate.py")
        return
    if page_run.settings.judge.enabled:
        elements.empty("The judge is on, and tuning cannot replay LLM answers.", "Switch it off to tune the rest.")
        return
    elements.aside(*wording.about_labels(labels))
    job: Job[Suggestion] | None = page_run.resources.jobs.find(_key(page_run, labels, request))
    if (suggestion := jobs.wait_for_result(job, "tuning", "Gathering", stop=tuning_map.STOP)) is not None:
        _draw(suggestion, page_run, labels)
    else:
        elements.empty(
            f"Suggest settings from {counted(len(labels.labelled), 'labelled question')}.",
            "You see their gain on held-out questions, the changes and the losses. This can take a few minutes.",
        )
        tuning_map.warn(page_run.settings, labels)
    with st.expander("Explore by hand", key="by-hand", on_change="rerun") as by_hand:
        if by_hand.open:
            tuning_map.explore(page_run, labels)


TARGETS: Mapping[Literal["f1", "f2", "tokens"], str] = {"f1": "F1", "f2": "F2", "tokens": "fewest tokens"}
BEST = "the best of all"


@dataclass(frozen=True, slots=True)
class TuningRequest:
    """The target of tuning, and whether to try settings that rerank."""

    target: Target
    rerank: bool


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What tuning found for the settings `before`, named `called`, with the pools that it used.
    `recalibrates` says that it recalibrated."""

    tuning: Tuning
    before: Settings
    called: str
    pools: Mapping[str, Pool]
    recalibrates: bool = False
    known: dict[Settings, pd.DataFrame] = field(default_factory=dict)

    def losses(self, after: Settings, labels: Labels, user: User) -> pd.DataFrame:
        """The questions that keep fewer relevant chunks than before. Raises SettingsError if the settings before do not
        apply here."""
        if after not in self.known:
            self.known[after] = changes(self.pools, labels.qrels, self.before, after, user)
        table = self.known[after]
        return table[table["lost"] > table["won"]]


def draw_bar(page_run: PageRun, labels: Labels | None, *, elsewhere: bool) -> TuningRequest:
    """Draw the buttons, and what to tune for. Starts tuning if a button was pressed. `elsewhere`: labels of another
    collection or model chose the settings."""
    about = (
        "F1 weighs precision and recall alike, F2 counts recall twice. Fewest tokens looks for the shortest context at "
        "a recall that you set."
    )
    figure = elements.select("Tune for", TARGETS, "tune-for", width=150, help=about)
    recall = 0.0
    if figure == "tokens":
        about = "The mean share of the relevant chunks that must stay."
        recall = _share("Recall", 0.05, 0.7, 0.05, "tune-recall", about)
    about = "Also tries settings that rerank, which takes most of the time."
    rerank = st.toggle("Try reranking", True, key="tune-rerank", persist_state="session", help=about)
    request = TuningRequest(Target(figure, recall), rerank)
    look, judged = "secondary" if elsewhere else "primary", page_run.settings.judge.enabled
    about = (
        "Tries every strategy by cross-validation, and learns from the labels. Nothing changes until you apply the "
        "result."
    )
    none = labels is None or judged
    pressed = elements.button("Suggest settings", "suggest", icon="auto_awesome", type=look, disabled=none, about=about)
    session, recorded = state.session(), any(page_run.settings.get(path) for path in RECORDS)
    recalibrates, session.recalibrate = session.recalibrate, False
    asked = page_run.resources.bench.labels.queries(session.collection, ASKED) if labels is None else {}
    if recorded:
        about = (
            "After a change of model, reranker, chunking or corpus: tunes again and compares with your current "
            "settings, even if they no longer apply. Without labels, carries thresholds over, using the questions "
            "asked on Inspect."
        )
        look, none = "primary" if elsewhere else "secondary", (labels is None and not asked) or judged
        recalibrates |= elements.button(
            "Recalibrate", "recalibrate", icon="sync", type=look, disabled=none, about=about
        )
    if labels is not None and (pressed or recalibrates):
        _begin(page_run, labels, request, recalibrates=recalibrates)
    elif recalibrates and recorded and asked and not judged:
        _carry_over(page_run, asked)
    return request


def _share(label: str, low: float, value: float, step: float, key: str, about: str) -> float:
    """Draw a box for a share of up to 1, kept for the session."""
    return st.number_input(label, low, 1.0, value, step, key=key, persist_state="session", width=110, help=about)


def _carry_over(page_run: PageRun, asked: Mapping[str, str]) -> None:
    """Start carrying thresholds over by these questions, which have no labels."""
    backends = page_run.resources.backends(state.session().collection)
    settings, user = page_run.settings, state.user()

    def work(job: Job[tuple[Settings, Settings]]) -> tuple[Settings, Settings]:
        wide = wide_settings(settings, rerank=False)
        return settings, carried(settings, completed_pools(asked, wide, backends, user, progress=job.step).values())

    page_run.resources.jobs.start(user, _key(page_run, None, None), work, again=True)


def _carried_over(page_run: PageRun) -> None:
    """Draw the carried-over thresholds or, if they were not requested, what that needs."""
    job: Job[tuple[Settings, Settings]] | None = page_run.resources.jobs.find(_key(page_run, None, None))
    carried = jobs.wait_for_result(job, "carrying", "Gathering", stop=tuning_map.STOP)
    if carried is None:
        if any(page_run.settings.get(path) for path in RECORDS):
            then = "Without labels, it estimates thresholds from questions asked on Inspect."
            elements.empty("Recalibrate works best with labelled questions.", then)
        else:
            elements.empty("No labels chose these thresholds, so they stay.", "Label questions, then tune.")
        return
    with st.container(key="suggestion", border=True, gap="small"):
        elements.draw(f'<p class="rf-lead">{elements.text(wording.GUESS)}</p>')
        _changes(*carried, page_run.settings)
        _apply(page_run.settings, carried[1])


def _changes(before: Settings, after: Settings, current: Settings) -> None:
    """Draw the changes, from `before` if they are applied, and the limits that tuning leaves alone."""
    applied = not after.changed_from(current)
    if lines := wording.changed(before if applied else current, after):
        elements.draw_changes(lines)
    notes = ("These are the current settings." if applied else "", wording.untouched_limits(after))
    elements.aside(*filter(None, notes))


def _apply(before: Settings, after: Settings, *, worse: bool = False, better: bool = True) -> None:
    """Draw the button that applies the settings, unless they are the current ones; the main one if they are better."""
    if changed := after.changed_from(before):
        label, icon = ("Apply anyway", "") if worse else ("Apply", "check")
        look = "primary" if better and not worse else "secondary"
        act, about = state.apply_suggestion, "Applies these settings. Undo restores the previous ones."
        elements.button(label, "apply-tuning", act, changed, icon=icon, type=look, about=about)


def _begin(page_run: PageRun, labels: Labels, request: TuningRequest, *, recalibrates: bool) -> None:
    """Start tuning, or recalibrating, unless it is already running. Replaces an earlier
    suggestion, which was compared with the settings of that time."""
    backends = page_run.resources.backends(state.session().collection)
    settings, user, profile = page_run.settings, state.user(), state.session().profile
    called = state.settings_label()

    def work(job: Job[Suggestion]) -> Suggestion:
        def replayed(done: int, total: int) -> None:
            # After the last replay, no more steps can be counted.
            job.step(done, total, "Replaying") if done < total else job.step(0, 0, "Comparing strategies")

        tuning, pools = tune_questions(
            labels,
            start(settings, profile) if recalibrates else settings,
            backends,
            user,
            target=request.target,
            rerank=request.rerank or (recalibrates and always_reranks(settings.quality)),
            replaces=settings if recalibrates else None,
            gathered=job.step,
            replayed=replayed,
        )
        return Suggestion(tuning, settings, called, pools, recalibrates=recalibrates)

    page_run.resources.jobs.start(user, _key(page_run, labels, request), work, again=True)


def _draw(suggestion: Suggestion, page_run: PageRun, labels: Labels) -> None:
    tuning = suggestion.tuning
    with st.container(key="suggestion", border=True, gap="small"):
        head = st.empty()
        with elements.row("apply-bar", "bottom"):
            about = (
                "The best strategy, or one that you prefer even if others score higher. For example, only calibrated "
                "lets you set the recall."
            )
            name = st.selectbox("Strategy", [BEST, *tuning.strategies], key="tuned-strategy", width=200, help=about)
            chosen = tuning if name == BEST else tuning.only(name)
            after = chosen.tuned.settings
            about = "The largest loss that counts as no worse. Larger ones are not applied."
            given = ("Margin", 0.0, MARGIN, 0.01, "tuned-margin", about)
            margin = _share(*given) if suggestion.recalibrates else None
            comparable = margin is None and not chosen.seen and tuning.before["recall"].mean >= tuning.target.recall
            worse = comparable and chosen.gain(chosen.tuned.gain_over_before).mean < 0
            ways = (tuning, *map(tuning.only, tuning.strategies))
            applied = next((way for way in ways if not way.tuned.settings.changed_from(page_run.settings)), None)
            if applied is not None and tuning.target.figure != "tokens":
                worse = chosen.tuned.means[tuning.target.figure].mean < applied.tuned.means[tuning.target.figure].mean
            gained = chosen.gain(chosen.tuned.gain if chosen.seen else chosen.tuned.gain_over_before)
            if margin is None or chosen.loses_at_most(margin):
                better = margin is not None or gained.shows_gain
                _apply(page_run.settings, after, worse=worse, better=better)
        with head.container(gap="small"):
            target = tuning.target.figure
            current = not suggestion.before.changed_from(page_run.settings)
            previous = "your settings" if current else f"the previous settings ({suggestion.called})"
            if margin is None:
                elements.draw(f'<p class="rf-lead">{elements.text(wording.headline(chosen, previous))}</p>')
                means = {f"Before: {suggestion.called}": tuning.before, "After (held out)": chosen.tuned.means}
                if tuning.before == chosen.tuned.means:
                    means = {suggestion.called: tuning.before}
                rows = [{"variant": word, **flat(each)} for word, each in means.items()]
                measuring.draw_table(rows, target, key="tuned-figures")
            else:
                elements.draw(f'<p class="rf-lead">{elements.text(wording.no_worse(chosen, margin))}</p>')
                columns = zip(wording.SIDES, zip(*wording.sides(chosen), strict=True), strict=True)
                st.dataframe(dict(columns), key="recalibrated-figures", hide_index=True)
                if note := wording.stands_in(chosen):
                    elements.aside(note)
            _changes(suggestion.before, after, page_run.settings)
        # The earlier settings may not apply here, as the card says.
        with suppress(SettingsError):
            _losses(suggestion.losses(after, labels, state.user()), labels)
        _more(chosen)


def _losses(lost: pd.DataFrame, labels: Labels) -> None:
    if lost.empty:
        elements.aside("No question would keep fewer relevant chunks than before.")
        return
    label = f"{counted(len(lost), 'question')} would keep fewer relevant chunks"
    with st.expander(label, key="tuned-losses"):
        names = {"id": "question", "lost": "relevant lost", "before": "kept before", "after": "kept after"}
        questions = lost["id"].map(labels.queries)
        st.dataframe(lost.assign(id=questions)[[*names]].rename(columns=names), hide_index=True)


def _more(tuning: Tuning) -> None:
    """Draw each strategy tuned alone, and the caveats about the figures."""
    with st.expander("Every strategy, and how sure the figures are", key="tuned-alone"):
        target = tuning.target.figure
        measuring.draw_table(wording.compared_rows(tuning), target, key="tuned-alone-figures", every=True)
        notes = (
            f"{counted(tuning.queries, 'question')}, {tuning.folds} folds, {tuning.candidates} candidates.",
            f"{wording.verdict(tuning)}: {wording.gain_in(target, tuning.tuned.gain)}.",
            wording.unlabelled(flat(tuning.tuned.means)),
            *(
                f"Calibrated against {name}: {wording.gain_in(target, gain)}."
                for name, gain in tuning.over_strategies.items()
            ),
            *wording.notes(tuning),
        )
        elements.aside(*filter(None, notes))


def _key(page_run: PageRun, labels: Labels | None, request: TuningRequest | None) -> tuple[object, ...]:
    """The key of a suggestion or, without labels, of carried-over thresholds. It leaves out the
    settings of cutoff and quality, so applying the suggestion does not discard it."""
    session, user, labelled = state.session(), state.user(), labels and labels_version(labels)
    version = page_run.resources.bench.version_seen(session.collection, user)
    settings = str(page_run.settings.model_dump(exclude={"cutoff", "quality"}))
    return "tuning", session.collection, version, labelled, user, settings, session.profile, request
