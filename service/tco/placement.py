"""Whether what is bought fits where it is to stand; refused with the reason where it does not."""

from collections.abc import Sequence

from service.problems import FieldError, InvalidFieldsError
from service.tco.defaults import CostDefaults, MachineFacts
from service.tco.resolve import STANDING_HERE, Nodes
from service.wire.tco import ComparisonIn, SiteIn
from solver.errors import FigureMissingError
from solver.tco.figures import FigureTable
from solver.tco.site import MachineLimits, MachineNeeds, Room, SiteCheck, machine_checks, room_checks

WATTS_PER_KW = 1000.0
CIRCUIT_CODE = "us"
"""Whose electrical code says how much of a breaker's rating may be used; the only one in the catalog."""


def check_site(
    asked: ComparisonIn, nodes: Sequence[Sequence[Nodes]], shared: FigureTable, defaults: CostDefaults
) -> None:
    """Raises InvalidFieldsError with every limit that a bought fleet breaks.

    A power supply that the catalog states is checked without a site too.
    """
    errors: list[FieldError] = []
    site = asked.site or SiteIn()
    room = room_of(site, shared)
    for position, alternative in enumerate(asked.alternatives):
        if alternative.acquisition not in STANDING_HERE:
            continue
        own = {m.node: m.peak_kw_per_node or alternative.purchase.peak_kw_per_node for m in asked.machines}
        machines = [
            (needs_of(part.machine, defaults, own.get(part.machine.node, alternative.purchase.peak_kw_per_node)), part)
            for part in nodes[position]
        ]
        try:
            checks = [
                c for needs, part in machines for c in machine_checks(needs, limits_of(site, part.machine, defaults))
            ]
            checks += room_checks([(needs, part.count) for needs, part in machines], room)
        except FigureMissingError as missing:
            errors.append(FieldError(f"figure_missing: {missing}", pointer=f"/alternatives/{position}"))
            continue
        errors += [_broken(alternative.name, position, check) for check in checks if not check.holds]
    if errors:
        raise InvalidFieldsError(errors)


def _broken(name: str, position: int, check: SiteCheck) -> FieldError:
    return FieldError(f"{name!r} does not fit: {check.reason}", pointer=f"/alternatives/{position}")


def needs_of(machine: MachineFacts, defaults: CostDefaults, stated_kw: float | None = None) -> MachineNeeds:
    """A machine at its limits, in SI units. stated_kw: its peak draw, where the request states it."""
    peak = defaults.power(machine).get("peak_w_per_node")
    return MachineNeeds(
        name=machine.node,
        devices=machine.devices,
        node_power_w=_watts(stated_kw) if stated_kw is not None or peak is None else peak.figure.typical,
        pcie_lanes_per_device=machine.pcie_lanes_per_device or 0,
    )


def limits_of(site: SiteIn, machine: MachineFacts, defaults: CostDefaults) -> MachineLimits:
    """What a machine's chassis and the site's socket give."""
    return MachineLimits(
        psu_w=machine.psu_w,
        psu_load_fraction=defaults.load_fraction("psu_load_fraction"),
        circuit_v=site.circuit_v,
        circuit_a=site.circuit_a,
        circuit_phases=site.circuit_phases,
        continuous_load_fraction=defaults.load_fraction("continuous_load_fraction", CIRCUIT_CODE),
        pcie_lanes=site.pcie_lanes,
    )


def room_of(site: SiteIn, shared: FigureTable) -> Room:
    """The site's room, in SI units."""
    effectiveness = shared.get("power_usage_effectiveness")
    return Room(
        feed_w=_watts(site.feed_kw),
        power_usage_effectiveness=1.0 if effectiveness is None else effectiveness.typical,
        cooling_w=_watts(site.cooling_kw),
        racks=site.racks,
        rack_w=_watts(site.rack_kw),
        nodes_per_rack=site.nodes_per_rack,
    )


def _watts(kilowatts: float | None) -> float | None:
    return None if kilowatts is None else kilowatts * WATTS_PER_KW
