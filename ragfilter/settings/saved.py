"""Settings saved by name: TOML files of the workspace, which `--config` reads."""

from __future__ import annotations

import re
from pathlib import Path

from ragfilter.basics.files import TextFiles
from ragfilter.errors import InputError, SettingsError

FOLDER = "settings"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}[A-Za-z0-9]|[A-Za-z0-9]")


def names(files: TextFiles) -> list[str]:
    """The names that settings are saved under, in order."""
    stems = (name[:-5] for name in files.names(FOLDER) if name.endswith(".toml"))
    return sorted(filter(_NAME.fullmatch, stems), key=str.casefold)


def find(files: TextFiles, name: str) -> Path:
    """The file of settings that were saved. Raises InputError, SettingsError: there are none."""
    path = files.path(_file(name))
    if not path.is_file():
        there = ", ".join(names(files)) or "none yet"
        raise SettingsError(
            f"No settings are saved under {name!r}, and there is no such file.",
            remedy=f"Saved in {files.folder}: {there}.",
        )
    return path


def save(files: TextFiles, name: str, toml: str) -> None:
    """Save settings, in place of any of the same name. Raises InputError."""
    files.write(_file(name), toml)


def delete(files: TextFiles, name: str) -> None:
    """Forget saved settings, if there are any. Raises InputError."""
    files.delete(_file(name))


def _file(name: str) -> str:
    """Where the settings called `name` are. Raises InputError: not a name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not a valid name for saved settings.",
            remedy="Use up to 64 letters, digits, spaces, dots, dashes or underscores, with a "
            "letter or digit at both ends.",
        )
    return f"{FOLDER}/{name}.toml"
