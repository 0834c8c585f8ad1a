"""Paste questions to see which rules they meet. For one question and one rule, see which terms
occur, which are missing and what comes nearest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import pandas as pd
import streamlit as st

from ragfilter.rules.explain import Explanation, RulePart, explain
from ragfilter.rules.match import rule_book
from ragfilter.rules.rule import parse
from ragfilter.text.normalise import whole
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import html
from ragfilter.ui.rules import matrix_table
from ragfilter.ui.session.resources import ShelfSpec

PASSES: ShelfSpec[Mapping[str, int]] = ShelfSpec(4)
"""How many pasted questions meet each rule."""
TEXT, QUESTION = "tester-text", "tester-question"
MAX_QUESTIONS, MAX_LISTED, MAX_TERMS = 10_000, 500, 4
WIDE = 56
"""Characters of a title in the table, whose other columns are narrow: siblings differ late."""


def draw(work: Desk) -> None:
    """Draw the questions, the rules they meet and one of them explained."""
    text = st.text_area(
        "Questions", key=TEXT, persist_state="session", height=140,
        placeholder=f"One question per line, up to {MAX_QUESTIONS:,}",
        help="Paste questions or a log. Only the rules are checked; nothing is searched.",
    )  # fmt: skip
    every = [line.strip() for line in whole(text or "").splitlines() if line.strip()]
    questions = every[:MAX_QUESTIONS]
    if not questions:
        html.empty("No questions yet.", "Paste some to see which rules block or pass their chunk.")
        return
    if len(every) > MAX_QUESTIONS:
        html.aside(f"Only the first {MAX_QUESTIONS:,} are read.")
    of_rule: dict[str, list[str]] = defaultdict(list)
    for chunk in work.chunks.values():
        if chunk.rule:
            of_rule[chunk.rule].append(chunk.id)
    if not of_rule:
        html.empty("No rules yet.", "Every chunk passes.")
        return
    book = rule_book(tuple(of_rule))
    key = (*work.key, tuple(questions))
    passes = work.resources.shelf(PASSES).of(key, lambda: book.count_passes(questions))
    if book.errors:
        unreadable = counted(len(book.errors), "unreadable rule")
        st.error(
            f"{unreadable} left out, since every question passes. Under Chunks, choose the state "
            "invalid."
        )
    readable = {rule: ids for rule, ids in of_rule.items() if rule not in book.errors}
    _rules(work, questions, readable, passes)


@st.fragment
def _rules(
    work: Desk, questions: Sequence[str], of_rule: Mapping[str, Sequence[str]],
    passes: Mapping[str, int],
) -> None:  # fmt: skip
    """Draw what each rule does to the questions, and the selected one for one of them."""
    rules = sorted(of_rule, key=lambda rule: (-passes[rule], of_rule[rule][0]))
    n_questions, n_passing = len(questions), [passes[rule] for rule in rules]
    st.markdown(
        f"{counted(n_questions, 'question')}, {counted(len(rules), 'rule')}: some questions are "
        f"blocked by {sum(0 < n < n_questions for n in n_passing)}, all by "
        f"{n_passing.count(0)}, none by {n_passing.count(n_questions)}."
    )
    ids = [of_rule[rule] for rule in rules]
    first, number = [some[0] for some in ids], st.column_config.NumberColumn
    table = {
        "chunk": matrix_table.chunks(work, ids, WIDE), "passes": n_passing,
        "blocks": [n_questions - n for n in n_passing], "id": first,
    }  # fmt: skip
    columns = {
        "passes": number(help="Questions that meet the rule.", width=80),
        "blocks": number(help="Questions that do not.", width=80),
    }
    selected = grid.picked(pd.DataFrame(table), first, name="tester", height=260, columns=columns)
    if selected is None:
        html.aside("Click a rule to see why it passes or blocks a question.")
        return
    question = st.selectbox(
        "Question", questions[:MAX_LISTED], key=QUESTION, accept_new_options=True,
        help="Choose a question, or type one.",
    )  # fmt: skip
    if question:
        explanation = explain(parse(rules[selected]), question)
        html.draw(_explained(explanation, whole(question)))


def _explained(explanation: Explanation, question: str) -> str:
    verdict = "passes" if explanation.passes else "is blocked"
    parts = "".join(f"<li>{_part(part)}</li>" for part in explanation.parts)
    return (
        f'<div class="rf-effect"><p class="rf-say">{_marked(explanation, question)}</p>'
        f'<p class="rf-verdict">The chunk <b>{verdict}</b>: {html.text(explanation.reason)}</p>'
        f"<ul>{parts}</ul></div>"
    )


def _marked(explanation: Explanation, question: str) -> str:
    """The question with exact matches and near matches highlighted."""
    looks = [""] * len(question)
    for part in explanation.parts:
        if part.near is not None:
            for i in range(*part.near.span):
                looks[i] = "rf-near"
        forbidden = part.place.startswith("contain_none_of")
        for span in (span for term in part.found for span in term.spans):
            for i in range(*span):
                looks[i] = "rf-out" if forbidden else "rf-in"
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
