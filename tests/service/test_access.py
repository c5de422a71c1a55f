"""Who may do what: anonymous, reader, agent, editor, over every route of the API."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from service.database import Database
from service.main import create_app
from service.problems import TooManyRequestsError
from service.rate_limit import RateLimit
from service.settings import Settings
from service.tokens.create import create_token
from tests.conftest import FixedClock
from tests.service.bodies import ESTIMATE, RECOMMENDATION, TINY_CONFIG
from tests.service.test_offers import PRICE

Headers = Callable[[str], dict[str, str]]
LOOPBACK = ("127.0.0.1", 1)
READ = [
    ("GET", "/v1/devices", None),
    ("GET", "/v1/devices/h200-sxm", None),
    ("GET", "/v1/nodes", None),
    ("GET", "/v1/nodes/aws-p5.48xlarge", None),
    ("GET", "/v1/llms", None),
    ("GET", "/v1/llms/llama-3.1-70b", None),
    ("GET", "/v1/api-prices", None),
    ("GET", "/v1/providers", None),
    ("GET", "/v1/providers/aws", None),
    ("GET", "/v1/offers?limit=1", None),
    ("GET", "/v1/offers/unpriced?limit=1", None),
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
    ("GET", "/v1/recommendations/rec_none/quote", None),
    ("GET", "/v1/device-measurements", None),
    ("GET", "/v1/accuracy", None),
    ("POST", "/v1/tco/comparisons", {"alternatives": []}),
    ("POST", "/v1/training/estimates", {"estimates": []}),
    ("POST", "/v1/training/recommendations", {"jobs": []}),
    ("GET", "/v1/tco/comparisons/tco_none", None),
    ("GET", "/v1/traces/trace_none", None),
    ("GET", "/v1/benchmarks/training-runs", None),
    ("GET", "/v1/benchmarks/training-runs/trun_none", None),
    ("GET", "/v1/training/recommendations", None),
    ("GET", "/v1/training/recommendations/train_none", None),
    ("GET", "/v1/training/recommendations/train_none/deployments?target=torchrun", None),
    ("POST", "/v1/training/recommendations/train_none/why-not", {}),
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
    ("GET", "/v1/recommendations/rec_none/deployments?target=vllm", None),
]
UPLOAD = [
    ("POST", "/v1/benchmarks", {}),
    ("POST", "/v1/benchmarks/import", {}),
    ("POST", "/v1/traces", {}),
    ("POST", "/v1/benchmarks/training-runs", {}),
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
    ("POST", "/v1/benchmarks/training-runs/trun_none/retract", None),
    ("POST", "/v1/measurements", {}),
    ("POST", "/v1/measurements/meas_none/cancel", None),
    ("POST", "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices", PRICE | {"usd_per_hour": "free"}),
]
ADMITTED = {200, 201, 404, 422}


def status(client: TestClient, call: tuple[str, str, Any], headers: dict[str, str] | None = None) -> int:
    method, path, body = call
    return client.request(method, path, json=body, headers=headers).status_code


@pytest.fixture(scope="module")
def seeded_url(database_kind: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """One database and one application for all of this file: hundreds of calls, none of which changes what another is answered."""
    if database_kind == "postgresql":
        return str(request.getfixturevalue("seeded_postgres"))
    path = tmp_path_factory.mktemp("access") / "seeded.sqlite"
    shutil.copy(request.getfixturevalue("seeded_template"), path)
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def app(seeded_url: str) -> FastAPI:
    return create_app(Settings(database_url=seeded_url, shutdown_grace_s=0.5), FixedClock())


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_tokens_left(seeded_url: str) -> Iterator[None]:
    """A token left would shut out the anonymous clients of later tests."""
    yield
    database = Database(seeded_url)
    with database.writing() as session:
        session.execute(text("UPDATE token SET revoked_at = created_at WHERE revoked_at IS NULL"))
    database.close()


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


@pytest.mark.usefixtures("client")
class TestWithoutTokens:
    def test_loopback_is_an_editor(self, client: TestClient) -> None:
        assert status(client, EDIT[0]) in {200, 201}

    def test_other_addresses_are_refused(self, app: FastAPI) -> None:
        outside = TestClient(app, base_url="http://localhost", client=("203.0.113.7", 1))
        assert outside.get("/v1/devices").status_code == 403
        assert outside.get("/healthz").status_code == 200

    def test_other_names_are_refused(self, app: FastAPI) -> None:
        """A web page that rebinds its own name to 127.0.0.1 must not reach the catalog."""
        rebound = TestClient(app, base_url="http://evil.example", client=("127.0.0.1", 1))
        assert rebound.get("/v1/devices").status_code == 403

    @pytest.mark.parametrize(
        "host",
        ["localhost.evil.example", "localhost:80@evil.example", "evil.example:80:localhost", "evil_example", "[::1", "[::1]x",
         "127.0.0.1.evil.example", "127.1", "2130706433", "evil.example#localhost", "localhost, evil.example", "", " ", "[::]",
         "localhost:99999999", "evil example", "evil.example/localhost", "\u0131ocalhost".encode()],
    )  # fmt: skip
    @pytest.mark.parametrize("path", ["/v1/devices?limit=1", "/v1/devices/"])
    def test_names_that_only_look_like_loopback_are_refused(self, app: FastAPI, path: str, host: str | bytes) -> None:
        """Also those that cannot be parsed: the header is compared as it came."""
        client = TestClient(app, base_url="http://localhost", client=LOOPBACK, raise_server_exceptions=False)
        answer = client.get(path, headers={"host": host}, follow_redirects=False)
        assert answer.status_code in ((400, 403) if "?" in path else (400, 403, 404)), (host, answer.status_code)
        assert answer.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"])
    def test_its_own_names_are_answered(self, app: FastAPI, host: str) -> None:
        client = TestClient(app, base_url="http://localhost", client=LOOPBACK)
        assert client.get("/v1/devices?limit=1", headers={"host": host}).status_code == 200


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


class TestWhoIsCounted:
    """Tokens and peers, not what a caller writes into its headers."""

    def client(self, url: str, burst: int, address: str = "203.0.113.7", **settings: object) -> TestClient:
        limits = {"rate_limit_requests_per_s": 0.001, "rate_limit_burst": burst} | settings
        app = create_app(Settings.model_validate({"database_url": url, **limits}))
        return TestClient(app, base_url="http://localhost", client=(address, 1), raise_server_exceptions=False)

    def token(self, client: TestClient) -> str:
        with client.app.state.database.writing() as session:
            return create_token(session, "counted", "reader", FixedClock())[1]

    def test_a_token_has_one_bucket_however_it_is_written(self, seeded_url: str) -> None:
        with self.client(seeded_url, burst=5) as client:
            secret = self.token(client)
            written = [
                f"Bearer {secret}",
                f"bearer {secret}",
                f"BEARER  {secret}",
                f"Bearer {secret} ",
                f"bEaReR {secret}",
            ] * 3
            statuses = [
                client.get("/v1/devices?limit=1", headers={"Authorization": header}).status_code for header in written
            ]
        assert statuses.count(200) <= 6
        assert statuses[-1] == 429

    def test_wrong_tokens_are_counted_by_peer(self, seeded_url: str) -> None:
        with self.client(seeded_url, burst=1_000) as client:
            secret = self.token(client)
            client.app.state.doors.failures.per_s = 0.001  # however slow the machine
            asked = {"Authorization": f"Bearer {secret}"}
            assert client.get("/v1/devices?limit=1", headers=asked).status_code == 200
            statuses = [
                client.get("/v1/devices", headers={"Authorization": f"Bearer guess-{n}"}).status_code
                for n in range(130)
            ]
            assert statuses[0] == 401
            assert statuses[-1] == 429
            assert client.get("/v1/devices?limit=1", headers=asked).status_code == 200, (
                "a valid token behind the same address"
            )

    def test_an_invented_token_gives_no_fresh_bucket(self, seeded_url: str) -> None:
        with self.client(seeded_url, burst=5) as client:
            self.token(client)
            statuses = [
                client.get("/v1/devices", headers={"Authorization": f"Bearer {n}"}).status_code for n in range(20)
            ]
        assert statuses.count(401) == 5
        assert statuses[-1] == 429

    def test_two_tokens_in_one_request_are_none(self, client: TestClient, with_role: Headers) -> None:
        header = with_role("editor")["Authorization"]
        answer = client.get("/v1/devices", headers=[("Authorization", header), ("Authorization", header)])
        assert answer.status_code == 401


class TestBeforeTheBody:
    """Who may not ask is told so without its body being read."""

    @pytest.mark.parametrize(
        "path", ["/v1/benchmarks", "/v1/benchmarks/import", "/v1/llms", "/v1/fleets", "/v1/estimates"]
    )
    @pytest.mark.parametrize("role", [None, "reader"])
    def test_the_token_comes_first(self, client: TestClient, with_role: Headers, path: str, role: str | None) -> None:
        headers = with_role("reader") if role else (with_role("editor"), {})[1]
        read = 0

        def body() -> Iterator[bytes]:
            nonlocal read
            for _ in range(100):
                read += 10_000
                yield b"[" * 10_000

        answer = client.post(path, content=body(), headers={"content-type": "application/json", **headers})
        if role == "reader" and path in ("/v1/fleets", "/v1/estimates"):
            assert answer.status_code == 400
        else:
            assert answer.status_code == (403 if role else 401)

    @pytest.mark.parametrize("headers", [
        {"origin": "https://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://localhost.evil.example"},
    ], ids=str)  # fmt: skip
    @pytest.mark.parametrize(
        "path", ["/v1/jobs/job_none/cancel", "/v1/measurements/meas_none/cancel", "/v1/benchmarks"]
    )
    def test_a_page_of_another_origin_changes_nothing(
        self, client: TestClient, path: str, headers: dict[str, str]
    ) -> None:
        assert client.post(path, headers=headers).status_code == 403
        assert client.get("/v1/jobs", headers=headers).status_code == 200

    def test_its_own_pages_may(self, client: TestClient) -> None:
        headers = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        assert client.post("/v1/jobs/job_none/cancel", headers=headers).status_code == 404

    def test_with_a_token_the_origin_does_not_matter(self, client: TestClient, with_role: Headers) -> None:
        headers = with_role("editor") | {"origin": "https://planner.example"}
        assert client.post("/v1/jobs/job_none/cancel", headers=headers).status_code == 404
