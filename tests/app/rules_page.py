"""The Rules page under AppTest, read as a curator reads it."""

from __future__ import annotations

from typing import Any


def open_rules(page: Any) -> Any:
    """Go to the Rules page in the session that `page` is."""
    page.at.switch_page("pages/rules.py")
    return page.run()


def settled(page: Any) -> Any:
    """The page once the labelled questions are gathered: the run that waits for them draws anew."""
    return page.run()
