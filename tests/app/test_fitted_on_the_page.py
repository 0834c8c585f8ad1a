"""One muted line says that current thresholds were fitted to something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ragfilter.ui.look.prose import literal, quiet

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
    captions = [said.value for said in page.at.markdown if "fitted to" in said.value]
    assert captions == ([quiet(literal(told))] if told else [])
