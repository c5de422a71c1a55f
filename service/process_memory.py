"""How this process holds its memory: what the C library keeps, how often cycles are looked for, what is mapped of the compiler.

All but the collector: Linux with the GNU C library; elsewhere nothing is changed.
"""

import ctypes
import gc
import re
from functools import cache
from pathlib import Path
from typing import Any

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
MADV_DONTNEED = 4
MAPPED_FROM_BYTES = 2 << 20
"""Arrays of so many bytes are mapped by themselves and go back when they are freed. From an eighth of that on most tables
of candidates would be, and plans took longer: each of their pages is cleared anew."""
TRIMMED_FROM_BYTES = 8 << 20
"""Free memory at the end of the heap: of less, estimates would ask the pages back that they have just let go."""
COMPILER = "libllvmlite"
COLLECTED_AFTER = (20_000, 20, 50)
"""New objects, and generations before an older one is looked at. A plan leaves few objects in cycles and makes millions; with
Python's 700 the collector walks all that was imported again and again while a service starts, and nobody is answered meanwhile."""
_MAPPING = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \S+ +(\S*)")


@cache
def _c_library() -> Any:
    try:
        return ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None


def hold_together() -> None:
    """Have all threads share one heap: of several, each keeps what the largest problem solved in it took. Before there are threads, and
    before most is imported.

    They allocate with the interpreter's lock held, so that sharing costs them nothing.
    """
    gc.set_threshold(*COLLECTED_AFTER)
    option = getattr(_c_library(), "mallopt", None)
    if option is not None:
        option(M_ARENA_MAX, 1)
        option(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
        option(M_TRIM_THRESHOLD, TRIMMED_FROM_BYTES)


def forget_compiler() -> int:
    """Give back what is mapped of the compiler's file, which the simulation needs no more once its machine code is loaded; bytes.

    Only what is read-only and unchanged: should the compiler be called again, that is read from the file again.
    """
    advise = getattr(_c_library(), "madvise", None)
    if advise is None:
        return 0
    given_back = 0
    for first, last in _unchanged(COMPILER):
        if advise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_DONTNEED) == 0:
            given_back += last - first
    return given_back


def _unchanged(name: str) -> list[tuple[int, int]]:
    """Read-only mappings of files so called of which this process has no page of its own."""
    try:
        described = Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found: list[tuple[int, int]] = []
    inside: tuple[int, int] | None = None
    for line in described.splitlines():
        head = _MAPPING.match(line)
        if head is not None:
            named = name in head[4] and "w" not in head[3]
            inside = (int(head[1], 16), int(head[2], 16)) if named else None
        elif inside is not None and line.startswith("Private_Dirty:"):
            if line.split()[1] == "0":
                found.append(inside)
            inside = None
    return found
