"""The recipes of docs/architecture.md, followed exactly in a copy of the package: a new layer and a
new cutoff strategy, on the real page and the command line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import PROCESS_S

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[1]
OWLBEARS = "Tell me about owlbears"
SCHEMA = "ragfilter/settings/schema.py"
ADDED = ["ragfilter/layers/short.py", "ragfilter/layers/strategies/half.py"]
TESTS = [
    "tests/test_theme.py",
    "tests/test_story.py",
    "tests/layers/test_cutoff.py",
    "tests/layers/test_strategies.py",
    "tests/test_config.py::test_a_bad_value_is_named",
]
"""Tests that cover every layer and strategy."""
Run = Callable[..., subprocess.CompletedProcess[str]]

PAGE = f"""
import json, re, sys
from streamlit.testing.v1 import AppTest

def opened(params):
    at = AppTest.from_file("app.py", default_timeout={PROCESS_S})
    at.query_params.update(params)
    return ran(at)

def ran(at):
    at.run()
    assert not at.exception, [e.value for e in at.exception]
    return at

def strategy(at):
    # Its options say what each would keep, so its key changes with them.
    return next(b for b in at.sidebar.selectbox if b.key.startswith("set-cutoff-strategy"))

def seen(at):
    html = " ".join(e.value for e in at.html)
    tables = [frame.value for frame in at.dataframe]
    return {{
        "switch": at.toggle(key="set-short-enabled").label,
        "on": at.toggle(key="set-short-enabled").value,
        "told": re.findall(r'<p class="rf-line">([^<]*)', html),
        "sliders": [slider.key for slider in at.slider],
        "strategies": [option.partition(" · ")[0] for option in strategy(at).options],
        "funnel": re.findall(r'<li title="([^"]*)"', html),
        "path": re.findall(r"</span><b>([^<]*)</b> ([^<]*)</li>", html),
        "trace": [code.value for code in at.code],
        "kept": [int(rank) for f in tables if "outcome" in f
                 for o, rank in zip(f["outcome"], f["rank"]) if o[0] == "● kept"],
        "limits": re.findall(r"<li>(?:<b>)?([^<]*)", html),
        "link": dict(at.query_params),
    }}

def unfolded(at):
    at.button(key="line-idle").click()
    ran(at)
    for line in ("line-short", "line-cutoff"):
        at.button(key=line).click()
    return ran(at)

at = unfolded(opened({{"profile": "adaptive-gap", "q": {OWLBEARS!r}, "open": "tuning,evidence"}}))
off = seen(at)
at.toggle(key="set-short-enabled").set_value(True)
ran(at).slider(key="set-short-fewest").set_value(500)
strategy(at).set_value("half")
ran(at)
at.session_state["session"].panel = "Debug"
on = seen(ran(at))
again = unfolded(opened(on["link"]))
again.session_state["session"].chunk = sys.argv[1]
again.session_state["session"].panel = "Chunk"
print(json.dumps([off, on, seen(ran(again))]))
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, copy_demo: Callable[[], Path], bare_environ: dict[str, str]) -> Run:
    """Runs Python in the copy of the project in which the recipes were followed."""
    home = tmp_path_factory.mktemp("grown")
    for name in ("ragfilter", "pages", ".streamlit", "tests"):
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("app.py", "pyproject.toml"):
        shutil.copy(ROOT / name, home)
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    added = re.findall(r"```python\n# (\S+)\n(.*?)```", text, flags=re.DOTALL)
    assert [path for path, _ in added] == [SCHEMA, *ADDED]
    for path, code in added[1:]:
        assert not (home / path).exists()
        (home / path).write_text(code, encoding="utf-8")
    section, _, name = added[0][1].partition("class Settings(Section):\n")
    schema = home / SCHEMA
    _add_line(schema, section, before="class Cutoff(Section):\n")
    _add_line(schema, name, before="    cutoff: Cutoff")
    _add_line(schema, '    "half": "the nearer half.",\n', before='}\n"""The strategies')
    _add_line(home / "ragfilter/layers/registry.py", '    "short",\n', before='    "cutoff",\n')
    environ = {**bare_environ, "RAGFILTER_DATA_DIR": str(copy_demo()), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        made = subprocess.run([sys.executable, *arguments], cwd=home, env=environ, capture_output=True, text=True)
        assert made.returncode == 0, made.stdout + made.stderr
        return made

    return run


def _add_line(path: Path, line: str, *, before: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, line + before, 1), encoding="utf-8")


@pytest.fixture(scope="module")
def query(run: Run) -> subprocess.CompletedProcess[str]:
    """A question asked with the new layer and strategy on; the trace is on standard error."""
    flags = (
        "--set",
        "short.enabled=true",
        "--set",
        "short.fewest=500",
        "--set",
        "cutoff.strategy=half",
        "--json",
        "--debug",
    )
    return run("-m", "ragfilter", "query", OWLBEARS, "--profile", "adaptive-gap", *flags)


@pytest.fixture(scope="module")
def document(query: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(query.stdout)
    return made


def test_what_the_recipes_add_passes_lint_and_the_tests_of_all_layers(run: Run) -> None:
    run("-m", "ruff", "check", *ADDED)
    run("-m", "ruff", "format", "--check", *ADDED)
    run("-m", "pytest", "-q", *TESTS)


def test_the_command_line_runs_the_layer_and_explains_its_drops(document: dict[str, Any]) -> None:
    names = [layer["layer"] for layer in document["layers"]]
    assert names.index("short") == names.index("cutoff") - 1
    (layer,) = (layer for layer in document["layers"] if layer["layer"] == "short")
    assert 0 < layer["n_out"] < layer["n_in"]
    dropped = [hit for hit in document["hits"] if hit["layer"] == "short"]
    assert len(dropped) == layer["n_in"] - layer["n_out"]
    assert all(hit["reason"] == f"{hit['value']} characters, fewer than 500" for hit in dropped)
    made = [d for d in document["decisions"] if d["layer"] == "short"]
    assert len(made) == layer["n_in"]
    assert {d["setting"] for d in made if d["outcome"] == "dropped"} == {"short.fewest"}
    assert document["settings"]["short"] == {"enabled": True, "fewest": 500}
    assert document["cutoff"]["strategy"] == "half"
    assert len(document["kept"]) == 3


def test_the_strategy_cuts_a_list(run: Run) -> None:
    cut = run("-m", "ragfilter", "cut", "0.1", "0.2", "0.9", "--strategy", "half", "--json")
    made = json.loads(cut.stdout)
    assert (made["kept"], made["reason"]) == (2, "half of 3")
    help_ = " ".join(run("-m", "ragfilter", "cut", "--help").stdout.split())
    assert "half: the nearer half." in help_


def test_the_page_shows_switch_slider_funnel_and_explanation_and_the_link_brings_them_back(
    run: Run, document: dict[str, Any]
) -> None:
    dropped = next(hit for hit in document["hits"] if hit["layer"] == "short")
    off, on, again = json.loads(run("-c", PAGE, dropped["id"]).stdout)
    assert off["switch"] == "Short chunks"
    promise = "Drop chunks that are too short to answer anything. Free:"
    assert any(line.startswith(promise) for line in off["told"])
    assert not off["on"]
    assert "set-short-fewest" not in off["sliders"]
    assert "half" in off["strategies"]
    assert not any(line.startswith("short: ") for line in off["funnel"])

    assert on["on"]
    assert "set-short-fewest" in on["sliders"]
    assert any(re.fullmatch(r"short: \d+ too short", line) for line in on["funnel"])
    assert on["kept"] == [hit["rank"] for hit in document["hits"] if hit["place"]]
    assert len(on["kept"]) == 3
    assert any("Layer short: " in trace for trace in on["trace"])
    limit = r"Fewest characters = 500 \(short\) drops \d+"
    assert any(re.fullmatch(limit, line) for line in on["limits"])
    assert on["link"] == {
        "q": OWLBEARS,
        "collection": "demo",
        "profile": "adaptive-gap",
        "cutoff.strategy": "half",
        "short.enabled": "true",
        "short.fewest": "500",
        "open": "tuning,evidence",
    }

    assert (again["on"], again["funnel"][1:-1]) == (True, on["funnel"][1:-1])
    assert again["link"] == on["link"]
    assert ["Short chunks", f"dropped: {dropped['reason']}"] in again["path"]
