"""Templates for an LLM's drafts, one for each category of chunks: edited here, tried on three
chunks, and saved as a file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import streamlit as st

from ragfilter.basics.files import read_text
from ragfilter.basics.toml_files import SUFFIX
from ragfilter.errors import ConflictError, InputError, RagfilterError
from ragfilter.model import Chunk
from ragfilter.rules import templates
from ragfilter.rules.draft import Draft
from ragfilter.rules.drafting import total
from ragfilter.rules.templates import Template
from ragfilter.text.characters import whole
from ragfilter.text.numbers import counted
from ragfilter.ui.look import say
from ragfilter.ui.look.prose import literal, message
from ragfilter.ui.panels.draft_note import NO_LLM
from ragfilter.ui.rules import desk, drafting_run, outcome
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.rules.drafting_run import Drafting
from ragfilter.ui.session import waiting
from ragfilter.ui.session.resources import open_resources

CHOSEN, NAME, TEXT, TRIED = (
    "category-chosen", "category-name", "category-text", "category-tried",
)  # fmt: skip
OPENED, CLASH = "category-opened", "category-clash"
"""The name and text of the template that was opened or saved last; the name of one that has another
text by now."""
NEW = "New category …"
TRIES = 3
LOOKED_AT = 2_000
"""Maximum number of selected chunks that are sorted into categories."""
SKELETON = """\
# Which chunks, and what their rules hold. The first category that fits is taken.
version = 1

[recognise]
title = ['\\bprice lists?\\b']

[prompt]
holds = \"\"\"
Two groups.
1. What is for sale, singular and plural, with the other words people use for it.
2. Words that show that a price is asked for: "price", "prices", "cost", "costs", "how much".
\"\"\"

[example]
title = "Price List - Lanterns"
rule = '''
{"contain_one_of": [["lantern", "lanterns", "lamp"], ["price", "prices", "how much"]]}
'''
"""


def draw(work: Desk) -> None:
    """Draw the categories and the editor for one of them."""
    bench = work.resources.bench
    say.aside(
        "A template says which chunks it is for and what their rules hold. Your own are kept in "
        f"`{bench.template_folder}`, where `ragfilter rules suggest --llm` finds them too."
    )
    try:
        known = bench.templates()
    except InputError as error:
        st.error(message(str(error)))
        known = templates.packaged()
    chunks = [row.chunk for row in desk.selected(work)]
    left, right = st.columns((1, 1.2), gap="medium")
    with left:
        _table(known, chunks)
    with right:
        _editor(work, known, chunks)


def _table(known: Sequence[Template], chunks: Sequence[Chunk]) -> None:
    looked_at = chunks[:LOOKED_AT]
    found: dict[str, list[Chunk]] = {template.category: [] for template in known}
    for chunk in looked_at:
        fitting = next((t.category for t in known if t.fits(chunk)), None)
        if fitting is not None:
            found[fitting].append(chunk)
    st.dataframe(
        {
            "category": list(found),
            "chunks": [len(each) for each in found.values()],
            "such as": [each[0].name if each else None for each in found.values()],
        },
        key="category-table",
        hide_index=True,
        placeholder="–",
        column_config={
            "chunks": st.column_config.NumberColumn(
                help="Chunks that the filter under Chunks shows and this template is for"
                + (f", of the first {LOOKED_AT:,}." if len(chunks) > len(looked_at) else "."),
            )
        },
    )


def _editor(work: Desk, known: Sequence[Template], chunks: Sequence[Chunk]) -> None:
    names = [NEW, *(template.category for template in known)]
    st.selectbox(
        "Open",
        names,
        key=CHOSEN,
        on_change=_open,
        help="A category to change. Saving a packaged one keeps your own in its place.",
    )
    if TEXT not in st.session_state:
        st.session_state[TEXT] = SKELETON
    name = st.text_input(
        "Category",
        key=NAME,
        persist_state="session",
        placeholder="price-list",
        help="The name of its file: lower-case letters, digits and hyphens.",
    )
    text = whole(
        st.text_area(
            "Template",
            key=TEXT,
            persist_state="session",
            height=330,
            help="TOML. recognise: patterns for title or type; without any it fits every chunk. "
            "prompt.holds: what the rule holds, for the LLM. example: a title and its rule.",
        )
    )
    template, fitting = _read(name or "new", text, chunks)
    lacking = work.resources.bench.chat is None
    with st.container(key="category-buttons", horizontal=True, gap="small"):
        st.button(
            f"Try on {counted(len(fitting), 'chunk')}",
            key="category-try",
            on_click=_try,
            args=(work.collection, [chunk.id for chunk in fitting], template),
            disabled=lacking or not fitting,
            help=NO_LLM if lacking else "Asks the LLM for their rules. Nothing is saved.",
        )
        st.button(
            "Save",
            key="category-save",
            type="primary",
            on_click=_save,
            args=(name or "", text),
            disabled=template is None,
            help="Keeps the template as a file.",
        )
        if st.session_state.get(CLASH) == name:
            st.button(
                "Replace it",
                key="category-replace",
                on_click=_save,
                args=(name or "", text, True),
                disabled=template is None,
                help="Saves this text over the other template.",
            )
    outcome.draw()
    job: Drafting | None = st.session_state.get(TRIED)
    made = waiting.result(job, "category-trying", "Drafting")
    if made is not None:
        _tried(work, made)


def _read(name: str, text: str, chunks: Sequence[Chunk]) -> tuple[Template | None, list[Chunk]]:
    """Read the template and the first chunks it applies to; draw the error if that fails."""
    try:
        template = templates.read(text, name=f"{name}{SUFFIX}")
    except InputError as error:
        st.error(message(str(error)))
        return None, []
    sender = drafting_run.sender()
    fits = (chunk for chunk in chunks if sender.sees(chunk) and template.fits(chunk))
    fitting = list(islice(fits, TRIES))
    if not fitting:
        say.aside(
            "No chunk that the filter under Chunks shows fits it. Widen the patterns, or clear the "
            "filter."
        )
    return template, fitting


def _open() -> None:
    """Load the chosen template's text into the editor."""
    _forget()
    name = st.session_state[CHOSEN]
    if name == NEW:
        st.session_state[NAME], st.session_state[TEXT] = "", SKELETON
        return
    own = open_resources().bench.template_folder / f"{name}{SUFFIX}"
    packaged = templates.FOLDER / own.name
    try:
        text = read_text(own if own.exists() else packaged)
    except InputError as error:
        outcome.put(str(error), good=False)
        return
    st.session_state[NAME], st.session_state[TEXT] = name, text
    st.session_state[OPENED] = name, text


def _save(name: str, text: str, replace: bool = False) -> None:
    """Save the template, unless the file has a text that was not opened here."""
    _forget()
    of, opened = st.session_state.get(OPENED, ("", ""))
    expected = None if replace else opened if of == name else ""
    try:
        path = templates.write(
            open_resources().bench.template_folder, name, text, expected=expected
        )
    except (InputError, ConflictError) as error:
        if isinstance(error, ConflictError):
            st.session_state[CLASH] = name
        outcome.put(f"Not saved: {error}", good=False)
    else:
        st.session_state[OPENED] = name, text
        outcome.put(f"Saved as {path}.", good=True)


def _try(collection: str, ids: Sequence[str], template: Template) -> None:
    _forget()
    resources = open_resources()
    try:
        chunks = list(resources.bench.collection(collection).chunks(ids).values())
    except RagfilterError as error:
        outcome.put(str(error), good=False)
        return
    st.session_state[TRIED] = drafting_run.try_template(collection, chunks, template, resources)


def _forget() -> None:
    outcome.forget()
    st.session_state.pop(TRIED, None)
    st.session_state.pop(CLASH, None)


def _tried(work: Desk, made: Sequence[Draft]) -> None:
    """Draw the drafts that the template gave for the chunks it was tried on."""
    used = drafting_run.tokens(total(made, 0).usage, work.resources.prices)
    say.aside(f"Tried; nothing is saved · {used}")
    for draft in made:
        chunk = work.chunks.get(draft.chunk_id)
        if chunk is not None:
            st.markdown(f"**{literal(chunk.name)}**")
            st.code(draft.text or f"No draft: {draft.error}", language="json", wrap_lines=True)
            for doubt in draft.remarks:
                say.aside(f"Doubt: {doubt}")
