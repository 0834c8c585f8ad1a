"""Optional packages. If one is missing or has the wrong version, the error names the command that
installs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec

from ragfilter.errors import DependencyError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Imports of packages that only the extra `name` installs stand in this block.

    Raises DependencyError if one of them is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise DependencyError(f"{error.name} is not installed.", remedy=_install(name)) from error


def check_installed(package: str, *, extra: str) -> None:
    """Raises DependencyError if `package` is missing. Imports nothing."""
    if find_spec(package) is None:
        raise DependencyError(f"{package} is not installed.", remedy=_install(extra))


def check_version(package: str, supported: str, *, extra: str) -> None:
    """Raises DependencyError unless the version of `package` is in the `supported` range.

    For code that relies on what the package does not document. `pyproject.toml` has the same range.
    """
    from packaging.specifiers import SpecifierSet

    installed = version(package)
    if installed not in SpecifierSet(supported, prereleases=True):
        raise DependencyError(
            f"{package} {installed} is not supported, only {supported}.", remedy=_install(extra)
        )


def _install(name: str) -> str:
    return f"Run: pip install 'ragfilter[{name}]'"
