"""Who may do what: anonymous, reader, agent, editor, over every route of the API."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.access import RateLimit
from service.main import create_app
from service.problems import TooManyRequestsError
from service.settings import Settings
from tests.service.bodies import ESTIMATE, RECOMMENDATION, TINY_CONFIG
from tests.service.test_offers import PRICE

Headers = Callable[[str], dict[str, str]]
READ = [
    ("GET", "/v1/devices", None),
    ("GET", "/v1/devices/h200-sxm", None),
    ("GET", "/v1/nodes", None),
    ("GET", "/v1/nodes/aws-p5.48xlarge", None),
    ("GET", "/v1/llms", None),
    ("GET", "/v1/llms/llama-3.1-70b", None),
    ("GET", "/v1/offers?limit=1", None),
    ("GET", "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand", None),
    ("GET", "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices", None),
    ("GET", "/v1/recommendations", None),
    ("GET", "/v1/recommendations/rec_none", None),
    ("POST", "/v1/estimates", {"estimates": [ESTIMATE | {"llm": "nobody-knows-this"}]}),
    ("POST", "/v1/recommendations", RECOMMENDATION | {"price_as_of": "not a time"}),
    ("GET", "/v1/benchmarks", None),
    ("GET", "/v1/benchmarks/bench_none", None),
    ("GET", "/v1/measurements", None),
    ("GET", "/v1/measurements/meas_none", None),
    ("GET", "/v1/agents", None),
    ("GET", "/v1/accuracy/drift", None),
    ("GET", "/v1/recommendations/rec_none/measurements-wanted", None),
    ("GET", "/v1/device-measurements", None),
    ("GET", "/v1/accuracy", None),
    ("POST", "/v1/tco/comparisons", {"alternatives": []}),
    ("GET", "/v1/tco/comparisons/tco_none", None),
    ("GET", "/metrics", None),
    ("GET", "/v1/jobs", None),
    ("GET", "/v1/jobs/job_none", None),
    ("GET", "/v1/jobs/job_none/events", None),
    ("POST", "/v1/jobs/job_none/cancel", None),
    ("GET", "/v1/fleets", None),
    ("GET", "/v1/fleets/fleet_none", None),
    ("POST", "/v1/fleets", {"workloads": []}),
    ("POST", "/v1/recommendations/rec_none/why-not", {"workloads": []}),
    ("POST", "/v1/recommendations/rec_none/price-curve", {"workloads": []}),
    ("POST", "/v1/recommendations/rec_none/near-optimal", {"workloads": []}),
    ("POST", "/v1/recommendations/rec_none/pareto", {"workloads": []}),
    ("GET", "/v1/recommendations/rec_none/diff?against=rec_other", None),
]
UPLOAD = [
    ("POST", "/v1/benchmarks", {}),
    ("POST", "/v1/benchmarks/import", {}),
    ("POST", "/v1/measurements/lease", {}),
    ("POST", "/v1/measurements/meas_none/heartbeat", {}),
    ("POST", "/v1/measurements/meas_none/complete", {}),
    ("POST", "/v1/measurements/meas_none/fail", {}),
    ("PUT", "/v1/agents/access", {}),
    ("POST", "/v1/device-measurements", {}),
]
EDIT = [
    ("POST", "/v1/llms", {"id": "tiny-access", "config": TINY_CONFIG}),
    ("POST", "/v1/offers", {"provider": "own"}),
    ("POST", "/v1/offers/import", {"format": "nobody-knows-this"}),
    ("POST", "/v1/benchmarks/bench_none/release", {}),
    ("POST", "/v1/benchmarks/bench_none/retract", {}),
    ("POST", "/v1/measurements", {}),
    ("POST", "/v1/measurements/meas_none/cancel", None),
    ("POST", "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices", PRICE | {"usd_per_hour": "free"}),
]
ADMITTED = {200, 201, 404, 422}


def status(client: TestClient, call: tuple[str, str, Any], headers: dict[str, str] | None = None) -> int:
    method, path, body = call
    return client.request(method, path, json=body, headers=headers).status_code


class TestRoles:
    def test_every_route_of_the_api_is_covered_here(self, app: FastAPI) -> None:
        covered = {(m, p.split("?")[0]) for m, p, _ in READ + UPLOAD + EDIT}
        open_to_all = {"/healthz", "/readyz", "/problems/{slug}"}
        for path, methods in app.openapi()["paths"].items():
            if path in open_to_all:
                continue
            pattern = path.split("{")[0]
            for method in methods:
                assert any(m == method.upper() and p.startswith(pattern) for m, p in covered), (method, path)

    @pytest.mark.parametrize("call", READ + UPLOAD + EDIT, ids=lambda c: f"{c[0]} {c[1]}")
    def test_anonymous_is_refused_once_there_are_tokens(
        self, client: TestClient, with_role: Headers, call: tuple[str, str, Any]
    ) -> None:
        with_role("reader")
        answer = client.request(call[0], call[1], json=call[2])
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")

    @pytest.mark.parametrize("call", READ, ids=lambda c: f"{c[0]} {c[1]}")
    @pytest.mark.parametrize("role", ["reader", "agent", "editor"])
    def test_every_role_reads(
        self, client: TestClient, with_role: Headers, role: str, call: tuple[str, str, Any]
    ) -> None:
        assert status(client, call, with_role(role)) in ADMITTED

    @pytest.mark.parametrize("call", EDIT, ids=lambda c: f"{c[0]} {c[1]}")
    @pytest.mark.parametrize(("role", "admitted"), [("reader", False), ("agent", False), ("editor", True)])
    def test_only_editors_write(
        self, client: TestClient, with_role: Headers, role: str, admitted: bool, call: tuple[str, str, Any]
    ) -> None:
        answered = status(client, call, with_role(role))
        assert answered in ADMITTED if admitted else answered == 403

    @pytest.mark.parametrize("call", UPLOAD, ids=lambda c: f"{c[0]} {c[1]}")
    @pytest.mark.parametrize(("role", "admitted"), [("reader", False), ("agent", True), ("editor", True)])
    def test_agents_upload(
        self, client: TestClient, with_role: Headers, role: str, admitted: bool, call: tuple[str, str, Any]
    ) -> None:
        answered = status(client, call, with_role(role))
        assert answered in ADMITTED if admitted else answered == 403

    def test_a_revoked_token_is_refused(self, client: TestClient, app: FastAPI, with_role: Headers) -> None:
        from service.tokens.create import revoke_token
        from service.tokens.queries import all_tokens

        headers = with_role("editor")
        with_role("reader")
        assert client.get("/v1/devices", headers=headers).status_code == 200
        with app.state.database.writing() as session:
            editor = next(t.id for t in all_tokens(session) if t.role == "editor" and t.revoked_at is None)
            revoke_token(session, editor, app.state.clock)
        assert client.get("/v1/devices", headers=headers).status_code == 401

    @pytest.mark.parametrize("header", ["", "Bearer", "Bearer nonsense", "Basic YTpi", "Bearer " + "x" * 5000])
    def test_a_bad_header_is_refused(self, client: TestClient, with_role: Headers, header: str) -> None:
        with_role("reader")
        assert client.get("/v1/devices", headers={"Authorization": header}).status_code == 401

    def test_only_the_hash_is_stored(self, app: FastAPI, client: TestClient, with_role: Headers) -> None:
        from service.tokens.queries import all_tokens

        secret = with_role("reader")["Authorization"].removeprefix("Bearer ")
        assert client.get("/healthz").status_code == 200
        with app.state.database.reading() as session:
            stored = str([t.model_dump() for t in all_tokens(session)])
        assert secret not in stored
        assert len(secret) > 40


class TestWithoutTokens:
    def test_loopback_is_an_editor(self, client: TestClient) -> None:
        assert status(client, EDIT[0]) in {200, 201}

    def test_other_addresses_are_refused(self, app: FastAPI) -> None:
        with TestClient(app, base_url="http://localhost", client=("203.0.113.7", 1)) as outside:
            assert outside.get("/v1/devices").status_code == 403
            assert outside.get("/healthz").status_code == 200

    def test_other_names_are_refused(self, app: FastAPI) -> None:
        """A web page that rebinds its own name to 127.0.0.1 must not reach the catalog."""
        with TestClient(app, base_url="http://evil.example", client=("127.0.0.1", 1)) as rebound:
            assert rebound.get("/v1/devices").status_code == 403


class TestRateLimit:
    def test_a_bucket_refills(self) -> None:
        now = [0.0]
        limit = RateLimit(per_s=2.0, burst=2, monotonic=lambda: now[0])
        limit.take("a")
        limit.take("a")
        with pytest.raises(TooManyRequestsError) as refused:
            limit.take("a")
        assert refused.value.headers["Retry-After"] == "1"
        limit.take("b")
        now[0] = 0.5
        limit.take("a")

    def test_is_answered_429(self, seeded_url: str) -> None:
        app = create_app(Settings(database_url=seeded_url, rate_limit_requests_per_s=0.001, rate_limit_burst=1))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            assert client.get("/v1/devices?limit=1").status_code == 200
            limited = client.get("/v1/devices?limit=1")
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) == 1000
