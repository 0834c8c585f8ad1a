"""A real server, a real Chromium, and the Inspect page as a user operates it."""

from __future__ import annotations

import contextlib
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from urllib.parse import urlencode

import pytest
from labelled_demo import put_labelled
from playwright.sync_api import Browser, BrowserContext, Error, Locator, Page, expect, sync_playwright
from serving import SERVERS, serve
from waiting import PATIENT_MS, PATIENT_S, PROCESS_S

from browser.scripts import AT_REST, BUSY, STILL, WIRE
from ragfilter.ingest import bundled
from ragfilter.stores.label_book import LabelBook

SHOWN_MS = 240_000
"""Default time that the page may take to show what is expected. A failing test takes this long."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A tab lives for seconds, and the optimising compiler takes longer than it saves.
    "--js-flags=--no-opt",
    # Later tabs then find the app's scripts compiled; compiling takes as long as a whole test.
    "--process-per-site",
)
ACROSS = {"": 18, "rank": 58, "outcome": 128, "title": 278, "reason": 430}
"""Where the first columns of the table are, in pixels from its left edge."""
HOSTS = "bench.example, [2001:db8::1],"
"""The names under which the app may be visited, besides those of this machine."""
ServeApp = Callable[..., str]
OpenTab = Callable[..., "Tab"]


@dataclass(frozen=True, slots=True)
class Tab:
    """The Inspect page in a browser session of its own."""

    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)

    def go(self, params: dict[str, str] | None = None) -> Tab:
        """Open the page as a link with these parameters would, and wait until it is drawn."""
        self.page.goto(f"{self.url}/?{urlencode(params or {})}")
        nothing_yet = self.page.locator("#no-collection")
        expect(self.keyed("ask-button", "button").or_(nothing_yet)).to_be_enabled()
        return self.rest()

    def rest(self) -> Tab:
        """Wait until the server and the browser have nothing more to do for this page: until
        everything is drawn, it may miss a key or a click. A click that the server has not received
        yet also counts, because the page would be redrawn under the next one."""
        deadline = time.monotonic() + SHOWN_MS / 1000
        # Playwright's `wait_for_function` treats a promise as true, whatever its result.
        while not self.page.evaluate(AT_REST):
            assert time.monotonic() < deadline, "the page does not come to rest"
            self.page.wait_for_timeout(50)
        return self

    def describe(self) -> str:
        """What the page shows, as a screen reader gets it, and what has the focus."""
        focused = self.page.evaluate("document.activeElement?.outerHTML.slice(0, 200)")
        shown = self.page.locator("body").aria_snapshot(timeout=PATIENT_MS)
        return f"{self.page.url}\nfocus: {focused}\n{shown}"

    def keyed(self, key: str, what: str = "") -> Locator:
        """The part of the page to which our code gave this key, or the visible `what` in it. A
        widget whose value was changed in another way has a number after its key."""
        inside = f" {what}:visible" if what else ""
        return self.page.locator(f":is(.st-key-{key}, [class*='st-key-{key}--']){inside}")

    def click(self, key: str) -> Tab:
        button = self.keyed(key, "button")
        # The one from the previous run may be next to it for a moment.
        expect(button).to_have_count(1)
        button.click()
        return self

    def choose(self, key: str, word: str) -> Tab:
        """Choose in a segmented control."""
        self.keyed(key).get_by_text(word, exact=True).click()
        return self

    def pick(self, box: str, option: str) -> Tab:
        """Pick the option that matches a pattern from a list, once nothing moves. A list closes
        when the page still moves, as while a box above it opens; it is then opened once more."""
        pattern = re.compile(option)
        for _ in range(5):
            self.rest().keyed(box).scroll_into_view_if_needed()
            self.rest().keyed(box).get_by_role("combobox").click()
            with contextlib.suppress(Error):
                self.page.get_by_role("option", name=pattern).click(timeout=PATIENT_MS / 2)
                picked = self.keyed(box).first
                shown = picked.get_by_role("combobox").first.input_value()
                if pattern.search(shown) or pattern.search(picked.inner_text()):
                    return self
        raise AssertionError(f"{option} cannot be picked in {box}")

    def visit(self, page: str) -> Tab:
        """Go to a page by its link at the top of the window."""
        self.page.get_by_test_id("stTopNavLink").get_by_text(page, exact=True).click()
        return self.rest()

    def ask(self, question: str) -> Tab:
        """Type a question, press Enter, and wait for its result."""
        self.keyed("question", "input").fill(question)
        self.keyed("question", "input").press("Enter")
        expect(self.page.locator("h1")).to_have_accessible_name(question)
        return self.rest()

    def switch(self, layer: str) -> Tab:
        """Flip a layer's switch, which may be folded away. While a job redraws the page, the line that unfolds it may
        miss a click."""
        switch = self.keyed(f"set-{layer}-enabled", "label")
        for _ in range(5):
            if switch.count():
                break
            self.click("line-idle").rest()
        switch.click()
        return self

    def open(self, *lines: str) -> Tab:
        """Open these lines of the sidebar."""
        for line in lines:
            if not self.rest().keyed(f"inside-{line}").count():
                self.click(f"line-{line}")
                expect(self.keyed(f"inside-{line}")).to_be_visible()
        return self

    def edit_rule(self) -> Tab:
        """Show the rule of the open chunk, and of those opened later."""
        self.rest().choose("chunk-part", "Rule")
        expect(self.rule).to_be_visible()
        return self.rest()

    def write_rule(self, text: str) -> Tab:
        self.keyed("rule-editor", "textarea").fill(text)
        return self

    def type_terms(self, *terms: str, pause_ms: int = 100) -> Tab:
        """Type terms into the focused element at human speed, with Enter after each."""
        for term in terms:
            self.page.keyboard.type(term, delay=pause_ms)
            self.page.keyboard.press("Enter", delay=pause_ms)
        return self

    @property
    def rule(self) -> Locator:
        """The rule editor. The one that it replaces may be below it for a moment."""
        return self.keyed("rule-editor", "textarea").first

    @property
    def kept(self) -> Locator:
        """The headline: ``4 kept of 200 retrieved``. During a redraw, that of the previous run may
        be below it for a moment."""
        return self.page.locator(".rf-kept").first

    @property
    def strip(self) -> Locator:
        return self.page.locator(".rf-strip").first

    @property
    def chunk(self) -> Locator:
        """The text of the panel on the open chunk."""
        return self.page.locator(".rf-chunk")

    @property
    def verdicts(self) -> Locator:
        """The verdicts in the rule editor or next to an answer."""
        return self.page.locator(".rf-verdict")

    def expect_verdict(self, words: str) -> Tab:
        """Wait for a verdict with these words. The one before may be next to it until the run ends."""
        expect(self.verdicts.filter(has_text=words)).to_have_count(1)
        return self

    def expect_kept(self, n: int, of: int = 200) -> Tab:
        expect(self.kept).to_have_text(re.compile(rf"^\s*{n} kept\s*of {of} retrieved\s*$"))
        return self

    def expect_layers(self, *names: str) -> Tab:
        """The layers of the headline, in order."""
        expect(self.page.locator(".rf-funnel .rf-name")).to_have_text(
            [re.compile(rf"\b{name}$", re.IGNORECASE) for name in names]
        )
        return self

    def click_point(self, index: int) -> list[str]:
        """Click the curve's visible point with this index. Returns the lines of its tooltip."""
        self.keyed("curve").scroll_into_view_if_needed()
        # The chart is drawn a moment after the server is done.
        seen = self.page.wait_for_function(STILL, arg=index, polling=100)
        x, y = seen.json_value()
        self.page.mouse.move(x, y)
        hover = self.keyed("curve").locator(".hoverlayer .hovertext")
        expect(hover).to_be_visible()
        told: list[str] = hover.locator("tspan.line").all_text_contents()
        self.page.mouse.click(x, y)
        # The chart reports a click a moment later.
        expect(self.chunk).to_be_visible()
        return told

    def click_row(self, row: int, column: str = "") -> str:
        """Click a column of a row of the table (0 is the first), or the box in front of it. Returns the row's title."""
        title = (self.cell(row, "title").text_content() or "").strip()
        self.click_canvas(ACROSS[column], row)
        return title

    def click_canvas(self, across: int, row: int, table: str = "table") -> None:
        """Click in a row of the table, this many pixels from its left edge, once the table no
        longer moves: a chart above it may still be loading."""
        canvas = self.rest().keyed(table).get_by_test_id("data-grid-canvas")
        canvas.scroll_into_view_if_needed()
        self.rest()
        # Resolves once its box is the same in two frames.
        canvas.element_handle().wait_for_element_state("stable")
        box = canvas.bounding_box()
        assert box is not None
        assert across < box["width"]
        x, y = box["x"] + across, box["y"] + 36 + 32 * row + 16
        # As by hand: Streamlit's table accepts no click before it has drawn that the pointer is in it.
        self.page.mouse.move(x, y)
        self.page.wait_for_timeout(100)
        self.page.mouse.click(x, y, delay=50)

    def open_question(self) -> Tab:
        """Click on questions of the table, from the first, until one opens: a table drawn only now,
        below a chart, may miss a click."""
        question = self.keyed("question", "input")
        for row in range(3):
            self.click_canvas(150, row)
            with contextlib.suppress(AssertionError):
                expect(question).to_be_visible(timeout=PATIENT_MS / 2)
                return self
        expect(question).to_be_visible()
        return self

    @property
    def selected_row(self) -> Locator:
        """The selected row of the table, as a screen reader gets it."""
        return self.keyed("table").locator("tr[aria-selected='true']")

    def cell(self, row: int, column: str) -> Locator:
        """A cell of the table as a screen reader gets it."""
        return self._cells(column).and_(self.page.locator(f"[data-testid$='-{row}']"))

    def column(self, name: str) -> list[str]:
        """The cells of a column that are currently drawn."""
        expect(self._cells(name).first).to_be_attached()
        return self._cells(name).all_text_contents()

    def _cells(self, column: str) -> Locator:
        # The grid is drawn on a canvas, and described in the DOM a little later.
        grid = self.keyed("table").locator("table[role='grid']")
        head = grid.locator("th", has_text=re.compile(rf"^{column}$"))
        return grid.locator(f"td[aria-colindex='{head.get_attribute('aria-colindex')}']")


@pytest.fixture(scope="package")
def browser(chromium: str) -> Iterator[Browser]:
    expect.set_options(timeout=SHOWN_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS), timeout=SHOWN_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def warm(browser: Browser) -> BrowserContext:
    """The browser session in which every test begins, with its storage cleared. Its first page
    stays open, so its process keeps the app's compiled scripts."""
    return browser.new_context(accept_downloads=True)


@pytest.fixture(scope="session")
def servers(
    copy_demo: Callable[[], Path],
    bare_environ: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    encodings: Path,
) -> Callable[[], AbstractContextManager[ServeApp]]:
    """Starts the app's servers, and stops them all at the end, whatever happens."""

    @contextlib.contextmanager
    def serving() -> Iterator[ServeApp]:
        running: list[ForkServerProcess] = []

        def start(**variables: str) -> str:
            port = free_port()
            log = tmp_path_factory.mktemp("server") / "log.txt"
            environ = bare_environ | variables
            if "RAGFILTER_DATA_DIR" not in variables:
                environ["RAGFILTER_DATA_DIR"] = str(copy_demo())
            server = SERVERS.Process(target=serve, args=(environ, port, log, encodings))
            server.start()
            running.append(server)
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + PROCESS_S
            while not healthy(url):
                assert server.is_alive(), log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            return url

        try:
            yield start
        finally:
            for server in running:
                server.terminate()
            for server in running:
                server.join(10)
                if server.is_alive():
                    server.kill()
                    server.join()

    return serving


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=PATIENT_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="module")
def serve_app(servers: Callable[[], AbstractContextManager[ServeApp]]) -> Iterator[ServeApp]:
    """Starts the app's server on a copy of the demo with these variables, and returns its address."""
    with servers() as start:
        yield start


@pytest.fixture(scope="package")
def app(servers: Callable[[], AbstractContextManager[ServeApp]], copy_demo: Callable[[], Path]) -> Iterator[str]:
    """The address of a server without an LLM, whose workspace every test leaves as it was. A file
    whose tests change it has its own fixture `app`. Its query set few is measured in a moment."""
    workspace = copy_demo()
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    put_labelled(book, "few", [*bundled.qrels("demo")][:8])
    book.close()
    with servers() as start:
        yield start(RAGFILTER_DATA_DIR=str(workspace), RAGFILTER_ALLOWED_HOSTS=HOSTS)


TABS = pytest.StashKey[list[Tab]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport]:
    """Report what each page showed when a test failed."""
    report = yield
    if report.when == "call" and report.failed:
        for number, tab in enumerate(item.stash.get(TABS, ()), start=1):
            with contextlib.suppress(Error):
                report.sections.append((f"Page {number}", tab.describe()))
    return report


@pytest.fixture
def open_tab(browser: Browser, warm: BrowserContext, request: pytest.FixtureRequest) -> Iterator[OpenTab]:
    """Opens the page in a browser session without history: ``open_tab({"q": …}, width=900)``, with
    the evidence open unless `params` say otherwise.

    At the end, no page may show an exception or have written an error to the console.
    """
    tabs: list[Tab] = []
    request.node.stash[TABS] = tabs

    def open_(
        params: dict[str, str] | None = None,
        *,
        width: int = 1440,
        height: int = 900,
        dark: bool = False,
        url: str = "",
        watch: Callable[[Page], None] = lambda _: None,
        newcomer: bool = False,
    ) -> Tab:
        url = url or request.getfixturevalue("app")
        if not warm.pages:
            warm.new_page().goto(f"{url}/_stcore/health")
        context = browser.new_context(accept_downloads=True) if tabs else warm
        page = context.new_page()
        tab = Tab(page, url)
        tabs.append(tab)
        if context is warm:
            cleared = {"origin": tab.url, "storageTypes": "cookies,local_storage"}
            warm.new_cdp_session(page).send("Storage.clearDataForOrigin", cleared)
        page.set_default_timeout(SHOWN_MS)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        page.add_init_script(f"{BUSY}{WIRE}")
        watch(page)
        page.on("pageerror", lambda error: tab.troubles.append(f"page error: {error}"))
        page.on("console", lambda line: tab.troubles.append(line.text) if line.type == "error" else None)
        return tab.go({} if newcomer else {"open": "evidence", **(params or {})})

    yield open_
    exceptions = [tab.page.locator(".stException").all_inner_texts() for tab in tabs]
    troubles = [trouble for tab in tabs for trouble in tab.troubles]
    for tab in tabs[1:]:
        tab.page.context.close()
    for page in warm.pages[1:]:
        page.close()
    assert not any(exceptions), exceptions
    assert not troubles
