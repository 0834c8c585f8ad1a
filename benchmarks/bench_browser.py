"""What a reader waits for on the Inspect page, and a curator for the effect of a rule while typing
on the Rules page: a real server, a real Chromium, the demo. In ms.

From the release of the mouse or key to the picture that shows what it changed, as the browser's own clock has it;
medians over RUNS. A row is clicked on its title, since elsewhere the table waits 150 ms for more. First, how many
different pictures a second the curve shows while its threshold is dragged. With a number, that many sliders are moved
first, and the server's memory is told before and after: `PYTHONPATH=. python benchmarks/bench_browser.py 1000`. With
`--load 2`, two busy processes run beside it. RAGFILTER_DATA_DIR may name a workspace with the demo, which saves
indexing it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

from benchmarks.load import busy
from ragfilter.ingest.bundled import queries

ROOT = Path(__file__).resolve().parents[1]
RUNS = 20
PICTURES = 30
"""A second, wanted while a line of the curve is dragged."""
TARGETS_MS = {"slider": 280, "row click": 200, "point click": 200, "Enter": 300, "rule": 300}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

WATCH = """([event, what]) => {
  const seen = {
    curve: () => [...document.querySelectorAll(
      ".st-key-curve .shapelayer path, .st-key-curve .annotation text, .st-key-curve path.point"
    )].map(e => (e.getAttribute("d") || "") + (e.getAttribute("transform") || "") + e.textContent)
      .join("|"),
    chunk: () => document.querySelector(".rf-chunk")?.textContent || "",
    effect: () => document.querySelector(".rf-effect")?.textContent || "",
  }[what];
  window.waited = new Promise(done => addEventListener(event, begun => {
    const before = seen(), from = performance.now();
    let touched = false;
    const touches = new MutationObserver(() => touched = true);
    touches.observe(document.body, {
      subtree: true, childList: true, attributes: true, characterData: true,
    });
    const look = () => {
      const now = touched && seen(), late = performance.now() - from > 20000;
      touched = false;
      if (!(now && now !== before) && !late) return requestAnimationFrame(look);
      touches.disconnect();
      done(late ? -1 : performance.now() - from);
    };
    look();
  }, {once: true, capture: true}));
}"""
"""Resolves `waited` in the frame in which the curve (or the open chunk) first differs from what it
was at the event. Looks only where the page was touched, since a look costs milliseconds itself."""


COUNT = """() => {
  let before = "", pictures = 0, first = 0, last = 0
  delete window.dragged
  addEventListener("pointerup", () => {
    window.dragged = (1000 * (pictures - 1)) / (last - first)
  }, {once: true, capture: true})
  const look = now => {
    if (window.dragged) return
    const seen = document.querySelector(".rf-drag").innerHTML
    if (seen !== before) { pictures++; first ||= now; last = now; before = seen }
    requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
}"""
"""Leaves in `dragged`, when the mouse is let go, how many different pictures of the handles there were a second."""


@contextmanager
def served(folder: Path | str) -> Iterator[tuple[str, int]]:
    """The app on a demo workspace in `folder`, or a database, as `make app` starts it: its address and process."""
    environ = {**os.environ, "RAGFILTER_WORKSPACE": str(folder)}
    subprocess.run(
        [sys.executable, "-m", "ragfilter", "index", "demo", "--collection", "demo"],
        cwd=ROOT,
        env=environ,
        check=True,
        capture_output=True,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    server = subprocess.Popen(
        command, cwd=ROOT, env=environ, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert server.poll() is None, "the server did not start"
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=5).close()
                break
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        yield url, server.pid
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def rest(page: Page) -> None:
    """Wait until the server has nothing more to do for this page."""
    page.wait_for_selector(".stApp[data-test-script-state='notRunning']")
    page.wait_for_timeout(400)


def waits(page: Page, event: str, what: str, act: Callable[[int], None], n: int) -> list[float]:
    """How long `what` took to change after each of `n` acts ended with `event`."""
    times = []
    for i in range(n):
        page.evaluate(WATCH, [event, what])
        act(i)
        waited = page.evaluate("window.waited")
        assert waited >= 0, f"{what} did not change"
        times.append(waited)
        rest(page)
    return times


def slide(page: Page, i: int) -> None:
    """Drag the relative offset to where it was not just before."""
    slider = page.locator(".st-key-set-cutoff-relative_offset")
    if not slider.count():
        page.locator(".st-key-line-cutoff button").first.click()
        rest(page)
    slider.scroll_into_view_if_needed()
    track = slider.locator("[role='group']").first.bounding_box()
    thumb = slider.locator("input[type='range']").first.evaluate(
        "e => { const b = e.closest('[style*=left]').getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2] }"
    )
    assert track is not None
    page.mouse.move(*thumb)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * (0.15 + 0.031 * (i % 20)), thumb[1], steps=4)
    page.mouse.up()


def drag(page: Page) -> float:
    """Drag the threshold's line in the curve up and down; the different pictures a second."""
    grip = page.locator(".rf-handle[aria-label^='Relative offset'] circle")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(COUNT)
    for end in (y - 120, y, y - 120, y):
        page.mouse.move(x, end, steps=30)
    page.mouse.up()
    return float(page.evaluate("window.dragged"))


def click_row(page: Page, i: int) -> None:
    canvas = page.locator(".st-key-table [data-testid='data-grid-canvas']")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 205, box["y"] + 36 + 32 * (i % 8) + 16)


def click_point(page: Page, i: int) -> None:
    # The open chunk's point has a ring around it, which counts as a point too.
    # All the way up, so that no point lies under the bar of pages.
    page.locator("[data-testid='stMain']").evaluate("main => main.scrollTo(0, 0)")
    boxes = page.locator(".st-key-curve").first.evaluate(
        """c => { const f = c.querySelector(".nsewdrag").getBoundingClientRect();
          return [...c.querySelectorAll("path.point")].map(p => p.getBoundingClientRect())
            .map(b => [b.x + b.width / 2, b.y + b.height / 2])
            .filter(([x, y]) => x > f.x && x < f.right && y > f.y && y < f.bottom)
            .sort((a, b) => a[0] - b[0])
            .filter(([x], i, all) => !i || x - all[i - 1][0] > 1) }"""
    )
    page.mouse.move(*boxes[i % 8])
    page.locator(".st-key-curve .hoverlayer .hovertext").wait_for()
    page.mouse.click(*boxes[i % 8])


def ask(page: Page, questions: Iterator[str]) -> None:
    page.locator("[class*='st-key-question'] input").fill(next(questions))
    page.keyboard.press("Enter")


def open_rule(page: Page) -> None:
    """On the Rules page, put `cleric` into the first matrix's editor, with the cursor behind it."""
    page.get_by_role("link", name="Rules").click()
    page.locator(".st-key-rules-text input").fill("matrix cleric armor class 6")
    page.keyboard.press("Enter")
    rest(page)
    page.get_by_role("button", name="Next Shortcut").click()
    rest(page)
    page.locator("[class*='st-key-rule-editor'] textarea").fill('{"contain":"cleric"}')
    page.keyboard.press("Control+End")
    for _ in '"}':
        page.keyboard.press("ArrowLeft")
    # The labelled questions are gathered once.
    page.locator(".rf-effect", has_text="would change").wait_for()
    rest(page)


def type_on(page: Page, i: int) -> None:
    """One key makes `clerics` of `cleric`, and the next one takes it back."""
    page.keyboard.press("Backspace" if i % 2 else "s")


def rss_mb(pid: int) -> float:
    """Resident memory of the server."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("moves", type=int, nargs="?", default=0)
    parser.add_argument("--load", type=int, default=0, help="busy processes beside it")
    options = parser.parse_args()
    moves = options.moves
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "install Chromium (Debian: apt-get install chromium)"
    asked = [text for name, text in queries("demo").items() if name != "fighter-druid"]
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as (url, pid),
        busy(options.load),
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.set_default_timeout(120_000)
        link = {
            "q": queries("demo")["fighter-druid"],
            "profile": "full",
            "collection": "demo",
            "open": "tuning,evidence",
        }
        page.goto(f"{url}/?{urlencode(link)}")
        page.wait_for_selector(".st-key-curve path.point")
        rest(page)
        slide(page, 5)
        rest(page)
        pictures = median(drag(page) for _ in range(5))
        print(f"dragging: median {pictures:.0f} pictures a second (wanted: {PICTURES})")
        rest(page)
        if moves:
            print(f"memory before: {rss_mb(pid):.0f} MB")
            waits(page, "pointerup", "curve", lambda i: slide(page, i), moves)
            print(f"memory after {moves} moves: {rss_mb(pid):.0f} MB")
        questions = cycle(asked)
        for _ in islice(questions, 3):
            pass
        acts: dict[str, tuple[str, str, Callable[[int], None]]] = {
            "slider": ("pointerup", "curve", lambda i: slide(page, i)),
            "row click": ("pointerup", "chunk", lambda i: click_row(page, i)),
            "point click": ("pointerup", "chunk", lambda i: click_point(page, i)),
            "Enter": ("keydown", "curve", lambda i: ask(page, questions)),
        }
        for name, (event, what, act) in acts.items():
            # The same picture for all, and whatever a first time costs.
            slide(page, 5)
            rest(page)
            act(9)
            rest(page)
            measure(page, name, event, what, act, pid)
        open_rule(page)
        measure(page, "rule", "keydown", "effect", lambda i: type_on(page, i), pid)
        browser.close()


def measure(page: Page, name: str, event: str, what: str, act: Callable[[int], None], pid: int) -> None:
    cpu = cpu_s(pid)
    times = waits(page, event, what, act, RUNS)
    typical, target = median(times), TARGETS_MS[name]
    print(
        f"{name}: median {typical:.0f} ms ({typical / target:.2f} of the target of "
        f"{target} ms), {min(times):.0f} to {max(times):.0f} ms of {RUNS}; "
        f"server {(cpu_s(pid) - cpu) / RUNS * 1000:.0f} ms CPU each"
    )


if __name__ == "__main__":
    main()
