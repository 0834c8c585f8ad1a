"""What every page begins with: the style sheet, in the browser's theme, and a sidebar that does not
cover what was chosen in it.
"""

from __future__ import annotations

import streamlit as st

from ragfilter.ui.look import theme

_follow = st.components.v2.component(
    "ragfilter.frame",
    # Called when the theme or `data` changes, and then only: where the two cannot agree, it asks
    # for one run, not for one after another. In a narrow window the sidebar lies over the page, so
    # it gives way to the page that was chosen there.
    js="""const close = ({ target }) => {
      if (innerWidth < 768 && target.closest("[data-testid=stSidebarNavLink]")) {
        document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click()
      }
    }
    export default ({ data, parentElement, setTriggerValue }) => {
      document.addEventListener("click", close)
      if (getComputedStyle(parentElement).colorScheme !== data) setTriggerValue("switched", true)
    }""",
    isolate_styles=False,
)


def dress() -> None:
    """Put the style sheet on the page, once a run. Charts and tables have the colours that the run
    gave them, so a switch of the theme starts another."""
    dark = st.context.theme.type == "dark"
    st.html(theme.stylesheet(dark=dark))
    _follow(key="theme", data="dark" if dark else "light", on_switched_change=_nothing)


def _nothing() -> None:
    """The run that a trigger starts is all that is wanted of it."""
