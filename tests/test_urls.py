"""Credentials in a URL of the deployment: sent where they are needed, shown nowhere."""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import pytest
from waiting import PATIENT_S

from ragfilter.cli.program import main
from ragfilter.errors import RagfilterError, StoreError, StoreUnavailable
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.chroma import Server
from ragfilter.text.urls import UNSHOWN, shown
from ragfilter.workbench import Workbench

SECRET = "s3cr@t/x"
IN_A_URL = quote(SECRET, safe="")
MARKS = ("s3cr", quote("@t/x", safe=""), "@t/x", base64.b64encode(SECRET.encode()).decode()[:6])
DEAD = "127.0.0.1:9"

URLS = [
    f"http://user:{IN_A_URL}@{DEAD}",
    f"http://{IN_A_URL}@{DEAD}/path/",
    f"https://user:{IN_A_URL}@{DEAD}",
    f"http://{DEAD}?token={IN_A_URL}",
    f"http://user:12/s3cr@{DEAD}",
    f"user:{SECRET}@{DEAD}",
    f"http://user:s3cr@{DEAD}9999999",
    f"http://user%3As3cr%40{DEAD}",
    "http://user:s3cr@[::1",
    "s3cr",
]
DATABASES = [
    f"postgresql://user:{IN_A_URL}@{DEAD}/db",
    f"postgresql://{DEAD}/db?password={IN_A_URL}",
    "postgresql://user:s3cr@host:s3cr/db",
    f"postgresql://user:12/s3cr@{DEAD}/db",
    "postgresql://user:s3cr@[::1/db",
    "s3cr",
]


def check(*texts: str) -> None:
    for text in texts:
        found = [mark for mark in MARKS if mark in text]
        assert not found, text


def words(error: BaseException | None) -> Iterator[str]:
    """An error and its whole chain of causes, as a traceback prints them."""
    while error is not None:
        yield f"{error} {error!r}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_url_is_shown_without_what_opens_the_door() -> None:
    for url, expected in [
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000"),
        ("http://user:word@host:8000/a/b/?t=1#f", "http://host:8000/a/b"),
        ("http://user:word@[::1]:8000", "http://[::1]:8000"),
        ("postgresql://user:word@host/db?password=x", "postgresql://host/db"),
        ("postgresql://user:word@/db?host=%2Frun&password=x", "postgresql:///db?host=/run"),
        ("postgresql:///db?host=me%3As3cr%40h", UNSHOWN),
        ("postgresql:///db?host=a%0ab", UNSHOWN),
        ("http://host?host=x", "http://host"),
        ("sqlite:////home/me@work/ragfilter.db", "sqlite:////home/me@work/ragfilter.db"),
        ("http://user:12/word@host", UNSHOWN),
        ("user:word@host", UNSHOWN),
        ("http://user:word%40host:8000", UNSHOWN),
        ("", UNSHOWN),
    ]:
        assert shown(url) == expected


def test_no_error_shows_what_opens_a_door() -> None:
    for text, message in [
        ("with http://user:word@host/model.", "with http://host/model."),
        ("http://user:12/word@host:1/x does not exist.", "http://host:1/x does not exist."),
        ("sqlite:////home/me@work/r.db is locked.", "sqlite:////home/me@work/r.db is locked."),
        ("Ask me@host about http://host.", "Ask me@host about http://host."),
    ]:
        error = StoreError(text, remedy=text)
        assert (error.message, error.remedy, str(error)) == (message, message, f"{message} {message}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "url"),
    [*(("RAGFILTER_CHROMA_URL", url) for url in URLS), *(("RAGFILTER_DATABASE_URL", url) for url in DATABASES)],
)
def test_no_command_shows_a_secret_of_a_url(
    variable: str,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(variable, url)
    monkeypatch.setenv("RAGFILTER_CHROMA_TIMEOUT_S", "2")
    for command in (["collections"], ["query", "troll", "-vvv"], ["rules", "history"]):
        code = main([*command, "--data-dir", str(tmp_path)])
        run = capsys.readouterr()
        check(run.out, run.err, caplog.text)
        assert code in (0, 2)
        assert "Unexpected" not in run.err


def test_no_repr_and_no_chain_of_errors_shows_a_secret(tmp_path: Path) -> None:
    for url in URLS:
        made = [
            Deployment(data_dir=tmp_path, chroma_url=url, chroma_timeout_s=2),
            Deployment(data_dir=tmp_path, database_url=url),
            Deployment(data_dir=tmp_path, openai_base_url=url),
        ]
        check(*map(repr, made), *map(str, made), repr(Server(url)), str(Server(url)))
        for deployment in made:
            try:
                with Workbench.open(deployment) as bench:
                    check(repr(bench), repr(bench.workspace), repr(bench.journal), repr(bench.chat))
                    bench.collections()
            except RagfilterError as error:
                check(*words(error))


def test_a_value_of_the_wrong_type_is_not_repeated() -> None:
    with pytest.raises(ValueError, match="chroma_timeout_s") as refused:
        Deployment(chroma_timeout_s="s3cr")  # type: ignore[arg-type]
    check(str(refused.value), repr(refused.value))


class Guarded(BaseHTTPRequestHandler):
    """A proxy that requires user and password, with nothing behind it."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        self.send_error(401 if len(self.asked) > 1 else 404)

    def log_message(self, *args: object) -> None:
        pass


def test_user_and_password_are_sent_as_basic_authentication() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        Guarded.asked.clear()
        url = f"http://user:{IN_A_URL}@127.0.0.1:{port}/chroma/"
        with pytest.raises(StoreUnavailable) as refused:
            Server(url, timeout_s=PATIENT_S).open()
        server.shutdown()
    check(*words(refused.value))
    assert f"http://127.0.0.1:{port}/chroma" in refused.value.message
    pair = base64.b64encode(f"user:{SECRET}".encode()).decode()
    assert Guarded.asked == [("/chroma/api/v2/heartbeat", f"Basic {pair}")]
