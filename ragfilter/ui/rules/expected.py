"""A file of expectations dropped on the Tester, checked as `ragfilter rules test` does."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.evaluate.expectations import (
    FORM,
    NO_CHUNK,
    Broken,
    check_rules,
    read_expectations,
)
from ragfilter.text.numbers import counted
from ragfilter.ui.look import say
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.session import uploads

FILE = "tester-expected"
MOST_ROWS = 500


def draw(work: Desk) -> None:
    """Draw the upload and the expectations that the rules break."""
    file = st.file_uploader(
        "File of expectations",
        type=["jsonl"],
        key=FILE,
        help=f"Questions with the chunks that must stay and those that must go. {FORM} One per "
        "line, as ragfilter rules test reads it.",
    )
    if file is None:
        return
    try:
        with uploads.as_files(file) as (path,):
            expected = read_expectations(path)
    except InputError as error:
        st.error(message(str(error)))
        return
    checked = check_rules(expected, {i: c.rule for i, c in work.chunks.items()})
    told = f"{counted(checked.questions, 'question')}, {counted(checked.tested, 'expectation')}"
    verdict = st.error if checked.broken else st.success
    verdict(f"{told}: **{len(checked.broken):,} broken.**")
    if checked.broken:
        _table(work, checked.broken)


def _table(work: Desk, broken: tuple[Broken, ...]) -> None:
    shown = broken[:MOST_ROWS]
    st.dataframe(
        {
            "line": [each.line for each in shown],
            "question": [each.question for each in shown],
            "chunk": [work.title(each.chunk_id) for each in shown],
            "expected": [f"must {each.must}" for each in shown],
            "happened": [_happened(each) for each in shown],
            "why": [each.reason for each in shown],
        },
        key="tester-broken",
        hide_index=True,
        height="content" if len(shown) < 10 else 400,
    )
    if len(broken) > MOST_ROWS:
        say.aside(f"The first {MOST_ROWS} of {len(broken):,}.")


def _happened(each: Broken) -> str:
    if each.reason == NO_CHUNK:
        return "no such chunk"
    return "blocked" if each.must == "stay" else "passed"
