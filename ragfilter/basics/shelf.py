"""A cachetools cache of the values used last, with the lock that it needs among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache, cached

V = TypeVar("V")


class Shelf(Generic[V]):
    """At most `size` values by key. Hold `lock` over several steps that belong together."""

    def __init__(self, size: int) -> None:
        self._values: LRUCache[Hashable, V] = LRUCache(size)
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value for `key`, None if there is none (any more)."""
        with self.lock:
            return self._values.get(key)

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value for `key`, made and stored if there is none."""
        return cached(self._values, key=lambda: key, lock=self.lock)(make)()

    def put(self, key: Hashable, value: V) -> V:
        """Store and return `value`."""
        with self.lock:
            self._values[key] = value
        return value
