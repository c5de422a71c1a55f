"""Sockets, slots, racks and rooms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.errors import FigureMissingError, InvalidInputError
from solver.tco.site import (
    MachineLimits,
    MachineNeeds,
    Room,
    circuit_w,
    machine_checks,
    nodes_that_fit,
    room_it_limit_w,
)

EIGHT_H200 = MachineNeeds("8 × H200", 8, 10_960.0)


def test_a_workstation_with_two_cards_on_a_household_circuit() -> None:
    # 2 · 575 W + 300 W = 1,450 W against 120 V · 15 A · 0.8 = 1,440 W
    needs = MachineNeeds("2 × RTX 5090", 2, 1_450.0, pcie_lanes_per_device=16)
    limits = MachineLimits(
        psu_w=2_000.0,
        psu_load_fraction=0.8,
        circuit_v=120.0,
        circuit_a=15.0,
        continuous_load_fraction=0.8,
        pcie_lanes=48,
    )
    checks = {check.limit: check for check in machine_checks(needs, limits)}
    assert checks["psu"].holds
    assert checks["pcie_lanes"].holds
    assert not checks["circuit"].holds
    assert checks["circuit"].reason == "circuit: needs 1450 W, 1440 W available"


def test_limits_that_are_not_stated_are_not_checked() -> None:
    assert machine_checks(EIGHT_H200, MachineLimits()) == []
    assert nodes_that_fit(EIGHT_H200, Room()) is None


@pytest.mark.parametrize(
    ("room", "nodes"),
    [
        (Room(feed_w=100_000.0, power_usage_effectiveness=1.25), 7),  # 80 kW / 10.96
        (Room(feed_w=100_000.0, power_usage_effectiveness=1.25, cooling_w=40_000.0), 3),
        (Room(racks=3, rack_w=20_000.0), 3),  # one a rack: 20 kW does not take two, though 60 kW would take five
        (Room(racks=3, rack_w=45_000.0, nodes_per_rack=2), 6),
        (Room(racks=3, nodes_per_rack=4), 12),
        (Room(racks=3, rack_w=10_000.0), 0),
    ],
)
def test_nodes_in_a_room(room: Room, nodes: int) -> None:
    assert nodes_that_fit(EIGHT_H200, room) == nodes


@given(feed=st.floats(1.0, 1e7), pue=st.floats(1.0, 3.0), cooling=st.floats(1.0, 1e7), power=st.floats(1.0, 1e5))
def test_what_fits_never_draws_more_than_the_room_has(feed: float, pue: float, cooling: float, power: float) -> None:
    room = Room(feed_w=feed, power_usage_effectiveness=pue, cooling_w=cooling)
    count = nodes_that_fit(MachineNeeds("box", 1, power), room)
    assert count is not None
    assert count * power <= min(feed / pue, cooling) * (1 + 1e-6) + power * 1e-6
    assert (count + 1) * power >= min(feed / pue, cooling) * (1 - 1e-6)


def test_power_nobody_states_is_refused() -> None:
    with pytest.raises(FigureMissingError, match="node_power_w"):
        nodes_that_fit(MachineNeeds("box", 8, None), Room(cooling_w=1e5))


@pytest.mark.parametrize(
    "bad",
    [
        lambda: room_it_limit_w(Room(feed_w=1e5, power_usage_effectiveness=0.9)),
        lambda: room_it_limit_w(Room(cooling_w=-1.0)),
        lambda: circuit_w(208.0, 30.0, 2, 0.8),
        lambda: machine_checks(EIGHT_H200, MachineLimits(psu_w=0.0)),
        lambda: nodes_that_fit(MachineNeeds("box", 8, 0.0), Room(cooling_w=1e5)),
    ],
)
def test_bad_input(bad) -> None:
    with pytest.raises(InvalidInputError):
        bad()
