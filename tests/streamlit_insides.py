"""Streamlit internals that the tests replace, which an update may rename."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.media_file_manager import MediaFileManager
from streamlit.testing.v1 import local_script_runner
from streamlit.testing.v1.element_tree import WidgetList

# Each run of an AppTest reads the metadata of every installed package again.
manifest_scanner.scan_component_manifests = functools.cache(manifest_scanner.scan_component_manifests)


def _wait(runner: Any, timeout: float) -> None:
    """Wait for a run without polling, which takes turns from it."""
    runner._script_thread.join(timeout)
    if runner._script_thread.is_alive():
        runner.request_stop()
        raise TimeoutError(f"The page took more than {timeout} s.")


local_script_runner.require_widgets_deltas = _wait


def _current(widgets: WidgetList[Any], key: str) -> Any:
    """The widget called `key`, which has another key once its value was changed in another way."""
    for widget in widgets:
        if widget.key is not None and widget.key.partition("--")[0] == key:
            return widget
    raise KeyError(key)


WidgetList.__call__ = _current  # type: ignore[method-assign]


def record_downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], str]]:
    """Start to record the data of every download button, by file name."""
    downloads: dict[str, Callable[[], str]] = {}
    add, add_deferred = MediaFileManager.add, MediaFileManager.add_deferred

    def added(self: Any, data: bytes, *args: Any, **named: Any) -> str:
        downloads[str(named.get("file_name"))] = data.decode
        return add(self, data, *args, **named)

    def deferred(self: Any, make: Callable[[], str], *args: Any, **named: Any) -> str:
        downloads[str(named.get("file_name"))] = make
        return add_deferred(self, make, *args, **named)

    monkeypatch.setattr(MediaFileManager, "add", added)
    monkeypatch.setattr(MediaFileManager, "add_deferred", deferred)
    return downloads
