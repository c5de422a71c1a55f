"""Who gets which share of a workload's requests: weights, and an Envoy configuration that keeps to them."""

from itertools import groupby
from typing import Any

from service.deployments.affinity import SESSION_HEADER, is_hashed, pods_name, router_scripts
from service.deployments.collect import made_of_each
from service.deployments.files import Files
from service.deployments.launch import PORT, require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.words import json_document, yaml_documents

FIRST_PORT = 8080
CLASS_HEADER = "x-traffic-class"
PER_REQUEST_PER_S = 1000
"""Weights are whole numbers: thousandths of a request a second."""
MOST_UINT32 = 2**32 - 1
"""Of Envoy's counters and of the weights of a route together."""
UNBROKEN = {"max_connections": MOST_UINT32, "max_pending_requests": MOST_UINT32, "max_requests": MOST_UINT32}
"""Without these Envoy answers 503 to what comes while 1,024 requests are with a kind of replica (config.cluster.v3.CircuitBreakers).
Requests wait at the engines, as they do in the plan's simulation."""
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
MANAGER = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"


def router_files(plan: DeploymentPlan) -> Files:
    """Raises TargetCannotExpressError."""
    made_of_each("router", plan.kinds, require_one_pool)
    files = Files()
    workloads = [list(group) for _, group in groupby(_by_workload(plan), key=lambda kind: kind.line.workload)]
    serving = [[kind for kind in kinds if kind.line.serves_requests_per_s > 0] for kinds in workloads]
    serving = [kinds for kinds in serving if kinds]
    files.add(
        "weights.json",
        json_document({"recommendation": plan.recommendation, "workloads": [_shares(k) for k in serving]}),
    )
    hashed = frozenset(kind.name for kinds in serving for kind in kinds if is_hashed(plan, kind))
    files.add("envoy.yaml", yaml_documents([envoy(serving, hashed)]))
    router_scripts(plan, files)
    for number, kinds in enumerate(serving):
        files.note(f"port {FIRST_PORT + number}", f"takes the requests of workload {kinds[0].line.workload}")
    if any(kind.line.classes for kind in plan.kinds):
        files.note(
            CLASS_HEADER, "clients state the traffic class in this header; without it requests are spread as a whole"
        )
    files.note(
        "addresses",
        f"replicas are reached each by itself, on port {PORT}: by the Services without an address of their own (…-pods) that target "
        "kubernetes makes",
    )
    return files


def _by_workload(plan: DeploymentPlan) -> list[ReplicaKind]:
    order = list(dict.fromkeys(kind.line.workload for kind in plan.kinds))
    return sorted(plan.kinds, key=lambda kind: order.index(kind.line.workload))


def _shares(kinds: list[ReplicaKind]) -> dict[str, Any]:
    return {
        "workload": kinds[0].line.workload,
        "weights": {kind.name: kind.line.serves_requests_per_s for kind in kinds},
        "traffic_classes": {
            name: {kind.name: weight for kind, weight in of_class} for name, of_class in class_weights(kinds).items()
        },
    }


def class_weights(kinds: list[ReplicaKind]) -> dict[str, list[tuple[ReplicaKind, float]]]:
    """Requests a second of each traffic class by replica kind, those that get any."""
    found: dict[str, list[tuple[ReplicaKind, float]]] = {}
    for kind in kinds:
        for one in kind.line.classes:
            if one.serves_requests_per_s > 0:
                found.setdefault(one.traffic_class, []).append((kind, one.serves_requests_per_s))
    return found


def envoy(workloads: list[list[ReplicaKind]], hashed: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A listener a workload; its routes spread requests by weight, traffic classes by their header.

    hashed: names of kinds whose sessions are told apart by their header, each kept to one replica.
    """
    kinds = [kind for group in workloads for kind in group]
    return {
        "static_resources": {
            "listeners": [_listener(group, FIRST_PORT + number, hashed) for number, group in enumerate(workloads)],
            "clusters": [_cluster(kind, is_hashed=kind.name in hashed) for kind in kinds],
        }
    }


def _listener(kinds: list[ReplicaKind], port: int, hashed: frozenset[str]) -> dict[str, Any]:
    routes = [
        _route(of_class, [{"name": CLASS_HEADER, "string_match": {"exact": name}}])
        for name, of_class in class_weights(kinds).items()
    ]
    whole = _route([(kind, kind.line.serves_requests_per_s) for kind in kinds], [])
    routes.append(_by_session(whole) if all(kind.name in hashed for kind in kinds) else whole)
    manager = {
        "@type": MANAGER,
        "stat_prefix": f"port_{port}",
        "route_config": {
            "name": f"port_{port}",
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}],
        },
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}],
    }
    return {
        "name": f"port_{port}",
        "address": _address("0.0.0.0", port),
        "filter_chains": [
            {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
        ],
    }


def _route(weights: list[tuple[ReplicaKind, float]], headers: list[dict[str, Any]]) -> dict[str, Any]:
    most = (MOST_UINT32 - len(weights)) / sum(weight for _, weight in weights)
    each = min(PER_REQUEST_PER_S, most)
    clusters = [{"name": kind.name, "weight": max(1, round(weight * each))} for kind, weight in weights]
    match: dict[str, Any] = {"prefix": "/"} | ({"headers": headers} if headers else {})
    return {"match": match, "route": {"weighted_clusters": {"clusters": clusters}, "timeout": "0s"}}


def _by_session(route: dict[str, Any]) -> dict[str, Any]:
    """The route with sessions told apart by their header, also among the clusters it is weighted over (Envoy from 1.36)."""
    action = route["route"]
    weighted = action["weighted_clusters"]
    if len(weighted["clusters"]) > 1:
        weighted = weighted | {"use_hash_policy": True}
    hashes = [{"header": {"header_name": SESSION_HEADER}}]
    return route | {"route": action | {"weighted_clusters": weighted, "hash_policy": hashes}}


def _cluster(kind: ReplicaKind, *, is_hashed: bool) -> dict[str, Any]:
    """Envoy knows each replica: behind a Service's one address it could count no replica's requests, and would spread connections."""
    return {
        "name": kind.name,
        "type": "STRICT_DNS",
        "connect_timeout": "5s",
        "lb_policy": "RING_HASH" if is_hashed else "LEAST_REQUEST",
        "circuit_breakers": {"thresholds": [dict(UNBROKEN)]},
        "load_assignment": {
            "cluster_name": kind.name,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _address(pods_name(kind), PORT)}}]}],
        },
    }


def _address(host: str, port: int) -> dict[str, Any]:
    return {"socket_address": {"address": host, "port_value": port}}
