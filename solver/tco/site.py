"""Whether machines fit where they are to stand: power supply, circuit, PCIe lanes, rack, room.

Electrical quantities in volts, amperes and watts. Nothing is assumed about a site: a limit that is not stated is not
checked, and the check says so by its absence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from solver.errors import FigureMissingError, InvalidInputError


@dataclass(frozen=True, slots=True)
class MachineNeeds:
    """One machine at its limits. node_power_w: everything in the box at full load; None where nobody states it.

    pcie_lanes_per_device: lanes each device wants; 0 where devices are not PCIe cards.
    """

    name: str
    devices: int
    node_power_w: float | None
    pcie_lanes_per_device: int = 0


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """What one machine's chassis and wall socket give. psu_w: all power supplies that carry load together.

    psu_load_fraction, continuous_load_fraction: how much of a rating may be used for hours on end.
    """

    psu_w: float | None = None
    psu_load_fraction: float = 1.0
    circuit_v: float | None = None
    circuit_a: float | None = None
    circuit_phases: int = 1
    continuous_load_fraction: float = 1.0
    pcie_lanes: int | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A room's limits. feed_w: at the meter; cooling_w: heat it can take away; rack_w: per rack, both ways."""

    feed_w: float | None = None
    power_usage_effectiveness: float = 1.0
    cooling_w: float | None = None
    racks: int | None = None
    rack_w: float | None = None
    nodes_per_rack: int | None = None


@dataclass(frozen=True, slots=True)
class SiteCheck:
    """One limit: what is needed of it, what there is, in ``unit``."""

    limit: str
    needed: float
    available: float
    unit: str

    @property
    def holds(self) -> bool:
        return self.needed <= self.available * (1.0 + 1e-12)

    @property
    def reason(self) -> str:
        return f"{self.limit}: needs {self.needed:.6g} {self.unit}, {self.available:.6g} {self.unit} available"


def circuit_w(volts: float, amperes: float, phases: int, continuous_load_fraction: float) -> float:
    """What a breaker carries continuously: V · A · fraction, and √3 more on three phases (V between phases).

    >>> circuit_w(120.0, 15.0, 1, 0.8)
    1440.0
    >>> round(circuit_w(208.0, 30.0, 3, 0.8))
    8646
    """
    if phases not in (1, 3):
        raise InvalidInputError(f"circuit_phases must be 1 or 3; got {phases}")
    return volts * amperes * continuous_load_fraction * (math.sqrt(3.0) if phases == 3 else 1.0)


def machine_checks(needs: MachineNeeds, limits: MachineLimits) -> list[SiteCheck]:
    """Each stated limit of one machine. Raises FigureMissingError where a limit needs the machine's power.

    >>> needs = MachineNeeds("two cards", 2, node_power_w=1450.0, pcie_lanes_per_device=16)
    >>> checks = machine_checks(needs, MachineLimits(psu_w=1600.0, circuit_v=120.0, circuit_a=15.0,
    ...                         continuous_load_fraction=0.8, pcie_lanes=24))
    >>> [check.limit for check in checks if not check.holds]
    ['circuit', 'pcie_lanes']
    """
    _positive(limits.psu_w, "psu_w")
    _positive(limits.circuit_v, "circuit_v")
    _positive(limits.circuit_a, "circuit_a")
    checks = []
    if limits.psu_w is not None:
        checks.append(SiteCheck("psu", _power_w(needs), limits.psu_w * limits.psu_load_fraction, "W"))
    if limits.circuit_v is not None and limits.circuit_a is not None:
        available = circuit_w(
            limits.circuit_v, limits.circuit_a, limits.circuit_phases, limits.continuous_load_fraction
        )
        checks.append(SiteCheck("circuit", _power_w(needs), available, "W"))
    if limits.pcie_lanes is not None and needs.pcie_lanes_per_device:
        lanes = float(needs.devices * needs.pcie_lanes_per_device)
        checks.append(SiteCheck("pcie_lanes", lanes, float(limits.pcie_lanes), "lanes"))
    return checks


def room_it_limit_w(room: Room) -> float | None:
    """Power that machines may draw: the least of feed / PUE, cooling, and racks · rack limit; None when none is stated.

    Nearly all of a machine's power becomes heat, so cooling capacity bounds it watt for watt.

    >>> room_it_limit_w(Room(feed_w=1e5, power_usage_effectiveness=1.25, cooling_w=9e4, racks=4, rack_w=15_000.0))
    60000.0
    """
    if room.power_usage_effectiveness < 1.0:
        raise InvalidInputError(f"power_usage_effectiveness must be at least 1; got {room.power_usage_effectiveness:g}")
    _positive(room.feed_w, "feed_w")
    _positive(room.cooling_w, "cooling_w")
    _positive(room.rack_w, "rack_w")
    limits = []
    if room.feed_w is not None:
        limits.append(room.feed_w / room.power_usage_effectiveness)
    if room.cooling_w is not None:
        limits.append(room.cooling_w)
    if room.racks is not None and room.rack_w is not None:
        limits.append(room.racks * room.rack_w)
    return min(limits) if limits else None


def nodes_per_rack(needs: MachineNeeds, room: Room) -> int | None:
    """Whole machines in one rack, by its power and by its height; None where neither is stated.

    >>> nodes_per_rack(MachineNeeds("8 × H200", 8, 10_960.0), Room(rack_w=45_000.0, nodes_per_rack=6))
    4
    """
    counts = [] if room.nodes_per_rack is None else [room.nodes_per_rack]
    if room.rack_w is not None:
        counts.append(math.floor(room.rack_w / _power_w(needs) + 1e-9))
    return min(counts) if counts else None


def nodes_that_fit(needs: MachineNeeds, room: Room) -> int | None:
    """How many such machines a room holds: by power and cooling, and by whole machines in a rack. None: unlimited.

    >>> nodes_that_fit(MachineNeeds("8 × H200", 8, 10_960.0), Room(cooling_w=90_000.0, racks=4, rack_w=15_000.0))
    4
    """
    counts = []
    power_w = room_it_limit_w(room)
    if power_w is not None:
        counts.append(math.floor(power_w / _power_w(needs) + 1e-9))
    per_rack = nodes_per_rack(needs, room)
    if room.racks is not None and per_rack is not None:
        counts.append(room.racks * per_rack)
    return min(counts) if counts else None


def room_checks(machines: Sequence[tuple[MachineNeeds, int]], room: Room) -> list[SiteCheck]:
    """Each stated limit of a room that holds so many of each machine: IT power, heat, whole machines in racks.

    >>> room = Room(cooling_w=90_000.0, racks=4, rack_w=15_000.0)
    >>> checks = room_checks([(MachineNeeds("8 × H200", 8, 10_960.0), 5)], room)
    >>> [check.reason for check in checks if not check.holds]
    ['racks: needs 5 racks, 4 racks available']
    """
    checks = []
    limit_w = room_it_limit_w(room)
    if limit_w is not None:
        total_w = math.fsum(_power_w(needs) * count for needs, count in machines)
        checks.append(SiteCheck("room_power", total_w, limit_w, "W"))
    if room.racks is not None:
        racks = 0.0
        for needs, count in machines:
            per_rack = nodes_per_rack(needs, room)
            if per_rack is not None:
                racks += math.ceil(count / per_rack) if per_rack else math.inf
        checks.append(SiteCheck("racks", racks, float(room.racks), "racks"))
    return checks


def _power_w(needs: MachineNeeds) -> float:
    if needs.node_power_w is None:
        raise FigureMissingError(needs.name, "node_power_w")
    if needs.node_power_w <= 0:
        raise InvalidInputError(f"{needs.name}: node_power_w must be above 0; got {needs.node_power_w:g}")
    return needs.node_power_w


def _positive(value: float | None, name: str) -> None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise InvalidInputError(f"{name} must be a finite number above 0; got {value:g}")
