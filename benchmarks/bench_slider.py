"""A slider's whole rerun of the page under AppTest, on a gathered demo question: milliseconds."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from streamlit.testing.v1 import AppTest

from ragfilter.cli import indexing
from ragfilter.corpora.demo import queries
from ragfilter.ui.controls import key
from ragfilter.ui.resources import open_resources

APP = Path(__file__).resolve().parents[1] / "app.py"
RUNS = 15
TARGET_MS = 300
SLIDERS: dict[str, tuple[float, float]] = {
    "cutoff.gap_threshold": (0.3, 0.05),
    "cutoff.max_results": (20, 5),
    "quality.score_threshold": (0.6, 0.4),
    "retrieval.k": (30, 15),
}
"""Each is moved to and fro between two values."""


def milliseconds(app: AppTest, path: str, values: tuple[float, float]) -> list[float]:
    """What each of the reruns took."""
    times = []
    for i in range(RUNS):
        app.slider(key=key(path)).set_value(values[i % 2])
        started = perf_counter()
        app.run()
        times.append((perf_counter() - started) * 1000)
        assert not app.exception, app.exception
    return times


def main() -> None:
    # Streamlit warns of every call that is not made by its own server.
    logging.getLogger("streamlit").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RAGFILTER_DATA_DIR"] = folder
        indexing.run(
            "demo", "demo", reset=False, from_copy=False, data_dir=Path(folder),
            progress=lambda _: lambda done, total: None,
        )  # fmt: skip
        app = AppTest.from_file(str(APP), default_timeout=300)
        app.query_params.update({"q": queries()["cleric-ac6"], "profile": "full"})
        app.run()
        slowest = 0.0
        for path, values in SLIDERS.items():
            times = milliseconds(app, path, values)
            slowest = max(slowest, median(times))
            print(f"{path}: median {median(times):.0f} ms, slowest {max(times):.0f} ms of {RUNS}")
        print(f"the slowest median is {slowest:.0f} ms, the target {TARGET_MS} ms")
        open_resources().bench.close()


if __name__ == "__main__":
    main()
