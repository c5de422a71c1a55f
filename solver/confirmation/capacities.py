"""What replicas of a plan's candidates sustain, asked the same way of all of them.

How it is known differs. Replicas that are sent requests of one kind sustain one rate, which has a bracket (``brackets``): what is found of
a candidate is true of it in every plan. What replicas sustain of a mix of traffic classes depends on the mix (``mixes``), and what
prefill and decode replicas sustain on each other (``exchanges``): that is found for what a plan asks, and believed of what is like it.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from solver.planning.assemble import Assembly, Floats
from solver.planning.placements import Placement


class Capacities(Protocol):
    """What replicas of one kind sustain, as far as simulation has found it; it learns."""

    known_by_candidate: bool
    """Is what is found true of a candidate in every plan? Else more or less is believed as more is simulated, and a plan that held
    before is none to rely on."""
    most_rounds: float
    """Rounds after which a plan that still does not hold is given up for one of what does."""

    def assumed(self, assembly: Assembly) -> Assembly:
        """The problem in which these replicas sustain as much as is believed; by candidate, as much as is not ruled out."""

    def confirmed(self, assembly: Assembly) -> Assembly:
        """The problem in which they sustain what simulation has seen hold, and others nothing."""

    def apart(self, assembly: Assembly) -> Assembly:
        """The same without any mix of traffic classes."""

    def hold(self, assembly: Assembly, places: Sequence[Placement], in_time: Callable[[], bool]) -> bool:
        """Simulate those among a plan's replicas at what is asked of them: do all hold? False, too, where there is no time to know."""

    def hold_confirmed(self, assembly: Assembly, places: Sequence[Placement]) -> bool:
        """Do those of a plan hold that was made for ``confirmed`` capacities?"""

    def settle_plan(
        self, assembly: Assembly, places: Sequence[Placement], capacity: Floats, in_time: Callable[[], bool]
    ) -> None:
        """Put what those of a plan sustain into ``capacity`` (deployments × classes), as far as there is time to find out."""

    def be_pessimistic(self) -> None:
        """From now on believe only what has been simulated."""


class EveryCapacity:
    """The replicas of all kinds together."""

    def __init__(self, kinds: Sequence[Capacities]) -> None:
        self._kinds = tuple(kinds)
        self.known_by_candidate = all(one.known_by_candidate for one in kinds)
        self.most_rounds = min((one.most_rounds for one in kinds), default=math.inf)

    def assumed(self, assembly: Assembly) -> Assembly:
        for one in self._kinds:
            assembly = one.assumed(assembly)
        return assembly

    def confirmed(self, assembly: Assembly) -> Assembly:
        for one in self._kinds:
            assembly = one.confirmed(assembly)
        return assembly

    def apart(self, assembly: Assembly) -> Assembly:
        for one in self._kinds:
            assembly = one.apart(assembly)
        return assembly

    def hold(self, assembly: Assembly, places: Sequence[Placement], in_time: Callable[[], bool]) -> bool:
        held = [one.hold(assembly, places, in_time) for one in self._kinds]  # every kind learns, whichever fails
        return all(held)

    def hold_confirmed(self, assembly: Assembly, places: Sequence[Placement]) -> bool:
        held = [one.hold_confirmed(assembly, places) for one in self._kinds]
        return all(held)

    def settle_plan(
        self, assembly: Assembly, places: Sequence[Placement], capacity: Floats, in_time: Callable[[], bool]
    ) -> None:
        for one in self._kinds:
            one.settle_plan(assembly, places, capacity, in_time)

    def be_pessimistic(self) -> None:
        for one in self._kinds:
            one.be_pessimistic()
