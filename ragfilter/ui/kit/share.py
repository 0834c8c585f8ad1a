"""What leaves the page: the link to exactly this page, and the reports.

A report is made when its button is pressed, with the answers that exist by then. No model is
called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.model import PoolResult
from ragfilter.protocols import Embedder
from ragfilter.publish import question
from ragfilter.publish.html import ReportOrigin
from ragfilter.publish.question import Called
from ragfilter.publish.told import Told, told
from ragfilter.report import visible
from ragfilter.ui.session import answers, link
from ragfilter.ui.session.answers import AnswerSide
from ragfilter.ui.session.visit import View

NAME = "ragfilter.copy_link"
LINK_HELP = (
    "Copies a link that holds the question, the settings, the open chunk and panel, the ranks "
    "shown, the filter, and the user. A chunk that this user may not see is left out."
)
_copy = st.components.v2.component(
    NAME,
    html=f'<button type="button" class="rf-copy" title="{LINK_HELP}"><i aria-hidden="true">link</i>'
    '<span>Link</span></button><p class="rf-unseen" role="status"></p>',
    # Browsers allow writing to the clipboard only on a click and, through the modern API, only over
    # HTTPS. The check mark stays while the copied link is the current one.
    js="""const write = async text => {
      if (navigator.clipboard) return navigator.clipboard.writeText(text)
      const put = event => {
        event.clipboardData.setData("text/plain", text)
        event.preventDefault()
      }
      document.addEventListener("copy", put)
      const copied = document.execCommand("copy")
      document.removeEventListener("copy", put)
      if (!copied) throw new Error("The browser did not copy.")
    }
    export default ({ parentElement, data }) => {
      const button = parentElement.querySelector("button")
      const say = (icon, aloud) => {
        button.firstChild.textContent = icon
        parentElement.querySelector("[role=status]").textContent = aloud
      }
      button.onclick = async () => {
        const link = `${location.origin}${location.pathname}?${data}`
        await write(link).then(
          () => say("check", "Link copied"), () => say("error", "Link not copied"))
      }
      say("link", "")
    }""",
    isolate_styles=False,
)


def draw_link(place: DeltaGenerator, view: View | None) -> None:
    """Draw the button in `place`, if a question was asked."""
    params = link.whole_link(visible(view.result) if view is not None else ())
    if params:
        with place:
            _copy(key="copy-link", data=urlencode(params), width="content")


def report_button(make: Callable[[], str], name: str, *, key: str) -> None:
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


def report_of_query(view: View, profile: str) -> str:
    """The report of the current question, with settings that started from `profile`."""
    filtered, plain = answers.sides(view.mine)
    named = {"without the filter": plain, "with the filter": filtered}
    prices, known = view.resources.prices, _known(view, named)
    return question.of_query(
        view.mine, profile, _origin(view), prices=prices, answers=known, embedder=_embedder(view)
    )


def report_of_two(
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
