"""Settings suggested by cross-validation: before, after, and applied only by a click."""

from __future__ import annotations

from threading import Event

import streamlit as st

from ragfilter.errors import InputError, RagfilterError
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.measuring import labels_version
from ragfilter.evaluate.tune import Means, Tuning, gathering, tune
from ragfilter.ui.look import html, numbers
from ragfilter.ui.main import problems
from ragfilter.ui.session import background, state
from ragfilter.ui.session.visit import Visit
from ragfilter.ui.tune.gathered import Gathered, Step, Stopped, Work, gather, wait


def begin(visit: Visit, given: Labels) -> None:
    """Begin to tune, unless that is done or under way."""
    key = _key(visit, given)
    shelf = visit.resources.gathered
    known = shelf.get(key)
    if len(given.qrels) < 2:
        problems.show(
            InputError(
                "Cross-validation takes at least two labelled questions.",
                remedy="Label more questions on Inspect.",
            ),
            retry=False,
        )
        return
    if known is not None and not (known.job.done and known.job.future.exception()):
        return
    backends = visit.resources.backends(st.session_state.collection)
    settings, user = visit.settings, state.user()
    progress: list[tuple[int, int, str]] = []

    def work(stop: Event) -> Gathered | Tuning:
        def step(what: str) -> Step:
            def told(done: int, total: int) -> None:
                progress.append((done, total, what))
                if stop.is_set():
                    raise Stopped

            return told

        wide = gathering(settings, rerank=False)
        found = gather(given, wide, backends, user, stop, step("Gathering"))
        return tune(
            found.pools, given.qrels, settings, user, rerank=False, progress=step("Replaying")
        )

    shelf.put(key, Work(background.start(work), progress))


def draw(visit: Visit, given: Labels) -> None:
    """The suggestion, where one was asked for."""
    work = visit.resources.gathered.get(_key(visit, given))
    if work is None:
        return
    wait(work)
    try:
        made = work.job.value()
    except Stopped:
        return
    except RagfilterError as error:
        problems.show(error, retry=False)
        return
    assert isinstance(made, Tuning)
    _draw(made, visit)


def _draw(made: Tuning, visit: Visit) -> None:
    rows = (
        ("As before", made.before),
        (f"Best fixed k ({made.k})", made.best_fixed_k),
        ("Tuned", made.after),
        ("Oracle", made.oracle),
    )
    facts = "".join(_fact(name, means) for name, means in rows)
    gain = made.gain.of
    verdict = (
        "Tuned settings beat the best fixed k"
        if made.beats_fixed_k
        else "No settings are shown to beat the best fixed k"
    )
    changed = made.settings.changed_from(visit.settings)
    told = ", ".join(f"{path} = {value}" for path, value in changed.items())
    with st.container(key="suggestion", border=True, gap="small"):
        html.draw(f'<section class="rf-strip" aria-label="Suggestion">{facts}</section>')
        html.draw(
            f'<p class="rf-say"><b>{verdict}</b>: {_signed(gain)} over {made.queries} questions, '
            f"{made.folds}-fold cross-validation, {made.candidates} candidates."
            f"{f' Changes: {html.text(told)}.' if told else ' Nothing would change.'}</p>"
        )
        st.button(
            "Apply",
            key="apply-tuning",
            type="primary",
            icon=":material/check:",
            on_click=state.change,
            args=(changed,),
            disabled=not changed,
            help="Puts the tuned settings in force. Settings, in the sidebar, saves them as TOML.",
        )


def _fact(name: str, means: Means) -> str:
    of = means.of
    return (
        f'<div class="rf-fact"><span>{html.text(name)}</span><b>F1 {of.mean:.3f} '
        f"<i>{of.low:.3f} to {of.high:.3f}, {means.kept:.1f} chunks, "
        f"{numbers.tokens(round(means.tokens))}</i></b></div>"
    )


def _signed(interval: Interval) -> str:
    return f"F1 {interval.mean:+.3f}, 95% interval {interval.low:+.3f} to {interval.high:+.3f}"


def _key(visit: Visit, given: Labels) -> tuple[object, ...]:
    """What a suggestion holds for. Applying it is no reason to forget it, so that the settings of
    the cutoff are left out."""
    settings = visit.settings.model_dump(exclude={"cutoff", "quality"})
    version = visit.resources.bench.collection(st.session_state.collection).version
    return (
        "tuning", st.session_state.collection, version, labels_version(given), state.user(),
        str(settings), st.session_state.profile,
    )  # fmt: skip
