"""Solved requests kept for the questions that follow: a few, because each holds its whole table of candidates."""

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solver.recommend.recommend import SolvedRequest

MOST_WORKLOADS = 4
"""Workloads kept in all, at some 10 MB each; the newest request is kept whatever its size."""


class SolvedRequestCache:
    """The most recently used, by everything they depend on. Safe for threads; a solved request is never changed."""

    def __init__(self, most_workloads: int = MOST_WORKLOADS) -> None:
        self._most_workloads = most_workloads
        self._kept: OrderedDict[tuple[object, ...], SolvedRequest] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...]) -> "SolvedRequest | None":
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key]

    def put(self, key: tuple[object, ...], solved_request: "SolvedRequest") -> None:
        with self._lock:
            self._kept[key] = solved_request
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and self._workloads() > self._most_workloads:
                self._kept.popitem(last=False)

    def _workloads(self) -> int:
        return sum(len(solved_request.planning.workloads) for solved_request in self._kept.values())
