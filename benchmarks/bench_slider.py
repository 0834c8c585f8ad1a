"""A slider's whole rerun of the page under AppTest, on a gathered demo question: ms.

Every value is new, so these are first times. Ratios say more than milliseconds on a busy machine.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from streamlit.testing.v1 import AppTest

from ragfilter.indexing.order import Order, carry_out
from ragfilter.ingest.bundled import queries
from ragfilter.settings.deployment import read_deployment
from ragfilter.ui.kit.controls import setting_key as key
from ragfilter.ui.resources import open_resources
from ragfilter.workbench import Workbench

APP = Path(__file__).resolve().parents[1] / "app.py"
RUNS = 15
TARGET_MS = 300
VALUES: dict[str, list[float]] = {
    "cutoff.relative_offset": [n / 100 for n in range(3, 90)],
    "cutoff.max_results": list(range(1, 51)),
}
"""What each slider may be moved to. A run takes some of them, in no order, each once: nothing that
an earlier rerun kept helps, as nothing helps who drags a slider for the first time."""


def milliseconds(app: AppTest, path: str | None = None) -> list[float]:
    """What each rerun took, the slider at `path` moved to a new value every time; without a path nothing is moved."""
    values: list[float] = []
    if path:
        used = app.slider(key=key(path, "cut")).value
        fresh = [value for value in VALUES[path] if value != used]
        values = random.Random(7).sample(fresh, RUNS)
    times = []
    for i in range(RUNS):
        if path:
            app.slider(key=key(path, "cut")).set_value(values[i])
        started = perf_counter()
        app.run()
        times.append((perf_counter() - started) * 1000)
        assert not app.exception, app.exception
        assert not path or app.slider(key=key(path, "cut")).value == values[i]
    return times


def main() -> None:
    # Streamlit warns of every call that is not made by its own server.
    logging.getLogger("streamlit").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RAGFILTER_DATA_DIR"] = folder
        with Workbench.open(read_deployment(data_dir=Path(folder)), kind="index") as bench:
            carry_out(Order("demo", "demo"), bench)
        app = AppTest.from_file(str(APP), default_timeout=300)
        app.query_params.update({"open": "tuning,evidence", "q": queries("demo")["fighter-druid"], "profile": "full"})
        app.run()
        app.run()
        still = median(milliseconds(app))
        print(f"nothing moved: median {still:.0f} ms of {RUNS}")
        slowest = 0.0
        for path in VALUES:
            times = milliseconds(app, path)
            typical = median(times)
            slowest = max(slowest, typical)
            print(
                f"{path}: median {typical:.0f} ms ({typical / TARGET_MS:.2f} of the target, "
                f"{typical / still:.1f} times nothing moved), slowest {max(times):.0f} ms of {RUNS}"
            )
        print(f"the slowest median is {slowest:.0f} ms, {slowest / TARGET_MS:.2f} of the target of {TARGET_MS} ms")
        open_resources().bench.close()


if __name__ == "__main__":
    main()
