"""Whatever a field of traffic holds, the answer is one of the contract's, and a refusal says what is wrong."""

import random

import pytest
from fastapi.testclient import TestClient

from tests.hostile.cases import Case
from tests.hostile.traffic import estimates, plans
from tests.seeds import cases

ESTIMATES, PLANS = list(estimates()), list(plans())
DRAWN = random.Random(19).sample(ESTIMATES, cases(2_000, 150)) + random.Random(19).sample(PLANS, cases(1_000, 50))


@pytest.mark.parametrize("case", DRAWN, ids=lambda case: ascii(f"{case.path[4:8]} {case.name}"))
def test_hostile_traffic_is_answered(client: TestClient, case: Case) -> None:
    answer = client.post(case.path, content=case.content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 201, 400, 422), answer.text
    if answer.status_code >= 400:
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert problem["detail"]
        assert all(error["detail"] for error in problem.get("errors", ()))
    elif case.path == "/v1/estimates":
        (one,) = answer.json()["estimates"]
        assert one["outcome"] == "estimated" or one["detail"]
