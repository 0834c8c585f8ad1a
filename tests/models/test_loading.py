"""Environment variables that are set before a model is loaded."""

from __future__ import annotations

import os

import pytest

from ragfilter.models.embedders import quiet_loading


@pytest.mark.parametrize(
    ("given", "in_force"),
    [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")],
    ids=["threads that wait sleep", "what the user set stays"],
)
def test_how_threads_wait(monkeypatch: pytest.MonkeyPatch, given: str | None, in_force: str) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    quiet_loading()
    assert os.environ["OMP_WAIT_POLICY"] == in_force
