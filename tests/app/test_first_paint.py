"""The first paint of the page imports only what it draws, and nothing for other pages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from waiting import PROCESS_S

ROOT = Path(__file__).resolve().parents[2]

# Other pages, and panels that need a result; modules for indexing and editing rules. The path needs labels and runs.
OTHERS = """ragfilter.cli ragfilter.library ragfilter.publish ragfilter.ui.collections ragfilter.ui.compare
ragfilter.ui.evaluate ragfilter.ui.kit.rule_editor.editor ragfilter.ui.rules ragfilter.ui.tune ragfilter.models.openai
ragfilter.ingest.load ragfilter.rules.drafting ragfilter.rules.edits ragfilter.rules.families ragfilter.rules.lint
ragfilter.rules.templates ragfilter.stores.indexer openai scipy scripts sentence_transformers sklearn torch
transformers""".split()

PAINT = f"""
import json, sys
from streamlit.testing.v1 import AppTest

at = AppTest.from_file(sys.argv[1], default_timeout={PROCESS_S}).run()
assert not at.exception, [e.value for e in at.exception]
print(json.dumps([[button.label for button in at.button], sorted(sys.modules)]))
"""


@pytest.mark.model
def test_the_first_paint_loads_nothing_of_what_it_does_not_draw(
    copy_demo: Callable[[], Path], bare_environ: dict[str, str]
) -> None:
    made = subprocess.run(
        [sys.executable, "-c", PAINT, str(ROOT / "app.py")],
        cwd=ROOT,
        env={**bare_environ, "RAGFILTER_DATA_DIR": str(copy_demo())},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    buttons, loaded = json.loads(made.stdout)
    assert "Evidence: 200 chunks" in buttons
    assert "ragfilter.ui.kit.controls" in loaded
    parts = {name.rpartition(".")[0] for name in loaded} | set(loaded)
    assert sorted(parts.intersection(OTHERS)) == []
