"""Settings saved by name: TOML files in the workspace, which `--config` reads."""

from __future__ import annotations

import re
from pathlib import Path

from ragfilter.basics.files import write_text
from ragfilter.errors import InputError, SettingsError

FOLDER = "settings"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}[A-Za-z0-9]|[A-Za-z0-9]")


def names(workspace: Path) -> list[str]:
    """The names that settings are saved under, in order."""
    files = (workspace / FOLDER).glob("*.toml")
    return sorted((path.stem for path in files if _NAME.fullmatch(path.stem)), key=str.casefold)


def path(workspace: Path, name: str) -> Path:
    """Where the settings called `name` lie. Raises InputError: not a name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid name for saved settings.",
            remedy="Use up to 64 letters, digits, spaces, dots, dashes or underscores, with a "
            "letter or digit at both ends.",
        )
    return workspace / FOLDER / f"{name}.toml"


def find(workspace: Path, name: str) -> Path:
    """The file of settings that were saved. Raises InputError, SettingsError: there are none."""
    file = path(workspace, name)
    if not file.is_file():
        there = ", ".join(names(workspace)) or "none yet"
        raise SettingsError(
            f"No settings are saved under {name!r}, and there is no such file.",
            remedy=f"Saved in {workspace}: {there}.",
        )
    return file


def save(workspace: Path, name: str, toml: str) -> None:
    """Save settings, in place of any of the same name. Raises InputError."""
    remedy = "Free up disk space, or make the workspace folder writable."
    write_text(path(workspace, name), toml, remedy=remedy)


def delete(workspace: Path, name: str) -> None:
    """Forget saved settings; where there are none, nothing happens. Raises InputError."""
    file = path(workspace, name)
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{file} cannot be deleted: {error.strerror}.",
            remedy="Make the workspace folder writable.",
        ) from None
