"""Page elements that Streamlit lacks, and the page's own scripts, as Streamlit components. Text from outside is escaped
or shown literally. In our own text, `code` is between backticks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.layers.layer import Mark
from ragfilter.model import Outcome, PoolResult, Pruning
from ragfilter.ui.look import theme
from ragfilter.ui.look.prose import message

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

V = TypeVar("V")


def draw(body: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Add HTML to the page."""
    st.html(body, width=width)


def unseen_heading(words: str, *, level: int = 2, name: str = "") -> None:
    """Draw a heading for screen readers only, which read `name` instead if it is given."""
    label = f' aria-label="{text(name)}"' if name else ""
    draw(f'<h{level} class="rf-unseen"{label}>{text(words)}</h{level}>')


def text(value: object) -> str:
    """`value` escaped for use in HTML."""
    return escape(str(value), quote=True)


def sign(mark: Mark, name: str) -> str:
    """The sign of an outcome or layer in its colour; `name` is its CSS variable."""
    return f'<span class="rf-sign" style="color:var(--rf-{name})">{mark.sign}</span>'


def outcome_sign(outcome: Outcome, layer: str, setting: str = "") -> str:
    """The sign of a hit's outcome, given the layer and `setting` that decided."""
    name = f"layer-{layer}" if outcome == "dropped" else outcome
    return sign(theme.mark(outcome, layer, setting), name)


def struck_text(result: PoolResult, chunk_id: str, whole: str) -> str:
    """The text of a chunk with the sentences that the prune layer struck, each with what it adds; empty if none was."""
    detail = result.trace("prune").detail
    parts = detail.pieces.get(chunk_id, ()) if isinstance(detail, Pruning) else ()
    if not isinstance(detail, Pruning) or not any(part.struck for part in parts):
        return ""
    shown = []
    for part in parts:
        words = text(whole[part.start : part.end])
        why = f"{part.value:.3f} &lt; {detail.limit:.3f}"
        shown.append(f"<s>{words}</s><small> {why} </small>" if part.struck else words)
    return f'<div class="rf-pruned" data-passage>{"".join(shown)}</div>'


Fact = tuple[str, object, str]
"""A label, its value, and a smaller note next to it."""


def aside(*notes: str, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw side notes."""
    for words in notes:
        body = re.sub(r"`([^`]+)`", r"<code>\1</code>", text(words))
        # Streamlit's caption is too faint to be read by everybody.
        draw(f'<p class="rf-aside">{body}</p>', width=width)


def draw_changes(lines: Iterable[str]) -> None:
    """Draw changed settings as a list."""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    draw(f'<ul class="rf-changes" aria-label="Changes">{items}</ul>')


def draw_action_result(words: str, *, good: bool) -> None:
    """Draw the outcome of an action, in words."""
    look, role = ("rf-good", "status") if good else ("rf-bad", "alert")
    draw(f'<p class="rf-verdict {look}" role="{role}">{text(words)}</p>', width="content")


def chunk_head(title: str, facts: Iterable[str], more: str = "") -> None:
    """Draw the title of a chunk and facts about it; `more` is HTML."""
    listed = "".join(f"<span>{text(fact)}</span>" for fact in facts if fact)
    head = f'<h3>{text(title)}</h3><p class="rf-facts">{listed}</p>'
    draw(f'<div class="rf-chunk">{head}{more}</div>')


def draw_chunk_text(words: str) -> None:
    """Draw the text of a chunk literally."""
    st.text(words or "This chunk has no text.")


def row(key: str | None = None, align: Literal["center", "bottom", "top"] = "center") -> DeltaGenerator:
    """A row of controls."""
    return st.container(key=key, horizontal=True, vertical_alignment=align, gap="small")


def button(
    label: str,
    key: str,
    act: Callable[..., Any] | None = None,
    *args: object,
    icon: str = "",
    about: str | None = None,
    **given: Any,
) -> bool:
    """Draw a button that calls `act` with `args`, with the Material symbol `icon` and the tooltip
    `about`. `given` goes to Streamlit. Returns whether it was pressed."""
    symbol = f":material/{icon}:" if icon else None
    return st.button(label, key, about, on_click=act, args=args, icon=symbol, **given)


def download(
    label: str, key: str, data: Callable[[], str | bytes], name: str, about: str | None = None, **given: Any
) -> None:
    """Draw a button that downloads `data`, made on the click, as the file `name`. The click starts
    no run, because that could remove the file too early. `given` goes to Streamlit."""
    given = {"on_click": "ignore", "icon": ":material/download:"} | given
    st.download_button(label, data, name, guess_type(name)[0], key=key, help=about, **given)


def report(key: str, data: Callable[[], str], name: str) -> None:
    """Draw the button that downloads a report."""
    about = "Downloads one HTML file to share. It opens offline, prints on A4, and holds only what this user can see."
    download("Report", key, data, name, about, icon=":material/description:")


def heading(words: str) -> None:
    """Draw a heading for a part of the page."""
    st.header(words, anchor=False)


def empty(head: str, remedy: str = "") -> None:
    """Draw what is missing, and how to get it."""
    st.markdown(f"**{message(head)}** {message(remedy)}")


def facts(label: str, rows: Iterable[Fact]) -> None:
    """Draw a row of facts, which screen readers call `label`."""
    draw(f'<section class="rf-strip" aria-label="{text(label)}">{"".join(map(fact, rows))}</section>')


def fact(row: Fact) -> str:
    """A fact as HTML."""
    name, value, more = map(text, row)
    return f'<div class="rf-fact"><span>{name}</span><b>{value} <i>{more}</i></b></div>'


def hint(text: str) -> None:
    """Explain the control before it. Streamlit hides the help of a hidden label."""
    st.markdown("", help=text, width="content")


def choice(label: str, options: Iterable[str], about: str = "", *, key: str, default: str, **given: Any) -> str:
    """Draw a choice, kept for the session, with `about` at a question mark. `given` goes to Streamlit. Returns it."""
    given = {"persist_state": "session", "label_visibility": "collapsed"} | given
    chosen: str = st.segmented_control(label, list(options), key=key, default=default, required=True, **given)
    if about:
        hint(about)
    return chosen


def select(label: str, labels: Mapping[V, str], key: str, **given: Any) -> V:
    """Draw a list of `labels` by value, kept for the session. `given` goes to Streamlit. Returns the chosen value."""
    # A kept value that is no longer offered has a label, too: Streamlit then shows the default instead.
    given |= {"format_func": lambda each: labels.get(each, str(each)), "persist_state": "session"}
    chosen: V = st.selectbox(label, list(labels), key=key, **given)
    return chosen


def mount(script: str, html: str | None = None, **given: Any) -> Any:
    """Run `script`, a file below `ragfilter/ui`, with its `html`. `given` goes to Streamlit. Returns its state."""
    return _register(script, html)(**given)


@cache
def _register(script: str, html: str | None) -> ComponentRenderer:
    js = files("ragfilter.ui").joinpath(script).read_text(encoding="utf-8")
    name = script.replace("/", ".").removesuffix(".js")
    return st.components.v2.component(f"ragfilter.{name}", html=html, js=js, isolate_styles=False)


def add_style_sheet() -> None:
    """Add the style sheet to the page, once per run. Charts and tables keep the colours of the run
    that drew them, so a callback that does nothing starts another run when the theme changes."""
    dark = theme.is_dark()
    st.html(theme.stylesheet(dark=dark))
    mount("look/frame.js", key="theme", data="dark" if dark else "light", on_switched_change=lambda: None)
