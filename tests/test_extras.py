"""Optional packages that are missing or have another version."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import DependencyError, RagfilterError, check_version, extra


def test_a_missing_package_is_named_with_the_command_that_installs_it(snapshot: SnapshotAssertion) -> None:
    with pytest.raises(DependencyError) as error, extra("chroma"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401
    assert str(error.value) == snapshot
    assert isinstance(error.value, RagfilterError)
    assert isinstance(error.value, ImportError)


@pytest.mark.parametrize(("found", "fits"), [("1.5.1", False), ("1.5.2", True), ("1.6.0", False)])
def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, found: str, fits: bool) -> None:
    monkeypatch.setattr("ragfilter.errors.version", {"chromadb": found}.get)
    if fits:
        check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")
        return
    with pytest.raises(DependencyError) as error:
        check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")
    assert str(error.value) == (
        f"chromadb {found} is not supported, only >=1.5.2,<1.6. Run: pip install 'ragfilter[chroma]'"
    )
