"""Small models side by side on split devices, over HTTP."""

from decimal import Decimal
from io import StringIO
from typing import Any

from fastapi.testclient import TestClient
from rich.console import Console

from service.cli.plan_view import show_recommendation
from service.recommendations.tables import RecommendationTable
from service.tco.stored_plan import stored_plan

SMALL = ("llama-3.2-1b", "qwen2.5-1.5b", "llama-3.2-3b")
DEVICES = ["h100-sxm", "a100-sxm-80", "a100-pcie-80"]


def small_models(**limits: Any) -> dict[str, Any]:
    """Three small models, one request in two seconds each, on devices that can be split."""
    return {
        "workloads": [
            {
                "name": llm,
                "llm": llm,
                "traffic": {
                    "requests_per_s": 0.5,
                    "prompt_tokens": {"distribution": "fixed", "tokens": 500},
                    "output_tokens": {"distribution": "fixed", "tokens": 100},
                },
                "targets": {"ttft_ms": {"p95": 1500}, "tpot_ms": {"p95": 60}},
                "precision": {"weights": ["bf16"], "kv_cache": ["bf16"]},
            }
            for llm in SMALL
        ],
        "limits": {"devices": DEVICES, **limits},
        "alternatives": 0,
    }


def recommend(client: TestClient, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/v1/recommendations", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


class TestRecommendations:
    def test_three_small_models_share_one_split_device(self, client: TestClient) -> None:
        whole, split = recommend(client, small_models()), recommend(client, small_models(partitions=True))
        assert whole["totals"]["devices"] == 3
        assert all(line["partition"] is None for line in whole["plan"])
        assert all(nodes["splits"] == [] for nodes in whole["fleet"])
        assert split["outcome"] == "optimal"
        assert split["totals"]["devices"] == 1
        assert Decimal(split["totals"]["usd_per_hour"]) < Decimal(whole["totals"]["usd_per_hour"])
        (nodes,) = split["fleet"]
        (cut,) = nodes["splits"]
        lines = split["plan"]
        assert {line["workload"] for line in lines} == set(SMALL)
        assert {line["partition"]["profile"] for line in lines} == {cut["profile"]}
        assert (cut["devices"], cut["nodes"]) == (1, 1)
        assert sum(line["replicas"] for line in lines) <= cut["instances_per_device"]
        assert all(line["layout"]["tensor_parallel"] == 1 for line in lines)
        assert abs(sum(float(line["usd_per_hour"]) for line in lines) - float(nodes["usd_per_hour"])) < 1e-4
        device = client.get(f"/v1/devices/{nodes['device']}").json()
        stated = {one["profile"]: one for one in device["partitions"]}[cut["profile"]]
        assert stated["instances"] == cut["instances_per_device"]
        assert f"-cgi {','.join([cut['profile']] * stated['instances'])} -C" in lines[0]["partition"]["launch"][1]

    def test_a_shared_host_counts_once_in_the_power_of_a_plan(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True, max_power_kw=1.0))
        assert len(answer["plan"]) == 3
        assert answer["totals"]["power_kw"] <= 1.0

    def test_a_shared_node_is_owned_once_in_a_comparison(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True))
        assert len(answer["plan"]) == 3
        request = answer["request"]
        stored = stored_plan(RecommendationTable(id="rec", outcome="optimal", request=request, result=answer))
        assert [line.nodes for line in stored.lines] == [1]
        assert sum(line.usd_per_hour for line in stored.lines) == Decimal(answer["totals"]["usd_per_hour"])

    def test_survivors_of_a_lost_node_restart_on_a_spare(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True, fault_tolerance={"nodes": 1}))
        (nodes,) = answer["fleet"]
        (cut,) = nodes["splits"]
        assert (nodes["nodes"], cut["nodes"]) == (2, 1)

    def test_the_command_shows_what_is_split_and_how(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True))
        written = StringIO()
        show_recommendation(answer, Console(width=120, file=written, highlight=False), lambda _: None)
        shown = written.getvalue()
        profile = answer["plan"][0]["partition"]["profile"]
        assert f"on {profile}" in shown
        assert "split 1 device of each of 1 × " in shown
        assert f"nvidia-smi mig -i GPU -cgi {profile}," in shown

    def test_nothing_measured_on_an_instance_is_claimed(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True))
        assert {line["basis"] for line in answer["plan"]} <= {"borrowed", "analytical"}

    def test_only_profiles_asked_for_are_used(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=["3g.40gb"]))
        profiles = {line["partition"] and line["partition"]["profile"] for line in answer["plan"]}
        assert "3g.40gb" in profiles
        assert profiles <= {"3g.40gb", None}

    def test_devices_of_containers_are_never_split(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True, providers=["vast", "runpod"], sourcing="any"))
        assert answer["outcome"] == "optimal"
        assert {line["partition"] for line in answer["plan"]} == {None}
        assert client.get("/v1/nodes/vast-a100-sxm").json()["tenancy"] == "container"

    def test_an_unknown_profile_is_refused(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=small_models(partitions=["1g.10gb", "1g.11gb"]))
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/limits/partitions/1"
        assert "1g.10gb" in error["detail"]

    def test_a_model_too_large_for_a_slice_is_never_placed_on_one(self, client: TestClient) -> None:
        body = small_models(partitions=["1g.10gb"])
        body["workloads"][2] |= {"name": "large", "llm": "llama-3.1-8b"}
        answer = recommend(client, body)
        placed = {line["workload"]: line["partition"] for line in answer["plan"]}
        assert placed["large"] is None
        assert placed[SMALL[0]] is not None
        (reason,) = [
            r
            for r in answer["rejected"]
            if (r["workload"], r["device"], r["partition"]) == ("large", "h100-sxm", "1g.10gb")
        ]
        assert reason["reason"] == "does_not_fit"

    def test_a_budget_below_one_split_device_is_infeasible_with_reasons(self, client: TestClient) -> None:
        answer = recommend(client, small_models(partitions=True, max_usd_per_hour="0.10"))
        assert answer["outcome"] == "infeasible"
        assert [c["limits"] for c in answer["conflicts"]] == [["limits.max_usd_per_hour"]]
        (relaxed,) = [r for r in answer["relaxations"] if r["limit"] == "limits.max_usd_per_hour"]
        cheapest = recommend(client, small_models(partitions=True))["totals"]["usd_per_hour"]
        assert float(relaxed["usd_per_hour"]) == float(cheapest)

    def test_traffic_classes_are_served_on_instances_too(self, client: TestClient) -> None:
        body = small_models(partitions=True)
        for workload in body["workloads"]:
            traffic = workload.pop("traffic")
            longer = traffic | {"requests_per_s": 0.2, "prompt_tokens": {"distribution": "fixed", "tokens": 1500}}
            workload["traffic_classes"] = [{"name": "short", **traffic}, {"name": "long", **longer}]
        answer = recommend(client, body)
        assert answer["outcome"] == "optimal"
        assert answer["totals"]["devices"] == 1
        assert all(line["partition"] for line in answer["plan"])

    def test_why_not_a_profile_says_what_splitting_would_save(self, client: TestClient) -> None:
        whole, split = recommend(client, small_models()), recommend(client, small_models(partitions=["1g.10gb"]))
        path = f"/v1/recommendations/{whole['id']}/why-not"
        (answer,) = client.post(path, json={"partitions": ["1g.10gb"]}).json()["answers"]
        assert (answer["kind"], answer["name"], answer["in_plan"]) == ("partition", "1g.10gb", False)
        assert answer["excluded_by"] == ["limits.partitions"]
        assert answer["forced_in"]["usd_per_hour"] == split["totals"]["usd_per_hour"]
        assert Decimal(answer["forced_in"]["extra_usd_per_hour"]) < 0
        unknown = client.post(path, json={"partitions": ["1g.11gb"]})
        assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/partitions/0")
        path = f"/v1/recommendations/{split['id']}/why-not"
        used, other = client.post(path, json={"partitions": ["1g.10gb", "3g.40gb"]}).json()["answers"]
        assert (used["in_plan"], other["in_plan"]) == (True, False)
        assert other["forced_in"]["plan"]
        assert any((line["partition"] or {}).get("profile") == "3g.40gb" for line in other["forced_in"]["plan"])

    def test_a_fleet_that_runs_is_split_and_shrinks(self, client: TestClient) -> None:
        held = "together:A100-SXM:us:on_demand"
        body = small_models(partitions=True) | {"current": {"nodes": {held: {"nodes": 3}}}}
        answer = recommend(client, body)
        assert answer["replanning"]["decision"] == "switched"
        (nodes,) = answer["fleet"]
        assert (nodes["offer"], nodes["nodes"]) == (held, 1)
        assert [cut["nodes"] for cut in nodes["splits"]] == [1]
        assert {line["workload"] for line in answer["plan"]} == set(SMALL)
        kept = recommend(client, body | {"current": body["current"] | {"keep_unless": {"saving_percent": 90}}})
        assert kept["replanning"]["decision"] == "kept"


CASE: dict[str, Any] = {
    "llm": "llama-3.2-3b",
    "device": "h200-sxm",
    "precision": {"weights": "bf16"},
    "engine": {"max_context_tokens": 1024},
    "traffic": {
        "prompt_tokens": {"distribution": "fixed", "tokens": 500},
        "output_tokens": {"distribution": "fixed", "tokens": 100},
    },
    "load": {"kind": "closed", "concurrency": 2, "requests": 60},
}


class TestEstimates:
    def estimate(self, client: TestClient, **changes: Any) -> dict[str, Any]:
        answer = client.post("/v1/estimates", json={"estimates": [CASE, CASE | changes]})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["estimates"][1]
        return found

    def test_an_instance_is_slower_smaller_and_less_certain(self, client: TestClient) -> None:
        whole, part = self.estimate(client), self.estimate(client, partition="1g.18gb")
        assert part["partition"] == "1g.18gb"
        assert (whole["basis"], part["basis"]) == ("corrected", "borrowed")
        slower = part["bound"]["tpot_ms"] / whole["bound"]["tpot_ms"]
        assert abs(slower - 8.0) < 1e-6  # one of eight memory slices
        assert part["tpot_ms"]["mean"]["expected"] > 4 * whole["tpot_ms"]["mean"]["expected"]
        spread = [one["tpot_ms"]["mean"]["high"] / one["tpot_ms"]["mean"]["low"] for one in (whole, part)]
        assert spread[1] > spread[0]

    def test_what_an_engine_takes_of_memory_is_taken_of_each_instance(self, client: TestClient) -> None:
        whole, part = (self.estimate(client, **c)["memory"] for c in ({}, {"partition": "1g.18gb"}))
        assert part["weights_gib"] == whole["weights_gib"]
        own = part["weights_gib"] + part["kv_cache_gib"] + part["activations_gib"] + part["reserved_gib"]
        assert own <= 16.0 + 1e-6
        assert (part["activations_gib"], part["reserved_gib"]) == (whole["activations_gib"], whole["reserved_gib"])
        assert part["reserved_gib"] > 0

    def test_a_model_too_large_for_an_instance_does_not_fit(self, client: TestClient) -> None:
        assert self.estimate(client, llm="llama-3.1-8b", partition="1g.18gb")["outcome"] == "does_not_fit"

    def test_instances_are_not_joined(self, client: TestClient) -> None:
        found = self.estimate(client, partition="1g.18gb", layout={"tensor_parallel": 2})
        assert (found["outcome"], found["reason"]) == ("unsupported", "instances_not_joined")

    def test_unknown_profiles_and_devices_without_any_are_named(self, client: TestClient) -> None:
        unknown = self.estimate(client, partition="1g.19gb")
        assert (unknown["reason"], "1g.18gb" in unknown["close_matches"]) == ("unknown_partition", True)
        assert self.estimate(client, device="l40s", partition="1g.18gb")["reason"] == "figure_missing"
        alone = client.post("/v1/estimates", json={"estimates": [CASE | {"partition": "2g.9gb"}]})
        assert alone.status_code == 422
        assert alone.json()["errors"][0]["pointer"] == "/estimates/0/partition"


def test_devices_list_how_they_can_be_split(client: TestClient) -> None:
    partitions = client.get("/v1/devices/h100-sxm").json()["partitions"]
    assert [p["profile"] for p in partitions] == ["1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb"]
    assert all(p["provenance"]["source"].startswith("https://docs.nvidia.com/") for p in partitions)
    assert client.get("/v1/devices/l40s").json()["partitions"] == []
