"""What a click runs on the server: a change of one panel runs only this panel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from playwright.sync_api import Page
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


@dataclass
class Runs:
    """Counts the runs that the server begins for a tab: those of the whole page, and those of a
    fragment alone. Given to `open_tab` with ``watch=runs.watch``."""

    whole: int = 0
    alone: int = 0

    def watch(self, page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framereceived", self._hear))

    def _hear(self, frame: bytes | str) -> None:
        message = ForwardMsg()
        message.ParseFromString(frame)  # type: ignore[arg-type]
        if message.WhichOneof("type") == "new_session":
            fragments = message.metadata.run.fragment_ids
            self.alone += bool(fragments)
            self.whole += not fragments

    @contextlib.contextmanager
    def only_a_fragment(self) -> Iterator[None]:
        """The block must start a fragment run, and no run of the whole page."""
        whole, alone = self.whole, self.alone
        yield
        assert self.alone > alone
        assert self.whole == whole
