"""Machine code for functions written in numba's subset of Python, where numba is installed; else the functions as they are.

Importing this module imports numba (half a second), so it is imported when the first simulation runs, not before.
"""

from collections.abc import Callable
from typing import Any, TypeVar

try:
    import numba
    from numba.core.cpu import CPUTargetOptions

    COMPILED = True
except ImportError:
    COMPILED = False

Function = TypeVar("Function", bound=Callable[..., Any])

if COMPILED:
    _compile: Any = numba.njit
    _OPTIONS: dict[str, bool] = {"nogil": True}
    # The kernel makes no arrays, so none of those it is given can go away: counting references to each of its columns
    # at every call is seven times the work of the kernel itself. A numba without the option is only slower.
    if hasattr(CPUTargetOptions, "_nrt"):
        _OPTIONS["_nrt"] = False


def inner(function: Function) -> Function:
    """For functions that other compiled functions call: compiled into them, never kept on disk by themselves."""
    if not COMPILED:
        return function
    compiled: Function = _compile(function, forceinline=True, **_OPTIONS)
    return compiled


def entry(function: Function) -> Function:
    """For what Python calls: releases the interpreter lock, and its machine code is kept on disk.

    numba keeps it beside the source, or where that cannot be written in the user's cache folder, or where
    NUMBA_CACHE_DIR says. Where none of them can be written it is compiled anew in every process.
    Floating-point operations are done in the order written (no fast mathematics), so that results do not depend on it.
    """
    if not COMPILED:
        return function
    try:
        compiled: Function = _compile(function, cache=True, **_OPTIONS)
    except RuntimeError:  # no folder to keep it in
        compiled = _compile(function, **_OPTIONS)
    return compiled
