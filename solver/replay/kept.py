"""What is drawn once and met again, kept as far as it does not take too much memory."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

MOST_BYTES = 16_000_000
"""A draw of 6,000 requests takes 144 kB, one of as many as a simulation accepts 5 MB."""


def kept(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Results by their arguments, the least recently used going first; the newest stays whatever its size. For results that
    nobody changes. Safe for threads: two may make the same result at once."""
    results: OrderedDict[Hashable, tuple[Result, int]] = OrderedDict()
    lock = threading.Lock()
    held_bytes = 0

    @wraps(function)
    def found(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        nonlocal held_bytes
        key = (arguments, *sorted(named.items()))
        with lock:
            if (known := results.get(key)) is not None:
                results.move_to_end(key)
                return known[0]
        made = function(*arguments, **named)
        size = array_bytes(made)
        with lock:
            if key not in results:
                results[key] = made, size
                held_bytes += size
            while len(results) > 1 and held_bytes > MOST_BYTES:
                held_bytes -= results.popitem(last=False)[1][1]
        return made

    return found


def array_bytes(value: Any) -> int:
    """Memory of the arrays in a value: an array, a tuple or a record of them.

    >>> array_bytes((np.zeros(4), (np.zeros(2), None)))
    48
    """
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(array_bytes(part) for part in value)
    if is_dataclass(value):
        return sum(array_bytes(getattr(value, field.name)) for field in fields(value))
    return 0
