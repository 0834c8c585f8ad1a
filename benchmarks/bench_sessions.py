"""Many sessions on one server: a cold start of all at once, then all move a slider.

Speaks Streamlit's own protocol instead of driving browsers, which would need the cores that the server is measured on.
A picture is the curve as the server sends it. Targets for 20 sessions on an idle machine: the first picture within 10 s
for all, and a slider's within 1 s for 95 of 100 moves; beside two busy processes, three times as long. `PYTHONPATH=.
python benchmarks/bench_sessions.py [--sessions 20] [--load 2] [--json]`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from threading import Barrier
from urllib.parse import urlencode

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from benchmarks.bench_browser import cpu_s, served
from benchmarks.load import busy
from ragfilter.ingest.bundled import queries

MOVES = 20
PAUSE_S = 0.5
"""Between two moves of one session."""
PATIENT_S = 600.0
SLIDER = "cut-cutoff-relative_offset"


class Session:
    """One visitor of the Inspect page, with a question and profile of the link."""

    def __init__(self, socket: ClientConnection, link: str) -> None:
        self._socket = socket
        self._link = link
        self._slider = ""
        self._picture = ""
        self.errors: list[str] = []
        """What the page said of errors."""

    def open(self) -> float:
        """Ask, and return the seconds until the first picture."""
        return self._wait(BackMsg())

    def move(self, value: float) -> float:
        """Move the slider, and return the seconds until the next picture."""
        message = BackMsg()
        state = message.rerun_script.widget_states.widgets.add()
        state.id = self._slider
        state.double_array_value.data.append(value)
        return self._wait(message)

    def _wait(self, message: BackMsg) -> float:
        began = time.perf_counter()
        message.rerun_script.query_string = self._link
        self._socket.send(message.SerializeToString())
        seen, begun = 0.0, False
        while True:
            data = self._socket.recv(timeout=PATIENT_S)
            assert isinstance(data, bytes)
            answer = ForwardMsg.FromString(data)
            element = answer.delta.new_element
            if element.HasField("exception"):
                self.errors.append(element.exception.message)
            elif element.alert.format == Alert.ERROR:
                self.errors.append(element.alert.body)
            if SLIDER in element.slider.id:
                self._slider = element.slider.id
            chart = element.plotly_chart
            # What the run before still sends comes first.
            begun = begun or answer.WhichOneof("type") == "new_session"
            if begun and not seen and chart.id.endswith("-curve") and chart.spec != self._picture:
                seen, self._picture = time.perf_counter() - began, chart.spec
            # The rest of the run goes on beside the next move, as it does in a browser.
            if seen and self._slider:
                return seen
            assert seen or not begun or answer.WhichOneof("type") != "script_finished", "no change"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--load", type=int, default=0, help="busy processes beside it")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    questions = list(islice(cycle(queries("demo").values()), options.sessions))
    together = Barrier(options.sessions)
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as (url, pid):

        def visit(question: str) -> tuple[float, list[float]]:
            params = {"q": question, "profile": "full", "collection": "demo", "open": "tuning"}
            link = urlencode(params)
            address = f"{url.replace('http', 'ws')}/_stcore/stream"
            protocols = [Subprotocol("streamlit")]
            with connect(address, subprotocols=protocols, max_size=None) as socket:
                session = Session(socket, link)
                together.wait()
                first = session.open()
                together.wait()
                times = []
                for i in range(MOVES):
                    times.append(session.move(0.1 + 0.04 * (i % 20)))
                    time.sleep(PAUSE_S)
                return first, times

        with busy(options.load), ThreadPoolExecutor(options.sessions) as pool:
            visits = list(pool.map(visit, questions))
        before = cpu_s(pid)
        time.sleep(5)
        after = cpu_s(pid) - before
    firsts = sorted(first for first, _ in visits)
    moves = sorted(seconds for _, times in visits for seconds in times)
    figures = {
        "sessions": options.sessions,
        "load": options.load,
        "last first picture, s": round(firsts[-1], 2),
        "slider p50, s": round(moves[len(moves) // 2], 3),
        "slider p95, s": round(moves[int(len(moves) * 0.95)], 3),
        "CPU of the server in the 5 s after all have left, s": round(after, 2),
    }
    print(json.dumps(figures, indent=2) if options.json else "\n".join(f"{k}: {v}" for k, v in figures.items()))


if __name__ == "__main__":
    main()
