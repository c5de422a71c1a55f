"""Whatever single value of a body that is answered is another, the answer is one of the contract's and makes sense."""

import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.hostile.bodies import bodies, misspelt, mutated
from tests.seeds import cases

BODIES = bodies()
DRAWN = cases(1_000, 30)
ANSWERS_WITHIN_S = 10.0


@pytest.mark.parametrize("name", BODIES)
def test_whatever_a_value_is(client: TestClient, name: str) -> None:
    path, body = BODIES[name]
    base = client.post(path, json=body, headers={"Prefer": "wait=60"})
    assert base.status_code in (200, 201), base.text
    assert not list(absurd(base.json()))
    if path == "/v1/estimates":
        assert [one["outcome"] for one in base.json()["estimates"]] == ["estimated"]
    for what, content in islice(mutated(body, seed=7), DRAWN):
        began = time.thread_time()
        headers = {"Content-Type": "application/json", "Prefer": "wait=60"}
        answer = client.post(path, content=content, headers=headers)
        assert answer.status_code in (200, 201, 202, 400, 409, 422, 503), (what, answer.text)
        assert time.thread_time() - began < ANSWERS_WITHIN_S, what
        if answer.status_code == 503:  # a limit that no plan is found in
            assert "give more" in answer.text or "time_limit_s" in answer.text, (what, answer.text)
        if answer.status_code == 422:
            assert all(one["pointer"] is not None and one["detail"] for one in answer.json()["errors"]), what
        if answer.status_code < 300:
            assert not list(absurd(answer.json())), what


@pytest.mark.parametrize("name", BODIES)
def test_no_field_is_ignored(client: TestClient, name: str) -> None:
    path, body = BODIES[name]
    for place, wrong in islice(misspelt(body), cases(1_000, 15)):
        answer = client.post(path, json=wrong)
        assert answer.status_code == 422, answer.text
        pointers = {one["pointer"] for one in answer.json()["errors"]}
        assert pointers & {f"/{place}", f"/{place}/no_such_field".replace("//", "/")}, answer.text


def absurd(value: Any, here: str = "") -> Iterator[tuple[str, Any]]:
    """What no answer may hold: numbers that are none, shares outside 0 to 1, intervals out of order, times before they begin.

    >>> list(absurd({"used_fraction": 1.5, "ttft_ms": {"low": 2.0, "expected": 1.0, "high": 3.0}}))
    [('/used_fraction', 1.5), ('/ttft_ms', (2.0, 1.0, 3.0))]
    """
    if isinstance(value, dict):
        bounds = tuple(value.get(name) for name in ("low", "expected", "high"))
        numbers = [one for one in bounds if isinstance(one, int | float)]
        if len(numbers) == len(bounds) and numbers != sorted(numbers):
            yield here, bounds
        for name, one in value.items():
            if name not in ("request", "figures", "predicted_over_measured"):
                yield from absurd(one, f"{here}/{name}")
    elif isinstance(value, list):
        for position, one in enumerate(value):
            yield from absurd(one, f"{here}/{position}")
    elif isinstance(value, float):
        name = here.rpartition("/")[2]
        is_share = name.endswith("_fraction") and name not in ("error_fraction", "draft_step_fraction")
        is_time = name.endswith(("_ms", "_s"))
        if not math.isfinite(value) or (is_share and not 0.0 <= value <= 1.0) or (is_time and value < 0.0):
            yield here, value
