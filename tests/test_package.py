"""`pip install .`: a wheel with every file of the package, and it works without a checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from waiting import PROCESS_S

import ragfilter
from ragfilter.ingest import adsapi, demo
from ragfilter.judge import prompts as judge_prompts
from ragfilter.rules import templates

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("pyproject.toml", "README.md", "LICENSE")


def pip(*args: str, cwd: Path) -> None:
    """Pip without the network."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    made = subprocess.run([*command, *args, "--no-index", "--no-deps"],
                          cwd=cwd, capture_output=True, text=True, timeout=PROCESS_S)  # fmt: skip
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing of an earlier build is in it and none is left behind."""
    folder = tmp_path_factory.mktemp("wheel")
    copy = folder / "source"
    shutil.copytree(ROOT / "ragfilter", copy / "ragfilter",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, copy)
    pip("wheel", "--no-build-isolation", "-w", str(folder), ".", cwd=copy)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    pip("install", "--target", str(folder), str(wheel), cwd=folder)
    return folder


def run(installed: Path, cwd: Path, *command: str) -> str:
    """What a command prints that sees the installed package and no checkout."""
    made = subprocess.run(command, cwd=cwd, env=os.environ | {"PYTHONPATH": str(installed)},
                          capture_output=True, text=True, timeout=PROCESS_S)  # fmt: skip
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    tree = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "ragfilter").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with ZipFile(wheel) as opened:
        packed = set(opened.namelist())
    assert {name for name in packed if ".dist-info/" not in name} == tree


def test_the_wheel_wants_what_the_pinned_list_names_but_for_the_tests(wheel: Path) -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    only_tests = {line for line in pinned if line.startswith("pytest==")}
    with ZipFile(wheel) as opened:
        (name,) = (n for n in opened.namelist() if n.endswith("/METADATA"))
        metadata = opened.read(name).decode().splitlines()
    wanted = {line.removeprefix("Requires-Dist: ") for line in metadata if "Requires-Dist" in line}
    assert wanted == pinned - only_tests
    assert len(only_tests) == 1
    assert f"Version: {ragfilter.__version__}" in metadata


def test_the_script_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    script = str(installed / "bin" / "ragfilter")
    assert run(installed, tmp_path, script, "--version") == f"ragfilter {ragfilter.__version__}\n"
    reference = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert run(installed, tmp_path, script, "settings") == reference
    assert list(tmp_path.iterdir()) == []


def test_the_module_runs_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    made = run(installed, tmp_path, sys.executable, "-m", "ragfilter", "cut", "--json",
               "0.12", "0.18", "0.22", "0.35", "0.50")  # fmt: skip
    assert json.loads(made)["kept"] == 4


READ_ALL = """
import json, ragfilter
from ragfilter.judge import prompts as judge_prompts
from ragfilter.ingest import adsapi, demo
from ragfilter.ingest.load import load
from ragfilter.rules import templates
from ragfilter.ui.look import theme
print(json.dumps({
    "file": ragfilter.__file__,
    "demo": [len(list(load("demo"))), len(demo.queries()), len(demo.qrels())],
    "adsapi": [len(list(load("adsapi"))), len(adsapi.queries()), len(adsapi.qrels())],
    "prompts": judge_prompts.names(),
    "templates": [template.category for template in templates.packaged()],
    "stylesheet": len(theme.stylesheet()) > 1000,
}))
"""


def test_its_collections_prompts_and_templates_are_read_from_it(
    installed: Path, tmp_path: Path
) -> None:
    made = json.loads(run(installed, tmp_path, sys.executable, "-c", READ_ALL))
    assert Path(made.pop("file")).parent == installed / "ragfilter"
    assert made == {
        "demo": [len(list(demo.records())), len(demo.queries()), len(demo.qrels())],
        "adsapi": [len(list(adsapi.records())), len(adsapi.queries()), len(adsapi.qrels())],
        "prompts": list(judge_prompts.names()),
        "templates": [template.category for template in templates.packaged()],
        "stylesheet": True,
    }
