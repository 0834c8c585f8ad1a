"""The wheel, the sdist, and an environment to install it in."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from waiting import PROCESS_S

ROOT = Path(__file__).resolve().parents[1]
BUILT_FROM = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
OFFLINE = ("--no-index", "--no-deps")
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
BUILD = "from setuptools import build_meta as b; b.build_sdist({to!r}); b.build_wheel({to!r})"


def run(*command: str | Path, cwd: Path) -> None:
    made = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=PROCESS_S)
    assert made.returncode == 0, made.stderr


def build(folder: Path) -> Path:
    """Build the wheel, next to the sdist, from a copy with tests and leftovers of an earlier build.
    Returns the wheel's path."""
    copy, dist = folder / "source", folder / "dist"
    shutil.copytree(ROOT / "ragfilter", copy / "ragfilter", ignore=shutil.ignore_patterns("__pycache__"))
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, copy)
    for stale in ("build/lib/ragfilter/gone.py", "tests/test_it.py"):
        (copy / stale).parent.mkdir(parents=True)
        (copy / stale).touch()
    dist.mkdir()
    run(sys.executable, "-c", BUILD.format(to=str(dist)), cwd=copy)
    (wheel,) = dist.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *options: str) -> Path:
    """Install the wheel in a fresh environment, with further `options` of `pip install`. Returns
    the folder of its scripts."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=wheel.parent)
    run(*PIP, "--python", folder / "bin" / "python", "install", *options, wheel, cwd=wheel.parent)
    return folder / "bin"


def add_packages(folder: Path) -> None:
    """Give the environment the packages that the tests run on."""
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
