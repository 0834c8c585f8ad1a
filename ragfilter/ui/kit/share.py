"""Sharing: the link to exactly this page, and the reports.

Pressing the button makes the report, with the answers that exist by then. No model is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from streamlit.delta_generator import DeltaGenerator

from ragfilter.report import visible_ids
from ragfilter.ui.look import html
from ragfilter.ui.session import link, state
from ragfilter.ui.session.views import View

if TYPE_CHECKING:
    from ragfilter.ui.kit.answers import AnswerSide

LINK = (
    '<button type="button" class="rf-copy" title="Copies a link with the question, settings, '
    "user, open chunk and panel, ranks shown and filter. A chunk that this user cannot see is left "
    'out."><i aria-hidden="true">link</i><span>Link</span></button>'
    '<p class="rf-unseen" role="status"></p>'
)


def draw_link(place: DeltaGenerator, view: View | None) -> None:
    """Draw the button that copies the link in `place`, if a question was asked."""
    if shared := state.session().shared:
        with place:
            ids = () if view is None else visible_ids(view.result)
            data = urlencode(shared | link.looks(ids))
            html.mount("kit/copy_link.js", LINK, key="copy-link", data=data, width="content")


def report_button(make: Callable[[], str], name: str, *, key: str) -> None:
    """Draw the button that downloads a report."""
    html.download(
        "Report",
        key,
        make,
        name,
        "Downloads one HTML file to share. It opens offline, prints on A4, and holds only what this user can see.",
        "description",
    )


def report_name(query: str) -> str:
    """The file name of a question's report, made from its first words."""
    words = re.findall(r"\w+", query.lower())
    return f"{'-'.join(words)[:60].rstrip('-') or 'ragfilter'}.html"


def draw_report(view: View, key: str) -> None:
    """Draw the button that downloads the report on the current question."""
    # The report is made outside the page run, without its session.
    profile, called = state.session().profile, state.profile_label()

    def report() -> str:
        from ragfilter.publish import reports
        from ragfilter.ui.kit import answers

        filtered, plain = answers.answer_sides(view.mine)
        names = {"without the filter": plain, "with the filter": filtered}
        return reports.of_query(view.mine, profile, called=called, **contents(view, names))

    report_button(report, report_name(view.asked.query), key=key)


def contents(view: View, names: dict[str, AnswerSide]) -> dict[str, Any]:
    """What both reports contain: their origin, and the answers that exist by now, by name."""
    from ragfilter.publish.reports import ReportOrigin, shown_answer
    from ragfilter.ui.kit import answers

    asked, resources = view.asked, view.resources
    embedder = resources.bench.recorded_embedder(asked.collection)
    known = {name: answers.known_answer(asked.query, side, resources) for name, side in names.items()}
    return {
        "origin": ReportOrigin(
            asked.collection,
            resources.bench.version_seen(asked.collection, view.user),
            embedder.name,
            view.result.pool.space,
            view.user,
            datetime.now(UTC),
        ),
        "prices": resources.bench.prices,
        "answers": [
            shown_answer(name, answer, names[name].context) for name, answer in known.items() if answer is not None
        ],
    }
