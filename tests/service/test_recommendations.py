"""Stored recommendations: whole, immutable, listed newest first.

The result is given here; the solver has its own tests.
"""

import threading
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.problems import UnavailableError
from service.recommendations.create import PlanningContext, create_recommendation
from service.recommendations.plan import PlanningInputs
from service.wire.recommendations import RecommendationIn, RecommendationOut, ResultOut, SolveOut
from tests.service.bodies import RECOMMENDATION

ASKED = RecommendationIn.model_validate(RECOMMENDATION)
INFEASIBLE = ResultOut(
    outcome="infeasible",
    solve=SolveOut(
        status="proven_infeasible", usd_per_hour=None, bound_usd_per_hour=None, gap_fraction=None, candidates=0,
        solver="given", seconds=0.0, confirmation_rounds=1, simulations=0,
    ),
    plan=[], totals=None, alternatives=[], binding=[], rejected=[], conflicts=[], relaxations=[],
    confidence_premium_usd_per_hour=None, largest_servable_fraction=None,
)  # fmt: skip


def make(client: TestClient, app: FastAPI, plan: Callable[[PlanningInputs], ResultOut]) -> RecommendationOut:
    """On the application's own event loop."""
    s = app.state
    assert client.portal is not None
    context = PlanningContext(s.database, s.snapshots, s.solver_pool, s.metrics, s.clock, s.spaces, plan)
    return client.portal.call(create_recommendation, ASKED, context)


class TestCreate:
    def test_is_stored_with_its_inputs_and_never_changes(self, client: TestClient, app: FastAPI) -> None:
        made = make(client, app, lambda _: INFEASIBLE)
        shown = client.get(f"/v1/recommendations/{made.id}").json()
        assert shown == made.model_dump(mode="json")
        assert shown["inputs"]["catalog_digest"] == client.get("/readyz").json()["catalog_digest"]
        assert shown["request"]["limits"]["commitments"] == ["on_demand"]  # a default, echoed

    def test_inputs_are_the_solvers_and_shared(self, client: TestClient, app: FastAPI) -> None:
        seen: list[PlanningInputs] = []

        def plan(inputs: PlanningInputs) -> ResultOut:
            seen.append(inputs)
            return INFEASIBLE

        make(client, app, plan)
        make(client, app, plan)
        first, second = seen
        assert first.snapshot is second.snapshot  # nothing changed, nothing read again
        assert len(first.snapshot.offers) > 2_000
        offer = next(o for o in first.snapshot.offers if o.id == "aws:p5.48xlarge:us-east-1:on_demand")
        assert offer.usd_per_hour == 55.04
        assert offer.node.device.memory_bytes == pytest.approx(79.65 * 2**30, rel=0.01)
        price = {"usd_per_hour": "1.0", "valid_from": "2026-11-21T11:00:00Z", "source": "a test price"}
        assert client.post(f"/v1/offers/{offer.id}/prices", json=price).status_code in (200, 201)
        make(client, app, plan)
        assert next(o for o in seen[2].snapshot.offers if o.id == offer.id).usd_per_hour == 1.0

    def test_stopping_stores_nothing(self, client: TestClient, app: FastAPI) -> None:
        before = len(client.get("/v1/recommendations?limit=500").json()["items"])
        started, release = threading.Event(), threading.Event()

        def slow(_inputs: PlanningInputs) -> ResultOut:
            started.set()
            release.wait(10)
            return INFEASIBLE

        def stop() -> None:
            started.wait(10)
            app.state.solver_pool.stop()

        threading.Thread(target=stop).start()
        with pytest.raises(UnavailableError):
            make(client, app, slow)
        release.set()
        assert len(client.get("/v1/recommendations?limit=500").json()["items"]) == before


class TestGetRecommendations:
    def test_lists_newest_first_in_pages(self, client: TestClient, app: FastAPI) -> None:
        made = [make(client, app, lambda _: INFEASIBLE).id for _ in range(3)]
        page = client.get("/v1/recommendations?limit=2").json()
        rest = client.get("/v1/recommendations", params={"limit": 2, "next": page["next"]}).json()
        ids = [r["id"] for r in page["items"] + rest["items"]]
        assert ids[:3] == sorted(made, reverse=True)
        assert page["items"][0]["workloads"] == ["chat"]
        asked = page["items"][0]["asked"][0]
        stated = client.get(f"/v1/recommendations/{made[-1]}").json()["request"]["workloads"][0]
        assert f"{stated['traffic']['requests_per_s']:g} requests/s" in asked
        for percentile, limit in stated["targets"]["ttft_ms"].items():
            assert f"TTFT {percentile} ≤ {limit:g} ms" in asked

    def test_unknown_is_404(self, client: TestClient) -> None:
        assert client.get("/v1/recommendations/rec_none").status_code == 404
