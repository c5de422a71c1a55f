"""Losses, places, quotas and spot shares over HTTP, on a few sellers' machines: places enough to lose one, none too many to prove it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import RECOMMENDATION, changed

SMALL = changed(
    changed(changed(RECOMMENDATION, "workloads/0/llm", "llama-3.1-8b"), "workloads/0/precision", {"weights": ["fp8"]}),
    "limits",
    {"devices": ["l4", "l40s", "h100-sxm"], "providers": ["aws", "nebius", "verda", "runpod"]},
) | {"alternatives": 0, "time_limit_s": 120}
"""With time for every question: the optimiser's own limits run by the wall, and a busy machine takes ten times as long."""


def ask(client: TestClient, body: dict[str, Any], **limits: Any) -> dict[str, Any]:
    asked = body | {"limits": body["limits"] | limits}
    answer = client.post("/v1/recommendations", json=asked, headers={"Prefer": "wait=120"})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert client.get(f"/v1/recommendations/{found['id']}").json() == found
    return found


def usd(answer: dict[str, Any]) -> float:
    assert answer["totals"] is not None, answer
    return float(answer["totals"]["usd_per_hour"])


class TestLosses:
    @pytest.mark.parametrize("kind", ["provider", "region"])
    def test_any_one_may_be_lost(self, client: TestClient, kind: str) -> None:
        plain = ask(client, SMALL)
        safe = ask(client, SMALL, fault_tolerance={f"{kind}s": 1})
        assert len({line[kind] for line in safe["plan"]}) > 1
        assert usd(safe) >= usd(plain)
        (worst,) = safe["worst_losses"]
        assert worst["kind"] == kind
        assert 0.0 < worst["utilisation_fraction"] <= 1.0
        assert plain["worst_losses"] == []
        assert f"limits.fault_tolerance.{kind}s" in {b["limit"] for b in safe["binding"]} or usd(safe) == usd(plain)

    def test_nodes_are_replaced_by_idle_spares(self, client: TestClient) -> None:
        plain, safe = ask(client, SMALL), ask(client, SMALL, fault_tolerance={"nodes": 1})
        assert usd(safe) > usd(plain)
        assert safe["totals"]["nodes"] > 0
        assert usd(safe) == usd(ask(client, SMALL, spare_nodes=1))
        assert "limits.fault_tolerance.nodes" in {b["limit"] for b in safe["binding"]}

    def test_one_region_is_too_few_and_both_limits_are_named(self, client: TestClient) -> None:
        refused = ask(client, SMALL, fault_tolerance={"regions": 1}, regions=["us-east-1"])
        assert refused["outcome"] == "infeasible"
        assert refused["conflicts"][0]["limits"] == ["limits.fault_tolerance.regions", "limits.regions"]
        fewer = next(r for r in refused["relaxations"] if r["limit"] == "limits.fault_tolerance.regions")
        assert (fewer["relaxing_from"], fewer["relaxing_to"]) == (1, 0)
        assert float(fewer["usd_per_hour"]) > 0


class TestPlaces:
    def test_pinned_and_kept_out(self, client: TestClient) -> None:
        pinned = ask(client, changed(SMALL, "workloads/0/regions", {"only": ["us-east-1", "us-west-2"]}))
        assert {line["region"] for line in pinned["plan"]} <= {"us-east-1", "us-west-2"}
        used = sorted({line["provider"] for line in pinned["plan"]})
        away = ask(client, changed(SMALL, "workloads/0/providers", {"never": used}))
        assert not {line["provider"] for line in away["plan"]} & set(used)
        regions = next(b for b in pinned["binding"] if b["limit"] == "regions")
        assert (regions["workload"], regions["relaxing_to"]) == ("chat", "any")

    def test_contradicting_places_name_both_limits(self, client: TestClient) -> None:
        body = changed(SMALL, "workloads/0/regions", {"only": ["us-east-1"]})
        refused = ask(client, body, regions=["us-west-2"])
        assert refused["outcome"] == "infeasible"
        assert set(refused["conflicts"][0]["limits"]) == {"workloads.chat.regions", "limits.regions"}

    def test_min_replicas(self, client: TestClient) -> None:
        found = ask(client, changed(SMALL, "workloads/0/min_replicas", 60))
        assert sum(line["replicas"] for line in found["plan"]) >= 60

    def test_unknown_names_are_refused_where_they_stand(self, client: TestClient) -> None:
        body = changed(SMALL, "workloads/0/regions", {"never": ["us-esat-1"]})
        body = changed(body, "limits/quotas", [{"name": "q", "max_devices": 1, "devices": ["h1000"]}])
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        pointers = {error["pointer"] for error in answer.json()["errors"]}
        assert pointers == {"/workloads/0/regions/never/0", "/limits/quotas/0/devices/0"}


class TestDistance:
    NEAR_AND_FAR = {"us-east-1": 10.0, "us-west-2": 900.0}  # noqa: RUF012
    PINNED = changed(SMALL, "workloads/0/regions", {"only": ["us-east-1", "us-west-2"]})

    def test_the_round_trip_counts_towards_the_first_token(self, client: TestClient) -> None:
        here = ask(
            client, changed(self.PINNED, "workloads/0/network_ms_by_region", dict.fromkeys(self.NEAR_AND_FAR, 0))
        )
        assert usd(here) == usd(ask(client, self.PINNED))
        away = ask(client, changed(self.PINNED, "workloads/0/network_ms_by_region", self.NEAR_AND_FAR))
        assert usd(away) >= usd(here)
        for line in away["plan"]:
            assert line["network_ms"] == self.NEAR_AND_FAR[line["region"]]
            assert line["predicted"]["ttft_ms"]["p95"]["expected"] + line["network_ms"] <= 1000.0 * 1.05
        too_far = dict.fromkeys(self.NEAR_AND_FAR, 1001.0)
        refused = ask(client, changed(self.PINNED, "workloads/0/network_ms_by_region", too_far))
        assert refused["outcome"] == "infeasible"
        assert "workloads.chat.targets.ttft_ms.p95" in refused["conflicts"][0]["limits"]

    def test_a_region_without_a_figure_is_refused(self, client: TestClient) -> None:
        body = changed(SMALL, "workloads/0/network_ms_by_region", {"us-east-1": 10, "us-esat-2": 20})
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        errors = {error["pointer"]: error["detail"] for error in answer.json()["errors"]}
        assert "more; state them" in errors["/workloads/0/network_ms_by_region"]
        assert "/workloads/0/network_ms_by_region/us-esat-2" in errors


class TestSharesAndQuotas:
    def test_quota_holds_and_is_explained(self, client: TestClient) -> None:
        plain = ask(client, SMALL)
        used = plain["plan"][0]["device"]
        quota = {"name": "account", "max_devices": 1, "devices": [used]}
        limited = ask(client, SMALL, quotas=[quota])
        nodes = {line["offer"]: line for line in limited["plan"] if line["device"] == used}
        assert sum(line["nodes"] for line in nodes.values()) <= 1
        assert usd(limited) >= usd(plain)

    def test_spot_share(self, client: TestClient) -> None:
        open_to_all = {"commitments": ["on_demand", "spot"]}
        mixed = ask(client, SMALL, **open_to_all, max_spot_fraction=0.5)
        steady = ask(client, SMALL, **open_to_all, max_spot_fraction=0.0)
        assert usd(mixed) <= usd(steady) + 1e-6
        assert all(line["commitment"] == "on_demand" for line in steady["plan"])

    @pytest.mark.parametrize(
        "limits",
        [
            {"fault_tolerance": {"regions": -1}},
            {"fault_tolerance": {"zones": 1}},
            {"max_spot_fraction": 1.5},
            {"quotas": [{"name": "q", "max_devices": 3}]},
            {"quotas": [{"name": "q", "max_devices": 3, "devices": ["l4"]}] * 2},
        ],
    )
    def test_bad_limits_are_refused(self, client: TestClient, limits: dict[str, Any]) -> None:
        answer = client.post("/v1/recommendations", json=SMALL | {"limits": SMALL["limits"] | limits})
        assert answer.status_code == 422


class TestShortage:
    CHAT = changed(SMALL, "workloads/0/traffic/requests_per_s", 100.0)
    BODY = CHAT | {"workloads": [CHAT["workloads"][0], CHAT["workloads"][0] | {"name": "batch", "priority": -1}]}

    def test_the_lower_priority_is_shed_first(self, client: TestClient) -> None:
        one = usd(ask(client, self.CHAT))
        refused = ask(client, self.BODY, max_usd_per_hour=f"{1.5 * one:.4f}")
        assert refused["outcome"] == "infeasible"
        assert refused["served"] == []
        shed = ask(client, self.BODY | {"on_shortage": "shed"}, max_usd_per_hour=f"{1.5 * one:.4f}")
        assert shed["outcome"] in ("optimal", "feasible")
        chat, batch = shed["served"]
        assert (chat["workload"], chat["served_fraction"]) == ("chat", 1.0)
        assert 0.1 < batch["served_fraction"] < 0.9
        served = {
            name: sum(p["serves_requests_per_s"] for p in shed["plan"] if p["workload"] == name)
            for name in ("chat", "batch")
        }
        assert served["chat"] == pytest.approx(100.0, rel=1e-4)
        assert served["batch"] == pytest.approx(100.0 * batch["served_fraction"], rel=1e-4)
        assert shed["totals"]["served_fraction"] == pytest.approx(sum(served.values()) / 200.0, rel=1e-4)
        assert usd(shed) <= 1.5 * one + 1e-4
        assert "limits.max_usd_per_hour" in shed["conflicts"][0]["limits"]

    def test_without_shortage_nothing_is_shed(self, client: TestClient) -> None:
        found = ask(client, SMALL | {"on_shortage": "shed"})
        assert found["served"] == [{"workload": "chat", "priority": 0, "served_fraction": 1.0}]
        assert usd(found) == usd(ask(client, SMALL))

    def test_throughput_cannot_shed(self, client: TestClient) -> None:
        body = SMALL | {"objective": "throughput", "on_shortage": "shed", "limits": {"max_usd_per_hour": "10"}}
        assert client.post("/v1/recommendations", json=body).status_code == 422
