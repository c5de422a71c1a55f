"""The cost catalog: every figure sourced, ranges in order, errors all at once."""

from pathlib import Path

import pytest

from catalog.read_costs import CostCatalogError, read_costs

COSTS = read_costs()
GOOD = """
[[figure]]
name = "spare_fraction"
subject = "*"
low = 0.01
typical = 0.03
high = 0.05
unit = "fraction"
as_of = "2026"
source = "somewhere"
retrieved_on = 2026-11-21
checked = "assumption"
"""


def test_an_engineering_default_says_so_and_nothing_else_does() -> None:
    for row in COSTS.figures.values():
        if row.source.startswith("engineering default"):
            assert row.checked == "assumption", row
        assert "seed" not in row.source.lower(), row


@pytest.mark.parametrize(
    ("device", "name"), [(d, "server_purchase_usd") for d in ("h100-sxm", "h200-sxm", "b200-sxm", "mi300x")]
)
def test_bottom_up_price_of_a_server_agrees_with_street_prices(device: str, name: str) -> None:
    """Boards, parts, storage and margin at typical prices land inside the range that complete servers are sold for."""
    street = COSTS.find(name, device)
    board = COSTS.find("device_purchase_usd", device)
    parts = [COSTS.find(part) for part in ("server_parts_usd", "server_nvme_usd")]
    bottom_up = street.devices * board.typical + sum(part.typical for part in parts)
    assert street.low <= bottom_up <= street.high


def test_operators_point_at_rows_that_exist() -> None:
    for operator in COSTS.operators.values():
        assert COSTS.find("cost_of_capital_fraction_per_year", operator.cost_of_capital)
        assert COSTS.find("colocation_usd_per_kw_month", operator.colocation)
        assert COSTS.find("power_usage_effectiveness", operator.power_usage_effectiveness)


def test_power_usage_effectiveness_is_at_least_one_and_shares_at_most_one() -> None:
    for row in COSTS.figures.values():
        if row.name == "power_usage_effectiveness":
            assert row.low >= 1.0
        if row.name.endswith("_fraction") or "_fraction_per" in row.name:
            assert row.high <= 1.0, row


def _value_of_earnings(age: int, life: int, change: float, running: float, capital: float) -> float:
    """What the rest of a machine's life earns, month by month: rent that moves, less what running it costs, discounted."""
    return sum(
        ((1 + change) ** (month / 12) - running) * (1 + capital) ** (-(month - age) / 12) for month in range(age, life)
    )


def test_resale_and_rent_tell_of_the_same_future() -> None:
    """Over the six years that most owners write machines off in, what a machine still earns at the rent's typical change is
    what its resale rows say it fetches: a fleet does not lose its value in a market that pays for it as before."""
    change = COSTS.find("rent_change_fraction_per_year").typical
    capital = COSTS.find("cost_of_capital_fraction_per_year", "enterprise").typical
    life = round(COSTS.find("it_life_years").high * 12)
    new = _value_of_earnings(0, life, change, 0.25, capital)
    for years in (3, 5):
        row = COSTS.find(f"residual_fraction_after_{years}_years")
        implied = _value_of_earnings(12 * years, life, change, 0.25, capital) / new
        assert implied == pytest.approx(row.typical, abs=0.05), years


def test_only_changes_of_price_may_be_negative() -> None:
    assert {name for (name, _), row in COSTS.figures.items() if row.low < 0} <= {
        "rent_change_fraction_per_year",
        "api_change_fraction_per_year",
        "hardware_change_fraction_per_year",
    }


def test_a_newer_rack_is_not_cheaper_and_a_commitment_paid_ahead_not_dearer() -> None:
    racks = [COSTS.find("system_all_in_usd", f"{name}-nvl72").typical for name in ("gb200", "gb300")]
    assert racks == sorted(racks)
    ratios = {
        name: COSTS.find("commitment_price_ratio", f"aws:{name}").typical
        for name in ("reserved_1y", "reserved_1y_no_upfront")
    }
    assert ratios["reserved_1y"] < ratios["reserved_1y_no_upfront"]


def test_nothing_stands_in_for_another_subject() -> None:
    assert COSTS.find("grid_kg_co2e_per_kwh", "atlantis") is None


def test_all_errors_come_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD.replace("low = 0.01", "low = 0.2") + GOOD.replace('"somewhere"', '""'))
    (tmp_path / "b.toml").write_text(GOOD + GOOD)
    (tmp_path / "c.toml").write_text("not toml")
    with pytest.raises(CostCatalogError) as refused:
        read_costs(tmp_path)
    text = str(refused.value)
    assert "not in order" in text
    assert "source" in text
    assert "stated twice" in text
    assert "c.toml" in text


def test_the_digest_follows_the_content(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    before = read_costs(tmp_path).digest
    (tmp_path / "a.toml").write_text(GOOD.replace("0.03", "0.04"))
    assert read_costs(tmp_path).digest != before
