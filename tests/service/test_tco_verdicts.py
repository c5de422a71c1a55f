"""The headline and its draws, over many comparisons: the stated case stands in the middle of its own draws, and the cheapest
alternative is the one that is cheapest most often, or the answer says why not."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.tco_bodies import RESULT, store_recommendation
from tests.service.tco_cases import random_comparison

URL = "/v1/tco/comparisons"
CASES = 60
EXAMPLE = Path("examples/tco-rent-buy-api.json")


@pytest.fixture(autouse=True)
def stored(client: TestClient, app: FastAPI) -> None:
    assert client.get("/healthz").status_code == 200
    store_recommendation(app.state.database, "rec_plan", RESULT)


def _answers(client: TestClient) -> list[dict[str, Any]]:
    bodies = [random_comparison(number) for number in range(CASES)]
    found = []
    for body in [*bodies, json.loads(EXAMPLE.read_text(encoding="utf-8"))]:
        made = client.post(URL, json=body)
        assert made.status_code == 201, (body, made.text)
        found.append(made.json())
    return found


def test_headlines_agree_with_their_draws_or_say_why(client: TestClient) -> None:
    inside = compared = disagreeing = 0
    for answer in _answers(client):
        for alternative in answer["alternatives"]:
            spread = alternative["uncertainty"]["npv_usd"]
            stated = Decimal(alternative["npv_usd"])
            holds = Decimal(spread["p25"]) - Decimal("0.01") <= stated <= Decimal(spread["p75"]) + Decimal("0.01")
            assert alternative["uncertainty"]["stated_in_middle_half"] == holds
            assert holds or any("middle half of its own draws" in note for note in alternative["notes"])
            inside, compared = inside + holds, compared + 1
        cheapest = answer["cheapest"]
        chances = {a["name"]: a["uncertainty"]["cheapest_fraction"] for a in answer["alternatives"]}
        agrees = chances[cheapest["name"]] == max(chances.values())
        assert cheapest["agrees"] == agrees
        assert cheapest["name"] == min(answer["alternatives"], key=lambda a: Decimal(a["npv_usd"]))["name"]
        if not agrees:
            disagreeing += 1
            assert cheapest["most_often_cheapest"] in cheapest["why_not"]
            assert f"{max(chances.values()):.0%} of the draws" in cheapest["why_not"]
        else:
            assert cheapest["why_not"] is None
    assert compared > 3 * CASES
    assert inside == compared, f"{inside} of {compared} stated cases lie in the middle half of their draws"
    assert disagreeing < CASES / 4
