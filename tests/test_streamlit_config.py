"""The values of `.streamlit/config.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[1] / ".streamlit" / "config.toml"


def test_no_rerun_waits_for_the_garbage_and_nothing_is_served_or_told_to_others() -> None:
    config = tomllib.loads(CONFIG.read_text(encoding="utf-8"))
    assert config["runner"]["postScriptGC"] is False
    assert config["server"]["address"] == "127.0.0.1"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "type"
