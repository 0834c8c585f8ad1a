"""`ragfilter settings`: the reference of settings, generated from their fields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from pydantic import SecretStr

from ragfilter.cli import output
from ragfilter.cli.program import command
from ragfilter.settings.config import SEED_VARIABLES, variable
from ragfilter.settings.deployment import PREFIX, Deployment
from ragfilter.settings.profiles import DEFAULT, PROFILES
from ragfilter.settings.schema import fields

INTRODUCTION = """\
# Settings

Later sources override earlier ones: defaults, profile, settings file (`--config`, TOML with one
`[section]` per layer), environment, flags (`--set section.name=value`). An invalid value is refused
with its name, the allowed values and its origin. `ragfilter settings` generates this page."""


@command()
def settings() -> None:
    """Print the settings reference (Markdown)."""
    output.emit(markdown(), as_file=True)


def markdown() -> str:
    """Every setting, profile and deployment variable."""
    parts = [INTRODUCTION]
    head = ("Setting", "Default", "Allowed", "Unit", "Environment variable", "What it does")
    for section, members in groupby(fields(), key=lambda info: info.section):
        rows = [
            (f"`{each.path}`", _value(each.default), each.allowed(), each.unit, f"`{variable(each.path)}`", each.help)
            for each in members
        ]
        parts.append(f"## {section}\n\n{_table(head, rows)}")
    parts += [_profiles(), _seed_variables(), _deployment()]
    return "\n\n".join(parts) + "\n"


def _profiles() -> str:
    rows = [
        (
            f"`{each.name}`" + (" (default)" if each.name == DEFAULT else ""),
            each.help,
            ", ".join(f"`{path}` {_value(value)}" for path, value in each.values.items()),
        )
        for each in PROFILES.values()
    ]
    text = f"Chosen with `--profile` or `{PREFIX}PROFILE`."
    return f"## Profiles\n\n{text}\n\n{_table(('Profile', 'What it is', 'Differs in'), rows)}"


def _seed_variables() -> str:
    rows = [(f"`{name}`", f"`{path}`") for name, path in SEED_VARIABLES.items()]
    rows.append(("`ENABLE_RERANKER`", "`quality.reranker` (`false` sets `none`)"))
    text = "These names also work. Setting `RERANKER_MODEL` selects the cross-encoder."
    return f"## Other environment variables\n\n{text}\n\n{_table(('Variable', 'Sets'), rows)}"


def _deployment() -> str:
    rows = []
    for name, info in Deployment.model_fields.items():
        alias = info.validation_alias
        variable_name = alias if isinstance(alias, str) else f"{PREFIX}{name.upper()}"
        secret = isinstance(info.default, SecretStr)
        default = info.default.get_secret_value() if secret else info.default
        rows.append((f"`{variable_name}`", _value(default), " ".join((info.description or "").split())))
    text = "Where things are. These are never part of the filter's settings or of a link."
    return f"## Deployment\n\n{text}\n\n{_table(('Variable', 'Default', 'What it is'), rows)}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def _value(value: Any) -> str:
    if value in ("", None):
        return "empty"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
