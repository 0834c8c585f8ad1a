"""The matrix: how rules affect labelled questions, the most harmful rule first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from ragfilter.evaluate import wording
from ragfilter.evaluate.effect import GatheredQuestions
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow, build_matrix, build_parts
from ragfilter.rules.overview import brief
from ragfilter.rules.rule import AnyRule, InvalidRule, in_words, place_name
from ragfilter.text.numbers import counted
from ragfilter.text.titles import short_title
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.rules import listed_rows

MATRICES: CacheSpec[Matrix] = CacheSpec(4)
TITLE_WIDTH, RULE_CHARS = 27, 29
"""Characters that fit into a column of the tables, even in capitals."""


class Figure(NamedTuple):
    """A column of the matrix: how to read it from a row, and how to show it."""

    read: Callable[[RuleRow], Any]
    help: str
    format: str | None = None


def _added(without: float | None) -> float | None:
    """What a rule adds: the negative of the difference that leaving it out makes."""
    return None if without is None else 0.0 - without


DROPS = {"never": "none", "sometimes": "some", "always": "all"}
FIGURES = {
    "queries": Figure(attrgetter("queries"), "Questions that retrieve a chunk with the rule."),
    "blocks": Figure(attrgetter("blocks"), "Chunks it drops, over all questions, if a later layer could look at them."),
    "passes": Figure(attrgetter("passes"), "Chunks that pass it, counted in the same way."),
    "overlap": Figure(attrgetter("overlap"), "Dropped chunks that another layer drops too."),
    "conflicts": Figure(lambda row: len(row.conflicts), "Dropped chunks that are labelled relevant."),
    "precision": Figure(attrgetter("precision"), "Share of dropped chunks not labelled relevant.", "%.2f"),
    "adds to F1": Figure(lambda row: _added(row.delta_f1), "Mean F1 minus that without it. Below 0: harm."),
    "adds to recall": Figure(lambda row: _added(row.delta_recall), "Mean recall minus that without it."),
    "drops": Figure(lambda row: DROPS[row.fires], "Which of the chunks with it that questions retrieve it drops."),
}
HARM = ("conflicts", "adds to F1")
"""The first columns, because a narrow window shows only these."""
WIDTHS = {"conflicts": 66, "adds to F1": 84, "adds to recall": 104}
"""In pixels, chosen so that a window 900 wide shows a rule's harm."""


def figures(rows: Sequence[RuleRow | None], names: Iterable[str] = FIGURES) -> dict[str, list[Any]]:
    """The named figures of these rows; None where a row is None."""
    return {n: [None if row is None else FIGURES[n].read(row) for row in rows] for n in names}


def columns() -> dict[str, Any]:
    """The figures as columns of a table."""
    text, number = st.column_config.TextColumn, st.column_config.NumberColumn
    of_name = {n: number(width=WIDTHS.get(n), help=each.help, format=each.format) for n, each in FIGURES.items()}
    return of_name | {"drops": text(help=FIGURES["drops"].help)}


def measured(visible: VisibleCollection) -> Matrix | None:
    """The last matrix for these settings and questions, even if rules have changed since."""
    key = visible.collection, visible.user, visible.settings, visible.questions_key
    return visible.resources.cache(MATRICES).get(key)


def rule_cell(rule: AnyRule | None) -> str:
    """A rule shortened to fit into a column, with an ellipsis for the number of other terms."""
    return short_title(re.sub(r" \(\+\d+\)", "…", brief(rule)), RULE_CHARS)


def _matrix(visible: VisibleCollection, questions: GatheredQuestions) -> Matrix:
    all_chunks = visible.chunks.values()

    def build() -> Matrix:
        with st.spinner("Replaying the questions without each rule …"):
            return build_matrix(questions.pools, questions.qrels, all_chunks, questions.settings, questions.user)

    of, cache = (visible.user, visible.settings, visible.questions_key), visible.resources.cache(MATRICES)
    matrix = cache.of((*visible.key, *of), build)
    return cache.put((visible.collection, *of), matrix)


def draw(visible: VisibleCollection) -> None:
    """Draw the matrix of the labelled or else the asked questions, and one rule by part."""
    if not rule_effect.begin_gathering(visible):
        return
    questions = rule_effect.gathered(visible)
    if questions is None:
        rule_effect.wait(visible)
        return
    if visible.labels is not None:
        labelled = {i: pool for i, pool in questions.pools.items() if i in questions.qrels}
        questions = replace(questions, pools=labelled)
    matrix = _matrix(visible, questions)
    if not matrix.rules:
        elements.empty("No rules yet.", "Write one under Chunks, or apply some under Findings.")
        return
    over = f"{counted(matrix.queries, 'labelled question')}, the most harmful first"
    if visible.labels is None:
        over = f"{counted(matrix.queries, 'question')} asked"
    elements.aside(f"{counted(len(matrix.rules), 'rule')} over {over}. {wording.fell_back(matrix.waiting)}")
    _measured_rules(visible, matrix.rules, questions)
    if matrix.crowding:
        elements.aside("Chunks without a rule, often kept wrongly for labelled questions")
        table = {
            "chunk": visible.titles(row.chunk_id for row in matrix.crowding),
            "kept wrongly": [row.kept for row in matrix.crowding],
        }
        st.dataframe(table, key="matrix-crowding", hide_index=True, height="content")


@st.fragment
def _measured_rules(visible: VisibleCollection, rules: Sequence[RuleRow], questions: GatheredQuestions) -> None:
    names, ids = group_titles(visible, [row.chunk_ids for row in rules]), [row.chunk_ids[0] for row in rules]
    frame = _frame("chunk", names, rules, [rule_cell(row.rule) for row in rules], id=ids)
    selected = grid.draw_clickable(frame, ids, name="matrix", columns=_columns("chunk"), height=400)
    if selected is None:
        elements.aside("Click a rule to see what each of its groups and terms does.")
        return
    row = rules[selected]
    elements.button("Edit", "matrix-edit", listed_rows.edit, row.chunk_ids[0], about="Opens the chunk under Chunks.")
    if isinstance(rule := row.rule, InvalidRule):
        st.error(message(in_words(rule.error)))
        return
    all_chunks = visible.chunks.values()
    parts = build_parts(rule, questions.pools, questions.qrels, all_chunks, questions.settings, questions.user)
    titles, terms = [place_name(part.place) for part in parts], [rule.written(part.place) for part in parts]
    table, config = _frame("part", titles, parts, terms), _columns("part")
    st.dataframe(grid.signed_figures(table), key="matrix-parts", hide_index=True, placeholder="–", column_config=config)
    if row.conflicts:
        elements.aside("Questions whose relevant chunk the rule blocks")
        conflicts = {
            "question": [questions.pools[query_id].query for query_id, _ in row.conflicts],
            "chunk": visible.titles((chunk_id for _, chunk_id in row.conflicts), TITLE_WIDTH),
        }
        st.dataframe(conflicts, key="matrix-conflicts", hide_index=True, height="content")


def group_titles(visible: VisibleCollection, groups: Sequence[Sequence[str]], width: int = TITLE_WIDTH) -> list[str]:
    """Groups of chunks, each named after its first."""
    firsts, more = [ids[0] for ids in groups], " and {} more"
    alone, first = visible.titles(firsts, width), visible.titles(firsts, width - len(more))
    return [first[at] + more.format(len(ids) - 1) if len(ids) > 1 else alone[at] for at, ids in enumerate(groups)]


def _frame(
    first: str, names: Sequence[str], rows: Sequence[RuleRow], rules: Sequence[str], **more: Sequence[str]
) -> pd.DataFrame:
    harm = figures(rows, (*HARM, "adds to recall"))
    return pd.DataFrame({first: names, **harm, "rule": rules, **figures(rows), **more})


def _columns(first: str) -> dict[str, Any]:
    # Limit the widths, so that a long group does not push the figures out of view.
    text = st.column_config.TextColumn
    return {first: text(width=200), "rule": text(width="medium"), **columns()}
