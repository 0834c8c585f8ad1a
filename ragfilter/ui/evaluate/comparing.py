"""The settings of a run against another row, or another run: wins, losses, ties, and the test."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from ragfilter.evaluate.paired import Paired, compare, scores_of
from ragfilter.evaluate.variants import IN_FORCE, UNFILTERED
from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate import opening, running
from ragfilter.ui.evaluate.measured import Measured, run_label
from ragfilter.ui.look import html
from ragfilter.ui.session.visit import Visit


def draw(measured: Measured, others: Mapping[int, Run], visit: Visit) -> None:
    """Choose what to compare with, and the outcome."""
    rows = [v.name for v in measured.variants if v.group not in ("added", "left out", "settings")]
    choices: list[str | int] = [*rows, *(i for i in others if i != measured.run.id)]
    chosen = st.selectbox(
        "Compare with",
        choices,
        index=choices.index(UNFILTERED),
        key=f"compare-{measured.run.id}",
        persist_state="session",
        format_func=lambda each: run_label(others[each]) if isinstance(each, int) else each,
        width=360,
        help="A row of this run, or the settings of another run. The run above is what is judged.",
    )
    if isinstance(chosen, int):
        other = running.load(chosen, visit.resources)
        before = scores_of(other.records, IN_FORCE)
    else:
        before = scores_of(measured.records, chosen or UNFILTERED)
    made = compare(before, scores_of(measured.records, IN_FORCE))
    if not made.queries:
        html.draw(
            '<p class="rf-empty"><b>The two runs have no question in common.</b> Choose a run over '
            "the same query set.</p>"
        )
        return
    _told(made, measured)
    _changes(made, measured)


def _told(made: Paired, measured: Measured) -> None:
    gain = made.gain
    facts = [
        ("better", str(made.wins), ""),
        ("worse", str(made.losses), ""),
        ("the same", str(made.ties), ""),
        ("mean F1", f"{gain.mean:+.3f}", f"{gain.low:+.3f} to {gain.high:+.3f}"),
        ("paired permutation test", f"p {made.p_value:.3f}", ""),
    ]
    if made.worst is not None and made.worst[1] < 0:
        text = {record.id: record.query for record in measured.records}[made.worst[0]]
        facts.append(("severest loss", f"{made.worst[1]:+.3f}", text))
    body = "".join(
        f'<div class="rf-fact"><span>{html.text(word)}</span><b>{html.text(value)} '
        f"<i>{html.text(more)}</i></b></div>"
        for word, value, more in facts
    )
    html.draw(f'<section class="rf-strip" aria-label="Comparison">{body}</section>')


def _changes(made: Paired, measured: Measured) -> None:
    """The questions that changed, those that changed most first."""
    changed = {i: change for i, change in made.changes if change}
    by_id = {row.id: row for row in measured.queries}
    rows = tuple(by_id[i] for i in changed)
    if not rows:
        html.draw('<p class="rf-empty"><b>No question changes.</b> Compare with another row.</p>')
        return
    table = pd.DataFrame(
        {
            "question": [row.query for row in rows],
            "ΔF1": list(changed.values()),
            "F1": [row.f1 for row in rows],
            "lost": [row.lost for row in rows],
            "kept": [row.kept for row in rows],
        }
    )
    with st.container(key="table"):
        opening.grid(table, rows, measured.run, gain="F1 less that of what it is compared with.")
