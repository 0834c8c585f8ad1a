"""Any sentence-transformers model: identified by its name, and loaded only when it is used."""

from __future__ import annotations

import pytest

from ragfilter.errors import ModelError
from ragfilter.models.embedders import SentenceEmbedder


def test_a_name_that_is_not_on_this_machine_is_told_at_once() -> None:
    with pytest.raises(
        ModelError, match="The embedding model nobody-has-this is not installed on this machine"
    ) as error:
        SentenceEmbedder("nobody-has-this").embed(["text"])
    assert "`hf download sentence-transformers/nobody-has-this`" in error.value.remedy
