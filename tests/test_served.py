"""How the app is served: the values of `.streamlit/config.toml`, as Streamlit reads them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OPTIONS = {
    "runner.postScriptGC": False,
    "server.address": "127.0.0.1",
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "type",
}
READ = """
import json, sys
from streamlit import config
print(json.dumps({name: config.get_option(name) for name in sys.argv[1:]}))
"""


def test_no_rerun_waits_for_the_garbage_and_nothing_is_served_or_told_to_others(
    bare_environ: dict[str, str],
) -> None:
    read = subprocess.run(
        [sys.executable, "-c", READ, *OPTIONS],
        cwd=ROOT, env=bare_environ, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(read.stdout) == OPTIONS
