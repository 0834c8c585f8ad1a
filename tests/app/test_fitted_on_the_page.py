"""One muted line says that current thresholds were fitted to something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.model


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        (
            "adaptive-gap",
            "Gap threshold and Distance offset were fitted to the source documents' collections "
            "(l2), not to this collection.",
        ),
        ("full", ""),
    ],
)
def test_the_page_says_what_was_fitted_elsewhere(
    open_page: Callable[..., Any], profile: str, told: str
) -> None:
    page = open_page({"profile": profile, "q": "Tell me about owlbears"})
    assert [said for said in page.html if "fitted to" in said] == ([told] if told else [])
