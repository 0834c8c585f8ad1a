"""The options that several commands share, each described once, and their groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import access
from ragfilter.cli.output import LogFormat
from ragfilter.errors import InputError, SettingsError
from ragfilter.judge import prompts as judge_prompts
from ragfilter.layers.clearance import viewer
from ragfilter.layers.strategies.registry import STRATEGIES, strategy
from ragfilter.model import User
from ragfilter.settings import config as configuration
from ragfilter.settings.config import Config
from ragfilter.settings.deployment import PREFIX
from ragfilter.settings.profiles import DEFAULT, PROFILES
from ragfilter.settings.schema import Settings, field
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from ragfilter.settings.deployment import Deployment
    from ragfilter.workbench import Workbench


log = logging.getLogger(__name__)


def setting(path: str, *names: str, metavar: str | None = None) -> Any:
    """An option with these `names` that sets the setting at `path`."""
    info = field(path)
    help_text = f"{info.help} Sets {path}: {info.allowed()}."
    return typer.Option(*names, metavar=metavar, help=help_text)


def in_words(value: Any) -> Any:
    """The callback for text that is not a file name: bytes that are not valid text are replaced."""
    if isinstance(value, str):
        return whole(value)
    return [whole(item) for item in value] if value else value


def columns_of(given: Sequence[str]) -> dict[str, str]:
    """The columns by field that `--column` names. Raises InputError."""
    pairs = [text.partition("=") for text in given]
    for name, sign, column in pairs:
        if not (name and sign and column):
            raise InputError(
                f"--column {name}{sign}{column} does not name a field and a column.",
                remedy="Write --column text=Body.",
            )
    return {name.strip(): column.strip() for name, _, column in pairs}


text_option = partial(typer.Option, callback=in_words)
text_argument = partial(typer.Argument, callback=in_words)

CollectionName = Annotated[str, text_option("--collection", "-c", help="Name of the collection.")]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", "-p", help=f"{', '.join(PROFILES)}. Default: {DEFAULT}."),
]


def settings_file(context: typer.Context, value: Path | None) -> Path | None:
    """The callback of `--config`: a file, otherwise the name of settings saved in the workspace.

    Also makes the workspace's own judge prompts available, since any settings may name them.
    """
    from ragfilter.workbench import prompt_folder, read_deployment

    deployment = read_deployment(data_dir=context.params.get("data_dir"))
    judge_prompts.use_folder(prompt_folder(deployment))
    return value and file_of(value, deployment)


def file_of(value: Path, deployment: Deployment) -> Path:
    """The settings file that `value` names: itself, or the file of settings saved in the workspace.
    Raises InputError, SettingsError: there are none."""
    try:
        if value.exists() or value.suffix == ".toml" or len(value.parts) != 1:
            return value
    except OSError:  # a name too long for a file, which the reader reports
        return value
    from ragfilter.stores.workspace import text_files

    with closing(text_files(deployment.data_dir, deployment.address)) as files:
        return configuration.find_saved(files, whole(str(value)))


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file (TOML), or the name of settings saved in the app.",
        callback=settings_file,
    ),
]
SetValues = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set any setting, as layer.field=value. Repeatable."),
]
Level = Annotated[
    int | None,
    typer.Option(
        "--level",
        min=0,
        help="The user's clearance level: what is above it is hidden, whatever the settings say.",
    ),
]
Departments = Annotated[
    list[str] | None,
    typer.Option("--department", help="A department of the user. Repeatable."),
]
DataDir = Annotated[
    str | None,
    # Eager, because `--config` may name settings of this workspace.
    typer.Option(
        "--data-dir",
        "--workspace",
        help="Workspace: a folder, or postgresql://… Also set by RAGFILTER_WORKSPACE.",
        is_eager=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, help="Log more to standard error; -vv logs even more."
    ),
]
LogForm = Annotated[
    LogFormat | None,
    typer.Option(
        "--log", help="Log one line per query to standard error: text, as with -v, or JSON."
    ),
]
GapThreshold = Annotated[
    str | None, setting("cutoff.gap_threshold", "--gap-threshold", metavar="NUMBER")
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
# Larger numbers no longer fit into what takes them: SQLite, a slice.
MAX_NUMBER = 1_000_000_000
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=MAX_NUMBER, help="Use only the first N queries."),
]

# groups: a parameter of one of these types gives a command all its options


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A collection of a workspace."""

    collection: CollectionName = "demo"
    data_dir: DataDir = None

    def open(self, what: str) -> Workbench:
        """Open the workspace until it is closed; `what` names who holds it."""
        return access.open_for(self.data_dir, what)

    def head(self, incomplete: str) -> dict[str, Any]:
        """The beginning of a JSON document about the collection. `incomplete` says why it may be
        missing chunks, and is empty if it is complete."""
        return {"collection": self.collection, "incomplete": incomplete}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewing:
    """The user who looks at chunks. If none is named, the settings decide what is seen."""

    config: ConfigFile = None
    values: SetValues = None
    level: Level = None
    department: Departments = None

    @property
    def user(self) -> User | None:
        """The user, if one is named. Raises InputError."""
        if self.level is None and not self.department:
            return None
        return User(self.level or 0, tuple(self.department or ()))

    @property
    def with_config(self) -> str:
        """`` with tuned.toml``, to be appended to a profile's name; empty without a file."""
        return f" with {self.config.name}" if self.config else ""

    @property
    def viewer(self) -> User:
        """The user or, if none is named, whom the settings stand for."""
        return self._open(None, {})[1]

    def _open(
        self, profile: str | None, flags: Mapping[str, Mapping[str, Any]]
    ) -> tuple[Config, User]:
        loaded = load_config(profile, self.config, self.values, flags)
        return loaded, viewer(self.user, loaded.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering(Viewing):
    """How to filter, and for whom."""

    profile: ProfileName = None

    def load(self, flags: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[Config, User]:
        """The settings, as `load_config` loads them, and the user for whom they filter."""
        return self._open(self.profile, flags or {})


# settings


def load_config(
    profile: str | None,
    file: Path | None,
    values: Sequence[str] | None,
    flags: Mapping[str, Mapping[str, Any]],
) -> Config:
    """The settings for a command. `--set` overrides everything except the dedicated `flags`.

    `flags`: name → the values it sets, by path. None means the flag was not given.
    """
    flag_values = [configuration.Given("--set", dict(map(parse_set, values or ())))]
    for name, paths in flags.items():
        there = {path: value for path, value in paths.items() if value is not None}
        flag_values.append(configuration.Given(name, there))
    loaded = configuration.load(profile=profile, file=file, flags=flag_values)
    for path, origin in loaded.origins.items():
        if origin.startswith(configuration.FROM_ENVIRONMENT):
            # Our own variables are meant for us; the others may have been set for other programs.
            ours = f"{configuration.FROM_ENVIRONMENT} {PREFIX}" in origin
            log.log(
                logging.INFO if ours else logging.WARNING,
                "%s = %s is set by the %s", path, loaded.settings.get(path), origin,
            )  # fmt: skip
    _tell_unread([path for each in flag_values for path in each.values], loaded.settings)
    return loaded


def _tell_unread(paths: Sequence[str], settings: Settings) -> None:
    """Warn about settings given here that only another cutoff strategy reads."""
    used = strategy(settings.cutoff.strategy).reads
    for path in paths:
        readers = [s.name for s in STRATEGIES if path in {f"cutoff.{name}" for name in s.reads}]
        if readers and path.removeprefix("cutoff.") not in used:
            log.warning(
                "%s changes nothing: the strategy is %s; it belongs to %s",
                path, settings.cutoff.strategy, ", ".join(readers),
            )  # fmt: skip


def parse_set(text: str) -> tuple[str, str]:
    """Parse ``cutoff.gap_threshold=0.12`` into path and value. Raises SettingsError."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SettingsError(
            f"--set {text}: the '=' is missing.", remedy="Write --set layer.field=value."
        )
    return path.strip(), value.strip()


def refuse_beside(option: str, **others: object) -> None:
    """Refuse the options that have no effect because `option` was given: their names, with their
    values. Raises InputError for the first one that was given too."""
    for name in _given(others):
        raise InputError(
            f"{name} has no effect beside {option}.", remedy="Leave out one of the two."
        )


def refuse_without(option: str, **others: object) -> None:
    """Refuse the options that have no effect because `option` was not given; as above."""
    for name in _given(others):
        raise InputError(
            f"{name} belongs to {option}.", remedy=f"Add {option}, or leave out {name}."
        )


def _given(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value:
            yield name if name.isupper() else f"--{name.replace('_', '-')}"
