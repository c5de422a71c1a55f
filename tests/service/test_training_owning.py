"""Machines that training jobs may buy: the fleet's prices and resale, proven beside what is rented."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.conftest import FixedClock
from tests.service.test_training_plans import LIMITS, PATH, TUNE

CENT = Decimal("0.01")
CHEAP = {"usd_per_node": "20000", "network_usd_per_node": "0", "storage_usd_per_node": "0"}
SITE: dict[str, Any] = {
    "region": "frankfurt",
    "machines": [{"node": "hgx-h100-8", "purchase": {"usd_per_node": "200000"}}],
    "electricity": {"region": "de"},
}


@pytest.fixture
def ask(client: TestClient, clock: FixedClock) -> Any:
    """Two jobs that each keep a node of eight busy for weeks, on one kind of device."""
    assert client.get("/healthz").status_code == 200
    until = (clock() + dt.timedelta(days=130)).isoformat()
    long = TUNE | {"tokens": 2e11, "deadline": until, "max_devices": 8}
    limits = LIMITS | {"devices": ["h100-sxm"], "providers": ["aws", "verda"], "sourcing": "any"}

    def asked(status: int = 201, **changes: Any) -> dict[str, Any]:
        body = {"jobs": [long | {"name": name} for name in ("a", "b")], "limits": limits} | changes
        answer = client.post(PATH, json=body)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return asked


def bought_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in found["commitments"] if one["commitment"] == "purchase"]


def test_a_machine_is_bought_where_that_costs_less_and_jobs_share_it(ask: Any) -> None:
    rented = ask()
    cheap = SITE | {"machines": [{"node": "hgx-h100-8", "purchase": CHEAP}]}
    found = ask(own=[cheap])
    (bought,) = bought_of(found)
    assert (found["outcome"], found["solve"]["status"]) == ("optimal", "proven_optimal")
    assert {line["offer"] for line in found["plan"]} == {"own:frankfurt:hgx-h100-8"}
    assert {(line["provider"], line["region"], line["usd"]) for line in found["plan"]} == {
        ("own", "frankfurt", "0.000000")
    }
    assert Decimal(found["solve"]["usd"]) < Decimal(rented["solve"]["usd"])
    assert (bought["nodes"], bought["term_months"]) == (1, 5)
    (first, second) = sorted(found["plan"], key=lambda line: line["starts_at"])
    assert first["finishes_at"] <= second["starts_at"]
    assert (dt.datetime.fromisoformat(second["starts_at"]) - dt.datetime.fromisoformat(first["finishes_at"])).days < 7
    total = sum((Decimal(amount) for amount in bought["lines"].values()), Decimal(0))
    assert total == pytest.approx(Decimal(bought["usd"]), abs=CENT)
    assert Decimal(bought["lines"]["residual"]) < 0 < Decimal(bought["due_at_start_usd"])
    assert Decimal(found["solve"]["usd"]) == pytest.approx(Decimal(bought["present_usd"]), abs=CENT)
    assert Decimal(found["solve"]["undiscounted_usd"]) == pytest.approx(Decimal(bought["usd"]), abs=CENT)
    assert any("are due at once for" in caution for caution in found["cautions"])
    assert "cost of capital of the operator enterprise" in found["discount"]["source"]
    assert found["own"][0]["machines"][0]["defaults"]


def test_what_costs_more_to_buy_is_rented_and_nothing_else_changes(ask: Any) -> None:
    rented, found = ask(), ask(own=[SITE], own_months=1 * 3, discount_rate_percent_per_year=0)
    dear = SITE | {"machines": [{"node": "hgx-h100-8", "purchase": {"usd_per_node": "2000000"}}]}
    still = ask(own=[dear], discount_rate_percent_per_year=0)
    assert not bought_of(still)
    assert [line["offer"] for line in still["plan"]] == [line["offer"] for line in rented["plan"]]
    assert still["solve"]["usd"] == rented["solve"]["usd"]
    assert Decimal(found["solve"]["usd"]) <= Decimal(rented["solve"]["usd"])


def test_a_node_costs_what_a_fleet_over_time_takes_it_to_cost(ask: Any, client: TestClient) -> None:
    from tests.service.test_fleets import FLEET, posted

    cheap = SITE | {"machines": [{"node": "hgx-h100-8", "purchase": CHEAP}]}
    found = ask(own=[cheap], own_months=36)
    fleet = FLEET | {
        "horizon": {"months": 36, "periods_per_month": 1}, "own": [cheap | {"purchase_months": [0]}], "time_limit_s": 30,
        "limits": {"providers": ["aws"], "regions": ["us-east-1", "frankfurt"], "devices": ["h100-sxm"]},
    }  # fmt: skip
    (ours,) = found["own"][0]["machines"]
    (theirs,) = posted(client, fleet)["own"][0]["machines"]
    assert (ours["usd_per_node"], ours["lines"]) == (theirs["usd_per_node"], theirs["lines"])


def test_a_room_and_a_count_hold_what_is_bought(ask: Any) -> None:
    cheap = SITE | {"machines": [{"node": "hgx-h100-8", "purchase": CHEAP}]}
    peak = ask(own=[cheap])["own"][0]["machines"][0]["peak_kw_per_node"]
    none = ask(own=[cheap | {"site": {"cooling_kw": 0.5 * peak}}])
    assert not bought_of(none)
    assert not bought_of(ask(own=[cheap | {"max_nodes": 0}]))


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"own": [SITE, SITE]}, "two sites"),
        ({"own": [SITE | {"purchase_months": [1]}]}, "purchase_months"),
        ({"own_months": 12}, "own_months"),
        ({"own": [SITE | {"machines": [{"node": "hgx-h1000-8"}]}]}, "hgx-h100-8"),
        ({"limits": {"commitments": ["purchase"]}}, "state in `own`"),
    ],
)
def test_what_cannot_be_bought_is_refused(ask: Any, changes: dict[str, Any], detail: str) -> None:
    assert detail in str(ask(422, **changes))
