"""Search spaces kept between requests: a few of the most recently used, for all solver threads."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, MutableMapping

from solver.candidates.space import SearchSpace

MOST_SPACES = 16
"""A space takes a few megabytes."""

SpaceKey = tuple[object, ...]


class SpaceCache(MutableMapping[SpaceKey, SearchSpace]):
    """A mapping of at most so many. A space that two threads build at once is built twice and kept once."""

    def __init__(self, most: int = MOST_SPACES) -> None:
        self._most = most
        self._kept: OrderedDict[SpaceKey, SearchSpace] = OrderedDict()
        self._lock = threading.Lock()

    def __getitem__(self, key: SpaceKey) -> SearchSpace:
        with self._lock:
            self._kept.move_to_end(key)
            return self._kept[key]

    def __setitem__(self, key: SpaceKey, space: SearchSpace) -> None:
        with self._lock:
            self._kept[key] = space
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def __delitem__(self, key: SpaceKey) -> None:
        with self._lock:
            del self._kept[key]

    def __iter__(self) -> Iterator[SpaceKey]:
        with self._lock:
            return iter(list(self._kept))

    def __len__(self) -> int:
        return len(self._kept)
