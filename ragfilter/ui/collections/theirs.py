"""Foreign collections: opened in place, with the model that made their vectors."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.indexing.overview import Facts
from ragfilter.stores import foreign
from ragfilter.stores.foreign import ForeignCheck, Opening
from ragfilter.ui.kit import problems
from ragfilter.ui.look.prose import literal, quiet
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

MODEL = (
    "The model that made the vectors: a sentence-transformers name or path, or openai:NAME for "
    "embeddings over the OpenAI protocol. A different model returns meaningless results, even if "
    "its dimensions match."
)
CHANGES = "Lets rules be written into the collection. Otherwise nothing in it is changed."


def opened(facts: Facts, resources: Resources) -> None:
    """Draw how a collection that ragfilter did not make is opened, with a form to change it."""
    name = facts.info.name
    opening = resources.bench.stores.opening(name)
    st.markdown(quiet("Not made by ragfilter: queried and exported as it is."))
    _form(name, opening, resources, key="theirs")
    found = st.session_state.get("theirs-found")
    if found is not None and found[0] == name:
        _findings(found[1])
    if opening.folder:
        st.button(
            "Close", key="theirs-close", on_click=_close, args=(name, resources),
            help="Removes it from this list. The collection itself is unchanged.",
        )  # fmt: skip


@st.fragment
def elsewhere(resources: Resources) -> None:
    """Draw the form that opens a collection in a Chroma folder or on another server."""
    with st.expander("Open an existing Chroma collection", key="elsewhere"):
        folder = st.text_input(
            "Chroma folder or server", key="elsewhere-folder",
            placeholder="/path/to/chroma or http://host:8000",
            help="A folder on the computer that runs the app, as given to "
            "chromadb.PersistentClient; close other programs that use it. Or the URL of a server "
            "that asks for no password. Where it asks for one, start the app with "
            "RAGFILTER_CHROMA_URL; its collections are then listed above.",
        ).strip()  # fmt: skip
        if not folder:
            return
        try:
            folder = foreign.resolved(folder)
            infos = resources.bench.stores.at(folder).collections()
        except RagfilterError as error:
            problems.show(error, retry=False)
            return
        names = [info.name for info in infos]
        if not names:
            st.info("There is no collection there.")
            return
        name = st.selectbox(
            "Collection there", names, key="elsewhere-name", help="The collection to open."
        )
        _form(name, Opening(folder=folder), resources, key="elsewhere")


def _form(name: str, opening: Opening, resources: Resources, *, key: str) -> None:
    try:
        hint = opening.embedder or foreign.hint(resources.bench.stores.at(opening.folder), name)
    except RagfilterError as error:
        problems.show(error, retry=False)
        return
    model = st.text_input(
        "Embedding model", hint, key=f"{key}-model-{name}", help=MODEL,
        placeholder=f"for example {resources.bench.embedder.name}",
    ).strip()  # fmt: skip
    writable = st.toggle(
        "Allow changes", opening.writable, key=f"{key}-writable-{name}", help=CHANGES
    )
    if st.button(
        "Open", key=f"{key}-open", type="primary",
        help="Checks the model's dimensions, and says what works and what needs more.",
    ):  # fmt: skip
        try:
            bench = resources.bench
            wanted = Opening(opening.folder, model, writable)
            with st.spinner("Checking …"):
                found = bench.stores.open(name, wanted, bench.embedder_called)
        except RagfilterError as error:
            problems.show(error, retry=False)
            return
        st.session_state["theirs-found"] = (name, found)
        state.session().collection = name
        st.session_state.pop("manage-name", None)
        st.rerun()


def _findings(found: tuple[ForeignCheck, ...]) -> None:
    for title, good in (("Works", True), ("Needs more", False)):
        listed = [f"- {literal(each.said)}" for each in found if each.good == good]
        if listed:
            st.markdown(f"**{title}**\n\n" + "\n".join(listed))


@state.then_page
def _close(name: str, resources: Resources) -> None:
    with state.tell_errors():
        resources.bench.stores.forget(name)
    st.session_state.pop("manage-name", None)
