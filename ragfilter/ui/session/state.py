"""The state of one browser session: a `Session` of typed values. `Session.changes` is the only record of the settings
that differ from the profile. Widgets write to it through callbacks, so a widget that is not drawn loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec
from uuid import uuid4

import streamlit as st

from ragfilter.engine.replay import Replays
from ragfilter.errors import InputError, RagfilterError, SettingsError
from ragfilter.layers.tuned_on import profile_name
from ragfilter.model import PUBLIC, UNRESTRICTED, Failure, NeedKind, User
from ragfilter.settings import config, profiles
from ragfilter.settings.config import Config, Given, of_profile
from ragfilter.settings.schema import Settings, field_info
from ragfilter.text.normalise import mend_characters
from ragfilter.ui.resources import open_resources

if TYPE_CHECKING:
    from pathlib import Path

    from ragfilter.evaluate.labelling import Request
    from ragfilter.indexing.order import Order
    from ragfilter.indexing.queue import Queue
    from ragfilter.ingest.records import Record
    from ragfilter.rules.journal import Turn
    from ragfilter.rules.rule import Changes
    from ragfilter.stores.base import CollectionInfo
    from ragfilter.stores.label_book import Label, LabelBook
    from ragfilter.stores.opening import ForeignCheck
    from ragfilter.ui.jobs import Job

P = ParamSpec("P")
KEY = "session"
"""The key of the `Session` in Streamlit's session state. All other keys are widgets'."""
CLEARANCE = "clearance.enabled"
"""The setting that only a visitor can change, by hand; no profile, file, link or variable can."""
ON = {CLEARANCE: True}
SWITCHED_OFF = (
    "Clearance is switched off, so everyone sees everything here, in answers and exports as well. "
    "The switch below “Viewing as” turns it on again."
)
SEEN_BY_OPERATOR = (
    "As the operator, you see everything here, even chunks hidden from the user. Prompts, "
    "answers and exports show only the user's view."
)
MAX_STEPS = 200
"""How many changes of settings can be undone."""
MAX_LABEL_CHANGES = 50
"""How many labels can be undone."""
MAX_NAME = 100
"""Maximum number of characters in a name."""
MANAGED = "manage-name"
"""The box for the collection that Collections manages, at first the chosen one."""
WINDOWS = CUT, ALL = "Around the cut", "All"
"""The ranges of ranks that the curve offers."""
PANELS = ("Answer", "Prompt", "Chunk", "Judge", "Rounds", "Debug")
Pending = Literal["", "question", "current", "example"]
Step = tuple[str, dict[str, Any]]
"""A profile and the settings that differ from it."""


@dataclass(frozen=True, slots=True)
class PoolReach:
    """How far a pool was gathered. Asking changes it, and moving a slider does not."""

    pool_size: int
    wanted: int
    user: User
    source_pattern: str = ""
    lexical: bool = False
    only: tuple[str, ...] = ()
    """The only chunks that were searched."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """An asked question, its reach, and the collection with its version and content. `trace_ids`
    are the chunks that were retrieved for it according to a trace."""

    query: str
    collection: str
    version: str
    reach: PoolReach
    content: str = field(default="", compare=False)
    trace_ids: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class ModelRequest:
    """One press of a button that completes the pool; `again` forgets earlier failures."""

    kind: NeedKind
    again: bool


class LabelChange(NamedTuple):
    """Labels made with one click, and where to return to when they are undone."""

    label_ids: tuple[int, ...]
    chunk_id: str
    collection: str
    query: str


class UnsavedRule(NamedTuple):
    """An unsaved rule as typed, and the stored rule that it started from."""

    text: str
    base: str | None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An edit that failed. `stored` is the current rule, if there was a `conflict`."""

    message: str
    conflict: bool = False
    stored: str | None = None


@dataclass(frozen=True, slots=True)
class HarmfulEdit:
    """The harm that an action on the `expected` rule would do; `unsaved` was in the editor."""

    act: Turn | Literal["save"]
    expected: str | None
    unsaved: UnsavedRule | None
    harm: str


@dataclass(frozen=True, slots=True)
class AxisRanges:
    """The visible ranges of x and y."""

    window: tuple[float, float]
    span: tuple[float, float]


@dataclass(frozen=True, slots=True)
class StagedUpload:
    """Uploads in their own folder. `refused` has the errors of refused files."""

    key: str
    folder: Path
    files: tuple[Path, ...]
    refused: tuple[InputError, ...]


@dataclass(slots=True)
class RuleDesk:
    """The state of the Rules page and the rule editor, apart from widgets."""

    chunk: str | None = None
    """The chunk whose rule is open on the Rules page."""
    row_order: tuple[object, tuple[str, ...]] | None = None
    """The order of the chunks in the table, after the key that it depends on."""
    part: str = ""
    """The part of the page that was drawn last."""
    bulk_outcome: tuple[str, bool] | None = None
    """The outcome of the last bulk change in words, and whether it succeeded."""
    families: str = ""
    """The collection whose families were requested."""
    step: int | None = None
    """The step that is open under History."""
    gathered_again: int = 0
    confirmed: dict[str, Changes] = field(default_factory=dict)
    """The changes that each box confirms, by the box's key."""
    editor_outcome: tuple[str, Trouble | HarmfulEdit | str | None] = ("", None)
    """A chunk's id, with the outcome of the last action on its rule."""
    unfinished: tuple[str, UnsavedRule] | None = None
    """A chunk's id, with the text that is being typed into its editor."""
    drawn: str = ""
    """The text that the editor was drawn with."""
    fields: tuple[str, int] = ("", 0)
    """The chunk in the form, and the form's number of group fields."""
    awaited: tuple[str, str, str | None] | None = None
    """The collection and chunk for whose editor an LLM drafts a rule, and the stored rule that it starts from."""
    browser: str = field(default_factory=lambda: uuid4().hex)
    """The name of this session in the browser's store of unsaved rules."""
    restored: set[tuple[str, str]] = field(default_factory=set)
    """The unsaved rules that came from the browser, by collection and chunk."""


@dataclass(slots=True)
class Session:
    """The state of one browser session, apart from widgets."""

    profile: str
    changes: dict[str, Any]
    collection: str = ""
    user: User = PUBLIC
    operator: bool = False
    author: str = ""
    """The visitor's name, if one was given."""
    past: list[Step] = field(default_factory=list)
    future: list[Step] = field(default_factory=list)

    query: str = ""
    """The text in the question box."""
    pending: Pending = ""
    """What the next run asks: the box's "question", the "current" one again, or an "example" chosen by the page."""
    asked: AskedQuestion | None = None
    example: bool = False
    """Whether the page asked the current question by itself."""
    use_trace: bool = False
    """Whether questions are asked only of the chunks that a trace recorded for them."""
    unscored: bool = False
    """Whether the next question skips local rerank scores, as its link did."""
    complete_next: bool = False
    """Whether the next run fetches local scores and cached replies for the current question."""
    request: ModelRequest | None = None
    answers_shown_for: AskedQuestion | None = None
    """The question whose answers are on the page."""
    answering: Literal["", "missing", "all"] = ""
    """Which answers the next run asks an LLM for."""
    replays: Replays = field(default_factory=Replays)
    lasting_failures: dict[str, Failure] = field(default_factory=dict)
    """Failures of rerankers that cannot work here."""

    open_lines: set[str] = field(default_factory=set)
    """The lines of the sidebar that are open."""
    cut_controls: bool = False
    evidence: bool = False
    """The parts of Inspect that are open besides its result."""
    panel: str = PANELS[0]
    chunk: str | None = None
    part: str = "Text"
    """The part of the open chunk in the panel."""
    window: str = CUT
    axis_ranges: tuple[object, AxisRanges] | None = None
    """The ranges of the curve's axes, kept while their key stays the same."""
    revealed: tuple[str, int] = ("", 0)
    """The selector of the part opened last, and how many parts were opened."""
    drag_moves: int = 0
    table_clicks: int = 0

    blind: bool = False
    """Whether the labelling mode shuffles chunks and hides others' labels."""
    label_history: list[LabelChange] = field(default_factory=list)
    """The labels made in this session, newest last."""
    unsaved_rules: dict[tuple[str, str], UnsavedRule] = field(default_factory=dict)
    """Unsaved rules by collection and chunk."""
    rules: RuleDesk = field(default_factory=RuleDesk)

    map_click: tuple[str, Settings, Settings] | None = None
    """The collection of the last click on Tune's map, and the settings after and before it."""
    proposing: Job[int] | None = None
    """The job that asks an LLM for labels."""
    bill: tuple[object, tuple[Request, ...]] | None = None
    """The requests for labels that an LLM would get, after the key that they depend on."""
    query_set: str | None = None
    """The query set to measure with, None for the first one with questions."""
    sets_saved: int = 0
    """How often a query set was saved, imported or removed. Each time, its boxes start again."""
    edited_sets: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """The questions that each box of questions started with, by the end of its key."""
    measured: set[str] = field(default_factory=set)
    """The collections known to have a complete run that somebody started."""
    run: int = 0
    """The saved run that is shown; 0 for the newest."""
    labelling: bool = False
    """Whether Evaluate shows the labelling mode."""
    recalibrate: bool = False
    """Whether Tune recalibrates when it is drawn next."""
    typed_questions: list[str] = field(default_factory=list)
    """Questions typed in the labelling mode, newest first."""
    label_query: str = ""
    label_events: int = 0
    """The number of the last applied event from the labelling mode."""
    label_error: str = ""

    present: bool = False
    scene: int = 0
    """The scene of Present."""
    tour: list[bool] | None = None
    """Which tasks of the tour are done; None if no tour is running."""
    tour_chunk: str = ""
    """The dropped chunk opened last during the tour."""
    compared: dict[str, str] = field(default_factory=dict)
    """The sides of Compare and its query set, as in the link."""
    compared_chunk: str = ""
    measure_next: bool = False
    """Whether Compare measures the other side too."""

    shared: dict[str, str] = field(default_factory=dict)
    """The parameters of the link to this page."""
    unshown: dict[str, str] | None = None
    """The parameters that the address bar does not show yet."""
    opened: dict[str, str] = field(default_factory=dict)
    """The parts that the link opens once its question is answered."""
    notices: list[str] = field(default_factory=list)

    collections: tuple[object, dict[str, CollectionInfo]] | None = None
    awaited_collection: str = ""
    """The collection to be indexed, which then becomes the chosen one."""
    indexing: set[int] = field(default_factory=set)
    """The jobs queued here or seen at work since, whose outcome is shown."""
    upload: StagedUpload | None = None
    preview: tuple[object, tuple[Record, ...], list[InputError]] | None = None
    """The first chunks of the upload and the errors up to there, after the key that they depend on."""
    uploads_emptied: int = 0
    foreign_checks: tuple[str, tuple[ForeignCheck, ...]] = ("", ())
    """The foreign collection opened last, and how it was checked."""
    page: str = "pages/inspect.py"
    """The page that began last, unless it was the first one."""
    replaced: dict[str, int] = field(default_factory=dict)
    """How often each widget was replaced, by name."""
    shown: dict[str, tuple[object, object]] = field(default_factory=dict)
    """The value and labels that each widget shows, as far as the server knows, by key."""


def session() -> Session:
    """The session of this run, which `link.open_session` has filled."""
    current: Session = st.session_state[KEY]
    return current


def settings() -> Settings:
    """The current settings."""
    current = session()
    return settings_of(current.profile, ON | current.changes)


def settings_of(profile: str, changes: Mapping[str, Any]) -> Settings:
    """The profile with the changes. Raises SettingsError."""
    return of_profile(profile, Given("the page", changes))


def environment_changes(profile: str) -> dict[str, Any]:
    """The environment's changes to a profile, with which a session starts. Raises SettingsError."""
    return _with_environment(profile).settings.changed_from(of_profile(profile))


def _with_environment(profile: str) -> Config:
    return _load(profile, frozenset((k, v) for k, v in os.environ.items() if config.reads(k)))


@lru_cache(maxsize=64)
def _load(profile: str, environ: frozenset[tuple[str, str]]) -> Config:
    return config.load(profile=profile, environ=dict(environ))


def user() -> User:
    """The user whose view the page shows; unrestricted if clearance is off."""
    return UNRESTRICTED if _clearance_is_off() else session().user


def listing_user() -> User:
    """The viewer of a page that lists chunks, where an operator sees everything."""
    return UNRESTRICTED if session().operator else user()


def author() -> str:
    """The name given in this session or, without one, the deployment's."""
    return session().author or open_resources().bench.deployment.user


def set_author(name: str) -> None:
    """Use this name from now on; a blank name means the deployment's."""
    session().author = mend_characters(name).strip()[:MAX_NAME].strip()


def remember_labels(labels: Iterable[Label], chunk_id: str, collection: str, query: str) -> None:
    """Remember the labels from one click, so that they can be undone."""
    change = LabelChange(tuple(each.id for each in labels), chunk_id, collection, query)
    session().label_history = [*session().label_history, change][-MAX_LABEL_CHANGES:]


def undo_labels(book: LabelBook) -> LabelChange | None:
    """Take back the labels from the last click, which is returned; None if there is none left. Raises StoreError."""
    if not session().label_history:
        return None
    *before, last = session().label_history
    book.take_back(last.label_ids)
    session().label_history = before
    return last


def set_field(value: Any, field: str) -> None:
    """Store a widget's value in this field of the session."""
    setattr(session(), field, value)


def set_fields(**values: Any) -> None:
    """Store these values in the session."""
    for name, value in values.items():
        set_field(value, name)


def change_settings(values: Mapping[str, Any]) -> None:
    """Change settings by dotted path; if that is invalid, the page says why instead."""
    current = session()
    try:
        changed = settings_of(current.profile, {**ON, **current.changes, **values})
    except SettingsError as error:
        notice(str(error))
        return
    _move(current.profile, changed.changed_from(settings_of(current.profile, ON)))


def apply_suggestion(values: Mapping[str, Any]) -> None:
    """Change settings as tuning suggests, and fetch the scores they need."""
    change_settings(values)
    session().complete_next = True


def profile_label() -> str:
    """The name of the current settings: their profile, or what they were tuned on."""
    return profile_name(session().profile, settings())


def settings_label() -> str:
    """`profile_label`, with a note if a profile's settings were changed by hand."""
    called = profile_label()
    return f"{called}, changed" if called == session().profile and changes_since_reset() else called


def use_settings(profile: str, changes: Mapping[str, Any]) -> None:
    """Use a profile and its changes, such as a saved run's, but keep clearance. Can be undone. Fetches local scores."""
    _move(profile, without_clearance(changes) | ({CLEARANCE: False} if _clearance_is_off() else {}))
    session().complete_next = True


def reset() -> None:
    """Restore the profile with the environment's changes."""
    profile = session().profile
    _move(profile, without_clearance(environment_changes(profile)))


def choose_profile(name: str) -> None:
    """Switch to another profile, with the environment's changes. Keeps hand-tuned settings unless
    they are invalid with the new profile, which the page reports."""
    current = session()
    before, changes = environment_changes(current.profile), environment_changes(name)
    tuned = {path: value for path, value in current.changes.items() if path not in before or before[path] != value}
    try:
        changes = settings_of(name, {**changes, **tuned}).changed_from(of_profile(name))
    except SettingsError as error:
        notice(f"The tuned values are not valid with the profile {name} and were left out. {error}")
    use_settings(name, changes)
    # The profile decides how far a question reaches, and a link to this page asks it again.
    ask_again()


def load_settings_file(content: bytes, name: str) -> None:
    """Load all settings of a file or none; it can name a profile. Raises SettingsError."""
    given, named = config.read_toml(content, name)
    profile = profiles.profile(named or session().profile, origin=name).name
    use_settings(profile, of_profile(profile, given).changed_from(of_profile(profile)))


def undo() -> None:
    """Restore the settings before the last change."""
    _step(session().past, session().future)


def redo() -> None:
    """Restore the last undone change."""
    _step(session().future, session().past)


def _move(profile: str, changes: dict[str, Any]) -> None:
    current = session()
    before = current.profile, current.changes
    if before != (profile, changes):
        current.past = [*current.past[1 - MAX_STEPS :], before]
        current.future = []
        current.profile, current.changes = profile, changes


def _step(taken: list[Step], target: list[Step]) -> None:
    current = session()
    if taken:
        target.append((current.profile, current.changes))
        current.profile, current.changes = taken.pop()


def _clearance_is_off() -> bool:
    return CLEARANCE in session().changes


def without_clearance(changes: Mapping[str, Any]) -> dict[str, Any]:
    """`changes` without the clearance setting."""
    return {path: value for path, value in changes.items() if path != CLEARANCE}


def reset_target() -> Config:
    """The settings that a reset restores."""
    loaded = _with_environment(session().profile)
    return replace(loaded, settings=loaded.settings.with_values(ON), origins=without_clearance(loaded.origins))


def changes_since_reset() -> dict[str, Any]:
    """The settings that a reset would change, without the records of tuning."""
    values = settings().changed_from(reset_target().settings)
    return {path: value for path, value in values.items() if not field_info(path).table}


def ask(query: str) -> None:
    """Ask a question, from the box or from an example."""
    session().query = mend_characters(query)
    session().pending = "question"


def open_collection(name: str) -> None:
    """Make this the current collection, and ask the current question there."""
    st.session_state.pop(MANAGED, None)
    session().collection, session().chunk = name, None
    ask_again()


def queue_indexing(order: Order, queue: Queue) -> None:
    """Queue an indexing job, whose collection then becomes the chosen one. Raises StoreError."""
    set_fields(awaited_collection=order.collection, indexing={queue.put(order).id})


def open_inspect(query: str, profile: str, changes: Mapping[str, Any]) -> None:
    """Open this question in Inspect with these settings."""
    use_settings(profile, changes)
    ask(query)
    st.switch_page("pages/inspect.py")


def open_recalibration() -> None:
    """Open Tune, and recalibrate the settings there."""
    session().recalibrate = True
    st.switch_page("pages/tune.py")


def ask_again() -> None:
    """Ask the same question again, because the collection changed or the pool is too small."""
    if session().asked is not None:
        session().pending = "current"


def open_chunk(chunk_id: str | None) -> None:
    """Show a chunk in the panel, and select its row in the table."""
    if chunk_id:
        session().chunk = chunk_id
        reveal(".st-key-panel")
        open_panel("Chunk")


def reveal(selector: str) -> None:
    """Scroll to this part of Inspect, unless it is in view."""
    session().revealed = selector, session().revealed[1] + 1


def open_panel(name: str) -> None:
    """Open the evidence at this panel."""
    session().panel, session().evidence = name, True


def unsaved_chunk_ids() -> frozenset[str]:
    """The chunks of the current collection with an unsaved rule."""
    current = session()
    return frozenset(chunk_id for name, chunk_id in current.unsaved_rules if name == current.collection)


def unsaved_rule(chunk_id: str) -> UnsavedRule | None:
    """The unsaved rule of a chunk of the current collection, None if there is none."""
    return session().unsaved_rules.get((session().collection, chunk_id))


def notice(message: str) -> None:
    """Show a message once at the top of the page."""
    session().notices.append(message)


def take_notices() -> list[str]:
    """Return and clear the messages; the first warns if the page shows too much."""
    current = session()
    messages, current.notices = current.notices, []
    if _clearance_is_off():
        return [SWITCHED_OFF, *messages]
    return [SEEN_BY_OPERATOR, *messages] if current.operator and not current.present else messages


@contextmanager
def notice_errors() -> Iterator[None]:
    """Show an error raised inside at the top of the page. Decorates callbacks."""
    try:
        yield
    except RagfilterError as error:
        notice(str(error))


def then_page(act: Callable[P, object]) -> Callable[P, None]:
    """`act` as a callback in a fragment, after which the whole page runs: other parts show its changes or its error."""

    @wraps(act)
    def acting(*args: P.args, **kwargs: P.kwargs) -> None:
        with notice_errors():
            act(*args, **kwargs)
        st.rerun()

    return acting
