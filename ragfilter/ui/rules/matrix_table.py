"""What every rule does over the labelled questions, the most harmful first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.evaluate.effect import LabelledQuestions
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow, build_matrix, build_parts
from ragfilter.rules.overview import brief
from ragfilter.rules.rule import parse, place_name
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import desk, rule_effect, saving
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message
from ragfilter.ui.session.resources import ShelfSpec

MATRICES: ShelfSpec[Matrix] = ShelfSpec(4)
TITLE_WIDTH = 27
"""Characters that fit into a column of the tables, even in capitals."""


class Figure(NamedTuple):
    """A column of the matrix: how to read it from a row, and how to show it."""

    read: Callable[[RuleRow], Any]
    help: str
    format: str | None = None


FIGURES = {
    "queries": Figure(attrgetter("queries"), "Questions that retrieve a chunk with the rule."),
    "blocks": Figure(attrgetter("blocks"), "Retrieved chunks that the rule drops."),
    "passes": Figure(attrgetter("passes"), "Retrieved chunks that pass the rule."),
    "overlap": Figure(attrgetter("overlap"), "Blocks of chunks that another layer drops too."),
    "conflicts": Figure(
        lambda row: len(row.conflicts), "Blocks of chunks that are labelled relevant."
    ),
    "precision": Figure(
        attrgetter("precision"), "Share of its blocks that are not labelled relevant.", "%.2f"
    ),
    "ΔF1 without": Figure(
        attrgetter("delta_f1"),
        "Gain of the mean F1 without the rule. Above 0, the rule does harm.",
        "%+.4f",
    ),
    "Δrecall without": Figure(
        attrgetter("delta_recall"), "Gain of the mean recall without the rule.", "%+.4f"
    ),
    "fires": Figure(
        attrgetter("fires"), "never: it blocks no retrieved chunk. always: it lets none pass."
    ),
}
HARM = ("conflicts", "ΔF1 without")
"""What comes first, since a narrow window shows only the first columns."""
WIDTHS = {"conflicts": 66, "ΔF1 without": 84, "Δrecall without": 104}
"""In pixels, so that a window 900 wide shows the harm of a rule."""


def figures(rows: Sequence[RuleRow | None], names: Iterable[str] = FIGURES) -> dict[str, list[Any]]:
    """The named figures of these rows, None where there is no row."""
    return {n: [None if row is None else FIGURES[n].read(row) for row in rows] for n in names}


def columns() -> dict[str, Any]:
    """The figures as columns of a table."""
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    return {
        name: text(help=figure.help)
        if name == "fires"
        else number(width=WIDTHS.get(name), help=figure.help, format=figure.format)
        for name, figure in FIGURES.items()
    }


def measured(work: Desk) -> Matrix | None:
    """What was measured last for these settings and questions, also before rules changed."""
    key = work.collection, work.user, work.settings, work.mark
    return work.resources.shelf(MATRICES).get(key)


def _matrix(work: Desk, questions: LabelledQuestions) -> Matrix:
    """The matrix for the current rules."""

    def build() -> Matrix:
        with st.spinner("Replaying the questions without each rule …"):
            return build_matrix(
                questions.pools, questions.qrels, work.chunks.values(), questions.settings,
                questions.user,
            )  # fmt: skip

    of, shelf = (work.user, work.settings, work.mark), work.resources.shelf(MATRICES)
    matrix = shelf.of((*work.key, *of), build)
    return shelf.put((work.collection, *of), matrix)


def _questions(work: Desk) -> LabelledQuestions | None:
    """The labelled questions, or without labels those asked."""
    every = rule_effect.gathered(work)
    if every is None or work.labels is None:
        return every
    return replace(every, pools={i: p for i, p in every.pools.items() if i in every.qrels})


def draw(work: Desk) -> None:
    """Draw the matrix of the labelled questions, or without labels of those asked, and one rule by
    group and term."""
    if not rule_effect.available(work):
        return
    questions = _questions(work)
    if questions is None:
        rule_effect.wait(work)
        return
    matrix = _matrix(work, questions)
    if not matrix.rules:
        html.empty("No rules yet.", "Write one under Chunks, or apply some under Findings.")
        return
    over = (
        f"{counted(matrix.queries, 'question')} asked"
        if work.labels is None
        else f"{counted(matrix.queries, 'labelled question')}, the most harmful first"
    )
    waiting = f"; {matrix.waiting:,} lack rerank scores" if matrix.waiting else ""
    html.aside(f"{numbers.count(len(matrix.rules))} rules over {over}{waiting}.")
    _rules(work, matrix.rules, questions)
    if matrix.crowding:
        html.aside("Chunks without a rule that labelled questions often keep wrongly")
        table = {
            "chunk": work.titles(row.chunk_id for row in matrix.crowding),
            "kept wrongly": [row.kept for row in matrix.crowding],
        }
        st.dataframe(table, key="matrix-crowding", hide_index=True, height="content")


@st.fragment
def _rules(work: Desk, rules: Sequence[RuleRow], questions: LabelledQuestions) -> None:
    """Draw the rules, and the selected one by group and term."""
    frame = _frame(
        "chunk", chunks(work, [row.chunk_ids for row in rules]), rules,
        [brief(row.rule) for row in rules], id=[row.chunk_ids[0] for row in rules],
    )  # fmt: skip
    selected = grid.picked(
        frame, (row.chunk_ids[0] for row in rules), name="matrix", columns=_columns("chunk"),
        height=400,
    )  # fmt: skip
    if selected is None:
        html.aside("Click a rule to see what each of its groups and terms does.")
        return
    row = rules[selected]
    html.button(
        "Edit", "matrix-edit", desk.edit, row.chunk_ids[0], about="Opens the chunk under Chunks."
    )
    try:
        rule = parse(row.rule)
    except RuleError as error:
        st.error(message(saving.said(error)))
        return
    parts = build_parts(
        row.rule, questions.pools, questions.qrels, work.chunks.values(), questions.settings,
        questions.user,
    )  # fmt: skip
    places = [part.place for part in parts]
    names, terms = map(place_name, places), [rule.written(place) for place in places]
    st.dataframe(
        _frame("part", [*names], parts, terms), key="matrix-parts", hide_index=True,
        placeholder="–", column_config=_columns("part"),
    )  # fmt: skip
    if row.conflicts:
        html.aside("Questions whose relevant chunk the rule blocks")
        table = {
            "question": [questions.pools[query_id].query for query_id, _ in row.conflicts],
            "chunk": work.titles((chunk_id for _, chunk_id in row.conflicts), TITLE_WIDTH),
        }
        st.dataframe(table, key="matrix-conflicts", hide_index=True, height="content")


def chunks(work: Desk, groups: Sequence[Sequence[str]], width: int = TITLE_WIDTH) -> list[str]:
    """Groups of chunks, each named after its first."""
    firsts, more = [ids[0] for ids in groups], " and {} more"
    alone, first = work.titles(firsts, width), work.titles(firsts, width - len(more))
    return [
        first[at] + more.format(len(ids) - 1) if len(ids) > 1 else alone[at]
        for at, ids in enumerate(groups)
    ]


def _frame(
    first: str, names: Sequence[str], rows: Sequence[RuleRow], rules: Sequence[str],
    **more: Sequence[str],
) -> pd.DataFrame:  # fmt: skip
    harm = figures(rows, (*HARM, "Δrecall without"))
    return pd.DataFrame({first: names, **harm, "rule": rules, **figures(rows), **more})


def _columns(first: str) -> dict[str, Any]:
    # Limit the widths, so that a long group does not push the figures out of view.
    text = st.column_config.TextColumn
    return {first: text(width=200), "rule": text(width="medium"), **columns()}
