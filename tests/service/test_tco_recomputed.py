"""Every line of many comparisons, computed again by other code from the answer, and by the workbook's own formulas."""

import ast
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.seeds import cases
from tests.service import recomputed_costs
from tests.service.recomputed_costs import lines_of, nodes_of
from tests.service.sheet_formulas import Workbook
from tests.service.tco_bodies import COMPARISON, PLAN_LINE, RESULT, store_recommendation

URL = "/v1/tco/comparisons"
CENT = 0.005
LOAN = {"finance_rate_percent": 11.0, "finance_months": 48}
DAY = [0.3] * 6 + [0.7] * 6 + [1.0] * 8 + [0.45] * 4

CHANGES: list[dict[str, Any]] = [
    {},
    {"horizon_months": 1},
    {"horizon_months": 24},
    {"horizon_months": 60},
    {"horizon_months": 84},
    {"growth_percent_per_month": 2.0},
    {"growth_percent_per_month": 3.5, "horizon_months": 48},
    {"inflation_percent_per_year": 4.0, "tax_percent": 19.0},
    {"discount_rate_percent": 0.0},
    {"discount_rate_percent": -2.0, "horizon_months": 30},
    {"market": {"rent_percent_per_year": 12.0, "api_percent_per_year": -40.0, "hardware_percent_per_year": -10.0}},
    {"market": {"rent_percent_per_year": -25.0, "hardware_percent_per_year": 5.0}, "growth_percent_per_month": 1.0},
    {"electricity": {"region": "us-texas"}, "power_usage_effectiveness": None},
    {"electricity": {"usd_per_kwh": "0.30", "demand_charge_usd_per_kw_month": "14.00"}},
    {"operator": "hyperscaler"},
    {"operator": "neocloud", "horizon_months": 72},
    {"colocation_usd_per_kw_month": "95.00"},
    {"utilisation_fraction": 0.05},
    {"utilisation_fraction": 1.0},
    {"utilisation_fraction": None, "hourly_profile": DAY, "follow": True},
    {"ramp_months": 6, "horizon_months": 18},
    {"purchase": LOAN},
    {"purchase": {**LOAN, "lead_time_months": 4}, "growth_percent_per_month": 2.5, "horizon_months": 60},
    {"purchase": {"depreciation_months": 18, "residual_fraction": 0.3}, "horizon_months": 50},
    {"purchase": {"usd_per_node": "333333.33", "software_usd_per_device_year": "4500.00"}, "tax_percent": 7.0},
    {
        "purchase": {
            "decommissioning_usd_per_node": "2500.00",
            "availability_fraction": 0.96,
            "depreciation_months": 30,
        },
        "beside": {"egress_gb_per_month": 12000.0, "storage_usd_per_month": "310.50"},
        "growth_percent_per_month": 2.0,
        "inflation_percent_per_year": 3.0,
        "tax_percent": 8.0,
        "horizon_months": 48,
    },
    {"income_tax_percent": 25.0, "tax_percent": 6.0, "horizon_months": 40, "growth_percent_per_month": 1.5},
    {"income_tax_percent": 30.0, "purchase": {**LOAN, "depreciation": "declining_balance", "depreciation_months": 24}},
    {"carries": 1.6, "growth_percent_per_month": 3.0, "horizon_months": 60},
    {"finance": True},
    {"finance": True, "horizon_months": 10, "inflation_percent_per_year": 3.0},
    {
        "finance": True,
        "horizon_months": 66,
        "growth_percent_per_month": 2.0,
        "tax_percent": 7.0,
        "income_tax_percent": 25.0,
    },
    {"finance": True, "growth_percent_per_month": -1.5, "income_tax_percent": 30.0, "horizon_months": 48},
    {
        "finance": True,
        "purchase": {
            "depreciation": "declining_balance",
            "decommissioning_usd_per_node": "1800.00",
            "lead_time_months": 3,
            "depreciation_months": 54,
        },
        "income_tax_percent": 21.0,
        "inflation_percent_per_year": 2.0,
        "growth_percent_per_month": 1.0,
        "horizon_months": 60,
    },
    {
        "finance": True,
        "purchase": {"residual_fraction": 0.2, "decommissioning_usd_per_node": "700.00", "depreciation_months": 48},
        "income_tax_percent": 21.0,
        "horizon_months": 31,
    },
]
LEASED: dict[str, Any] = {"recommendation": "rec_plan", "acquisition": "lease"}
WORKBOOKS = [33, 25, 28, 19, 31, 7, 4, 11, 0, 6, 20, 22, 23, 26, 27, 29, 30, 32, 34]
"""Of those, in the order in which they are tried where not all are: each has formulas of its own among the first."""
FINANCE: list[dict[str, Any]] = [
    {"name": "lease, returned", **LEASED, "lease": {"term_months": 24, "usd_per_node_month": "11250.00"}},
    {
        "name": "lease, bought out",
        **LEASED,
        "lease": {"term_months": 30, "usd_per_node_month": "9875.50", "buyout_usd_per_node": "41000.00"},
        "payment_timing": "in_advance",
    },
    {"name": "lease for a dollar", **LEASED, "lease": {"term_months": 36, "buyout_usd_per_node": "1.00"}},
    {"name": "lease at the lessor's rate", **LEASED, "lease": {"term_months": 36, "implicit_rate_percent": 14.0}},
    {
        "name": "keep all",
        "recommendation": "rec_plan",
        "acquisition": "purchase",
        "owned": {"age_months": 20, "usd_paid_per_node": "298000.00"},
    },
    {
        "name": "keep one",
        "recommendation": "rec_plan",
        "acquisition": "purchase",
        "owned": {"age_months": 41, "nodes": 1},
    },
    {
        "name": "1 year, four fifths used",
        "recommendation": "rec_plan",
        "acquisition": "reserved_1y_no_upfront",
        "payment": "partial_upfront",
        "payment_timing": "in_advance",
        "commitment_used_fraction": 0.8,
    },
    {
        "name": "rent in advance",
        "recommendation": "rec_plan",
        "acquisition": "on_demand",
        "payment_timing": "in_advance",
    },
]
"""What finance asks for on top."""


def body_of(change: dict[str, Any]) -> dict[str, Any]:
    """Rent, spot, commitments paid in three ways, machines and an API, under changed circumstances."""
    change = dict(change)
    purchase, carries, follow = change.pop("purchase", None), change.pop("carries", None), change.pop("follow", False)
    beside, finance = change.pop("beside", {}), change.pop("finance", False)
    alternatives: list[dict[str, Any]] = [dict(a) for a in COMPARISON["alternatives"]]
    alternatives += [dict(a) for a in FINANCE] if finance else []
    rented = {"recommendation": "rec_plan"}
    alternatives += [
        {"name": "spot", **rented, "acquisition": "spot"},
        {"name": "1 year", **rented, "acquisition": "reserved_1y_no_upfront", "payment": "partial_upfront"},
        {"name": "3 years ahead", **rented, "acquisition": "reserved_3y", "payment": "all_upfront"},
        {"name": "buy as the catalog says", **rented, "acquisition": "purchase"},
    ]
    for one in alternatives:
        if one.get("acquisition") in ("purchase", "lease") and purchase is not None:
            returned = "lease" in one and "buyout_usd_per_node" not in one["lease"]
            without = ("depreciation_months",) if returned else ()
            one["purchase"] = {name: value for name, value in purchase.items() if name not in without}
        if carries is not None and "recommendation" in one:
            one["carries"] = carries
        if "recommendation" in one and one["acquisition"] not in ("purchase", "lease"):
            one.update(beside)
        if follow and one.get("acquisition") == "on_demand":
            one["follows_demand"] = True
    return {**COMPARISON, **change, "alternatives": alternatives, "monte_carlo": {"draws": 0}}


@pytest.fixture(autouse=True)
def stored(client: TestClient, app: FastAPI) -> None:
    assert client.get("/healthz").status_code == 200
    store_recommendation(app.state.database, "rec_plan", RESULT)


def _answer(client: TestClient, change: dict[str, Any]) -> dict[str, Any]:
    made = client.post(URL, json=body_of(change))
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


def test_lines_agree_to_the_cent_with_other_code(client: TestClient) -> None:
    compared = 0
    for change in CHANGES:
        answer = _answer(client, change)
        for alternative in answer["alternatives"]:
            ours = {line["line"]: [float(usd) for usd in line["usd_by_month"]] for line in alternative["lines"]}
            theirs = lines_of(answer, alternative)
            assert ours.keys() == theirs.keys(), (change, alternative["name"])
            for line, flows in ours.items():
                assert flows == pytest.approx(theirs[line], abs=CENT), (change, alternative["name"], line)
                assert sum(flows) == pytest.approx(sum(theirs[line]), abs=CENT)
                compared += 1
    assert len(CHANGES) >= 30
    assert compared >= 1500


def test_nodes_are_those_that_demand_needs(client: TestClient) -> None:
    for change in ({"growth_percent_per_month": 3.5, "horizon_months": 48}, CHANGES[28]):
        answer = _answer(client, change)
        for alternative in answer["alternatives"]:
            for part, shown in zip(alternative["computed_from"], alternative["parts"], strict=False):
                needed = nodes_of(answer, part, shown)
                paid = [int(nodes) for nodes in part["nodes_by_month"]]
                # A commitment once made is paid for; demand only grows here.
                assert paid == needed, (change, alternative["name"])


def test_the_second_computation_shares_no_code_with_the_first() -> None:
    source = Path(recomputed_costs.__file__).read_text()
    imported = [
        name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    ]
    assert not [name for name in imported if name and name.split(".")[0] in ("solver", "service", "catalog")]


@pytest.mark.parametrize("number", WORKBOOKS[: cases(len(WORKBOOKS), few=5)])
def test_the_workbooks_formulas_come_to_the_answer(client: TestClient, number: int) -> None:
    answer = _answer(client, CHANGES[number])
    book = Workbook(client.get(answer["link"], params={"format": "xlsx"}).content)
    assert book.formulas > 20 * len(answer["alternatives"]) or answer["request"]["horizon_months"] == 1
    for position, alternative in enumerate(answer["alternatives"], start=1):
        sheet = f"calc {position}.1"
        titles = {book.text(sheet, column, 3): column for column in range(1, 70)}
        months = len(alternative["usd_by_month"])
        for line in alternative["lines"]:
            column = titles[line["line"]]
            computed = [book.value(sheet, column, 4 + month) for month in range(months)]
            typed = [month for month in range(months) if isinstance(book.sheets[sheet].get((column, 4 + month)), float)]
            assert not typed, (sheet, line["line"], "stands as a number, not as a formula")
            assert computed == pytest.approx([float(usd) for usd in line["usd_by_month"]], abs=CENT), (
                sheet,
                line["line"],
            )
        total = [book.value(sheet, titles["total"], 4 + month) for month in range(months)]
        assert sum(total) == pytest.approx(float(alternative["total_usd"]), abs=CENT)
    labels = {book.text("summary", 1, row): row for row in range(1, 90)}
    for position, alternative in enumerate(answer["alternatives"], start=2):
        assert book.value("summary", position, labels["total_usd"]) == pytest.approx(
            float(alternative["total_usd"]), abs=CENT
        )
        assert book.value("summary", position, labels["npv_usd"]) == pytest.approx(
            float(alternative["npv_usd"]), abs=CENT
        )


def test_a_changed_input_changes_what_depends_on_it(client: TestClient) -> None:
    """A controller types another electricity price: the workbook says what the service would have said."""
    answer = _answer(client, {})
    book = Workbook(client.get(answer["link"], params={"format": "xlsx"}).content)
    rows = {book.text("inputs", 2, row): row for row in range(2, 400)}
    book.sheets["inputs"][3, rows["electricity_usd_per_kwh"]] = 0.18
    dearer = _answer(client, {"electricity": {"usd_per_kwh": "0.18"}})
    labels = {book.text("summary", 1, row): row for row in range(1, 90)}
    for position, alternative in enumerate(dearer["alternatives"], start=2):
        known = Decimal(alternative["npv_usd"])
        assert book.value("summary", position, labels["npv_usd"]) == pytest.approx(float(known), abs=CENT)


def test_a_fleet_of_several_kinds_is_computed_part_by_part(client: TestClient, app: FastAPI) -> None:
    """Each kind has a sheet of its own; what is stored beside the formulas, for readers that do not compute, agrees too."""
    lines = [
        PLAN_LINE,
        {**PLAN_LINE, "node": "aws-p5en.48xlarge", "offer": "aws:p5en.48xlarge:us-east-1:on_demand", "nodes": 1},
    ]
    store_recommendation(app.state.database, "rec_two", {**RESULT, "plan": lines})
    body = {**body_of({"growth_percent_per_month": 1.5}), "horizon_months": 30}
    body["alternatives"] = [
        {"name": how, "recommendation": "rec_two", "acquisition": acquisition}
        for how, acquisition in (("rent", "on_demand"), ("buy", "purchase"), ("commit", "reserved_1y"))
    ]
    made = client.post(URL, json=body)
    assert made.status_code == 201, made.text
    answer = made.json()
    book = Workbook(client.get(answer["link"], params={"format": "xlsx"}).content)
    for position, alternative in enumerate(answer["alternatives"], start=1):
        assert len(alternative["computed_from"]) == 2
        theirs = lines_of(answer, alternative)
        for line in alternative["lines"]:
            ours = [float(usd) for usd in line["usd_by_month"]]
            assert ours == pytest.approx(theirs[line["line"]], abs=CENT)
            computed, stored = [0.0] * len(ours), [0.0] * len(ours)
            for part in (1, 2):
                sheet = f"calc {position}.{part}"
                column = next(c for c in range(1, 70) if book.text(sheet, c, 3) == line["line"])
                for month in range(len(ours)):
                    computed[month] += book.value(sheet, column, 4 + month)
                    stored[month] += book.stored.get((sheet, column, 4 + month), 0.0)
            assert computed == pytest.approx(ours, abs=CENT), (alternative["name"], line["line"])
            assert stored == pytest.approx(ours, abs=CENT), (alternative["name"], line["line"])
