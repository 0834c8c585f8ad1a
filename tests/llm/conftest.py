"""A real LLM for the tests in this folder, if the optional extra is installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_llms import LocalLlm, must_be_installed, served


@pytest.fixture(scope="session")
def _installed() -> None:
    must_be_installed()


@pytest.fixture(scope="module")
def local_llm(_installed: None, bare_environ: dict[str, str]) -> Iterator[LocalLlm]:
    with served(bare_environ) as running:
        yield running
