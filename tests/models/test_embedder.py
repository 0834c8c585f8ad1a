"""Any sentence-transformers model: told apart by its name, and loaded only when it is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragfilter.errors import ModelError
from ragfilter.models.bundled import BUNDLED, bundled_folder
from ragfilter.models.embedder import SentenceEmbedder


def test_a_model_that_is_not_there_is_told_with_a_remedy(tmp_path: Path) -> None:
    empty = SentenceEmbedder(str(tmp_path))
    with pytest.raises(ModelError, match="cannot be loaded") as error:
        empty.embed(["text"])
    assert BUNDLED in error.value.remedy


def test_a_name_that_is_not_on_this_machine_is_told_at_once() -> None:
    with pytest.raises(
        ModelError, match="The embedding model nobody-has-this is not installed on this machine"
    ) as error:
        SentenceEmbedder("nobody-has-this").embed(["text"])
    assert "`hf download sentence-transformers/nobody-has-this`" in error.value.remedy


def test_nothing_is_loaded_before_it_is_needed(tmp_path: Path) -> None:
    assert SentenceEmbedder(str(tmp_path)).name == str(tmp_path)


@pytest.mark.model
@pytest.mark.parametrize(
    "text", ["", "\x00", "a\ud800b", "word " * 200_000], ids=["empty", "nul", "surrogate", "long"]
)
def test_no_text_breaks_it(text: str) -> None:
    vectors = SentenceEmbedder(str(bundled_folder())).embed([text, "owl"])
    assert np.isfinite(vectors).all()
