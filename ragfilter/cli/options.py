"""The options that several commands share, each described once, and their groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter.cli import parts
from ragfilter.cli.logs import Form
from ragfilter.errors import InputError
from ragfilter.judge import prompts as judge_prompts
from ragfilter.model import User
from ragfilter.settings.profiles import DEFAULT, PROFILES
from ragfilter.settings.schema import field
from ragfilter.text.characters import whole

if TYPE_CHECKING:
    from ragfilter.evaluate.beir import Labels
    from ragfilter.settings.config import Config
    from ragfilter.settings.schema import Settings
    from ragfilter.workbench import Workbench


def help_of(path: str) -> str:
    """The help of a flag that sets the setting at `path`."""
    info = field(path)
    return f"{info.help} Sets {path}: {info.allowed()}."


def in_words(value: Any) -> Any:
    """The callback of what is text and no file's name: bytes that are no text are replaced."""
    if isinstance(value, str):
        return whole(value)
    return [whole(item) for item in value] if value else value


CollectionName = Annotated[
    str,
    typer.Option(
        "--collection",
        "-c",
        help="Name of the collection.",
        show_default=True,
        callback=in_words,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option("--profile", "-p", help=f"{', '.join(PROFILES)}. Default: {DEFAULT}."),
]


def settings_file(context: typer.Context, value: Path | None) -> Path | None:
    """The callback of `--config`: a file, or else the name of settings saved in the workspace.

    The workspace's own judge prompts are known from here on: all settings may name them.
    """
    from ragfilter.workbench import prompt_folder, read_deployment

    deployment = read_deployment(data_dir=context.params.get("data_dir"))
    judge_prompts.use_folder(prompt_folder(deployment))
    try:
        if value is None or value.exists() or value.suffix == ".toml" or len(value.parts) != 1:
            return value
    except OSError:  # a name too long for a file, which the reader tells
        return value
    from ragfilter.settings import saved

    return saved.find(deployment.data_dir, whole(str(value)))


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Settings file (TOML, one [section] per layer), or the name of settings saved on the "
        "Inspect page.",
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
        "--level", min=0, help="The user's clearance level. Used if the clearance layer is on."
    ),
]
Departments = Annotated[
    list[str] | None,
    typer.Option("--department", help="A department of the user. Repeatable."),
]
DataDir = Annotated[
    Path | None,
    # Eager: `--config` may name settings of that workspace.
    typer.Option(
        "--data-dir", help="Workspace folder. Also set by RAGFILTER_DATA_DIR.", is_eager=True
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
    Form | None,
    typer.Option(
        "--log", help="Log one line per query to standard error: text, as with -v, or JSON."
    ),
]
GapThreshold = Annotated[
    str | None,
    typer.Option("--gap-threshold", metavar="NUMBER", help=help_of("cutoff.gap_threshold")),
]

# labelled queries

SET_HELP = (
    "A queries.jsonl file, or the name of a query set: labelled, asked, demo, adsapi, or an "
    "imported one."
)
QueriesFile = Annotated[
    str,
    typer.Option(
        "--queries",
        help="Labelled queries: a queries.jsonl file, a saved query set, or the built-in sets "
        "demo and adsapi.",
    ),
]
QrelsFile = Annotated[
    str | None,
    typer.Option(
        "--qrels",
        help="Relevance labels (qrels.tsv); needed for precision and recall. Built in for demo "
        "and adsapi.",
    ),
]
WithLlm = Annotated[
    bool,
    typer.Option(
        "--with-llm",
        help="Also count an LLM's labels for chunks that no person has labelled. Needs a query set "
        "of the workspace.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Use only the query with this ID. Repeatable.", callback=in_words),
]
Except = Annotated[
    list[str] | None,
    typer.Option(
        "--except", help="Leave out the query with this ID. Repeatable.", callback=in_words
    ),
]
# Above it a number no longer fits into what takes it: SQLite, a slice.
MOST = 1_000_000_000
OTHER_OUT = "Use another file with --out."
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=MOST, help="Use only the first N queries."),
]

# chunks

WHERE_HELP = (
    "Select chunks by field=value. Fields: type, source, id, title (* matches anything, case is "
    "ignored) and rule (any or none). Repeatable: values of the same field are alternatives, and "
    "every field must match."
)

Where = Annotated[list[str] | None, typer.Option("--where", help=WHERE_HELP, callback=in_words)]


# groups: a parameter of one of these types gives a command all its options


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A collection of a workspace."""

    collection: CollectionName = "demo"
    data_dir: DataDir = None

    def open(self, what: str) -> Workbench:
        """The workspace, held until it is closed; `what` names who holds it."""
        return parts.open_for(self.data_dir, what)

    def head(self, incomplete: str) -> dict[str, Any]:
        """How a JSON document about the collection begins; `incomplete` says why it may lack
        chunks, and is empty if it lacks none."""
        return {"collection": self.collection, "incomplete": incomplete}


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewing:
    """Who looks at chunks, and the settings that decide what they see."""

    config: ConfigFile = None
    values: SetValues = None
    level: Level = None
    department: Departments = None

    @property
    def user(self) -> User:
        """Who asks. Raises SettingsError, InputError."""
        return parts.user_of(self.level, self.department, self.values)

    @property
    def with_config(self) -> str:
        """`` with tuned.toml``, to say beside a profile; empty without a file."""
        return f" with {self.config.name}" if self.config else ""

    @property
    def viewer(self) -> User:
        """As whom the settings in force let the user look."""
        from ragfilter.layers.clearance import viewer

        settings = parts.load_config(None, self.config, self.values, {}).settings
        return viewer(self.user, settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtering(Viewing):
    """How to filter, and for whom."""

    profile: ProfileName = None

    def load(self, flags: Mapping[str, Mapping[str, Any]] | None = None) -> Config:
        """The settings in force; see `parts.load_config`."""
        return parts.load_config(self.profile, self.config, self.values, flags or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which of the labelled queries."""

    only: Only = None
    leave_out: Except = None

    def choose(self, known: Labels) -> Labels:
        """Those of `known`, some of which have labels. Raises InputError."""
        from ragfilter.evaluate import labels

        return labels.choose(known, only=self.only or (), leave_out=self.leave_out or ())


def check_llm(qrels: str | None, *, llm: bool) -> None:
    """Raises InputError if an LLM's labels shall count beside those of a file."""
    if llm and qrels is not None:
        raise InputError(
            "--with-llm needs a query set of the workspace, and --qrels names a file.",
            remedy="Leave out --qrels, or import both with `ragfilter labels import`.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled(Chosen):
    """Labelled queries."""

    queries: QueriesFile
    qrels: QrelsFile = None
    llm: WithLlm = False

    def read_files(self) -> Labels | None:
        """The chosen ones of two files or of a demo, which need no workspace; None for a query set,
        and where an LLM's labels of the workspace count. Raises InputError."""
        from ragfilter.evaluate import labels

        check_llm(self.qrels, llm=self.llm)
        if self.llm:
            return None
        if labels.are_files(self.queries, self.qrels):
            return self.choose(labels.load(self.queries, self.qrels))
        return None

    def read_set(self, bench: Workbench, collection: str, user: User, settings: Settings) -> Labels:
        """The chosen ones of a query set; where an LLM's labels count, how far they agree with
        people's is told. Raises InputError and StoreError."""
        from ragfilter.evaluate import stored

        found = self.choose(stored.load(bench.labels, collection, self.queries, llm=self.llm))
        if self.llm:
            parts.tell_agreement(bench, collection, user, settings)
        return found
