"""The reports of the page: made when the button is pressed, with the answers that are known by
then. No model is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from ragfilter.answer.stream import Prices
from ragfilter.evaluate.matching import Duel
from ragfilter.model import Result
from ragfilter.publish import measured, question
from ragfilter.publish.html import Origin
from ragfilter.publish.question import Called
from ragfilter.publish.told import Told, told
from ragfilter.stores.runs import Run
from ragfilter.ui.evaluate.measured import Measured
from ragfilter.ui.session import answers
from ragfilter.ui.session.answers import Side
from ragfilter.ui.session.resources import Resources
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


def of_view(view: View) -> Callable[[], str]:
    """The report of the question in force."""
    return partial(_of_query, view, str(st.session_state.profile))


def of_two(
    view: View,
    results: tuple[Result, Result],
    names: tuple[Called, Called],
    sides: tuple[Side, Side],
) -> Callable[[], str]:
    """The report of one question under two settings."""
    return partial(_of_two, view, results, names, sides)


def of_duel(
    made: Duel, names: tuple[Called, Called], runs: Sequence[Run], prices: Prices | None
) -> Callable[[], str]:
    """The report of two sides over a query set, rows of these runs."""
    return partial(measured.of_duel, made, names, runs, prices)


def of_run(made: Measured, prices: Prices | None) -> Callable[[], str]:
    """The report of a run."""
    return partial(measured.of_run, made.run, made.records, prices)


def _of_query(view: View, profile: str) -> str:
    result, resources = view.mine, view.resources
    filtered, plain = answers.sides(result)
    known = _known(
        view.asked.query,
        (("without the filter", plain), ("with the filter", filtered)),
        resources,
    )
    return question.of_query(
        result, profile, _origin(view), prices=resources.prices, answers=known
    )  # fmt: skip


def _of_two(
    view: View,
    results: tuple[Result, Result],
    names: tuple[Called, Called],
    sides: tuple[Side, Side],
) -> str:
    known = _known(view.asked.query, tuple((side.name, side) for side in sides), view.resources)
    prices = view.resources.prices
    return question.of_two(results, names, _origin(view), prices=prices, answers=known)


def _known(
    query: str, named: tuple[tuple[str, Side], ...], resources: Resources
) -> list[Told]:  # fmt: skip
    found = [(name, side, answers.known(query, side, resources)) for name, side in named]
    return [told(name, answer, side.context) for name, side, answer in found if answer is not None]


def _origin(view: View) -> Origin:
    asked = view.asked
    model = view.resources.bench.embedder_of(asked.collection).name
    space = view.result.pool.space
    return Origin(asked.collection, asked.version, model, space, view.user, datetime.now(UTC))
