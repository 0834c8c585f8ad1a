"""The start of every page, and the page's own scripts, which are components of Streamlit."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.ui.look import theme

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer


def mount(script: str, html: str | None = None, **given: Any) -> None:
    """Run `script`, a file below `ragfilter/ui`, beside its `html`. `given` goes to Streamlit."""
    _register(script, html)(**given)


@cache
def _register(script: str, html: str | None) -> ComponentRenderer:
    js = files("ragfilter.ui").joinpath(script).read_text(encoding="utf-8")
    name = script.replace("/", ".").removesuffix(".js")
    return st.components.v2.component(f"ragfilter.{name}", html=html, js=js, isolate_styles=False)


_follow = st.components.v2.component(
    "ragfilter.frame",
    # Called only when the theme or `data` changes. So if the two never agree, it asks for one run,
    # not for one after another. In a narrow window the sidebar covers the page, so it closes when a
    # page is chosen in it.
    js="""const close = ({ target }) => {
      if (innerWidth < 768 && target.closest(".stSidebar a")) {
        document.querySelector("[aria-label='Collapse sidebar']")?.click()
      }
    }
    // In a field, Ctrl+Z takes back what was typed. Streamlit's shortcut would undo a setting.
    const typing = "textarea, input[type=text]:not([role=combobox])"
    const keep = event => {
      const undoes = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z"
      if (undoes && event.target.closest?.(typing)) event.stopImmediatePropagation()
    }
    // A list in which nothing can be typed keeps the focus after a choice. The next letter or arrow
    // is meant for the page, but Streamlit hears no shortcut in a field.
    const closed = "[role=combobox][inputmode=none][aria-expanded=false]"
    const pass = event => {
      const held = event.ctrlKey || event.metaKey || event.altKey
      if (held || !/^([a-z]|Arrow(Left|Right))$/i.test(event.key)) return
      if (!event.target.matches?.(closed)) return
      event.stopImmediatePropagation()
      document.body.dispatchEvent(new KeyboardEvent("keydown", event))
    }
    // Streamlit makes each change of the address a step of the history, and Back would undo one
    // setting after another before it came to the question before.
    const stepOf = url => {
      const { pathname, searchParams } = new URL(url, location)
      return [pathname, searchParams.get("q"), searchParams.get("present")].join(" ")
    }
    const push = history.pushState
    history.pushState = (state, title, url) => {
      const change = stepOf(url) === stepOf(location) ? history.replaceState : push
      change.call(history, state, title, url)
    }
    export default ({ data, parentElement, setTriggerValue }) => {
      document.addEventListener("click", close)
      document.addEventListener("keydown", keep, true)
      document.addEventListener("keydown", pass, true)
      if (getComputedStyle(parentElement).colorScheme !== data) setTriggerValue("switched", true)
    }""",
    isolate_styles=False,
)


def dress() -> None:
    """Add the style sheet to the page, once per run. Charts and tables have the colours of the run
    that drew them, so switching the theme starts another run, with a callback that does nothing."""
    dark = theme.is_dark()
    st.html(theme.stylesheet(dark=dark))
    _follow(key="theme", data="dark" if dark else "light", on_switched_change=lambda: None)
