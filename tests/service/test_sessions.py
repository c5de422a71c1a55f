"""Sessions over HTTP: planned, estimated, and refused where they cannot be."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.seeds import cases
from tests.service.bodies import changed, estimated, small_estimate, small_plan

SESSIONS: dict[str, Any] = {
    "turns": {"low": 3, "high": 9},
    "user_tokens": {"mean": 150, "p95": 500},
    "think_time_s": 20,
    "system_prompt_tokens": 1000,
}
TRAFFIC: dict[str, Any] = {"output_tokens": {"mean": 200, "p95": 600}, "sessions": SESSIONS}
ESTIMATE = small_estimate(TRAFFIC, 6)
PLAN = small_plan("chat", TRAFFIC | {"requests_per_s": 15}, {"ttft_ms": {"p95": 400}, "tpot_ms": {"p95": 40}})
AT = "traffic/sessions"
SPREAD = changed(PLAN, "workloads/0/traffic/requests_per_s", 25)
"""More than one replica carries."""
PLAIN = {"prompt_tokens": 100, "output_tokens": 100}

WRONG: list[tuple[str, Any, str, str]] = [
    (f"{AT}/turns", 0, f"/{AT}/turns", "greater than or equal to 1"),
    (f"{AT}/turns", 5000, f"/{AT}", "at most 1000 turns"),
    (f"{AT}/turns", {"mean": 3, "p95": 900}, f"/{AT}/turns", "no lognormal"),
    (f"{AT}/turns", [], f"/{AT}/turns", "must be a number, or an object"),
    (f"{AT}/user_tokens", 0, f"/{AT}/user_tokens", "greater than or equal to 1"),
    (f"{AT}/user_tokens", {"mean": 100, "p95": 9000}, f"/{AT}/user_tokens", "no lognormal"),
    (f"{AT}/think_time_s", -1, f"/{AT}/think_time_s", "greater than or equal to 0"),
    (f"{AT}/think_time_s", 1e9, f"/{AT}/think_time_s", "less than or equal to 604800"),
    (f"{AT}/think_time_s", float("nan"), f"/{AT}/think_time_s", "finite"),
    (f"{AT}/system_prompt_tokens", -5, f"/{AT}/system_prompt_tokens", "greater than or equal to 0"),
    (f"{AT}/system_prompts", 0, f"/{AT}/system_prompts", "greater than or equal to 1"),
    (f"{AT}/documents", 2.5, f"/{AT}/documents", "integer"),
    (f"{AT}/routing", "fast", f"/{AT}/routing", "known: sticky, random, least_loaded, prefix_aware"),
    (f"{AT}/replicas", 4, f"/{AT}", "random routing"),
    (f"{AT}/turn", 4, f"/{AT}/turn", "unknown field"),
    ("traffic/prompt_tokens", 100, "/traffic", "either prompt_tokens or sessions"),
    (AT, None, "/traffic", "either prompt_tokens or sessions"),
    ("traffic/shared_prefix_fraction", 0.5, "/traffic", "follows from sessions"),
]


class TestRequests:
    @pytest.mark.parametrize(("path", "value", "pointer", "says"), WRONG, ids=lambda v: str(v)[:40])
    def test_each_wrong_field_is_named(
        self, client: TestClient, path: str, value: Any, pointer: str, says: str
    ) -> None:
        for url, body, before in (
            ("/v1/estimates", {"estimates": [changed(ESTIMATE, path, value)]}, "/estimates/0"),
            ("/v1/recommendations", changed(PLAN, f"workloads/0/{path}", value), "/workloads/0"),
        ):
            response = client.post(url, content=_json(body), headers={"content-type": "application/json"})
            if url == "/v1/estimates" and says == "no lognormal":
                assert response.status_code in (200, 422)
                assert "no lognormal" in response.text
                continue
            assert response.status_code == 422, response.text
            errors = response.json()["errors"]
            assert [e for e in errors if e["pointer"] == before + pointer and says in e["detail"]], errors

    def test_a_first_turn_longer_than_the_context_is_the_clients_mistake(self, client: TestClient) -> None:
        body = changed(PLAN, f"workloads/0/{AT}/system_prompt_tokens", 400_000)
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == "/workloads/0/traffic/sessions"
        found = estimated(client, changed(ESTIMATE, f"{AT}/system_prompt_tokens", 400_000))
        assert found["outcome"] == "unsupported"
        assert "leaves no room" in found["detail"]

    def test_sessions_belong_to_no_class_and_to_no_pools(self, client: TestClient) -> None:
        classed = changed(PLAN, "workloads/0/traffic", None)
        classes = [TRAFFIC | {"name": "a", "requests_per_s": 5}, PLAIN | {"name": "b", "requests_per_s": 5}]
        pooled = changed(PLAN, "workloads/0/roles", ["aggregated", "disaggregated"])
        for body, says in ((changed(classed, "workloads/0/traffic_classes", classes), "within traffic classes"),
                           (pooled, "pools of their own")):  # fmt: skip
            response = client.post("/v1/recommendations", json=body)
            assert response.status_code == 422
            assert says in response.text

    def test_sessions_that_outgrow_the_context_end_there(self, client: TestClient) -> None:
        long = changed(changed(PLAN, f"workloads/0/{AT}/turns", 60), "workloads/0/context_tokens", 8192)
        long = changed(long, "workloads/0/traffic/requests_per_s", 4)
        answer = client.post("/v1/recommendations", json=long).json()
        assert 0.1 < answer["contexts"][0]["clipped_fraction"] < 0.9
        refused = client.post("/v1/recommendations", json=changed(long, "workloads/0/over_context", "refuse"))
        assert refused.status_code == 422


class TestEstimates:
    def test_hits_follow_from_the_cache(self, client: TestClient) -> None:
        """The same sessions with half of the memory, and then with think times that outlast any cache."""
        roomy = estimated(client, ESTIMATE)
        tight = estimated(client, changed(ESTIMATE, "engine", {"memory_fraction": 0.3}))
        slow = estimated(client, changed(ESTIMATE, f"{AT}/think_time_s", 3600))
        hits = [one["prefix_hit_fraction"] for one in (roomy, tight, slow)]
        assert hits[0] > 0.85
        assert hits[0] > hits[1] > hits[2] > 0.2
        assert roomy["ttft_ms"]["p95"]["expected"] < slow["ttft_ms"]["p95"]["expected"]

    def test_random_routing_finds_less(self, client: TestClient) -> None:
        over = [
            estimated(client, changed(changed(ESTIMATE, f"{AT}/routing", "random"), f"{AT}/replicas", n))
            for n in (1, 4, 40)
        ]
        hits = [one["prefix_hit_fraction"] for one in over]
        assert hits[0] > hits[1] + 0.02 > hits[2] + 0.04

    @pytest.mark.parametrize("routing", ["random", "least_loaded", "prefix_aware"])
    def test_a_replica_is_one_of_so_many(self, client: TestClient, routing: str) -> None:
        alone = changed(ESTIMATE, f"{AT}/routing", routing)
        response = client.post("/v1/estimates", json={"estimates": [alone]})
        assert response.status_code == 422
        assert "state traffic.sessions.replicas" in response.text
        closed = changed(changed(alone, f"{AT}/replicas", 2), "load", {"kind": "closed", "concurrency": 4})
        assert "open loads" in client.post("/v1/estimates", json={"estimates": [closed]}).text
        assert estimated(client, changed(alone, f"{AT}/replicas", 3))["routed_over"] == 3

    def test_routing_by_prefixes_finds_more_than_by_load(self, client: TestClient) -> None:
        hits = {
            routing: estimated(client, changed(changed(ESTIMATE, f"{AT}/routing", routing), f"{AT}/replicas", 6))[
                "prefix_hit_fraction"
            ]
            for routing in ("random", "least_loaded", "prefix_aware")
        }
        sticky = estimated(client, ESTIMATE)["prefix_hit_fraction"]
        assert sticky > hits["prefix_aware"] > max(hits["random"], hits["least_loaded"]) + 0.01
        assert abs(hits["random"] - hits["least_loaded"]) < 0.02

    def test_an_engine_without_a_documented_cache_finds_nothing(self, client: TestClient) -> None:
        found = estimated(client, changed(ESTIMATE, "engine", {"name": "tgi"}))
        assert found["outcome"] == "estimated", found
        assert found["prefix_hit_fraction"] == 0.0

    def test_plain_requests_have_no_hits(self, client: TestClient) -> None:
        assert estimated(client, changed(ESTIMATE, "traffic", PLAIN))["prefix_hit_fraction"] is None


class TestPlans:
    def test_every_line_states_its_hits_and_keeps_its_targets(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=PLAN).json()
        assert answer["outcome"] == "optimal", answer
        for line in answer["plan"]:
            assert line["predicted"]["prefix_hit_fraction"] > 0.5
            assert line["predicted"]["ttft_ms"]["p95"]["expected"] <= 400
        assert any(c["about"] == "sessions" for c in answer["cautions"]) == (
            sum(x["replicas"] for x in answer["plan"]) > 1
        )

    @pytest.mark.parametrize(
        ("routing", "system_prompts"),
        [("random", 1), ("least_loaded", 1), ("prefix_aware", 60), ("prefix_aware", 1)][: cases(4, few=3)],
    )
    def test_what_is_spread_over_the_plan_is_true_of_the_plan(
        self, client: TestClient, routing: str, system_prompts: int
    ) -> None:
        """Among how many replicas turns are spread is found together with the plan: no more replicas than it was found for, and
        what a line says is what an estimate of it says."""
        routed = changed(SPREAD, f"workloads/0/{AT}/routing", routing)
        spread = changed(routed, f"workloads/0/{AT}/system_prompts", system_prompts)
        answer = client.post("/v1/recommendations", json=spread).json()
        assert answer["plan"], answer
        copies = sum(line["replicas"] * line["layout"]["data_parallel"] for line in answer["plan"])
        line = answer["plan"][0]
        over = line["predicted"]["routed_over"]
        assert 1 < copies <= over
        stated = changed(spread, f"workloads/0/{AT}/replicas", over)
        again = client.post("/v1/recommendations", json=stated).json()
        assert again["totals"]["usd_per_hour"] == answer["totals"]["usd_per_hour"]
        sessions = {**SESSIONS, "routing": routing, "system_prompts": system_prompts, "replicas": over}
        found = estimated(
            client,
            {
                "llm": "llama-3.1-8b", "device": line["device"], "node": line["node"], "layout": line["layout"],
                "precision": line["precision"], "engine": line["engine_settings"], "traffic": TRAFFIC | {"sessions": sessions},
                "load": {"kind": "open", "requests_per_s": line["serves_requests_per_s"] / line["replicas"]},
            },
        )  # fmt: skip
        for metric in ("ttft_ms", "tpot_ms", "e2e_ms", "prefix_hit_fraction", "routed_over"):
            assert found[metric] == line["predicted"][metric], metric
        sticky = client.post("/v1/recommendations", json=SPREAD).json()
        assert float(sticky["totals"]["usd_per_hour"]) <= float(answer["totals"]["usd_per_hour"])
        assert answer["outcome"] == "optimal", answer["solve"]

    def test_what_is_found_again_is_worth_money(self, client: TestClient) -> None:
        """The same prompts without a cache cost more: each turn as a session of its own that begins with all of it."""
        with_cache = client.post("/v1/recommendations", json=PLAN).json()
        engines = changed(PLAN, "workloads/0/engines", ["tgi"])
        without = client.post("/v1/recommendations", json=engines).json()
        assert float(with_cache["totals"]["usd_per_hour"]) < float(without["totals"]["usd_per_hour"])


class TestHostMemory:
    """A tier under the cache: what the device forgets is loaded instead of computed."""

    TIGHT = changed(changed(ESTIMATE, "engine", {"memory_fraction": 0.3}), "load/requests_per_s", 4)

    def test_what_the_device_forgets_is_found(self, client: TestClient) -> None:
        hits, first = [], []
        for gib in (0, 16, 64):
            found = estimated(client, changed(self.TIGHT, "engine", {"memory_fraction": 0.3, "host_cache_gib": gib}))
            hits.append(found["prefix_hit_fraction"])
            first.append(found["ttft_ms"]["mean"]["expected"])
        assert hits[0] < hits[1] - 0.01 < hits[2]
        assert first[2] < first[0]

    def test_an_engine_without_a_documented_tier_finds_no_more(self, client: TestClient) -> None:
        engine = {"name": "tensorrt-llm", "memory_fraction": 0.3}
        without = estimated(client, changed(self.TIGHT, "engine", engine))
        with_it = estimated(client, changed(self.TIGHT, "engine", engine | {"host_cache_gib": 64}))
        assert with_it["prefix_hit_fraction"] == without["prefix_hit_fraction"]

    def test_a_node_has_no_more_than_its_host_has(self, client: TestClient) -> None:
        node = next(
            one for one in client.get("/v1/nodes", params={"limit": 500}).json()["items"]
            if one["device"] == "h100-sxm" and one["host_memory_gib"] and one["devices"] == 8
        )  # fmt: skip
        asked = changed(changed(self.TIGHT, "node", node["id"]), "engine", {"host_cache_gib": 50_000})
        found = estimated(client, asked)
        assert found["outcome"] != "estimated"
        assert "host_cache_gib" in json.dumps(found)

    @pytest.mark.parametrize("wrong", [-1, "much", 1e9, float("nan")])
    def test_what_is_no_size_is_refused(self, client: TestClient, wrong: Any) -> None:
        asked = changed(self.TIGHT, "engine", {"host_cache_gib": wrong})
        typed = {"Content-Type": "application/json"}
        response = client.post("/v1/estimates", content=json.dumps({"estimates": [asked]}), headers=typed)
        assert response.status_code in (400, 422)  # NaN is no JSON
        assert wrong != wrong or "host_cache_gib" in response.text

    def test_a_plan_uses_it_where_nodes_have_it(self, client: TestClient) -> None:
        """Users that think for minutes: with host memory the same traffic costs no more, and a line says what it was given."""
        slow = changed(changed(PLAN, f"workloads/0/{AT}/think_time_s", 400), "workloads/0/traffic/requests_per_s", 10)
        without = client.post("/v1/recommendations", json=slow).json()
        answer = client.post("/v1/recommendations", json=changed(slow, "workloads/0/host_cache_gib", 100)).json()
        assert answer["plan"], answer
        assert float(answer["totals"]["usd_per_hour"]) <= float(without["totals"]["usd_per_hour"])
        given = [line["engine_settings"]["host_cache_gib"] for line in answer["plan"]]
        assert set(given) <= {0.0, 100.0}
        if answer["totals"]["usd_per_hour"] != without["totals"]["usd_per_hour"]:
            assert 100.0 in given

    BUSY = changed(
        changed(changed(PLAN, f"workloads/0/{AT}/think_time_s", 120), "workloads/0/traffic/requests_per_s", 170),
        "limits", {"devices": ["h100-sxm"], "providers": ["verda"]},
    )  # fmt: skip
    """More sessions than devices keep. One seller, whose nodes state what memory their hosts have."""
    SIZES = (32, 100)

    def test_what_it_saves_is_said_and_what_it_gives_is_an_estimate(self, client: TestClient) -> None:
        without = client.post("/v1/recommendations", json=self.BUSY).json()
        asked = changed(changed(self.BUSY, "alternatives", 1), "workloads/0/host_cache_gib", self.SIZES)
        answer = client.post("/v1/recommendations", json=asked).json()
        assert answer["request"]["workloads"][0]["host_cache_gib"] == list(self.SIZES)
        taken = [line for line in answer["plan"] if line["engine_settings"]["host_cache_gib"] in self.SIZES]
        assert taken, answer["totals"]
        saved = float(without["totals"]["usd_per_hour"]) - float(answer["totals"]["usd_per_hour"])
        assert saved > 0.0
        why = "cheapest without host memory under the cache"
        (bare,) = [one for one in answer["alternatives"] if one["why"] == why]
        assert float(bare["extra_usd_per_hour"]) == pytest.approx(saved, abs=1e-6)
        assert "host_cache" in {one["about"] for one in answer["cautions"]}
        same = client.get(f"/v1/recommendations/{answer['id']}/diff", params={"against": without["id"]}).json()
        assert {one["host_cache_gib"] for one in same["replicas"] if one["after"] > one["before"]} <= set(self.SIZES)
        line = taken[0]
        found = estimated(
            client,
            {
                "llm": "llama-3.1-8b", "device": line["device"], "node": line["node"], "layout": line["layout"],
                "precision": line["precision"], "engine": line["engine_settings"],
                "traffic": changed(TRAFFIC, "sessions/think_time_s", 120),
                "load": {"kind": "open", "requests_per_s": line["serves_requests_per_s"] / line["replicas"]},
            },
        )  # fmt: skip
        assert found["prefix_hit_fraction"] == pytest.approx(line["predicted"]["prefix_hit_fraction"], abs=0.01)
        expected = line["predicted"]["ttft_ms"]["p95"]["expected"]
        assert found["ttft_ms"]["p95"]["expected"] == pytest.approx(expected, rel=0.02)

    def test_a_device_whose_nodes_state_no_host_memory_is_named(self, client: TestClient) -> None:
        asked = changed(self.BUSY, "workloads/0/host_cache_gib", 100) | {"alternatives": 0}
        rejected = client.post("/v1/recommendations", json=asked).json()["rejected"]
        assert "host_memory_gib" in {one["nearest"] for one in rejected if one["reason"] == "figure_missing"}

    @pytest.mark.parametrize("wrong", [[], [-1], ["much"], [1, 2, 3, 4, 5], {"gib": 3}, None])
    def test_what_is_no_choice_of_sizes_is_refused(self, client: TestClient, wrong: Any) -> None:
        response = client.post("/v1/recommendations", json=changed(self.BUSY, "workloads/0/host_cache_gib", wrong))
        assert response.status_code == 422
        assert all(one["pointer"].startswith("/workloads/0/host_cache_gib") for one in response.json()["errors"])


TIERS: dict[str, Any] = {"host_cache_gib": 16, "disk_cache_gib": 400, "disk_read_gbytes_per_s": 5}


class TestDisk:
    """On a node whose disks' size is documented, and whose rate is not."""

    def asked(self, **engine: Any) -> dict[str, Any]:
        busy = changed(ESTIMATE, f"{AT}/think_time_s", 90) | {
            "device": "h100-sxm",
            "node": "azure-standard_nd96isr_h100_v5",
            "engine": engine,
        }
        return busy | {"load": {"kind": "open", "requests_per_s": 12}}

    def test_more_is_found_over_a_disk(self, client: TestClient) -> None:
        tight = {"memory_fraction": 0.3}
        each = [
            estimated(client, self.asked(**tight, **tiers))
            for tiers in ({}, {"host_cache_gib": 16}, TIERS, TIERS | {"disk_read_gbytes_per_s": 50})
        ]
        hits = [one["prefix_hit_fraction"] for one in each]
        assert hits[0] < hits[1] < hits[2] - 0.01
        assert hits[3] == pytest.approx(hits[2], abs=0.02)
        assert each[3]["ttft_ms"]["mean"]["expected"] < each[2]["ttft_ms"]["mean"]["expected"]

    @pytest.mark.parametrize(
        ("engine", "reason", "says"),
        [
            (TIERS | {"disk_read_gbytes_per_s": None}, "figure_missing", "local_disk_read_gbytes_per_s"),
            (TIERS | {"disk_cache_gib": 5000}, "local_disk_exceeded", "disk_cache_gib"),
            (TIERS | {"version": "0.21.0"}, "disk_cache_not_in_release", "from 0.22 on"),
        ],
    )
    def test_what_is_not_known_or_not_there_is_refused(
        self, client: TestClient, engine: dict[str, Any], reason: str, says: str
    ) -> None:
        found = estimated(client, self.asked(**engine))
        assert found["outcome"] != "estimated"
        assert reason in json.dumps(found)
        assert says in json.dumps(found)

    def test_a_disk_needs_host_memory(self, client: TestClient) -> None:
        for url, body in (
            ("/v1/estimates", {"estimates": [self.asked(disk_cache_gib=400)]}),
            ("/v1/recommendations", changed(PLAN, "workloads/0/disk_cache_gib", 400)),
        ):
            response = client.post(url, json=body)
            assert response.status_code == 422
            assert "host_cache_gib" in response.text

    @pytest.mark.parametrize("wrong", [-1, "much", 1e9, [400]])
    def test_what_is_no_size_is_refused(self, client: TestClient, wrong: Any) -> None:
        body = changed(changed(PLAN, "workloads/0/host_cache_gib", 16), "workloads/0/disk_cache_gib", wrong)
        response = client.post("/v1/recommendations", json=body)
        assert response.status_code == 422
        assert [one["pointer"] for one in response.json()["errors"]] == ["/workloads/0/disk_cache_gib"]

    def test_a_plan_takes_it_where_that_is_cheaper(self, client: TestClient) -> None:
        busy = changed(changed(PLAN, f"workloads/0/{AT}/think_time_s", 90), "workloads/0/traffic/requests_per_s", 150)
        busy = busy | {
            "limits": {"devices": ["h100-sxm"], "providers": ["azure"], "sourcing": "any"},
            "alternatives": 1,
        }
        for name, value in TIERS.items():
            busy = changed(busy, f"workloads/0/{name}", value)
        answer = client.post("/v1/recommendations", json=busy).json()
        assert answer["plan"], answer
        without = client.post("/v1/recommendations", json=changed(busy, "workloads/0/disk_cache_gib", 0)).json()
        assert float(answer["totals"]["usd_per_hour"]) <= float(without["totals"]["usd_per_hour"])
        given = {line["engine_settings"]["disk_cache_gib"] for line in answer["plan"]}
        assert given <= {0.0, 400.0}
        if 400.0 in given:
            assert "disk_cache" in {one["about"] for one in answer["cautions"]}
            assert "cheapest without a disk under the cache" in {one["why"] for one in answer["alternatives"]}


def _json(body: Any) -> str:
    return json.dumps(body)
