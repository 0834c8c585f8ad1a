"""The reports of the page, made when the button is pressed, with the answers that exist by then. No
model is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import streamlit as st

from ragfilter.model import PoolResult
from ragfilter.protocols import Embedder
from ragfilter.publish import question
from ragfilter.publish.html import ReportOrigin
from ragfilter.publish.question import Called
from ragfilter.publish.told import Told, told
from ragfilter.ui.session import answers
from ragfilter.ui.session.answers import AnswerSide
from ragfilter.ui.session.visit import View


def button(make: Callable[[], str], name: str, *, key: str) -> None:
    """The button that downloads a report."""
    st.download_button(
        "Report",
        data=make,
        file_name=name,
        mime="text/html",
        key=key,
        icon=":material/description:",
        on_click="ignore",
        help="Download one HTML file for others. It opens without a network, prints on A4, and "
        "holds what this user may see.",
    )


def of_query(view: View, profile: str) -> str:
    """The report of the current question, with settings that started from `profile`."""
    filtered, plain = answers.sides(view.mine)
    named = {"without the filter": plain, "with the filter": filtered}
    prices, known = view.resources.prices, _known(view, named)
    return question.of_query(
        view.mine, profile, _origin(view), prices=prices, answers=known, embedder=_embedder(view)
    )


def of_two(
    view: View,
    results: tuple[PoolResult, PoolResult],
    names: tuple[Called, Called],
    sides: tuple[AnswerSide, AnswerSide],
) -> str:
    """The report of one question under two settings."""
    prices, known = view.resources.prices, _known(view, {side.name: side for side in sides})
    return question.of_two(
        results, names, _origin(view), prices=prices, answers=known, embedder=_embedder(view)
    )


def _embedder(view: View) -> Embedder:
    return view.resources.bench.embedder_of(view.asked.collection)


def _known(view: View, named: Mapping[str, AnswerSide]) -> list[Told]:
    """The answers that exist by now, under the report's names for them."""
    found = ((name, side, answers.known(view.asked.query, side, view.resources))
             for name, side in named.items())  # fmt: skip
    return [told(name, answer, side.context) for name, side, answer in found if answer is not None]


def _origin(view: View) -> ReportOrigin:
    asked = view.asked
    model = view.resources.bench.embedder_of(asked.collection).name
    space = view.result.pool.space
    return ReportOrigin(asked.collection, asked.version, model, space, view.user, datetime.now(UTC))
