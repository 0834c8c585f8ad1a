"""Two settings over a query set: wins, losses and ties, and the questions that changed most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.errors import RagfilterError
from ragfilter.evaluate import told
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.matching import Duel, Found, duel, find
from ragfilter.evaluate.variants import IN_FORCE
from ragfilter.stores.runs import Run
from ragfilter.text.numbers import counted
from ragfilter.ui.compare import sides as choosing
from ragfilter.ui.compare.sides import Side
from ragfilter.ui.evaluate import page as evaluation
from ragfilter.ui.evaluate import plots
from ragfilter.ui.evaluate import running as measuring
from ragfilter.ui.look import html, numbers
from ragfilter.ui.main import grid, problems
from ragfilter.ui.session import reports, state
from ragfilter.ui.session.visit import Visit

GOES_ON = "compare-measuring"


def draw(
    visit: Visit, sides: tuple[Side, Side], name: str, runs: Mapping[int, Run]
) -> None:  # fmt: skip
    """Everything of a query set, once both sides are measured."""
    given, why = evaluation.labelled(visit, name)
    if given is None:
        said = f"<b>{html.text(why.message)}</b> {html.text(why.remedy)}" if why else ""
        html.draw(f'<p class="rf-empty">{said}</p>')
        return
    try:
        evaluation.draw_llm_note(visit)
        found = [_found(side, visit, name, given, runs) for side in sides]
        missing = [side for side, where in zip(sides, found, strict=True) if where is None]
        if missing:
            _measure(missing, visit, name, given)
            return
        made = _duel([each for each in found if each is not None], visit)
    except RagfilterError as error:
        problems.show(error, retry=False)
        return
    measured = [each.run for each in found if each is not None]
    names = (sides[0].called, sides[1].called)
    for note in told.between(measured, made, (names[0].settings, names[1].settings)):
        html.draw(f'<p class="rf-aside">{html.text(note)}</p>')
    if not made.paired.queries:
        html.draw(
            '<p class="rf-empty"><b>The two sides have no questions in common.</b> Choose runs '
            "over the same query set.</p>"
        )
        return
    prices = visit.resources.prices
    _told(made, prices)
    reports.button(
        reports.of_duel(made, names, measured, prices),
        "ragfilter-compare.html",
        key="compare-set-report",
    )
    _changes(made)


def _found(
    side: Side, visit: Visit, name: str, given: Labels, runs: Mapping[int, Run]
) -> Found | None:
    if side.run is not None:
        return Found(side.run, IN_FORCE)
    plan = measuring.plan(visit, name, given, side.profile, side.settings)
    return next(
        (each for each in find(side.settings, plan, runs.values()) if _holds(each, visit)), None
    )


def _holds(found: Found, visit: Visit) -> bool:
    records = measuring.load(found.run.id, visit.resources).records
    return all(found.variant in record.kept for record in records)


def _duel(found: Sequence[Found], visit: Visit) -> Duel:
    a, b = (measuring.load(each.run.id, visit.resources).records for each in found)
    return duel(a, found[0].variant, b, found[1].variant)


def _measure(missing: Sequence[Side], visit: Visit, name: str, given: Labels) -> None:
    """Offer to measure what no run holds yet; one run after the other."""
    letters = " and ".join(dict.fromkeys(side.letter.upper() for side in missing))
    said = counted(len(given.qrels), "question")
    html.draw(
        f'<p class="rf-empty"><b>{letters} {"is" if len(missing) == 1 else "are"} not measured '
        f"yet</b> over these questions.</p>"
    )
    pressed = st.button(
        f"Measure {letters} over {said}",
        key="compare-measure",
        type="primary",
        icon=":material/play_arrow:",
        help="Measures these settings, with every strategy and profile for comparison, and saves "
        "the result as a run. A stopped run is continued.",
    )
    if not (pressed or st.session_state.pop(GOES_ON, False)):
        return
    side = missing[0]
    run = measuring.begin_with(visit, name, given, side.profile, side.settings)
    failed = measuring.watch(run, visit.resources)
    if failed is not None:
        problems.show(failed, retry=False)
        return
    st.session_state[GOES_ON] = len(missing) > 1
    st.rerun()


def _told(made: Duel, prices: Prices | None) -> None:
    paired, gain = made.paired, made.paired.gain
    sure = "B is better" if gain.low > 0 else "B is worse" if gain.high < 0 else "not told apart"
    facts = [
        (f"F1 of B minus A: {sure}", numbers.signed(gain.mean), told.ends(gain)),
        ("B better", str(paired.wins), ""),
        ("B worse", str(paired.losses), ""),
        ("the same", str(paired.ties), ""),
        ("paired permutation test", numbers.p_value(paired.p_value), ""),
        ("chunks, A and B", f"{made.mean('chunks', 0):.1f} → {made.mean('chunks', 1):.1f}", ""),
        ("tokens, A and B", f"{made.mean('tokens', 0):,.0f} → {made.mean('tokens', 1):,.0f}", ""),
    ]  # fmt: skip
    if prices is not None:
        costs = [
            numbers.money(prices.of_thousand(made.mean("tokens", side)), prices.currency)
            for side in (0, 1)
        ]
        facts.append(("prompts of 1,000 questions, A and B", " → ".join(costs), ""))
    body = "".join(
        f'<div class="rf-fact"><span>{html.text(word)}</span><b>{html.text(value)} '
        f"<i>{html.text(more)}</i></b></div>"
        for word, value, more in facts
    )
    html.draw(f'<section class="rf-strip" aria-label="Comparison">{body}</section>')
    worst = made.worst
    if worst is None:
        html.draw('<p class="rf-aside">No question is worse with B.</p>')
        return
    with st.container(key="compare-worst", horizontal=True, vertical_alignment="center"):
        html.draw(
            f'<p class="rf-verdict">Largest loss: <b>{numbers.signed(worst.gain)}</b> '
            f"{html.text(worst.query)}</p>"
        )
        st.button(
            "Open",
            key="compare-open-worst",
            icon=":material/arrow_forward:",
            on_click=_open,
            args=(worst.query,),
            help="Shows this question under both settings.",
        )


def _changes(made: Duel) -> None:
    """The questions that changed, those that changed most first."""
    rows = [each for each in made.changes if each.gain or len(set(each.chunks)) > 1]
    if not rows:
        html.draw('<p class="rf-empty"><b>No question changes.</b> Choose another side.</p>')
        return
    with st.container(key="compare-gains"):
        st.plotly_chart(
            plots.gains(made.changes, dark=st.context.theme.type == "dark"),
            key="compare-gains-chart",
            theme=None,
            config={"displayModeBar": False},
            alt="F1 gain or loss of every question, largest gain first",
        )
    table = pd.DataFrame(
        {
            "question": [each.query for each in rows],
            "ΔF1": [each.gain for each in rows],
            "F1 A": [each.f1[0] for each in rows],
            "F1 B": [each.f1[1] for each in rows],
            "chunks A": [each.chunks[0] for each in rows],
            "chunks B": [each.chunks[1] for each in rows],
            "tokens A": [each.tokens[0] for each in rows],
            "tokens B": [each.tokens[1] for each in rows],
        }
    )
    number = st.column_config.NumberColumn
    config = {"question": st.column_config.TextColumn("question", width=420)}
    config["ΔF1"] = number("ΔF1", format="%+.3f", help="F1 of B minus F1 of A.")
    config |= {name: number(name, format="%.3f") for name in ("F1 A", "F1 B")}
    key = grid.key_of("compare-questions", (each.id for each in rows))
    with st.container(key="table"):
        st.dataframe(
            table,
            key=key,
            hide_index=True,
            height=min(36 + 32 * len(table) + 3, 460),
            row_height=32,
            on_select=partial(_pick, key, [each.query for each in rows]),
            selection_mode=("single-row", "single-cell"),
            column_config=config,
        )


def _pick(key: str, queries: list[str]) -> None:
    row = grid.clicked(st.session_state[key], len(queries))
    if row is not None:
        _open(queries[row])


def _open(query: str) -> None:
    """The question in the view of one."""
    choosing.put_query_set("")
    state.ask(query)
