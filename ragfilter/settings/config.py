"""The sources of settings, where later ones win: defaults, profile, TOML, environment, flags; settings saved by name.

The error for a bad value names the setting, the value, the allowed values and the source."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragfilter.basics.files import TextFiles, decode, parse_toml, read_text
from ragfilter.errors import InputError, SettingsError, complaint, extra
from ragfilter.settings import profiles
from ragfilter.settings.deployment import PREFIX, Deployment
from ragfilter.settings.schema import Settings, field_info, fields
from ragfilter.text.normalise import mend_characters

SEED_VARIABLES: Mapping[str, str] = {
    "MIN_TOP_K": "quality.min_top_k",
    "MAX_TOP_K": "quality.max_top_k",
    "RETRIEVAL_SCORE_THRESHOLD": "quality.score_threshold",
    "RERANKER_MODEL": "quality.reranker_model",
    "RERANKER_TOP_K": "quality.reranker_top_k",
    "RERANKER_SCORE_THRESHOLD": "quality.reranker_threshold",
    "CHUNK_FILTERING_ENABLED": "judge.enabled",
    "CHUNK_FILTERING_OVERSAMPLE_MULTIPLIER": "judge.oversample",
    "CHUNK_FILTERING_MIN_RELEVANCE_THRESHOLD": "judge.min_relevance",
    "CHUNK_FILTERING_LLM_TIMEOUT_MS": "judge.timeout_ms",
    "CHUNK_FILTERING_MAX_PROMPT_TOKENS": "judge.max_prompt_tokens",
}
"""The environment variables in the source documents, and the settings that they set."""


FROM_ENVIRONMENT = "environment variable"
"""The beginning of the origin of a value from an environment variable."""
_WORD = re.compile(r"\w+")
ALIKE = 0.82
"""Minimum similarity (0..1, difflib's ratio) of a suggested name."""
TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


@dataclass(frozen=True, slots=True)
class Given:
    """Values from one source: its `origin` in words, and the raw values by dotted path."""

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Config:
    """The current settings, the profile they started from, and the source of each changed value."""

    settings: Settings
    profile: str
    origins: Mapping[str, str]

    def variable(self, path: str, value: Any) -> str:
        """The environment variable that set this value; empty if none did."""
        origin = self.origins.get(path, "")
        from_variable = origin.startswith(FROM_ENVIRONMENT) and self.settings.get(path) == value
        return origin.removeprefix(FROM_ENVIRONMENT).strip() if from_variable else ""


def load(
    *,
    profile: str | None = None,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Sequence[Given] = (),
) -> Config:
    """Load the settings from all sources, by default with the process's environment; later `flags` win. Raises
    SettingsError."""
    from_file, named_profile = read_toml(file, str(file)) if file else (None, None)
    environ = os.environ if environ is None else environ
    choices = (
        (profile, ""),
        (environ.get(f"{PREFIX}PROFILE"), f"{FROM_ENVIRONMENT} {PREFIX}PROFILE"),
        (named_profile, str(file)),
        (profiles.DEFAULT, ""),
    )
    name, origin = next((name, origin) for name, origin in choices if name)
    sources = [Given(f"profile {name}", profiles.profile(name, origin=origin).values)]
    sources += [from_file] if from_file else []
    below = {path: value for each in sources for path, value in each.values.items()}
    reranker = below.get("quality.reranker", field_info("quality.reranker").default)
    settings, origins = merge([*sources, *read_environment(environ, reranker=reranker), *flags])
    return Config(settings, name, origins)


def merge(given: Sequence[Given]) -> tuple[Settings, dict[str, str]]:
    """Merge sources; later ones win. Raises SettingsError with setting, value, range and origin."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for source in given:
        for path, value in source.values.items():
            origins[path] = source.origin
            values[path] = _checked(path, value, source.origin)
    try:
        return Settings().with_values(values), origins
    except ValidationError as error:
        raise _refusal(error, values, origins) from None


def of_profile(name: str, *more: Given) -> Settings:
    """The profile's settings, overridden by `more`. Raises SettingsError."""
    return merge([Given(f"profile {name}", profiles.profile(name).values), *more])[0]


def read_toml(file: Path | bytes, path: str) -> tuple[Given, str | None]:
    """The values and profile in a settings file or its content; `path` names it in messages. Raises SettingsError."""
    try:
        tree = parse_toml(decode(file, path) if isinstance(file, bytes) else read_text(file), path)
    except InputError as error:
        # Report errors in the file as errors in the settings.
        raise SettingsError(error.message, remedy=error.remedy) from None
    named = tree.pop("profile", None)
    if named is not None and not isinstance(named, str):
        raise SettingsError(f"{path}: profile must be a string.", remedy='Write profile = "full".')
    values: dict[str, Any] = {}
    for section, body in tree.items():
        if not isinstance(body, dict):
            raise _unknown(section, path)
        values |= {f"{section}.{name}": value for name, value in body.items()}
    return Given(path, values), named


def read_environment(environ: Mapping[str, str], *, reranker: str) -> list[Given]:
    """Read settings from the environment: names that docs/settings.md lists, then `RAGFILTER_SECTION__NAME`. `reranker`
    is the reranker of the other sources: ENABLE_RERANKER only replaces none."""

    def given(name: str, path: str, value: str) -> Given:
        return Given(f"{FROM_ENVIRONMENT} {name}", {path: value})

    sources = [given(name, path, environ[name]) for name, path in SEED_VARIABLES.items() if environ.get(name)]
    if environ.get("RERANKER_MODEL"):
        sources.append(given("RERANKER_MODEL", "quality.reranker", "cross_encoder"))
    if switch := environ.get(name := "ENABLE_RERANKER"):
        if not _boolean(name, switch, f"{FROM_ENVIRONMENT} {name}"):
            sources.append(given(name, "quality.reranker", "none"))
        elif reranker == "none" and not environ.get("RERANKER_MODEL"):
            sources.append(given(name, "quality.reranker", "late_interaction"))
    known = {variable(f.path): f.path for f in fields()}
    others = {f"{PREFIX}{n.upper()}" for n in Deployment.model_fields} | {f"{PREFIX}PROFILE"}
    for name, value in environ.items():
        if not name.startswith(PREFIX) or name in others or name.startswith(f"{PREFIX}TEST_"):
            continue
        if name not in known:
            message = f"The environment variable {name} names no setting."
            raise SettingsError(message, remedy="Correct or unset it.", action="settings")
        sources.append(given(name, known[name], value))
    return sources


def reads(name: str) -> bool:
    """Whether an environment variable sets a setting."""
    return name.startswith(PREFIX) or name in SEED_VARIABLES or name == "ENABLE_RERANKER"


def variable(path: str) -> str:
    """The environment variable of a setting: ``RAGFILTER_CUTOFF__GAP_THRESHOLD``."""
    return PREFIX + path.replace(".", "__").upper()


def to_toml(settings: Settings, profile: str) -> str:
    """A settings file that reproduces `settings`: the profile, and the values that differ."""
    tree: dict[str, Any] = {"profile": profile}
    for path, value in settings.changed_from(of_profile(profile)).items():
        section, _, name = path.partition(".")
        table = value and field_info(path).table
        tree.setdefault(section, {})[name] = json.loads(value) if table else value
    with extra("app"):
        import tomlkit

    return tomlkit.dumps(_one_line_each(tree))


def _one_line_each(value: Any) -> Any:
    """Write each table in a list on one line: sixty trees of a calibration then take sixty lines, not nine hundred."""
    import tomlkit

    if isinstance(value, dict):
        return {name: _one_line_each(each) for name, each in value.items()}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        rows = tomlkit.array().multiline(True)
        rows.extend(value)
        return rows
    return value


def _checked(path: str, value: Any, origin: str) -> Any:
    """Check for values that pydantic accepts but that a user cannot have meant."""
    try:
        info = field_info(path)
    except KeyError:
        raise _unknown(path, origin) from None
    if info.value_type is bool and isinstance(value, str):
        return _boolean(path, value, origin)
    if info.value_type in (bool, int, float) and isinstance(value, bool) != (info.value_type is bool):
        raise _bad(path, value, origin)
    # Bytes that are not text arrive as surrogates.
    return mend_characters(value) if isinstance(value, str) else value


def _boolean(name: str, value: str, origin: str) -> bool:
    word = value.strip().lower()
    if word in TRUE or word in FALSE:
        return word in TRUE
    raise SettingsError(f"{name} = {value!r} (from {origin}) is not allowed.", remedy="Use true or false.")


def _refusal(error: ValidationError, values: Mapping[str, Any], origins: Mapping[str, str]) -> SettingsError:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    path, reason = ".".join(parts[:2]), complaint(first["msg"])
    if path not in values:
        # Two settings of a section contradict each other.
        words = set(_WORD.findall(reason))
        involved = sorted({origins[p] for p in values if p.removeprefix(f"{path}.") in words})
        sources = "; ".join(involved) or "defaults"
        return SettingsError(f"{path}: {reason} (from {sources}).", remedy="Change one of the two.")
    if field_info(path).table:
        part = f" in {'.'.join(parts[2:])}" if parts[2:] else ""
        message = f"{path} (from {origins[path]}): {reason}{part}."
        return SettingsError(message, remedy="Let tuning write it.", action="tune")
    if field_info(path).allowed() == "text" and first["type"] == "value_error":
        return SettingsError(f"{path} = {values[path]!r} (from {origins[path]}): {reason}.", remedy="Correct it.")
    return _bad(path, values[path], origins[path])


def _bad(path: str, value: Any, origin: str) -> SettingsError:
    return SettingsError(
        f"{path} = {value!r} (from {origin}) is not allowed.", remedy=f"Use {field_info(path).allowed()}."
    )


def _unknown(path: str, origin: str) -> SettingsError:
    # The name that was probably meant: a near match, or one with the same beginning or end.
    known, end = [f.path for f in fields()], f".{path.rpartition('.')[2]}"
    similar = get_close_matches(path, known, n=1, cutoff=ALIKE)
    similar = similar or [name for name in known if name.startswith(path) or name.endswith(end)]
    hint = f"Did you mean {similar[0]}?" if len(similar) == 1 else "See the settings reference."
    return SettingsError(f"There is no setting {path!r} (from {origin}).", remedy=hint, action="settings")


SAVED = "settings"
"""The folder, in a workspace, of settings saved by name: TOML files that `--config` reads."""
_SAVED_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}[A-Za-z0-9]|[A-Za-z0-9]")


def saved_names(files: TextFiles) -> list[str]:
    """The names of saved settings, sorted."""
    stems = (name[:-5] for name in files.names(SAVED) if name.endswith(".toml"))
    return sorted(filter(_SAVED_NAME.fullmatch, stems), key=str.casefold)


def find_saved(files: TextFiles, name: str) -> Path:
    """The file of saved settings. Raises InputError, and SettingsError if it does not exist."""
    path = files.path(_file(name))
    if not path.is_file():
        names = ", ".join(saved_names(files)) or "none yet"
        raise SettingsError(
            f"No settings are saved under {name!r}, and there is no such file.",
            remedy=f"Saved in {files.folder}: {names}.",
        )
    return path


def save(files: TextFiles, name: str, toml: str) -> None:
    """Save settings, replacing any of the same name. Raises InputError."""
    files.write(_file(name), toml)


def forget(files: TextFiles, name: str) -> None:
    """Delete saved settings if they exist. Raises InputError."""
    files.delete(_file(name))


def _file(name: str) -> str:
    """The path of the settings called `name`. Raises InputError if `name` is not valid."""
    if not _SAVED_NAME.fullmatch(name):
        remedy = (
            "Use up to 64 letters, digits, spaces, dots, dashes or underscores, with a letter or digit at both ends."
        )
        raise InputError(f"{name!r} is not a valid name for saved settings.", remedy=remedy)
    return f"{SAVED}/{name}.toml"
