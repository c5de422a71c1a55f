"""What was simulated is kept from one search to the next, for as long as the tests' process runs.

A simulation is a pure function of the replica, its traffic, the rate and the seed, and is known again by all of them: what a test changes
is simulated anew. Searches that a test holds against each other, with their own memories or without, still take every step themselves.
Tests of simulations call them where they are defined, and are not served from here.
"""

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import solver.capacity.runs
import solver.confirmation.mixes
from solver.deployment.configuration import Configuration
from solver.replay.latencies import Latencies, SteadyLane
from solver.replay.long_run import draw_mixed
from solver.replay.streams import MixedReplay, RequestStream
from solver.step.tables import StepTables
from solver.workload import Traffic

MOST = 20_000
"""Some kilobytes each."""
MOST_DIGESTS = 2_000
"""Each keeps its configuration from being forgotten."""


class Kept:
    """Answers by what was asked, refusals too; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Any] = OrderedDict()

    def of(self, asked: Hashable, find: Callable[[], Any]) -> Any:
        if asked not in self._found:
            try:
                self._found[asked] = find()
            except Exception as refusal:  # noqa: BLE001  it is raised again, each time
                self._found[asked] = refusal
            if len(self._found) > MOST:
                self._found.popitem(last=False)
        self._found.move_to_end(asked)
        found = self._found[asked]
        if isinstance(found, Exception):
            raise found.with_traceback(None)
        return found


KEPT = Kept()
_DIGESTS: dict[int, tuple[Configuration, bytes]] = {}
"""By identity; with the object, so that no other takes its place."""


def digest_of(configuration: Configuration) -> bytes:
    """Of every figure in it."""
    if id(configuration) not in _DIGESTS:
        if len(_DIGESTS) > MOST_DIGESTS:
            _DIGESTS.clear()
        _DIGESTS[id(configuration)] = configuration, hashlib.sha256(pickle.dumps(configuration)).digest()
    return _DIGESTS[id(configuration)][1]


class KeptLane(SteadyLane):
    def __init__(self, configuration: Configuration, tables: StepTables, traffic: Traffic) -> None:
        super().__init__(configuration, tables, traffic)
        self._asked = digest_of(configuration), traffic

    def latencies(self, requests_per_s: float, seeds: tuple[int, ...], requests: int) -> Latencies:
        def find() -> Latencies:
            return SteadyLane.latencies(self, requests_per_s, seeds, requests)

        found: Latencies = KEPT.of((*self._asked, requests_per_s, seeds, requests), find)
        return found


def kept_draw(
    configuration: Configuration,
    tables: StepTables,
    streams: Sequence[RequestStream],
    seed: int,
    *,
    notes_gaps: bool = True,
) -> MixedReplay:
    found: MixedReplay = KEPT.of(
        (digest_of(configuration), *streams, seed, notes_gaps),
        lambda: draw_mixed(configuration, tables, streams, seed, notes_gaps=notes_gaps),
    )
    return found


@contextmanager
def kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solver.capacity.runs, "SteadyLane", KeptLane)
        patch.setattr(solver.confirmation.mixes, "draw_mixed", kept_draw)
        yield
