"""The app under Streamlit's AppTest, on a real workspace with the real model."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import json
import re
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import streamlit_insides
from chromadb.api.client import Client
from faults import Server, servers, well
from streamlit.testing.v1 import AppTest
from waiting import PATIENT_S, PROCESS_S

from ragfilter.engine.pipeline import search_and_filter
from ragfilter.errors import RagfilterError, SettingsError
from ragfilter.evaluate import tuning
from ragfilter.layers.registry import LAYERS
from ragfilter.model import PUBLIC, PoolResult
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.openai import OpenAIChat
from ragfilter.models.rerankers import CrossEncoderReranker, LateInteraction
from ragfilter.settings import config
from ragfilter.settings.deployment import Deployment, read_deployment
from ragfilter.stores.chroma import ChromaCollection, ChromaStore
from ragfilter.ui import resources
from ragfilter.ui.kit.controls import setting_key as key
from ragfilter.ui.kit.rule_editor import llm_drafts
from ragfilter.ui.session import link
from ragfilter.ui.session.state import KEY, Session

LINK = "ragfilter.session.copy_link"
"""The component that copies the link."""
APP = Path(__file__).resolve().parents[2] / "app.py"

PORTS: tuple[tuple[type[Any], tuple[str, ...]], ...] = (
    (ChromaStore, ("collections",)),
    (ChromaCollection, ("nearest", "chunks", "catalogue", "count", "info", "rule", "set_rules")),
    (Client, ("get_collection", "list_collections")),
    (BundledEmbedder, ("embed",)),
    (LateInteraction, ("score",)),
    (CrossEncoderReranker, ("score",)),
    (OpenAIChat, ("stream",)),
)
"""Every method with which the page can call a store or a model."""


LINES = {"idle", "settings", *(each.name for each in LAYERS)}
"""The lines of the sidebar. The controls of a closed one are not drawn."""
READ = link.read


@dataclass(frozen=True, slots=True)
class Page:
    """The Inspect page in one session, read as a user reads it. No run may end with an exception."""

    at: AppTest
    downloads: dict[str, Callable[[], str]]
    """The data of every download button by file name, from the last run of any page."""

    @property
    def session(self) -> Session:
        """The session's state apart from its widgets."""
        current: Session = self.at.session_state[KEY]
        return current

    def run(self) -> Page:
        self.at.run()
        assert not self.at.exception, [e.value for e in self.at.exception]
        return self

    def ask(self, question: str) -> Page:
        """Type a question and press Enter."""
        self.at.text_input(key="question").set_value(question)
        self.at.button(key="ask-button").click()
        return self.run()

    def press(self, button: str) -> Page:
        self.at.button(key=button).click()
        return self.run()

    def draft(self) -> Page:
        """Ask for a draft of the open rule and wait for it, as the browser does."""
        self.press("rule-draft")
        job = llm_drafts.last_run("demo", resources.open_resources())
        assert job is None or job.wait(PATIENT_S)
        return self.run()

    def switch(self, layer: str, on: bool) -> Page:
        self.at.toggle(key=key(f"{layer}.enabled")).set_value(on)
        return self.run()

    def slide(self, path: str, value: float) -> Page:
        self.at.slider(key=key(path)).set_value(value)
        return self.run()

    def choose(self, control: str, value: str) -> Page:
        """Choose in a segmented control: ``panel-box``, ``order``, ``view-as``."""
        self.at.button_group(key=control).set_value(value)
        return self.run()

    def select(self, path: str, value: str) -> Page:
        """Select one of a setting's values from its list."""
        self.at.selectbox(key=key(path)).set_value(value)
        return self.run()

    def open_chunk(self, chunk_id: str) -> Page:
        """Do what a click on a point or row does; the browser tests really click."""
        self.session.chunk = chunk_id
        self.session.panel = "Chunk"
        return self.run()

    def edit_rule(self, chunk_id: str) -> Page:
        """Open the chunk with its rule, as if another chunk's rule had been open before."""
        self.session.part = "Rule"
        return self.open_chunk(chunk_id)

    @property
    def link(self) -> dict[str, str]:
        """The parameters of the link that a click copies."""
        protos = (getattr(node, "proto", None) for node in self.at)
        sent = [p.json for p in protos if getattr(p, "component_name", "") == LINK]
        assert len(sent) == 1
        return dict(parse_qsl(json.loads(sent[0])))

    @property
    def buttons(self) -> set[str]:
        return {button.key for button in self.at.button if button.key}

    @property
    def html(self) -> list[str]:
        """The page's own HTML, Markdown and messages, piece by piece."""
        said = []
        for node in self.at:
            kind = getattr(node, "type", "")
            if kind == "html" and "<style" not in node.value:
                said.append(_words(node.value))
            elif kind in ("markdown", "caption"):
                said.append(_unmarked(node.value))
            elif kind in ("info", "success", "warning", "error"):
                said.append(_unmarked(f"{node.proto.title} {node.value}"))
        return said

    @property
    def strip(self) -> str:
        """The headline as one line of text."""
        return _words(self._strip)

    @property
    def funnel(self) -> list[str]:
        """The names of the layers in the headline, in order."""
        return re.findall(r'<li title="([a-z_]+):', self._strip)

    @property
    def _strip(self) -> str:
        bodies = [e.value for e in self.at.html if e.value.startswith('<section class="rf-strip')]
        assert len(bodies) == 1
        body: str = bodies[0]
        return body

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of the CSV: the table's rows by rank, as the user sees them."""
        return list(csv.DictReader(io.StringIO(self.downloads["ragfilter.csv"]())))

    @property
    def ids(self) -> list[str]:
        return [row["id"] for row in self.rows]

    @property
    def kept(self) -> list[str]:
        """The kept chunks in the table, by rank."""
        return [row["id"] for row in self.rows if row["place"]]

    @property
    def titles(self) -> list[str]:
        frames = [frame.value for frame in self.at.dataframe]
        return [title.rstrip() for (title,) in next(f for f in frames if "title" in f)["title"]]

    @property
    def changes(self) -> dict[str, Any]:
        """The settings that differ from the profile's."""
        return dict(self.session.changes)

    @property
    def warnings(self) -> list[str]:
        return [message.value for message in self.at.warning]

    @property
    def errors(self) -> list[str]:
        return [message.value for message in self.at.error]

    @property
    def sent(self) -> str:
        """Everything that would be sent to the browser, as one text."""
        tables = "".join(frame.value.to_csv() for frame in self.at.dataframe)
        return "".join(str(getattr(node, "proto", "")) for node in self.at) + tables


def _words(body: str) -> str:
    """HTML as a reader sees it: text, with one space between words."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def _unmarked(markdown: str) -> str:
    """Markdown as a reader sees it."""
    plain = re.sub(r"\*\*|`|\u2060", "", markdown)
    return " ".join(re.sub(r"\\(?=[^\w\s]|_)", "", plain).split())


OpenPage = Callable[..., Page]


@pytest.fixture(scope="session")
def demo_page_workspace(copy_demo: Callable[[], Path]) -> Path:
    """A workspace with the demo that the tests in this folder share but do not change."""
    return copy_demo()


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    """One more for each test file, whose tests may change it: they revert their edits, or edit chunks of their own."""
    return copy_demo()


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Deployment]]:
    """The workspaces that the app has opened for a test file. They are closed at its end, as when a server stops."""
    made: dict[str, Deployment] = {}
    yield made
    for text, deployment in made.items():
        key_hash = hash(deployment.openai_api_key.get_secret_value())
        with contextlib.suppress(RagfilterError):
            resources._open(text, key_hash, deployment).bench.close()
        resources._open.clear(text, key_hash, deployment)


@pytest.fixture
def open_page(
    monkeypatch: pytest.MonkeyPatch,
    demo_page_workspace: Path,
    opened: dict[str, Deployment],
    downloads: dict[str, Callable[[], str]],
) -> OpenPage:
    """Opens the page in a new session, as a link with these parameters would, with everything open.

    The default `workspace` is the shared one, which no test may change. `on` names another page than Inspect.
    """

    def open_(params: dict[str, str] | None = None, *, workspace: Path | None = None, on: str = "") -> Page:
        monkeypatch.setenv("RAGFILTER_DATA_DIR", str(workspace or demo_page_workspace))
        monkeypatch.setattr(link, "read", lambda given: replace(READ(given), open_lines={*LINES}))
        # Measuring every question of the demo takes a quarter of a minute.
        monkeypatch.setattr("ragfilter.ui.evaluate.page.UNASKED", 0)
        with contextlib.suppress(SettingsError):
            deployment = read_deployment()
            opened[deployment.model_dump_json()] = deployment
        at = AppTest.from_file(str(APP), default_timeout=PROCESS_S)
        at.query_params.update({"open": "tuning,evidence", **(params or {})})
        if on:
            at.switch_page(f"pages/{on}.py")
        return Page(at, downloads).run()

    return open_


@pytest.fixture
def few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuning tries every second value of each setting."""
    monkeypatch.setattr(tuning, "GRID", {name: values[::2] for name, values in tuning.GRID.items()})
    monkeypatch.setattr(tuning, "FRACTIONS", {name: values[::2] for name, values in tuning.FRACTIONS.items()})
    monkeypatch.setattr(tuning, "COARSE_KS", tuning.COARSE_KS[::2])


@pytest.fixture
def library(open_page: OpenPage) -> Callable[..., PoolResult]:
    """The library's result for a guest's question on the open workspace, for comparison. If `flags`
    switch clearance off, no user is named."""

    def ask(question: str, profile: str = "full", flags: dict[str, Any] | None = None) -> PoolResult:
        given = [config.Given("--set", flags or {})]
        settings = config.load(profile=profile, environ={}, flags=given).settings
        backends = resources.open_resources().bench.backends("demo")
        user = None if (flags or {}).get("clearance.enabled") is False else PUBLIC
        return search_and_filter(question, settings, backends, user, wide=True)

    return ask


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts every call of a store or a model, by name."""
    made: Counter[str] = Counter()

    def watch(owner: type[Any], name: str) -> None:
        plain = getattr(owner, name)

        @functools.wraps(plain)
        def counted(*args: Any, **kwargs: Any) -> Any:
            made[f"{owner.__name__}.{name}"] += 1
            return plain(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    for owner, names in PORTS:
        for name in names:
            watch(owner, name)
    return made


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """The data of every download button by file name, from the last run of any page."""
    return streamlit_insides.record_downloads(monkeypatch)


@pytest.fixture
def patiently(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Calling it gives every LLM time to answer, whatever deadline a page was opened with."""
    stream = OpenAIChat.stream

    def patient(self: OpenAIChat, *args: Any, timeout_s: float, **named: Any) -> Any:
        return stream(self, *args, timeout_s=PATIENT_S, **named)

    return lambda: monkeypatch.setattr(OpenAIChat, "stream", patient)


@pytest.fixture(scope="module")
def file_endpoint() -> Iterator[Server]:
    with servers() as start:
        yield start(well)


@pytest.fixture
def endpoint(file_endpoint: Server) -> Server:
    """A server that answers as an LLM, well at first. The tests of a file share it."""
    file_endpoint.behave = well
    file_endpoint.asked.clear()
    return file_endpoint


@pytest.fixture
def dead_url() -> Iterator[str]:
    """The base URL of an endpoint where nobody listens: the port is bound but refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
