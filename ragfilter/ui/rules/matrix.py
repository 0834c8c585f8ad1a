"""What every rule does over the labelled questions, most harmful first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from ragfilter.errors import InputError
from ragfilter.evaluate.effect import LabelledQuestions
from ragfilter.evaluate.rule_matrix import Matrix, RuleRow, build_matrix, build_parts
from ragfilter.rules.match import RuleBook
from ragfilter.rules.overview import brief
from ragfilter.rules.rule import parse
from ragfilter.text import numbers
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import desk, labelled
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import pages

CHOSEN, QUESTIONS, MISTAKE = "matrix-rule", "matrix-questions", "labels-mistake"
FIND, PAGE_AT = "matrix-find", "matrix-page"
KINDS = LABELLED, ASKED = ("Labelled questions", "Questions asked")
TITLE_WIDTH = 27
"""Characters that fit into a column of the tables, even in capitals."""


class Figure(NamedTuple):
    """A column of the matrix: how to read it from a row, and how to show it."""

    read: Callable[[RuleRow], Any]
    help: str
    format: str | None = None


FIGURES = {
    "queries": Figure(
        attrgetter("queries"), "Questions for which the rule decides a chunk that was retrieved."
    ),
    "blocks": Figure(
        attrgetter("blocks"), "Retrieved chunks that the rule drops, over all questions."
    ),
    "passes": Figure(attrgetter("passes"), "Retrieved chunks that it lets pass."),
    "overlap": Figure(
        attrgetter("overlap"),
        "Blocks that change nothing: another layer would have dropped the chunk anyway.",
    ),
    "conflicts": Figure(
        lambda row: len(row.conflicts), "Blocks of chunks that are labelled relevant."
    ),
    "precision": Figure(
        attrgetter("precision"), "Share of its blocks that are not labelled relevant.", "%.2f"
    ),
    "ΔF1 without": Figure(
        attrgetter("delta_f1"),
        "How much the mean F1 would gain without the rule. Above 0, the rule does harm.",
        "%+.4f",
    ),
    "Δrecall without": Figure(
        attrgetter("delta_recall"),
        "How much the mean recall would gain without the rule.",
        "%+.4f",
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


def columns(widths: Mapping[str, int]) -> dict[str, Any]:
    """The figures of the matrix as table columns."""
    config = st.column_config
    return {
        name: config.TextColumn(width=widths.get(name), help=figure.help)
        if name == "fires"
        else config.NumberColumn(width=widths.get(name), help=figure.help, format=figure.format)
        for name, figure in FIGURES.items()
    }


def last(work: Desk) -> Matrix | None:
    """The most recent matrix of the labelled questions, without the rules that changed since."""
    found = work.resources.matrices.get(_key(work)[1:])
    return None if found is None else found.of_unchanged(work.chunks)


def make(work: Desk, *, asked: bool = False) -> Matrix | None:
    """The matrix for the current rules; None while its questions are being gathered."""
    found = labelled.gathered(work, asked=asked)
    if found is None:
        return None
    # Questions without labels are cached separately.
    key = (*_key(work), tuple(found.pools)) if asked else _key(work)
    made = work.resources.matrices.get(key)
    if made is None:
        with st.spinner("Replaying the questions without each rule …"):
            made = build_matrix(
                found.pools, found.qrels, work.chunks.values(), found.settings, found.user
            )
        work.resources.matrices.put(key, made)
        if not asked:
            work.resources.matrices.put(key[1:], made)
    return made


def draw(work: Desk) -> None:
    """Draw the labels, the matrix, and one rule by group and term."""
    which = st.segmented_control(
        "Questions",
        KINDS,
        key=QUESTIONS,
        default=LABELLED,
        required=True,
        persist_state="session",
        help="Labelled questions show which rules do harm. Recent questions show which rules act "
        "at all.",
    )
    from_history = which == ASKED
    if not from_history:
        _labels(work)
    if not labelled.told(work, asked=from_history):
        return
    made = make(work, asked=from_history)
    asked = labelled.gathered(work, asked=from_history)
    if made is None or asked is None:
        labelled.wait(work, asked=from_history)
        return
    if not made.rules:
        elements.empty("No rules yet.", "Write one under Chunks, or let Suggest propose some.")
    else:
        over = (
            counted(made.queries, "question") + " asked"
            if from_history
            else counted(made.queries, "labelled question") + ", the most harmful first"
        )
        fell = f"; {made.waiting:,} fell back for lack of rerank scores" if made.waiting else ""
        elements.aside(f"{numbers.count(len(made.rules))} rules over {over}{fell}.")
        _rules(work, made.rules, asked)
    if made.crowding:
        elements.aside(
            "Chunks without a rule that crowd results: often retrieved, and not labelled relevant"
        )
        st.dataframe(
            {
                "chunk": [_chunks(work, (row.chunk_id,)) for row in made.crowding],
                "retrieved": [row.retrieved for row in made.crowding],
                "irrelevant": [row.irrelevant for row in made.crowding],
                "kept wrongly": [row.kept for row in made.crowding],
            },
            key="matrix-crowding",
            hide_index=True,
            height=240,
        )


def _key(work: Desk) -> tuple[object, ...]:
    mark = labelled.mark(work)
    return work.version, work.collection, work.user, work.settings, mark


def _labels(work: Desk) -> None:
    with st.expander("Labelled questions", key="matrix-labels"), st.form("labels", border=False):
        queries = st.file_uploader(
            "Questions",
            type=["jsonl", "csv", "txt"],
            key="labels-queries",
            help="A BEIR queries.jsonl file, a CSV file with a column named text, query or "
            "question, or one question per line.",
        )
        qrels = st.file_uploader(
            "qrels.tsv",
            type=["tsv", "txt", "qrels", "trec"],
            key="labels-qrels",
            help="One query-id, corpus-id and score per line, as in BEIR or TREC.",
        )
        if st.form_submit_button("Use these labels", help="For this session."):
            st.session_state[MISTAKE] = _use(work, queries, qrels)
        # Stored, since the page reruns by itself while questions are gathered.
        if mistake := st.session_state.get(MISTAKE):
            st.error(message(mistake))


def _use(work: Desk, queries: UploadedFile | None, qrels: UploadedFile | None) -> str:
    """Use the labels in two files. Returns the error message if that fails."""
    if queries is None or qrels is None:
        return "Both files are needed. Choose queries and qrels."
    try:
        labelled.drop(work, queries, qrels)
    except InputError as error:
        return str(error)
    return ""


@st.fragment
def _rules(work: Desk, rules: Sequence[RuleRow], asked: LabelledQuestions) -> None:
    """Draw the rules that are sought, and one of them by group and term."""
    shown = _shown(work, rules)
    names = [_chunks(work, row.chunk_ids) for row in shown]
    _table("matrix-table", "chunk", names, shown, [brief(row.rule) for row in shown])
    _parts(work, shown, asked)


def _shown(work: Desk, rules: Sequence[RuleRow]) -> Sequence[RuleRow]:
    """Draw the search and the page selector. Returns the rules of the page."""
    with st.container(key="matrix-pager", horizontal=True, vertical_alignment="bottom"):
        found = desk.find(
            work, FIND, rules, lambda row: row.chunk_ids,
            "Shows only rules of chunks that contain all of these words in title or id.",
        )  # fmt: skip
        return found[pages.choose(PAGE_AT, len(found), desk.PAGE)]


def _chunks(work: Desk, ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
    return f"{work.title(ids[0], TITLE_WIDTH - len(more))}{more}"


def _table(
    key: str, first: str, names: Sequence[str], rows: Sequence[RuleRow], rules: Sequence[str]
) -> None:
    text = st.column_config.TextColumn
    st.dataframe(
        {
            first: names,
            **figures(rows, (*HARM, "Δrecall without")),
            "rule": rules,
            **figures(rows),
        },
        key=key,
        hide_index=True,
        height=400,
        placeholder="–",
        # Limit the widths, so that a long group does not push the figures out of view.
        column_config={first: text(width=200), "rule": text(width="medium"), **columns(WIDTHS)},
    )


def _parts(work: Desk, rules: Sequence[RuleRow], asked: LabelledQuestions) -> None:
    unreadable = RuleBook(row.rule for row in rules).errors
    by_id = {row.chunk_ids[0]: row for row in rules if row.rule not in unreadable}
    with st.container(key="matrix-one", horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox(
            "One rule by group and term",
            list(by_id),
            index=None,
            key=CHOSEN,
            format_func=lambda i: _chunks(work, by_id[i].chunk_ids),
            placeholder="Choose a chunk",
            help="What each group and term of its rule does. Offers the rules in the table "
            "that can be read.",
        )
        if chosen is not None:
            st.button(
                "Edit",
                key="matrix-edit",
                on_click=desk.edit,
                args=(chosen,),
                help="Opens the chunk under Chunks.",
            )
    if chosen is None:
        return
    parts = build_parts(
        by_id[chosen].rule, asked.pools, asked.qrels, work.chunks.values(), asked.settings,
        asked.user,
    )  # fmt: skip
    rule = parse(by_id[chosen].rule)
    places = [row.place for row in parts]
    _table("matrix-parts", "part", places, parts, [rule.written(place) for place in places])
    conflicts = by_id[chosen].conflicts
    if conflicts:
        elements.aside("Questions whose relevant chunk the rule blocks")
        st.dataframe(
            {
                "question": [asked.pools[query_id].query for query_id, _ in conflicts],
                "chunk": [_chunks(work, (chunk_id,)) for _, chunk_id in conflicts],
            },
            key="matrix-conflicts",
            hide_index=True,
            height="content",
        )
