"""A URL with credentials: nothing on the page contains them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_empty_places import vault

from ragfilter.model import Chunk

pytestmark = pytest.mark.model


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("RAGFILTER_CHROMA_URL", "http://user:s3cr%40t@127.0.0.1:9"),
        ("OPENAI_BASE_URL", "http://user:s3cr%40t@127.0.0.1:9/v1"),
        ("RAGFILTER_DATABASE_URL", "postgresql://user:pass@host:s3cr/db"),
    ],
)
def test_no_secret_of_a_url_is_on_the_page(
    open_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, url: str
) -> None:
    monkeypatch.setenv(variable, url)
    # Without a collection, the page queries no database.
    page = vault(open_page, tmp_path, {}, Chunk("c1", text="The vault is empty."))
    assert len(page.errors) == 1
    assert "s3cr" not in page.sent
