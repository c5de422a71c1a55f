"""A line on the terminal that says how far a run is; nothing where no terminal is."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

WIDTH = 30
REDRAW_S = 0.1


class AgentProgress:
    """``with AgentProgress("64 clients", total=160) as bar: bar.step()``."""

    def __init__(self, title: str, total: int, out: TextIO | None = None) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.failed = 0
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._drawn_at = 0.0
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._draw(force=True)
        if self._live:
            self._out.write("\n")

    def step(self, *, failed: bool = False) -> None:
        """One more request is answered."""
        self.done += 1
        self.failed += failed
        self._draw()

    def _draw(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not self._live or (now - self._drawn_at < REDRAW_S and not force):
            return
        self._drawn_at = now
        self._out.write("\r" + self.line(now - self._started))
        self._out.flush()

    def line(self, elapsed_s: float) -> str:
        """
        >>> AgentProgress("c=4", total=40).line(0.0)
        'c=4  ······························  0/40  0 s'
        """
        share = self.done / self.total if self.total else 1.0
        bar = "█" * round(WIDTH * share) + "·" * (WIDTH - round(WIDTH * share))
        failures = f"  {self.failed} failed" if self.failed else ""
        return f"{self.title}  {bar}  {self.done}/{self.total}{failures}  {elapsed_s:.0f} s"
