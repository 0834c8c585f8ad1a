"""The app's server in a process of its own, forked from one that has already imported the large
libraries, and the page: this takes seconds, and a run starts some ten servers."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
from pathlib import Path

from encoded import share_encodings

ROOT = Path(__file__).resolve().parents[1]
SERVERS = multiprocessing.get_context("forkserver")
SERVERS.set_forkserver_preload(
    "streamlit.web.cli pandas plotly chromadb openai onnxruntime tokenizers ragfilter.ui.inspect.page".split()
)


def serve(environ: dict[str, str], port: int, log: Path, encodings: Path) -> None:
    """`streamlit run app.py` in this environment, its output in `log`, with the shared vectors."""
    with log.open("wb") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    sys.argv = ["streamlit", "run", "app.py", "--server.port", str(port)]
    share_encodings(encodings)
    # The libraries are not garbage, and checking them takes a second per server.
    gc.freeze()
    from streamlit.web.cli import main

    main()
