"""Requests of one session: how many turns, and how long between them."""

from dataclasses import dataclass

import numpy as np

from solver.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class SessionsFound:
    """Sessions of a trace. gap_s: between arrivals of one session's turns; None where arrivals are not recorded."""

    sessions: int
    requests_without: int
    turns_mean: float
    turns_p95: float
    turns_most: int
    median_gap_s: float | None


def described_sessions(trace: Trace) -> SessionsFound | None:
    """Turns of each session and the times between them; None where no session is recorded.

    >>> two = Trace(np.array([5, 5, 5]), np.array([1, 1, 1]), np.array([0.0, 1.0, 4.0]), np.array([0, 1, 0]))
    >>> described_sessions(two).turns_mean, described_sessions(two).median_gap_s
    (1.5, 4.0)
    """
    if trace.sessions is None or not bool(np.any(trace.sessions >= 0)):
        return None
    inside = trace.sessions >= 0
    named = trace.sessions[inside]
    _, turns = np.unique(named, return_counts=True)
    gap = None
    if trace.arrival_s is not None and turns.max() > 1:
        order = np.argsort(named, kind="stable")
        times, owners = trace.arrival_s[inside][order], named[order]
        gap = float(np.median(np.diff(times)[np.diff(owners) == 0]))
    return SessionsFound(
        len(turns), int((~inside).sum()), float(turns.mean()), float(np.quantile(turns, 0.95)), int(turns.max()), gap
    )
