"""POST /v1/estimates: drafting, and prefill and decode in pools of their own."""

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.read import Catalog
from tests.service.bodies import ESTIMATE, changed
from tests.service.test_health import served

Answer = dict[str, Any]
REFUSED_WITHIN_S = 5.0
"""Of processor time, the application's start among it."""
NGRAM = {
    "method": "ngram", "draft_tokens": 4, "acceptance_fraction": 0.6,
    "draft_step_fraction": 0.02, "draft_cost_source": "measured on our traffic",
}  # fmt: skip
MODEL = {"method": "draft_model", "draft_llm": "llama-3.1-8b", "draft_tokens": 4, "acceptance_fraction": 0.6}
PLAIN = changed(ESTIMATE, "load", {"kind": "closed", "concurrency": 4, "requests": 16})
PREFILL = {"device": "h100-sxm", "node": "aws-p5.48xlarge", "layout": {"tensor_parallel": 2}, "replicas": 2}
DECODE = {"device": "h200-sxm", "node": "aws-p5en.48xlarge", "layout": {"tensor_parallel": 2}, "replicas": 2}
POOLS: Answer = {
    "llm": "llama-3.1-70b",
    "precision": {"weights": "fp8"},
    "disaggregated": {"prefill": PREFILL, "decode": DECODE, "kv_transfer": {"over": "network"}},
    "traffic": ESTIMATE["traffic"],
    "load": {"kind": "open", "requests_per_s": 4.0, "requests": 200},
}


def drafting(speculative: Answer) -> Answer:
    return changed(PLAIN, "engine", {"speculative": speculative})


def estimated(client: TestClient, *cases: Answer) -> list[Answer]:
    answer = client.post("/v1/estimates", json={"estimates": list(cases)})
    assert answer.status_code == 200, answer.text
    found: list[Answer] = answer.json()["estimates"]
    return found


def test_an_estimate_says_every_part_of_the_deployment_that_was_stated(client: TestClient) -> None:
    case = changed(PLAIN, "node", "aws-p5en.48xlarge")
    (found,) = estimated(client, case)
    assert found["outcome"] == "estimated"
    assert found["node"] == case["node"]
    assert found["layout"]["tensor_parallel"] == case["layout"]["tensor_parallel"]
    assert found["precision"]["weights"] == case["precision"]["weights"]


class TestMachine:
    def test_a_machine_says_what_it_holds(self, client: TestClient) -> None:
        """Its device is a fact of the catalog: with or without it the same is asked."""
        both = changed(PLAIN, "node", "aws-p5en.48xlarge")
        alone = {field: value for field, value in both.items() if field != "device"}
        first, second = estimated(client, both, alone)
        assert first["outcome"] == "estimated"
        assert second == first

    def test_an_unknown_machine_is_what_is_unknown(self, client: TestClient) -> None:
        case = changed(PLAIN, "node", "aws-p5en.48xlargest")
        del case["device"]
        answer = client.post("/v1/estimates", json={"estimates": [case]})
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/estimates/0/node"
        assert "did you mean 'aws-p5en.48xlarge'" in error["detail"]

    def test_one_of_a_device_without_figures_says_which_figure(self, client: TestClient, catalog: Catalog) -> None:
        refused = {one.id for one in catalog.devices.values() if one.memory_gib is None}
        node = min(one.id for one in catalog.nodes.values() if one.device in refused)
        case = changed(PLAIN, "node", node)
        del case["device"]
        (found,) = estimated(client, case)
        assert (found["outcome"], found["reason"]) == ("unsupported", "figure_missing")

    def test_nothing_at_all_is_told_what_there_is_to_name(self, client: TestClient) -> None:
        case = {field: value for field, value in PLAIN.items() if field not in ("device", "node")}
        (error,) = client.post("/v1/estimates", json={"estimates": [case]}).json()["errors"]
        assert error["pointer"] == "/estimates/0"
        assert "state device, or node" in error["detail"]


class TestDrafting:
    def test_drafting_is_predicted_with_wider_intervals_and_never_called_measured(self, client: TestClient) -> None:
        plain, ngram, model = estimated(client, PLAIN, drafting(NGRAM), drafting(MODEL))
        assert (plain["basis"], ngram["basis"], model["basis"]) == ("measured", "borrowed", "borrowed")
        for found in (ngram, model):
            tpot, before = found["tpot_ms"]["mean"], plain["tpot_ms"]["mean"]
            assert tpot["expected"] < before["expected"]
            assert tpot["high"] / tpot["low"] > before["high"] / before["low"]
            assert found["bound"]["tpot_ms"] < tpot["low"]
            assert found["evidence"] == plain["evidence"]
            assert "drafting" in {term["term"] for term in found["step"]}
            assert set(found["ttft_ms"]) == {"mean", "p50", "p90", "p95", "p99"}
            assert found["speculative"]["tokens_per_step"] == pytest.approx((1 - 0.6**5) / 0.4)
        assert model["speculative"]["draft_weights_gib"] > 0
        assert ngram["speculative"]["draft_weights_gib"] is None
        assert model["memory"]["kv_cache_tokens"] < ngram["memory"]["kv_cache_tokens"]
        assert model["engine"]["speculative"]["draft_llm"] == "llama-3.1-8b"

    def test_a_release_that_launches_draft_models_kernel_by_kernel_is_refused_and_others_are_doubted(
        self, client: TestClient
    ) -> None:
        stated = [changed(PLAIN, "engine", {"version": v, "speculative": MODEL}) for v in ("0.24.0", "0.9.1", "0.30.0")]
        head = changed(PLAIN, "engine", {"version": "0.24.0", "speculative": NGRAM})
        measured, older, later, by_ngram = estimated(client, *stated, head)
        for refused in (measured, older):
            assert refused["reason"] == "figure_missing"
            assert "outside captured graphs" in refused["detail"]
        assert "47460" in later["speculative"]["caution"]
        assert by_ngram["speculative"]["caution"] is None

    def test_nothing_accepted_is_slower_and_everything_faster(self, client: TestClient) -> None:
        plain, *found = estimated(client, PLAIN, *(drafting(NGRAM | {"acceptance_fraction": a}) for a in (0, 0.5, 1)))
        tpot = [e["tpot_ms"]["mean"]["expected"] for e in (plain, *found)]
        assert tpot[1] > tpot[0] > tpot[2] > tpot[3]

    def test_drafts_at_the_edge(self, client: TestClient) -> None:
        """One bad case does not spoil the rest."""
        short = changed(drafting(NGRAM), "traffic/output_tokens", {"distribution": "fixed", "tokens": 4})
        large = drafting(MODEL | {"draft_llm": "llama-3.1-70b", "draft_weights": "bf16"})
        edges: list[tuple[Answer, str, str]] = [
            (drafting(NGRAM | {"draft_tokens": 60, "acceptance_fraction": 1}), "estimated", ""),
            (drafting(MODEL | {"draft_llm": "qwen3-8b"}), "unsupported", "vocabulary"),
            (changed(large, "engine/max_context_tokens", 131_072), "does_not_fit", "bytes"),
            (large, "estimated", ""),  # of requests as short as these there is room for many
            (drafting(MODEL | {"draft_llm": "llama-3.1-9b"}), "unsupported", "did you mean 'llama-3.1-8b'"),
            (short, "unsupported", "draft at most 3"),
        ]
        for found, (_, outcome, says) in zip(estimated(client, *(case for case, _, _ in edges)), edges, strict=True):
            assert found["outcome"] == outcome
            assert says in found.get("detail", "")

    def test_bad_input_names_the_field(self, client: TestClient) -> None:
        wrong: tuple[Answer, ...] = (
            {"acceptance_fraction": 1.01}, {"acceptance_fraction": -0.1}, {"acceptance_fraction": "NaN"},
            {"draft_tokens": 0}, {"draft_tokens": 65}, {"draft_step_fraction": -1}, {"draft_step_fraction": None},
            {"draft_cost_source": ""}, {"method": "magic"}, {"draft_llm": "llama-3.1-8b"},
        )  # fmt: skip
        for fields in wrong:
            answer = client.post("/v1/estimates", json={"estimates": [drafting(NGRAM | fields)]})
            assert answer.status_code == 422, answer.text
            assert any("/engine/speculative" in e["pointer"] for e in answer.json()["errors"])

    def test_an_unknown_draft_alone_is_refused_by_its_field(self, client: TestClient) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [drafting(MODEL | {"draft_llm": "no-such"})]})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/estimates/0/engine/speculative/draft_llm"


class TestPools:
    def test_both_pools_and_the_link_are_shown(self, client: TestClient) -> None:
        (found,) = estimated(client, POOLS)
        assert found["basis"] == "borrowed"
        assert found["layout"] is None
        assert found["disaggregated"]["decode"]["replicas"] == 2
        prefill, decode, link = (found["pools"][name] for name in ("prefill", "decode", "kv_transfer"))
        assert (prefill["devices"], decode["devices"]) == (4, 4)
        assert prefill["bottleneck"] == "compute"
        assert decode["memory"]["kv_cache_tokens"] > prefill["memory"]["kv_cache_tokens"]  # 141 against 80 GB
        watts = prefill["power_w"]["expected"] + decode["power_w"]["expected"]
        assert found["power_w"]["expected"] == pytest.approx(watts)
        # 3,200 Gbit/s over 8 devices at 65 %: 32.5 GB/s a device, 4 devices send.
        assert link["gb_per_s"] == pytest.approx(130.0)
        assert found["tpot_ms"]["mean"]["low"] >= found["bound"]["tpot_ms"]
        for metric in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
            assert set(found[metric]) == {"mean", "p50", "p90", "p95", "p99"}

    def test_decoding_alone_is_faster_than_beside_prompts(self, client: TestClient) -> None:
        together = changed(PLAIN, "load", {"kind": "open", "requests_per_s": 4.0, "requests": 200})
        apart, mixed = estimated(client, POOLS, together)
        assert apart["tpot_ms"]["p95"]["expected"] < mixed["tpot_ms"]["p95"]["expected"]

    def test_pools_that_cannot_work(self, client: TestClient) -> None:
        cases: list[tuple[str, Any, str, str]] = [
            ("load/requests_per_s", 1e6, "saturated", "capacity"),
            ("load", {"kind": "closed", "concurrency": 4}, "unsupported", "open load"),
            ("disaggregated/kv_transfer/over", "node_link", "unsupported", "only a network joins them"),
            ("disaggregated/kv_transfer/over", "pcie", "unsupported", "only a network joins them"),
            ("disaggregated/prefill/node", "aws-p5en.48xlarge", "unsupported", "holds h200-sxm, not h100-sxm"),
            ("disaggregated/prefill/node", "aws-p5.48xlargest", "unsupported", "did you mean"),
            ("disaggregated/decode/device", "h200", "unsupported", "did you mean"),
            ("disaggregated/decode/layout", {"tensor_parallel": 16}, "unsupported", "16"),
            ("disaggregated/prefill/layout", {"tensor_parallel": 1}, "does_not_fit", "bytes per device"),
            ("disaggregated/prefill/weights", "nvfp4", "estimated", ""),
        ]
        served_whole = POOLS | {"engine": {"max_context_tokens": 131_072}}
        bodies = [changed(served_whole, path, value) for path, value, _, _ in cases]
        for found, (_, _, outcome, says) in zip(estimated(client, *bodies), cases, strict=True):
            assert found["outcome"] == outcome, found
            assert says in found.get("detail", "")

    def test_a_network_nobody_states_is_not_guessed(self, client: TestClient) -> None:
        body = changed(POOLS, "disaggregated/decode", DECODE | {"node": "hyperstack-n3-h200-sxm5x8"})
        nodes = client.get("/v1/nodes?device=h200-sxm&limit=500").json()["items"]
        unstated = next(n["id"] for n in nodes if n["network_gbit_per_s"] is None and n["devices"] == 8)
        body["disaggregated"]["decode"]["node"] = unstated
        (found,) = estimated(client, body)
        assert (found["outcome"], found["reason"]) == ("unsupported", "figure_missing")
        assert found["detail"] == f"{unstated}: no sourced value for network_gbit_per_s"

    def test_bad_input_is_refused(self, client: TestClient) -> None:
        wrong: tuple[tuple[str, Any], ...] = (
            ("disaggregated/prefill/replicas", 0),
            ("disaggregated/prefill/replicas", 65),
            ("disaggregated/decode", {"device": "h200-sxm"}),
            ("disaggregated/kv_transfer", {"over": "pigeon"}),
            ("device", "h200-sxm"),
            ("node", "aws-p5en.48xlarge"),
            ("partition", "1g.10gb"),
            ("layout", {"tensor_parallel": 2}),
            ("engine", {"speculative": NGRAM}),
        )
        for path, value in wrong:
            answer = client.post("/v1/estimates", json={"estimates": [changed(POOLS, path, value)]})
            assert answer.status_code == 422, answer.text
            assert answer.headers["content-type"] == "application/problem+json"

    def test_neither_device_nor_pools(self, client: TestClient) -> None:
        body = {k: v for k, v in PLAIN.items() if k != "device"}
        answer = client.post("/v1/estimates", json={"estimates": [body]})
        assert answer.status_code == 422
        assert "or disaggregated" in answer.text


def test_many_take_no_longer_than_a_request_may(seeded_url: str) -> None:
    """Those that cannot be answered in time are refused with how many can."""
    one = changed(ESTIMATE, "load", {"kind": "closed", "concurrency": 64})
    with served(seeded_url, estimate_time_limit_s=0.2) as client:
        began_s = time.process_time()
        answer = client.post("/v1/estimates", json={"estimates": [one] * 1_000})
        assert time.process_time() - began_s < REFUSED_WITHIN_S
    assert answer.status_code == 422, answer.text[:300]
    assert answer.json()["errors"][0]["pointer"] == "/estimates"
    assert "0.2 s" in answer.json()["detail"]
