"""How rules affect questions. Matrix measures them on labelled questions, the most harmful rule first. Tester counts
which pasted questions they pass, and explains one: which terms occur, which are missing, and what comes nearest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import pandas as pd
import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.evaluate.effect import GatheredQuestions
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow, build_matrix, build_parts
from ragfilter.rules.explain import Explanation, RulePart, explain
from ragfilter.rules.match import rule_book
from ragfilter.rules.overview import brief
from ragfilter.rules.rule import parse, place_name
from ragfilter.text import numbers
from ragfilter.text.normalise import whole
from ragfilter.text.numbers import counted
from ragfilter.text.titles import short_title
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import chunk_list, rule_effect, saving
from ragfilter.ui.kit.rule_editor.chunk_list import VisibleCollection
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message
from ragfilter.ui.resources import ShelfSpec

MATRICES: ShelfSpec[Matrix] = ShelfSpec(4)
TITLE_WIDTH, RULE_CHARS = 27, 27
"""Characters that fit into a column of the tables, even in capitals."""


class Figure(NamedTuple):
    """A column of the matrix: how to read it from a row, and how to show it."""

    read: Callable[[RuleRow], Any]
    help: str
    format: str | None = None


def _added(without: float | None) -> float | None:
    """What a rule adds: the negative of the difference that leaving it out makes."""
    return None if without is None else 0.0 - without


FIGURES = {
    "queries": Figure(attrgetter("queries"), "Questions that retrieve a chunk with the rule."),
    "blocks": Figure(attrgetter("blocks"), "Retrieved chunks that the rule drops."),
    "passes": Figure(attrgetter("passes"), "Retrieved chunks that pass the rule."),
    "overlap": Figure(attrgetter("overlap"), "Blocked chunks that another layer drops too."),
    "conflicts": Figure(lambda row: len(row.conflicts), "Blocked chunks that are labelled relevant."),
    "precision": Figure(attrgetter("precision"), "Share of blocked chunks not labelled relevant.", "%.2f"),
    "adds to F1": Figure(lambda row: _added(row.delta_f1), "Mean F1 minus that without it. Below 0: harm.", "%+.4f"),
    "adds to recall": Figure(lambda row: _added(row.delta_recall), "Mean recall minus that without it.", "%+.4f"),
    "fires": Figure(attrgetter("fires"), "never: it blocks no retrieved chunk. always: it lets none pass."),
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
    return of_name | {"fires": text(help=FIGURES["fires"].help)}


def measured(visible: VisibleCollection) -> Matrix | None:
    """The last matrix for these settings and questions, even if rules have changed since."""
    key = visible.collection, visible.user, visible.settings, visible.questions_key
    return visible.resources.shelf(MATRICES).get(key)


def rule_cell(rule: str | None) -> str:
    """A rule shortened to fit into a column."""
    return short_title(brief(rule), RULE_CHARS)


def _matrix(visible: VisibleCollection, questions: GatheredQuestions) -> Matrix:
    every = visible.chunks.values()

    def build() -> Matrix:
        with st.spinner("Replaying the questions without each rule …"):
            return build_matrix(questions.pools, questions.qrels, every, questions.settings, questions.user)

    of, shelf = (visible.user, visible.settings, visible.questions_key), visible.resources.shelf(MATRICES)
    matrix = shelf.of((*visible.key, *of), build)
    return shelf.put((visible.collection, *of), matrix)


def draw_matrix(visible: VisibleCollection) -> None:
    """Draw the matrix of the labelled or else the asked questions, and one rule by part."""
    if not rule_effect.available(visible):
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
        html.empty("No rules yet.", "Write one under Chunks, or apply some under Findings.")
        return
    over = f"{counted(matrix.queries, 'labelled question')}, the most harmful first"
    if visible.labels is None:
        over = f"{counted(matrix.queries, 'question')} asked"
    waiting = f"; {matrix.waiting:,} lack rerank scores" if matrix.waiting else ""
    html.aside(f"{numbers.count(len(matrix.rules))} rules over {over}{waiting}.")
    _measured_rules(visible, matrix.rules, questions)
    if matrix.crowding:
        html.aside("Chunks without a rule, often kept wrongly for labelled questions")
        table = {
            "chunk": visible.titles(row.chunk_id for row in matrix.crowding),
            "kept wrongly": [row.kept for row in matrix.crowding],
        }
        st.dataframe(table, key="matrix-crowding", hide_index=True, height="content")


@st.fragment
def _measured_rules(visible: VisibleCollection, rules: Sequence[RuleRow], questions: GatheredQuestions) -> None:
    names, ids = chunks(visible, [row.chunk_ids for row in rules]), [row.chunk_ids[0] for row in rules]
    frame = _frame("chunk", names, rules, [rule_cell(row.rule) for row in rules], id=ids)
    selected = grid.picked(frame, ids, name="matrix", columns=_columns("chunk"), height=400)
    if selected is None:
        html.aside("Click a rule to see what each of its groups and terms does.")
        return
    row = rules[selected]
    html.button("Edit", "matrix-edit", chunk_list.edit, row.chunk_ids[0], about="Opens the chunk under Chunks.")
    try:
        rule = parse(row.rule)
    except RuleError as error:
        st.error(message(saving.error_text(error)))
        return
    every = visible.chunks.values()
    parts = build_parts(row.rule, questions.pools, questions.qrels, every, questions.settings, questions.user)
    titles, terms = [place_name(part.place) for part in parts], [rule.written(part.place) for part in parts]
    table, config = _frame("part", titles, parts, terms), _columns("part")
    st.dataframe(table, key="matrix-parts", hide_index=True, placeholder="–", column_config=config)
    if row.conflicts:
        html.aside("Questions whose relevant chunk the rule blocks")
        conflicts = {
            "question": [questions.pools[query_id].query for query_id, _ in row.conflicts],
            "chunk": visible.titles((chunk_id for _, chunk_id in row.conflicts), TITLE_WIDTH),
        }
        st.dataframe(conflicts, key="matrix-conflicts", hide_index=True, height="content")


def chunks(visible: VisibleCollection, groups: Sequence[Sequence[str]], width: int = TITLE_WIDTH) -> list[str]:
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


PASSES: ShelfSpec[Mapping[str, int]] = ShelfSpec(4)
"""How many pasted questions meet each rule."""
TEXT, QUESTION = "tester-text", "tester-question"
MAX_QUESTIONS, MAX_LISTED, MAX_TERMS = 10_000, 500, 4
WIDE = 56
"""Characters of a title in the table. The other columns are narrow: similar titles differ late."""


def draw_tester(visible: VisibleCollection) -> None:
    """Draw the questions, the rules they meet and one of them explained."""
    hint = f"One question per line, up to {MAX_QUESTIONS:,}"
    about = "Paste questions or a log. Only the rules are checked; nothing is searched."
    text = st.text_area("Questions", key=TEXT, persist_state="session", height=140, placeholder=hint, help=about)
    every = [line.strip() for line in whole(text or "").splitlines() if line.strip()]
    questions = every[:MAX_QUESTIONS]
    if not questions:
        html.empty("No questions yet.", "Paste some to see which rules they meet.")
        return
    if len(every) > MAX_QUESTIONS:
        html.aside(f"Only the first {MAX_QUESTIONS:,} are read.")
    of_rule: dict[str, list[str]] = defaultdict(list)
    for chunk in visible.chunks.values():
        if chunk.rule:
            of_rule[chunk.rule].append(chunk.id)
    if not of_rule:
        html.empty("No rules yet.", "Every chunk passes.")
        return
    book = rule_book(tuple(of_rule))
    key = (*visible.key, tuple(questions))
    passes = visible.resources.shelf(PASSES).of(key, lambda: book.count_passes(questions))
    if book.errors:
        unreadable = counted(len(book.errors), "unreadable rule")
        st.error(f"{unreadable} left out: every question passes. Under Chunks, choose the state invalid.")
    readable = {rule: ids for rule, ids in of_rule.items() if rule not in book.errors}
    _tested_rules(visible, questions, readable, passes)


@st.fragment
def _tested_rules(
    visible: VisibleCollection,
    questions: Sequence[str],
    of_rule: Mapping[str, Sequence[str]],
    passes: Mapping[str, int],
) -> None:
    rules = sorted(of_rule, key=lambda rule: (-passes[rule], of_rule[rule][0]))
    n_questions, n_passing = len(questions), [passes[rule] for rule in rules]
    n_divided = sum(0 < n < n_questions for n in n_passing)
    st.markdown(
        f"{counted(n_questions, 'question')}, {counted(len(rules), 'rule')}: some questions are blocked by "
        f"{n_divided}, all by {n_passing.count(0)}, none by {n_passing.count(n_questions)}."
    )
    ids = [of_rule[rule] for rule in rules]
    first, blocks = [some[0] for some in ids], [n_questions - n for n in n_passing]
    table = {"chunk": chunks(visible, ids, WIDE), "passes": n_passing, "blocks": blocks, "id": first}
    help_texts = {"passes": "Questions that meet the rule.", "blocks": "Questions that do not meet it."}
    columns = {name: st.column_config.NumberColumn(help=about, width=80) for name, about in help_texts.items()}
    selected = grid.picked(pd.DataFrame(table), first, name="tester", height=260, columns=columns)
    if selected is None:
        html.aside("Click a rule to see why it passes or blocks a question.")
        return
    about = "Choose a question, or type one."
    question = st.selectbox("Question", questions[:MAX_LISTED], key=QUESTION, accept_new_options=True, help=about)
    if question:
        explanation = explain(parse(rules[selected]), question)
        html.draw(_explained(explanation, whole(question)))


def _explained(explanation: Explanation, question: str) -> str:
    verdict = f"<b>{'passes' if explanation.passes else 'is blocked'}</b>: {html.text(explanation.reason)}"
    parts = "".join(f"<li>{_part(part)}</li>" for part in explanation.parts)
    return (
        f'<div class="rf-effect"><p class="rf-say">{_marked(explanation, question)}</p>'
        f'<p class="rf-verdict">The chunk {verdict}</p><ul>{parts}</ul></div>'
    )


def _marked(explanation: Explanation, question: str) -> str:
    """The question with exact matches and near matches highlighted."""
    looks = [""] * len(question)
    for part in explanation.parts:
        look = "rf-out" if part.place.startswith("contain_none_of") else "rf-in"
        marks = [] if part.near is None else [(part.near.span, "rf-near")]
        marks += [(span, look) for term in part.found for span in term.spans]
        for (start, end), name in marks:
            looks[start:end] = [name] * (end - start)
    pieces = []
    for look, run in groupby(zip(looks, question, strict=True), key=itemgetter(0)):
        piece = html.text("".join(char for _, char in run))
        pieces.append(f'<mark class="{look}">{piece}</mark>' if look else piece)
    return "".join(pieces)


def _part(part: RulePart) -> str:
    place = f"<b>{html.text(part.named)}</b> "
    terms = html.text(", ".join(term.term for term in part.found))
    if part.place.startswith("contain_none_of"):
        return place + (f"must not contain {terms}" if terms else "not in the question")
    if part.met:
        return f"{place}found {terms}"
    more = f" and {len(part.terms) - MAX_TERMS} more" if len(part.terms) > MAX_TERMS else ""
    missing = f"{place}missing: one of {html.text(', '.join(part.terms[:MAX_TERMS]))}{more}"
    if (near := part.near) is None:
        return missing
    return (
        f"{missing}; nearest to “{html.text(near.term)}” is “{html.text(near.words)}”, "
        f"{counted(near.letters, 'letter')} off"
    )
