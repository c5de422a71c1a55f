"""Sessions that a plan keeps to replicas: what routers, Services and notes say of them."""

from typing import Any

import pytest
import yaml

from catalog.engine_routers import read_engine_routers
from service.deployments.affinity import KEPT
from service.deployments.generate import generate
from service.deployments.plan import DeploymentPlan
from tests.service.deployments.plans import AWS, CHATS, line, plan, shapes, workload
from tests.service.deployments.test_generate import command_of


def files_of(deployed: DeploymentPlan, target: str) -> dict[str, str]:
    """Contents by path."""
    return {file.path: file.content for file in generate(deployed, target, None).files}


def addresses_and_services(deployed: DeploymentPlan) -> tuple[dict[str, tuple[str, int]], dict[str, dict[str, Any]]]:
    """Host and port of each of Envoy's clusters, and what the Services of target kubernetes are."""
    resources = yaml.safe_load(files_of(deployed, "router")["envoy.yaml"])["static_resources"]
    reached = {}
    for cluster in resources["clusters"]:
        assert cluster["type"] == "STRICT_DNS"
        (endpoint,) = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
        address = endpoint["endpoint"]["address"]["socket_address"]
        reached[cluster["name"]] = (address["address"], address["port_value"])
    services = {
        document["metadata"]["name"]: document["spec"]
        for content in files_of(deployed, "kubernetes").values()
        for document in yaml.safe_load_all(content)
        if document.get("kind") == "Service"
    }
    return reached, services


def test_envoy_knows_each_replica_whose_requests_it_is_to_count() -> None:
    """It was given the one address of a Service, behind which the fewest requests of any replica are those of all."""
    once = CHATS | {"sessions": CHATS["sessions"] | {"routing": "least_loaded"}}
    spread = plan([workload("chat", traffic=once)], [line("chat", AWS, replicas=3)])
    for deployed in (spread, *(shapes()[name] for name in ("sessions", "one device", "mixed fleet"))):
        reached, services = addresses_and_services(deployed)
        for name, (host, port) in reached.items():
            spec = services[host]
            assert spec["clusterIP"] == "None"
            assert spec["selector"] == services[name]["selector"] == {"clusterwright/serves": name}
            assert port == 8000, "a name that resolves to pods has their port, not the Service's"


def test_sessions_keep_to_a_replica_by_their_header() -> None:
    deployed = shapes()["sessions on two kinds"]
    resources = yaml.safe_load(files_of(deployed, "router")["envoy.yaml"])["static_resources"]
    manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    (route,) = manager["route_config"]["virtual_hosts"][0]["routes"]
    assert route["route"]["hash_policy"] == [{"header": {"header_name": "x-session-id"}}]
    assert route["route"]["weighted_clusters"]["use_hash_policy"] is True
    assert {cluster["lb_policy"] for cluster in resources["clusters"]} == {"RING_HASH"}
    addresses, services = addresses_and_services(deployed)
    reached = {host for host, _ in addresses.values()}
    assert {services[name]["clusterIP"] for name in reached} == {"None"}
    assert {spec.get("sessionAffinity") for name, spec in services.items() if name not in reached} == {"ClientIP"}
    assert not any(path.endswith(".router.sh") for path in files_of(deployed, "router")), "it loads both kinds alike"


@pytest.mark.parametrize(
    ("shape", "policy"),
    [("sessions", ["--routing-logic", "session", "--session-key", "x-session-id"]),
     ("sessions by prefix", ["--policy", "cache_aware"])],
)  # fmt: skip
def test_engines_own_routers_are_told_the_planned_routing(shape: str, policy: list[str]) -> None:
    words = command_of(files_of(shapes()[shape], "router")["chat-1.router.sh"])
    assert words[-len(policy) :] == policy
    (pod,) = [
        document["spec"]["template"]["metadata"]["labels"]
        for document in yaml.safe_load_all(files_of(shapes()["sessions"], "kubernetes")["chat-1.yaml"])
        if document["kind"] == "Deployment"
    ]
    assert f"clusterwright/serves={pod['clusterwright/serves']}" in words


def test_routers_of_the_catalog_say_where_they_were_read() -> None:
    for engine, row in read_engine_routers().items():
        assert row.provenance.checked == "read", engine
        words = [word for routing in KEPT for word in row.words(routing) or ()]
        filled = {word for word in words if word.startswith("{")}
        assert filled <= {"{listen}", "{namespace}", "{port}", "{selector}", "{header}"}
        assert ("{header}" in filled) == row.needs_header


def test_without_sessions_nothing_is_kept_to_a_replica() -> None:
    once = CHATS | {"sessions": CHATS["sessions"] | {"routing": "random"}}
    spread = plan([workload("chat", traffic=once)], [line("chat", AWS, replicas=3)])
    alone = plan([workload("chat", traffic=CHATS)], [line("chat", AWS, replicas=1)])
    for deployed in (spread, alone, shapes()["one device"]):
        written = files_of(deployed, "router") | files_of(deployed, "kubernetes")
        assert not any("hash" in one or "ClientIP" in one for one in written.values())
        assert not any(note.about.startswith("sessions") for note in generate(deployed, "vllm", None).notes)


def test_targets_without_a_router_say_what_is_counted_on() -> None:
    notes = {note.about: note.text for note in generate(shapes()["sessions"], "vllm", None).notes}
    assert "sticky routing over 3 replicas" in notes["sessions of chat"]
