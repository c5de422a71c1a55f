"""Whatever a field of traffic holds, the answer is one of the contract's, and a refusal says what is wrong."""

import random

import pytest
from fastapi.testclient import TestClient

from tests.hostile.cases import Case
from tests.hostile.traffic import estimates, plans
from tests.seeds import cases

ESTIMATES, PLANS = list(estimates()), list(plans())
DRAWN = random.Random(19).sample(ESTIMATES, cases(2_000, 150)) + random.Random(19).sample(PLANS, cases(1_000, 50))
BATCH = 25
"""To one application: starting one takes longer than most cases."""


@pytest.mark.parametrize("first", range(0, len(DRAWN), BATCH))
def test_hostile_traffic_is_answered(client: TestClient, first: int) -> None:
    for case in DRAWN[first : first + BATCH]:
        check_answer(client, case)


def check_answer(client: TestClient, case: Case) -> None:
    told = ascii(f"{case.path} {case.name}")
    answer = client.post(case.path, content=case.content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 201, 400, 422), (told, answer.text)
    if answer.status_code >= 400:
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", told
        assert problem["detail"], told
        assert all(error["detail"] for error in problem.get("errors", ())), told
    elif case.path == "/v1/estimates":
        (one,) = answer.json()["estimates"]
        assert one["outcome"] == "estimated" or one["detail"], told
