"""The name that labels, votes, runs and rule edits of this session are recorded with."""

from __future__ import annotations

from ragfilter.text.normalise import whole
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources

MOST = 100
"""Characters of a name."""


def author() -> str:
    """The name given in this session, otherwise that of the deployment."""
    given: str = state.session().author
    return given or open_resources().deployment.user


def sign(name: str) -> None:
    """Use this name from now on; a blank one stands for that of the deployment."""
    state.session().author = whole(name).strip()[:MOST].strip()
