"""Builds a demo collection from the page, with progress and a Stop button."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources

if TYPE_CHECKING:
    from ragfilter.stores.chroma.store import CollectionInfo


class Demo(NamedTuple):
    """A demo collection: the label of its button, and what it is for."""

    button: str
    about: str


DEMOS: dict[str, Demo] = {
    "demo": Demo(
        "Build the demo collection",
        "The rules of an invented fantasy game, to try the layers with: look-alike tables, "
        "comparisons, secrets.",
    ),
    "adsapi": Demo(
        "Build the API collection",
        "The description of an invented advertising API, to try the LLM judge with: operations "
        "and schemas that refer to each other.",
    ),
}
HELP = "Embeds a few hundred chunks with the bundled model. Takes under a minute on most machines."


def missing(collections: Mapping[str, CollectionInfo]) -> list[str]:
    """The demos that do not exist or are incomplete."""
    return [n for n in DEMOS if n not in collections or not collections[n].complete]


def offer(names: list[str], resources: Resources) -> bool:
    """Draw one button per demo, the first as primary. True once one has been built."""
    place = st.empty()
    chosen = ""
    with place.container(key="demos", gap="small"):
        for name in names:
            with st.container(key=f"demo-{name}", gap="small"):
                html.draw(f'<p class="rf-demo"><b>{name}</b> {html.text(DEMOS[name].about)}</p>')
                pressed = st.button(
                    DEMOS[name].button,
                    key=f"build-{name}",
                    type="primary" if name == "demo" else "secondary",
                    icon=":material/play_arrow:",
                    help=HELP,
                )
            chosen = name if pressed else chosen
    if not chosen:
        return False
    place.empty()
    return _build(chosen, resources)


def _build(name: str, resources: Resources) -> bool:
    from ragfilter.ingest.load import load
    from ragfilter.stores.index import index

    st.button(
        "Stop",
        key="stop-build",
        icon=":material/stop:",
        help="Stops after the current batch. Build again to continue from there.",
    )
    bar = st.progress(0.0, text="Loading the embedding model …")

    def progress(done: int, total: int) -> None:
        share = done / total if total else 1.0
        bar.progress(min(share, 1.0), text=f"{share:.0%} of texts embedded and chunks written")

    bench = resources.bench
    try:
        index(
            load(name),
            name=name,
            workspace=bench.workspace,
            embedder=bench.embedder,
            rules=bench.journal.edited_rules(name),
            progress=progress,
        )
    except RagfilterError as error:
        bar.empty()
        problems.show(error)
        return False
    state.session().collection = name
    return True
