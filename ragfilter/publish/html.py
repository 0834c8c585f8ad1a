"""Renders a template to a single HTML text, with styles and plots inside it and nothing to fetch.

Every value is escaped, since a chunk's text is data. A content security policy in the file also
forbids all requests.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from ragfilter import __version__
from ragfilter.basics.extras import extra
from ragfilter.evaluate import caveats
from ragfilter.layers.registry import LAYERS
from ragfilter.model import User
from ragfilter.report.contrast import reason
from ragfilter.settings.config import to_toml
from ragfilter.text import numbers
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from jinja2 import Environment

    from ragfilter.stores.runs import Run


@dataclass(frozen=True, slots=True)
class ReportOrigin:
    """What a report was made from, so that it can be reproduced."""

    collection: str
    collection_version: str
    model: str
    space: str
    user: User
    at: datetime
    labels: str = ""

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Labels and values, in order."""
        return (
            ("collection", f"{self.collection}, version {self.collection_version}"),
            ("embedding model", f"{self.model}, {self.space}"),
            *([("labels", f"version {self.labels}")] if self.labels else []),
            ("seen as", viewed(self.user)),
            ("made", f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC by ragfilter {__version__}"),
        )


def origin_of(run: Run) -> ReportOrigin:
    """The origin of a run's figures."""
    plan = run.plan
    return ReportOrigin(
        plan.collection, plan.collection_version, plan.model, plan.space, plan.viewer, run.at,
        plan.labels_version,
    )  # fmt: skip


def render(template: str, **values: Any) -> str:
    """Render a template."""
    page = _environment().get_template(template).render(layers=LAYERS, **values)
    # Foreign text may contain lone surrogates, which no file can hold.
    return whole(page)


def command(*words: str, user: User) -> str:
    """A shell command that repeats a report as its user."""
    level = ("--level", str(user.level)) if user.level else ()
    departments = (word for name in user.departments for word in ("--department", name))
    return shlex.join(("ragfilter", *words, *level, *departments))


def viewed(user: User) -> str:
    """The user for whom something was made, in words."""
    if user.unrestricted:
        return "everyone: clearance is off"
    named = f", departments {', '.join(user.departments)}" if user.departments else ""
    return f"level {user.level}{named}"


@cache
def _environment() -> Environment:
    with extra("app"):
        from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("ragfilter.publish"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": numbers.count,
        "counted": numbers.counted,
        "tokens": numbers.tokens,
        "money": numbers.money,
        "distance": numbers.distance,
        "signed": numbers.signed,
        "p_value": numbers.p_value,
        "gain": caveats.gain,
        "ends": caveats.ends,
        "between": lambda of, form: caveats.between_ends(of, form.format, "–"),
        "reason": reason,
        "toml": to_toml,
    }
    return environment
