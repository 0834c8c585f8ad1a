"""The templates for an LLM's drafts, one for each category of chunks: written here, tried on three
chunks, saved as a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pandas as pd
import streamlit as st

from ragfilter import toml_files
from ragfilter.errors import InputError, RagfilterError
from ragfilter.model import Chunk
from ragfilter.rules import templates
from ragfilter.rules.drafting import total
from ragfilter.rules.templates import Template
from ragfilter.text.characters import whole
from ragfilter.text.numbers import counted
from ragfilter.toml_files import SUFFIX
from ragfilter.ui.look import html, numbers
from ragfilter.ui.panels.draft_note import NO_LLM
from ragfilter.ui.rules import desk, drafting_run
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.rules.drafting_run import Run
from ragfilter.ui.session.resources import open_resources

CHOSEN, NAME, TEXT, SAID, TRIED = (
    "category-chosen", "category-name", "category-text", "category-said", "category-tried",
)  # fmt: skip
NEW = "New category …"
TRIES = 3
LOOKED_AT = 2_000
"""Of a selection so many chunks are sorted into categories."""
LOOK_S = 0.5
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
    """The categories, and one of them to be written."""
    bench = work.resources.bench
    html.draw(
        '<p class="rf-aside">A template says which chunks it is for and what their rules hold. '
        f"Your own are kept in <code>{html.text(bench.template_folder)}</code>, where "
        "<code>ragfilter rules suggest --llm</code> finds them too.</p>"
    )
    try:
        known = bench.templates()
    except InputError as error:
        html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(error)}</p>')
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
        pd.DataFrame(
            {
                "category": list(found),
                "chunks": [len(each) for each in found.values()],
                "such as": [each[0].name if each else None for each in found.values()],
            }
        ),
        key="category-table",
        hide_index=True,
        placeholder="–",
        column_config={
            "chunks": st.column_config.NumberColumn(
                "chunks",
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
    said: tuple[str, str] | None = st.session_state.get(SAID)
    if said is not None:
        role = "alert" if said[0] == "rf-bad" else "status"
        html.draw(f'<p class="rf-verdict {said[0]}" role="{role}">{html.text(said[1])}</p>')
    tried: Run | None = work.resources.tried.get(st.session_state.get(TRIED, ""))
    if tried is not None:
        st.fragment(_tried, run_every=None if tried.job.done else LOOK_S)(work, tried)


def _read(name: str, text: str, chunks: Sequence[Chunk]) -> tuple[Template | None, list[Chunk]]:
    """The template and the first chunks that it is for; what is wrong with it is drawn."""
    try:
        template = templates.read(text, name=f"{name}{SUFFIX}")
    except InputError as error:
        html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(error)}</p>')
        return None, []
    sender = drafting_run.sender()
    fits = (chunk for chunk in chunks if sender.sees(chunk) and template.fits(chunk))
    fitting = list(islice(fits, TRIES))
    if not fitting:
        html.draw(
            '<p class="rf-verdict">No chunk that the filter under Chunks shows fits it. Widen the '
            "patterns, or clear the filter.</p>"
        )
    return template, fitting


def _open() -> None:
    """Put the chosen template's text into the editor."""
    _forget()
    name = st.session_state[CHOSEN]
    if name == NEW:
        st.session_state[NAME], st.session_state[TEXT] = "", SKELETON
        return
    own = open_resources().bench.template_folder / f"{name}{SUFFIX}"
    packaged = templates.FOLDER / own.name
    try:
        text = toml_files.read_text(own if own.exists() else packaged)
    except InputError as error:
        st.session_state[SAID] = ("rf-bad", str(error))
        return
    st.session_state[NAME], st.session_state[TEXT] = name, text


def _save(name: str, text: str) -> None:
    _forget()
    try:
        path = templates.write(open_resources().bench.template_folder, name, text)
    except InputError as error:
        st.session_state[SAID] = ("rf-bad", f"Not saved: {error}")
    else:
        st.session_state[SAID] = ("rf-good", f"Saved as {path}.")


def _try(collection: str, ids: Sequence[str], template: Template) -> None:
    _forget()
    resources = open_resources()
    try:
        chunks = list(resources.bench.collection(collection).chunks(ids).values())
    except RagfilterError as error:
        st.session_state[SAID] = ("rf-bad", str(error))
        return
    run = drafting_run.try_template(chunks, template, resources)
    if run is not None:
        st.session_state[TRIED] = f"{id(run.job)}"
        resources.tried.put(st.session_state[TRIED], run)


def _forget() -> None:
    for name in (SAID, TRIED):
        st.session_state.pop(name, None)


def _tried(work: Desk, run: Run) -> None:
    """What the template made of the chunks it was tried on."""
    if not run.job.done:
        html.draw(
            f'<p class="rf-aside" role="status">{len(run.made)} of {run.total} drafted … '
            f"{run.job.seconds:.0f} s</p>"
        )
        return
    failed = run.job.future.exception()
    made = list(run.made)
    listed = ""
    for draft in made:
        chunk = work.chunks.get(draft.chunk_id)
        if chunk is None:
            continue
        doubts = "".join(f"<br><b>Doubt:</b> {html.text(doubt)}" for doubt in draft.remarks)
        listed += (
            f"<li><b>{html.text(chunk.name)}</b><br>"
            f"{html.text(draft.text or f'No draft: {draft.error}')}{doubts}</li>"
        )
    usage = total(made, run.job.seconds).usage
    why = ""
    if failed is not None:
        said = str(failed) if isinstance(failed, RagfilterError) else "An unexpected error."
        why = f'<p class="rf-verdict rf-bad" role="alert">{html.text(said)}</p>'
    html.draw(
        f'{why}<div class="rf-effect"><p class="rf-caption">Tried; nothing is saved · '
        f"{usage.prompt_tokens:,} + {numbers.tokens(usage.completion_tokens)}</p>"
        f"<ul>{listed}</ul></div>"
    )
