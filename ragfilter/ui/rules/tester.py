"""The tester: which pasted questions meet each rule, and why one question does or does not: which terms occur, which
are missing, and what comes nearest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import pandas as pd
import streamlit as st

from ragfilter.rules.explain import Explanation, RulePart, explain
from ragfilter.rules.match import compiled_rules
from ragfilter.rules.rule import parse
from ragfilter.text import numbers
from ragfilter.text.normalise import mend_characters
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.rules import matrix

PASSES: CacheSpec[Mapping[str, int]] = CacheSpec(4)
"""How many pasted questions meet each rule."""
TEXT, QUESTION = "tester-text", "tester-question"
MAX_QUESTIONS, MAX_LISTED, MAX_TERMS = 10_000, 500, 4
WIDE = 56
"""Title width in characters. Wide, because similar titles differ near the end."""


def draw(visible: VisibleCollection) -> None:
    """Draw the questions, the rules they meet and one of them explained."""
    hint = f"One question per line, up to {MAX_QUESTIONS:,}"
    about = "Paste questions or a log. Only the rules are checked; nothing is searched."
    text = st.text_area("Questions", key=TEXT, persist_state="session", height=140, placeholder=hint, help=about)
    every = [line.strip() for line in mend_characters(text or "").splitlines() if line.strip()]
    questions = every[:MAX_QUESTIONS]
    if not questions:
        elements.empty("No questions yet.", "Paste some to see which rules they meet.")
        return
    if len(every) > MAX_QUESTIONS:
        elements.aside(f"Only the first {MAX_QUESTIONS:,} are read.")
    of_rule: dict[str, list[str]] = defaultdict(list)
    for chunk in visible.chunks.values():
        if chunk.rule:
            of_rule[chunk.rule].append(chunk.id)
    if not of_rule:
        elements.empty("No rules yet.", "Every chunk passes.")
        return
    book = compiled_rules(tuple(of_rule))
    key = (*visible.key, tuple(questions))
    passes = visible.resources.cache(PASSES).of(key, lambda: book.count_passes(questions))
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
    table = {"chunk": matrix.group_titles(visible, ids, WIDE), "passes": n_passing, "blocks": blocks, "id": first}
    help_texts = {"passes": "Questions that meet the rule.", "blocks": "Questions that do not meet it."}
    columns = {name: st.column_config.NumberColumn(help=about, width=80) for name, about in help_texts.items()}
    selected = grid.draw_clickable(pd.DataFrame(table), first, name="tester", height=260, columns=columns)
    if selected is None:
        elements.aside("Click a rule to see why it passes or blocks a question.")
        return
    about = "Choose a question, or type one."
    question = st.selectbox("Question", questions[:MAX_LISTED], key=QUESTION, accept_new_options=True, help=about)
    if question:
        explanation = explain(parse(rules[selected]), question)
        elements.draw(_explained(explanation, mend_characters(question)))


def _explained(explanation: Explanation, question: str) -> str:
    verdict = f"<b>{'passes' if explanation.passes else 'is blocked'}</b>: {elements.text(explanation.reason)}"
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
        piece = elements.text("".join(char for _, char in run))
        pieces.append(f'<mark class="{look}">{piece}</mark>' if look else piece)
    return "".join(pieces)


def _part(part: RulePart) -> str:
    place = f"<b>{elements.text(part.named)}</b> "
    terms = elements.text(", ".join(term.term for term in part.found))
    if part.place.startswith("contain_none_of"):
        return place + (f"must not contain {terms}" if terms else "not in the question")
    if part.met:
        return f"{place}found {terms}"
    missing = f"{place}missing: one of {elements.text(numbers.first_of(part.terms, MAX_TERMS))}"
    if (near := part.near) is None:
        return missing
    return (
        f"{missing}; nearest to “{elements.text(near.term)}” is “{elements.text(near.words)}”, "
        f"{counted(near.letters, 'letter')} off"
    )
