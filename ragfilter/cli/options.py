"""Options that commands share, alone or in groups: where, for whom and how to filter."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli.output import LogFormat, warn
from ragfilter.errors import InputError, SettingsError
from ragfilter.judge import prompts as judge_prompts
from ragfilter.layers.tuned_on import learned_elsewhere
from ragfilter.layers.visibility import effective_user
from ragfilter.model import Chunk, User
from ragfilter.settings import config as configuration
from ragfilter.settings.deployment import PREFIX, Deployment, read_deployment
from ragfilter.settings.profiles import DEFAULT, PROFILES, Fit
from ragfilter.settings.schema import Settings, field_info
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from ragfilter.engine.gather import Backends
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)


def setting(path: str, *names: str, metavar: str | None = None) -> Any:
    """An option with these `names` that sets the setting at `path`."""
    info = field_info(path)
    help_text = f"{info.help} Sets {path}: {info.allowed()}."
    return typer.Option(*names, metavar=metavar, help=help_text)


def mended(value: Any) -> Any:
    """Callback for text that is not a file name: replaces bytes that are not valid text."""
    if isinstance(value, str):
        return mend_characters(value)
    return [mend_characters(item) for item in value] if value else value


def columns_of(given: Sequence[str]) -> dict[str, str]:
    """Parse `--column` into field → column. Raises InputError."""
    pairs = [text.partition("=") for text in given]
    for name, sign, column in pairs:
        if not (name and sign and column):
            raise InputError(
                f"--column {name}{sign}{column} does not name a field and a column.", remedy="Write --column text=Body."
            )
    return {name.strip(): column.strip() for name, _, column in pairs}


Text = str | None
Texts = list[str] | None
File = Path | None
text_argument = partial(typer.Argument, callback=mended)


def settings_file(context: typer.Context, value: Path | None) -> Path | None:
    """Callback of `--config`. Also makes the workspace's own judge prompts available: any settings may name them."""
    from ragfilter.workbench import prompt_folder

    deployment = read_deployment(data_dir=context.params.get("data_dir"))
    judge_prompts.use_folder(prompt_folder(deployment))
    return value and file_of(value, deployment)


def file_of(value: Path, deployment: Deployment) -> Path:
    """`value` itself, or the file of the settings saved under that name. Raises InputError or SettingsError."""
    try:
        if value.exists() or value.suffix == ".toml" or len(value.parts) != 1:
            return value
    except OSError:  # a name too long for a file, which the reader reports
        return value
    from ragfilter.stores.workspace_files import text_files

    with closing(text_files(deployment.data_dir, deployment.address)) as files:
        return configuration.find_saved(files, mend_characters(str(value)))


ConfigFile = Annotated[
    File, "--config", "Settings file (TOML), or the name of settings saved in the app.", {"callback": settings_file}
]
SetValues = Annotated[Texts, "--set", "Set any setting, as layer.field=value. Repeatable."]
Level = Annotated[
    int | None,
    "--level",
    "The user's clearance level. Chunks above it are hidden, whatever the settings say.",
    {"min": 0},
]
Departments = Annotated[Texts, "--department", "A department of the user. Repeatable."]
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
    int, typer.Option("--verbose", "-v", count=True, help="Log more to standard error; -vv logs even more.")
]
LogForm = Annotated[LogFormat | None, "Log one line per query to standard error: text, as with -v, or JSON."]
GapThreshold = Annotated[str | None, setting("cutoff.gap_threshold", "--gap-threshold", metavar="NUMBER")]

DryRun = Annotated[bool, "Only show what would change."]
# Larger numbers do not fit into SQLite or a slice.
MAX_NUMBER = 1_000_000_000

# groups: a parameter of one of these types adds all its options to a command


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A collection of a workspace."""

    collection: Annotated[str, "--collection", "-c", "Name of the collection."] = "demo"
    data_dir: DataDir = None

    def open(self, what: str) -> Workbench:
        """Open the workspace, which the caller must close; `what` is the name other processes see as its holder."""
        return open_for(self.data_dir, what)

    def backends(self, bench: Workbench) -> Backends:
        """The backends of the collection. Raises StoreError, also if it has no chunks."""
        backends = bench.backends(self.collection)
        bench.collection(self.collection).check_not_empty()
        return backends

    def entries(self, bench: Workbench) -> tuple[Mapping[str, Chunk], str]:
        """The chunks of the collection by id, without texts, and why some may be missing, with a warning."""
        store = bench.collection(self.collection)
        warn(store.incomplete)
        return store.entries(), store.incomplete

    def head(self, incomplete: str) -> dict[str, Any]:
        """The beginning of a JSON document about the collection; `incomplete` says why chunks may be missing."""
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
        """`` with tuned.toml``, to append to a profile's name; empty without a file."""
        return f" with {self.config.name}" if self.config else ""

    @property
    def viewer(self) -> User:
        """The user or, if none is named, the one that the settings imply."""
        return self._open(None, {})[1]

    def _open(self, profile: str | None, flags: Mapping[str, Mapping[str, Any]]) -> tuple[configuration.Config, User]:
        loaded = load_config(profile, self.config, self.values, flags)
        return loaded, effective_user(self.user, loaded.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering(Viewing):
    """Options that say how to filter, and for whom."""

    profile: Annotated[Text, "--profile", "-p", f"{', '.join(PROFILES)}. Default: {DEFAULT}."] = None

    def load(self, flags: Mapping[str, Mapping[str, Any]] | None = None) -> tuple[configuration.Config, User]:
        """The settings, as loaded by `load_config`, and the user that they filter for."""
        return self._open(self.profile, flags or {})


def load_config(
    profile: str | None, file: Path | None, values: Sequence[str] | None, flags: Mapping[str, Mapping[str, Any]]
) -> configuration.Config:
    """A command's settings. `--set` overrides everything except `flags`: name → path → value, None if not given."""
    flag_values = [configuration.Given("--set", dict(map(parse_set, values or ())))]
    for name, paths in flags.items():
        given_values = {path: value for path, value in paths.items() if value is not None}
        flag_values.append(configuration.Given(name, given_values))
    loaded = configuration.load(profile=profile, file=file, flags=flag_values)
    for path, origin in loaded.origins.items():
        if origin.startswith(configuration.FROM_ENVIRONMENT):
            # Our own variables are meant for us; others may have been set for other programs.
            ours = f"{configuration.FROM_ENVIRONMENT} {PREFIX}" in origin
            level = logging.INFO if ours else logging.WARNING
            log.log(level, "%s = %s is set by the %s", path, loaded.settings.get(path), origin)
    return loaded


def parse_set(text: str) -> tuple[str, str]:
    """Parse ``cutoff.gap_threshold=0.12`` into path and value. Raises SettingsError."""
    path, sign, value = text.partition("=")
    if not sign:
        raise SettingsError(f"--set {text}: the '=' is missing.", remedy="Write --set layer.field=value.")
    return path.strip(), value.strip()


def refuse(why: str, **options: object) -> None:
    """Raise InputError for the first option (name → value) that is given but has no effect `why`, "beside --llm"."""
    for name, value in options.items():
        if value:
            shown = name if name.isupper() else f"--{name.replace('_', '-')}"
            raise InputError(f"{shown} has no effect {why}.", remedy=f"Leave out {shown}.")


# the workspace


def open_for(data_dir: str | None, kind: str) -> Workbench:
    """Open the workspace, which the caller must close; `kind` is the name other processes see as its holder."""
    from ragfilter.workbench import Workbench

    return Workbench.open(read_deployment(data_dir=data_dir), kind=kind)


def warn_learned_elsewhere(settings: Settings, backends: Backends) -> None:
    """Warn if the settings were learned or tuned on another collection, model or space."""
    collection = backends.collection
    warn(learned_elsewhere(settings, Fit(collection.name, backends.embedder.name, collection.space)))
