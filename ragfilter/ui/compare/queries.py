"""Two settings over a query set: wins, losses and ties, and the questions that changed most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate import query_sets, wording
from ragfilter.evaluate.frame import most_changed
from ragfilter.evaluate.runs import ComparedRuns, RunRow, compare, find
from ragfilter.publish.reports import of_runs
from ragfilter.stores.runs import Plan, Run
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.compare import sides as choosing
from ragfilter.ui.compare.sides import ComparedSide
from ragfilter.ui.kit import grid, share
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.runs.measuring import ChosenSet
from ragfilter.ui.look import html
from ragfilter.ui.look.html import Fact
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.visit import Visit

GOES_ON = "compare-measuring"
COLUMNS = {
    "query": "question", "gain": "ΔF1", "f1_a": "F1 A", "f1_b": "F1 B", "kept_a": "chunks A",
    "kept_b": "chunks B", "tokens_a": "tokens A", "tokens_b": "tokens B",
}  # fmt: skip
"""The columns of the questions, by the figure they show."""


def draw(
    visit: Visit, sides: tuple[ComparedSide, ComparedSide], name: str, runs: Mapping[int, Run]
) -> None:
    """Draw the comparison over a query set, once both sides are measured. Raises StoreError,
    InputError."""
    asked, resources = measuring.read(visit, name), visit.resources
    rows = [
        RunRow(side.run) if side.run is not None
        else _in_sides(side, sides, resources) if asked.given is None
        else _row(
            side, measuring.plan(asked, side.profile, side.settings), runs.values(), resources
        )
        for side in sides
    ]  # fmt: skip
    missing = [side for side, where in zip(sides, rows, strict=True) if where is None]
    if missing:
        measuring.explain(asked)
        if asked.given is not None:
            _measure(missing, asked, len(asked.given.qrels))
        return
    a, b = (row for row in rows if row is not None)
    titles = dict.fromkeys(row.run.plan.query_set for row in (a, b))
    if list(titles) != [query_sets.title(name, llm=measuring.llm())]:
        html.aside(f"Saved runs are compared over their own questions: {' and '.join(titles)}.")
    compared = compare(
        measuring.load(a.run.id, resources), measuring.load(b.run.id, resources), resources.bench,
        names=(a.variant, b.variant), settings=(sides[0].settings, sides[1].settings),
    )  # fmt: skip
    for note in compared.notes:
        html.aside(note)
    if compared.sides.empty:
        html.empty(
            "The two sides have no questions in common.", "Choose runs over the same query set."
        )
        return
    _facts(compared, resources.prices)
    share.report_button(
        partial(of_runs, compared, (sides[0].called, sides[1].called), resources.prices),
        "ragfilter-compare.html",
        key="compare-set-report",
    )
    _changes(compared)


def _in_sides(
    side: ComparedSide, sides: Iterable[ComparedSide], resources: Resources
) -> RunRow | None:
    """Where this side was measured by a run that is the other side: its questions may be in files,
    and are then no query set."""
    runs = (each.run for each in sides if each.run is not None)
    return next((row for run in runs if (row := _row(side, run.plan, (run,), resources))), None)


def _row(
    side: ComparedSide, plan: Plan, runs: Iterable[Run], resources: Resources
) -> RunRow | None:
    """The row of a complete run under this plan that measured a side."""
    for row in find(side.settings, plan, runs):
        records = measuring.load(row.run.id, resources).records
        if sum(record.variant == row.variant for record in records) == row.run.done:
            return row
    return None


def _measure(missing: Sequence[ComparedSide], asked: ChosenSet, count: int) -> None:
    """Offer to measure the sides that no run covers yet, one after the other."""
    letters = " and ".join(dict.fromkeys(side.letter.upper() for side in missing))
    verb = "is" if len(missing) == 1 else "are"
    html.empty(f"{letters} {verb} not measured yet over these questions.")
    pressed = st.button(
        f"Measure {letters} over {counted(count, 'question')}",
        key="compare-measure",
        type="primary",
        icon=":material/play_arrow:",
        help="Measures these settings, with every strategy and profile for comparison, and saves "
        "the result as a run. A stopped run is continued.",
    )
    if not (pressed or st.session_state.pop(GOES_ON, False)):
        return
    side = missing[0]
    run = measuring.begin(asked, side.profile, side.settings)
    if measuring.watch(run, asked.resources):
        st.session_state[GOES_ON] = len(missing) > 1
        st.rerun()


def _facts(compared: ComparedRuns, prices: Prices | None) -> None:
    paired, gain = compared.paired, compared.paired.gain
    sure = (
        "B is better" if gain.shows_gain else "B is worse" if gain.shows_loss else "not told apart"
    )
    sure = "tuned on labels" if any(compared.in_sample) else sure
    chunks, tokens = (
        (compared.mean(figure, "a"), compared.mean(figure, "b")) for figure in ("kept", "tokens")
    )
    facts: list[Fact] = [
        (f"F1 of B minus A: {sure}", numbers.signed(gain.mean), wording.ends(gain)),
        ("B better", str(paired.wins), ""),
        ("B worse", str(paired.losses), ""),
        ("the same", str(paired.ties), ""),
        ("paired permutation test", numbers.p_value(paired.p_value), ""),
        ("chunks, A and B", f"{chunks[0]:.1f} → {chunks[1]:.1f}", ""),
        ("tokens, A and B", f"{tokens[0]:,.0f} → {tokens[1]:,.0f}", ""),
    ]
    if prices is not None:
        costs = [numbers.money(prices.of_thousand(each), prices.currency) for each in tokens]
        facts.append(("prompts of 1,000 questions, A and B", " → ".join(costs), ""))
    html.facts("Comparison", facts)
    worst = compared.worst
    if worst is None:
        html.aside("No question is worse with B.")
        return
    with st.container(key="compare-worst", horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"Largest loss: **{numbers.signed(worst['gain'])}** {literal(worst['query'])}",
            width="content",
        )
        st.button(
            "Open",
            key="compare-open-worst",
            icon=":material/arrow_forward:",
            on_click=_open,
            args=(worst["query"],),
        )


def _changes(compared: ComparedRuns) -> None:
    """Draw the questions that changed, most changed first."""
    sides = most_changed(compared.sides)
    sides = sides[(sides["gain"] != 0) | (sides["kept_a"] != sides["kept_b"])]
    if sides.empty:
        html.empty("No question changes.", "Choose another side.")
        return
    number = st.column_config.NumberColumn
    config = {
        "question": st.column_config.TextColumn(width=420),
        "ΔF1": number(format="%+.3f", help="F1 of B minus F1 of A."),
        **{name: number(format="%.3f") for name in ("F1 A", "F1 B")},
    }
    table = sides[[*COLUMNS]].rename(columns=COLUMNS)
    row = grid.picked(table, sides["id"], name="compare-questions", columns=config, height=460)
    if row is not None:
        _open(sides["query"].iloc[row])
        st.rerun()


def _open(query: str) -> None:
    """Open the question in the view of one question."""
    choosing.put_query_set("")
    state.ask(query)
