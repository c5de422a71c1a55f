"""Answers of the solver kept from one application to the next.

``solver/`` is pure: of the same problem it says the same, whichever test asks. A problem is known again by every figure in it (its
whole pickle), so a test that changes anything, prices, models, corrections or limits, has its own answer computed.
"""

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from solver.planning.types import Observer, unobserved

MOST = 48
"""Kept of each function: a solved request holds its table of candidates, some 10 MB."""


class Remembered:
    """Calls of ``function(asked, memo)``. What is observed on the way, and what has no pickle, is computed anew."""

    def __init__(self, function: Callable[..., Any], key: Callable[[Any], object]) -> None:
        self.function = function
        self.key = key
        self.kept: OrderedDict[object, tuple[Any, Any]] = OrderedDict()

    def __call__(self, asked: Any, memo: Any, observe: Observer = unobserved) -> Any:
        try:
            key = self.key(asked)
        except (AttributeError, TypeError, pickle.PicklingError):
            key = None
        if key is None or observe is not unobserved:
            return self.function(asked, memo, observe)
        if key not in self.kept:
            self.kept[key] = asked, self.function(asked, memo, observe)
            if len(self.kept) > MOST:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key][1]


def by_content(asked: object) -> bytes:
    return hashlib.sha256(pickle.dumps(asked)).digest()


def by_identity(asked: object) -> int:
    """Of what is kept itself, so that no other object takes its place."""
    return id(asked)
