"""A collection in which every text tries to be active."""

from __future__ import annotations

from pathlib import Path

from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.stores.indexer import index
from ragfilter.stores.workspace_files import Workspace

CANARY = "zqx"
NAME = "www.zqx.example"
HOSTILE = tuple(
    (
        "![zqx](//zqx.example/a.png)¦[zqx](http://zqx.example)¦[zqx][a]\n\n[a]: //zqx.example¦"
        "\\![zqx](http://zqx.example)¦<http://zqx.example>¦http://zqx.example/a?b¦HTTPS://zqx.example¦www.zqx.example¦"
        "me@zqx.example¦:red[zqx] :small[zqx]¦:color[zqx]{foreground=red}¦:material/zqx: zqx¦:material_zqx: zqx¦"
        ":streamlit: zqx¦:smile: :+1: :100: zqx¦$zqx$ $$zqx$$¦`zqx` ```zqx```¦```mermaid\nzqx\n```¦\\`zqx\\` \\$zqx\\$¦"
        "**zqx** _zqx_ *zqx* ~~zqx~~¦__zqx__ zqx__zqx¦# zqx¦- zqx¦+ zqx¦12) zqx¦> zqx¦zqx\n===\nzqx¦    zqx¦"
        "| zqx |\n|--|\n| zqx |¦zqx &lt;b&gt; &#33;[a](b)¦<b>zqx</b><img src=zqx>¦</section><script>zqx</script>¦"
        '<a href="//zqx.example">zqx</a>¦[^zqx]¦::zqx[zqx]¦`zqx\n\n[zqx](http://zqx.example)\n\nzqx`¦'
        "zqx 6 -> 7 -- (c) <- 8 <-> 9 >= 1 <= 2 ~= 3 --"
    ).split("¦")
)
"""Active texts from outside; each contains the word ``zqx``, which occurs nowhere else."""

HTML = "<img src=x onerror=alert(1)></section><script>alert(2)</script>"
FORMULAS = (
    Chunk("=1+1", text="The vault is closed.", title='=HYPERLINK("http://x")', source="@SUM(A1)"),
    Chunk("+2", text="", title="-3", type="\t=4", rule='{"contain": "<b>x</b>"}'),
)
IDS = tuple(f"{i} {text}" for i, text in enumerate(HOSTILE))
ODD = Chunk("odd-rule", "The vault is far.", HTML, type=HTML, source=HTML, rule="{broken", refs=IDS)
CHUNKS = (
    *(
        Chunk(
            chunk_id,
            f"The vault is open. {text}",
            text,
            type=text,
            source=text,
            department=text if i % 2 else None,
            refs=(f"lost {text}",),
        )
        for i, (chunk_id, text) in enumerate(zip(IDS, HOSTILE, strict=True))
    ),
    *FORMULAS,
    ODD,
)

SAID = "\n\n".join(f"{text} [{i + 1}]" for i, text in enumerate(HOSTILE))
"""All of these texts in one, as an LLM might write them."""


def build(folder: Path) -> Path:
    """Index the chunks in a new workspace."""
    with Workspace.open(folder) as workspace:
        records = [Record(chunk, "here") for chunk in CHUNKS]
        index(records, name=NAME, workspace=workspace, embedder=BundledEmbedder())
    return folder
