"""Our inputs reproduce the published owner's costs, with the same formulas for every device."""

import pytest

from catalog.read_costs import read_costs
from service.tco.reference import REFERENCE_REGION, reference_rows
from tests.whole_catalog import whole_catalog

ROWS = {
    (row.device, row.operator): row for row in reference_rows(read_costs(), whole_catalog().energy[REFERENCE_REGION])
}
PUBLISHED = {
    "h100-sxm": (1.30, 1.69),
    "h200-sxm": (1.41, 1.74),
    "b200-sxm": (1.95, 2.34),
    "gb200-nvl72": (2.21, 2.75),
    "mi300x": (1.12, 1.40),
    "mi355x": (1.48, 1.90),
}


OPERATORS = ("hyperscaler", "neocloud")


@pytest.mark.parametrize("device", PUBLISHED)
@pytest.mark.parametrize(("position", "operator"), list(enumerate(OPERATORS)))
def test_within_fifteen_percent(device: str, position: int, operator: str) -> None:
    row = ROWS[device, operator]
    assert row.published_usd_per_device_hour == PUBLISHED[device][position]
    assert row.ours is not None
    assert abs(row.difference_fraction) <= 0.15
    assert sum(row.ours.lines.values()) == pytest.approx(row.ours.usd_per_device_hour)
    assert all(usd > 0 for usd in row.ours.lines.values())


def test_eleven_of_twelve_within_twelve_percent_and_which_is_not() -> None:
    """The published figures put an H200 at what an H100 costs; every source of our price puts it higher (docs/tco.md)."""
    gaps = {
        (device, operator): abs(ROWS[device, operator].difference_fraction)
        for device in PUBLISHED
        for operator in OPERATORS
    }
    assert len(gaps) == 12
    assert {which for which, gap in gaps.items() if gap > 0.12} == {("h200-sxm", "neocloud")}
    assert gaps["h200-sxm", "neocloud"] < 0.122


def test_a_device_without_a_price_has_no_figure_of_ours() -> None:
    row = ROWS["mi325x", "neocloud"]
    assert row.ours is None
    assert row.missing == "purchase_usd_per_node"


def test_defaults_of_ownership_name_no_device_but_its_price_and_power() -> None:
    """Per-device tuning would be a fudge: only these rows may be a device's own."""
    per_device = {name for (name, subject) in read_costs().figures if subject in {*PUBLISHED, "b300-sxm", "mi325x"}}
    assert per_device == {
        "device_purchase_usd",
        "system_purchase_usd",
        "system_all_in_usd",
        "server_purchase_usd",
        "cluster_all_in_usd_per_device",
        "all_in_power_kw_per_device",
        "system_power_kw",
        "procurement_lead_time_weeks",
    }
