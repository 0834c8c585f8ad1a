"""A bounded cache of the values used last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Shelf(Generic[V]):
    """At most `size` values by key. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """The value for `key`, None if there is none (any more)."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def of(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value for `key`, made and stored if there is none."""
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def put(self, key: Hashable, value: V, join: Callable[[V, V], V] | None = None) -> V:
        """Store and return `value`. With `join`, an existing value is combined: ``join(value,
        old)``."""
        with self._lock:
            if join is not None and key in self._values:
                value = join(value, self._values[key])
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value
