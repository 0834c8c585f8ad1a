"""The workspace folder: one process at a time, many threads, and one clear line for the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragfilter.errors import InputError, WorkspaceLocked
from ragfilter.stores.chroma import Server
from ragfilter.stores.workspace_files import Workspace

# Opens the folder, says so, and holds it until its standard input ends.
HOLD = (
    "import sys; from ragfilter.stores.workspace_files import Workspace;"
    "Workspace.open(sys.argv[1], kind='holder'); print('open', flush=True); sys.stdin.read()"
)
# Opens the folder and writes a collection, or prints the refusal.
TRY = (
    "import sys; from ragfilter.errors import RagfilterError\n"
    "from ragfilter.stores.workspace_files import Workspace\n"
    "try:\n"
    "    Workspace.open(sys.argv[1]).store().create('demo', embedder='fake'); print('written')\n"
    "except RagfilterError as error:\n"
    "    print(type(error).__name__, error)"
)


def held(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def attempt(folder: Path) -> str:
    command = [sys.executable, "-c", TRY, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_the_folder_is_free_when_its_holder_is_gone(tmp_path: Path, how: str) -> None:
    holder = held(tmp_path)
    try:
        with pytest.raises(WorkspaceLocked, match=f"holder \\(process {holder.pid},"):
            Workspace.open(tmp_path)
        if how == "killed":
            holder.kill()
            holder.wait()
            # Its note is still there, but must not lock anybody out.
            assert json.loads((tmp_path / ".owner.json").read_text())["pid"] == holder.pid
    finally:
        holder.communicate()
    with Workspace.open(tmp_path) as workspace:
        assert workspace.store().collections() == ()


@pytest.mark.slow
def test_one_process_at_a_time_has_it_and_a_second_one_is_told_who_holds_it_and_what_to_do(tmp_path: Path) -> None:
    first = Workspace.open(tmp_path, kind="app")
    store = first.store()
    second = Workspace.open(tmp_path / "." / "x" / "..")
    assert second is first
    assert second.store() is store
    second.close()
    assert first.store().collections() == ()
    line = attempt(tmp_path)
    assert line.startswith("WorkspaceLocked")
    assert f"app (process {os.getpid()}, since 20" in line
    assert "use another folder." in line
    assert "PostgreSQL" not in line
    assert "\n" not in line
    first.close()
    first.close()
    assert attempt(tmp_path) == "written"
    with pytest.raises(InputError, match="closed"):
        first.store()


def test_one_folder_with_two_stores_at_once_is_refused(tmp_path: Path) -> None:
    with (
        Workspace.open(tmp_path, server=Server("http://127.0.0.1:1")),
        pytest.raises(InputError, match="another vector store"),
    ):
        Workspace.open(tmp_path)


@pytest.mark.parametrize("path", ["file", "file/below", "/proc/ragfilter", "nul\x00", "x" * 300])
def test_a_path_that_cannot_be_a_workspace(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError) as error:
        Workspace.open(tmp_path / path)
    assert "cannot be used" in error.value.message
    assert error.value.action == "folder"
