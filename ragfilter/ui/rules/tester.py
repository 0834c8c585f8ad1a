"""Paste questions to see which rules they meet. For one question and one chunk, see which terms
occur, which are missing and what comes nearest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter

import streamlit as st

from ragfilter.rules.explain import Explanation, RulePart, explain
from ragfilter.rules.match import rule_book
from ragfilter.rules.rule import InvalidRule, read_text
from ragfilter.text.characters import whole
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.kit.rule_editor.desk import OPEN, Desk
from ragfilter.ui.look import elements, html
from ragfilter.ui.look.prose import message

TEXT, QUESTION, CHUNK, SHOWN = "tester-text", "tester-question", "tester-chunk", "tester-shown"
FIND, NUMBER = "tester-find", "tester-number"
KINDS = ALL, PASS, BLOCK, NEVER = ("all", "pass", "block", "never act")
MOST = 10_000
MOST_ROWS = 500
WIDE = 56
"""Characters of a title in the table, whose other columns are narrow: siblings differ late."""
MOST_TERMS = 4


def draw(work: Desk) -> None:
    """Draw the questions, the rules they meet and one of them explained."""
    text = st.text_area(
        "Questions",
        key=TEXT,
        persist_state="session",
        height=140,
        placeholder="One question per line, up to 10,000",
        help="Paste questions or a log. Only the rules are checked; nothing is searched.",
    )
    every = [line.strip() for line in whole(text or "").splitlines() if line.strip()]
    questions = every[:MOST]
    if not questions:
        elements.empty(
            "No questions yet.",
            "Paste some to see which rules let their chunk pass, which block it, and which never "
            "block.",
        )
        return
    if len(every) > MOST:
        elements.aside(f"Only the first {MOST:,} are read.")
    of_rule: dict[str, list[str]] = defaultdict(list)
    for chunk in work.chunks.values():
        if chunk.rule:
            of_rule[chunk.rule].append(chunk.id)
    if not of_rule:
        elements.empty("No rules yet.", "Every chunk passes.")
        return
    book = rule_book(tuple(of_rule))
    key = (*work.key, tuple(questions))
    passes = work.resources.passes.of(key, lambda: book.count_passes(questions))
    if book.errors:
        n = len(book.errors)
        was, it = ("was", "it") if n == 1 else ("were", "them")
        st.error(
            f"{counted(n, 'unreadable rule')} {was} skipped; every question passes {it}. Filter "
            "Chunks by the state invalid."
        )
    readable = {rule: ids for rule, ids in of_rule.items() if rule not in book.errors}
    _table(work, readable, passes, len(questions))
    _one(work, questions, {i: rule for rule, ids in of_rule.items() for i in ids})


@st.fragment
def _table(
    work: Desk, of_rule: dict[str, list[str]], passes: Mapping[str, int], asked: int
) -> None:
    rows = sorted(
        ((ids[0], len(ids), passes[rule]) for rule, ids in of_rule.items()),
        key=lambda row: (-row[2], row[0]),
    )
    of_kind = {
        ALL: rows,
        PASS: [row for row in rows if row[2]],
        BLOCK: [row for row in rows if row[2] < asked],
        NEVER: [row for row in rows if row[2] == asked],
    }
    never = len(of_kind[NEVER])
    always = len(rows) - len(of_kind[PASS])
    st.markdown(
        f"{counted(asked, 'question')}, {counted(len(rows), 'rule')}: "
        f"{len(rows) - never - always} block some, {always} block all, {never} never act."
    )
    kind = st.segmented_control(
        "Rules",
        KINDS,
        key=SHOWN,
        default=ALL,
        required=True,
        persist_state="session",
        format_func=lambda each: f"{each} · {len(of_kind[each]):,}",
        help="pass: some question meets the rule. block: some does not. never act: all of them "
        "meet it.",
    )
    chosen = of_kind[str(kind)]
    shown = chosen[:MOST_ROWS]
    st.dataframe(
        {
            "chunk": [
                work.title(i, WIDE) + (f" and {n - 1} more" if n > 1 else "") for i, n, _ in shown
            ],
            "passes": [n for *_, n in shown],
            "blocks": [asked - n for *_, n in shown],
        },
        key="tester-table",
        hide_index=True,
        height=260,
        column_config={
            "passes": st.column_config.NumberColumn(help="Questions that meet the rule.", width=80),
            "blocks": st.column_config.NumberColumn(help="Questions that do not.", width=80),
        },
    )
    if len(chosen) > MOST_ROWS:
        elements.aside(f"The first {MOST_ROWS} rules of {len(chosen):,}.")


@st.fragment
def _one(work: Desk, questions: list[str], rules: dict[str, str]) -> None:
    with st.container(key="tester-one", horizontal=True, gap="small"):
        question = _chosen(questions)
        found = desk.find(
            work, FIND, list(rules), lambda i: (i,),
            "Offers only chunks that contain all of these words in title or id.",
        )  # fmt: skip
        chunk_id = st.selectbox(
            "Chunk",
            _near(question, {i: rules[i] for i in found}),
            key=CHUNK,
            format_func=lambda i: work.chunks[i].name,
            help="A chunk that has a rule: the one that is open under Chunks first, then those "
            f"whose rule the question meets, {MOST_ROWS} at most.",
        )
    if not question or chunk_id not in rules:
        return
    rule = read_text(rules[chunk_id])
    if isinstance(rule, InvalidRule):
        st.error(message(str(rule.error)))
        return
    html.draw(_explained(explain(rule, question), whole(question)))


def _chosen(questions: list[str]) -> str:
    """Draw the choice of a question; by its number if there are too many to send in every run.
    Empty if none is chosen."""
    if len(questions) > MOST_ROWS:
        if st.session_state.get(NUMBER, 1) > len(questions):
            st.session_state[NUMBER] = 1
        number = st.number_input(
            "Number of the question",
            1,
            len(questions),
            key=NUMBER,
            help="The question to look at closely, counted without empty lines.",
        )
        return questions[number - 1]
    at = st.selectbox(
        "Question",
        range(len(questions)),
        key=QUESTION,
        format_func=lambda i: questions[i] if i < len(questions) else "",
        help="The question to look at closely.",
    )
    return questions[at] if at is not None and at < len(questions) else ""


def _near(question: str, rules: dict[str, str]) -> list[str]:
    """The chunks to choose from, those most related to the question first."""
    scan = rule_book(tuple(dict.fromkeys(rules.values()))).scan(question)
    opened = st.session_state.get(OPEN)
    ranked = sorted(rules, key=lambda i: (i != opened, not scan.passes(rules[i])))
    return ranked[:MOST_ROWS]


def _explained(made: Explanation, question: str) -> str:
    verdict = "passes" if made.passes else "is blocked"
    parts = "".join(f"<li>{_part(part)}</li>" for part in made.parts)
    return (
        f'<div class="rf-effect"><p class="rf-say">{_marked(made, question)}</p>'
        f'<p class="rf-verdict">The chunk <b>{verdict}</b>: {html.text(made.reason)}</p>'
        f"<ul>{parts}</ul></div>"
    )


def _marked(made: Explanation, question: str) -> str:
    """The question with exact matches and near matches highlighted."""
    looks = [""] * len(question)
    for part in made.parts:
        if part.near is not None:
            for i in range(*part.near.span):
                looks[i] = "rf-near"
        forbidden = part.place.startswith("contain_none_of")
        for found in part.found:
            for span in found.spans:
                for i in range(*span):
                    looks[i] = "rf-out" if forbidden else "rf-in"
    pieces = []
    for look, run in groupby(zip(looks, question, strict=True), key=itemgetter(0)):
        piece = html.text("".join(char for _, char in run))
        pieces.append(f'<mark class="{look}">{piece}</mark>' if look else piece)
    return "".join(pieces)


def _part(part: RulePart) -> str:
    place = f"<b>{html.text(part.named)}</b> "
    named = html.text(", ".join(found.term for found in part.found))
    if part.place.startswith("contain_none_of"):
        return place + (f"must not contain {named}" if named else "not in the question")
    if part.met:
        return f"{place}found {named}"
    more = f" and {len(part.terms) - MOST_TERMS} more" if len(part.terms) > MOST_TERMS else ""
    said = f"{place}missing: one of {html.text(', '.join(part.terms[:MOST_TERMS]))}{more}"
    if part.near is not None:
        near = part.near
        said += (
            f"; nearest to “{html.text(near.term)}” is “{html.text(near.words)}”, "
            f"{counted(near.letters, 'letter')} off"
        )
    return said
