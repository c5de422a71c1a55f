"""What Prometheus scrapes. One registry an application, so that several can live in one process."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "clusterwright_requests", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._request_seconds = Histogram(
            "clusterwright_request_seconds", "Time to answer a request.", ["method", "route"], registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.6, 1, 2, 5, 10, 30, 60),
        )  # fmt: skip
        self._solve_seconds = Histogram(
            "clusterwright_solve_seconds", "Time in the solver.", ["kind"], registry=self.registry,
            buckets=(0.01, 0.03, 0.1, 0.2, 0.3, 0.6, 1, 2, 5, 10, 30, 60),
        )  # fmt: skip
        self._outcomes = Counter(
            "clusterwright_outcomes", "Outcomes of estimates and recommendations.", ["kind", "outcome"],
            registry=self.registry,
        )  # fmt: skip

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else "other"  # a client may invent methods; labels must stay few
        self._requests.labels(method, route, str(status)).inc()
        self._request_seconds.labels(method, route).observe(seconds)

    def observe_solve(self, kind: str, seconds: float) -> None:
        self._solve_seconds.labels(kind).observe(seconds)

    def count_outcome(self, kind: str, outcome: str) -> None:
        self._outcomes.labels(kind, outcome).inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
