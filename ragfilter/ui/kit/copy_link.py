"""The button that copies a link to exactly this page: question, settings and what is open."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.report import visible
from ragfilter.ui.session import link
from ragfilter.ui.session.visit import View

NAME = "ragfilter.copy_link"
HELD = (
    "Copies a link that holds the question, the settings, the open chunk and panel, the ranks "
    "shown, the filter, and the user. A chunk that this user may not see is left out."
)
_copy = st.components.v2.component(
    NAME,
    html=f'<button type="button" class="rf-copy" title="{HELD}"><i aria-hidden="true">link</i>'
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


def draw(place: DeltaGenerator, view: View | None) -> None:
    """Draw the button in `place`, if a question was asked."""
    params = link.whole_link(visible(view.result) if view is not None else ())
    if params:
        with place:
            _copy(key="copy-link", data=urlencode(params), width="content")
