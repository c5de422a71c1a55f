"""Models that embed, over HTTP: added from a config, estimated, planned by items, refused replies."""

from typing import Any, ClassVar

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed

CONFIG: dict[str, Any] = {
    "model_type": "bert", "hidden_act": "gelu", "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
    "num_hidden_layers": 24, "max_position_embeddings": 512, "type_vocab_size": 2, "vocab_size": 30522, "torch_dtype": "float16",
}  # fmt: skip
ESTIMATE: dict[str, Any] = {
    "llm": "bge-large-en-v1.5",
    "device": "l4",
    "precision": {"weights": "fp16"},
    "traffic": {"prompt_tokens": 400, "output_tokens": 1},
    "load": {"kind": "open", "requests_per_s": 20},
}
PLAN: dict[str, Any] = {
    "workloads": [
        {
            "name": "items",
            "llm": "bge-m3",
            "precision": {"weights": ["fp16"]},
            "traffic": {"requests_per_s": 300, "prompt_tokens": {"mean": 300, "p95": 900}, "output_tokens": 1},
            "targets": {"e2e_ms": {"p95": 300}},
        }
    ],
    "limits": {"devices": ["l4", "h100-sxm"], "sourcing": "any"},
    "alternatives": 0,
}


class TestEstimates:
    def test_an_item_is_done_with_its_prompt(self, client: TestClient) -> None:
        found = client.post("/v1/estimates", json={"estimates": [ESTIMATE]}).json()["estimates"][0]
        assert found["outcome"] == "estimated", found
        assert found["ttft_ms"]["p95"]["expected"] == pytest.approx(found["e2e_ms"]["p95"]["expected"], rel=0.2)
        assert found["basis"] != "measured"
        assert {one["phase"] for one in found["roofline"]["operators"]} == {"prefill"}

    @pytest.mark.parametrize("output", [2, {"mean": 100, "p95": 300}])
    def test_replies_are_refused(self, client: TestClient, output: Any) -> None:
        body = {"estimates": [changed(ESTIMATE, "traffic/output_tokens", output)]}
        found = client.post("/v1/estimates", json=body).json()["estimates"][0]
        assert (found["outcome"], found["reason"]) == ("unsupported", "makes_no_tokens")
        planned = client.post("/v1/recommendations", json=changed(PLAN, "workloads/0/traffic/output_tokens", output))
        assert planned.status_code == 422
        assert planned.json()["errors"][0]["pointer"] == "/workloads/0/traffic/output_tokens"

    @pytest.mark.parametrize("path", ["/v1/estimates", "/v1/recommendations"])
    def test_what_to_state_for_replies_is_said_where_it_is_missing(self, client: TestClient, path: str) -> None:
        shape = {"prompt_tokens": 400}
        body = (
            {"estimates": [ESTIMATE | {"traffic": shape}]}
            if path == "/v1/estimates"
            else changed(PLAN, "workloads/0/traffic", shape)
        )
        (error,) = client.post(path, json=body).json()["errors"]
        assert error["pointer"].endswith("/traffic/output_tokens")
        assert error["detail"] == "this field is required; of models that embed it is 1"


class TestPlans:
    def test_by_items_a_second(self, client: TestClient) -> None:
        answer = client.post("/v1/recommendations", json=PLAN).json()
        assert answer["outcome"] == "optimal", answer
        assert sum(line["serves_requests_per_s"] for line in answer["plan"]) == pytest.approx(300)
        assert all(line["predicted"]["e2e_ms"]["p95"]["expected"] <= 300 for line in answer["plan"])


class TestModels:
    def test_an_encoder_is_added_from_its_config(self, client: TestClient) -> None:
        added = client.post("/v1/llms", json={"id": "our-encoder", "config": CONFIG})
        assert added.status_code == 201, added.text
        llm = client.get("/v1/llms/our-encoder").json()
        assert (llm["embeds"], llm["bidirectional"], llm["total_weights"]) == (True, True, 335_141_888)
        assert client.post("/v1/llms", json={"id": "our-encoder", "config": CONFIG}).status_code == 200

    def test_an_encoder_without_figures_is_refused(self, client: TestClient) -> None:
        for missing in ("hidden_size", "num_attention_heads", "max_position_embeddings", "vocab_size"):
            config = {name: value for name, value in CONFIG.items() if name != missing}
            refused = client.post("/v1/llms", json={"id": f"without-{missing.replace('_', '-')}", "config": config})
            assert refused.status_code == 422
            assert missing in refused.text

    def test_an_engine_that_embeds_nothing_is_refused_by_name(self, client: TestClient) -> None:
        body = {"estimates": [ESTIMATE | {"engine": {"name": "tgi"}}]}
        found = client.post("/v1/estimates", json=body).json()["estimates"][0]
        assert (found["outcome"], found["reason"]) == ("unsupported", "embedding_not_in_engine")
        assert "vllm" in found["detail"]

    def test_an_encoder_holds_no_cache(self, client: TestClient) -> None:
        memory = client.post("/v1/estimates", json={"estimates": [ESTIMATE]}).json()["estimates"][0]["memory"]
        assert (memory["kv_cache_gib"], memory["kv_cache_tokens"]) == (0.0, 0)
        assert memory["max_concurrent_requests"] == 512


class TestGrammars:
    BODY: ClassVar[dict[str, Any]] = {
        "llm": "llama-3.1-8b", "device": "h100-sxm", "traffic": {"prompt_tokens": 200, "output_tokens": 100},
        "load": {"kind": "closed", "concurrency": 32, "requests": 64},
    }  # fmt: skip

    def test_masks_take_time_by_the_share_that_needs_them(self, client: TestClient) -> None:
        shares = (0.0, 0.5, 1.0)
        body = {"estimates": [changed(self.BODY, "traffic/structured_fraction", share) for share in shares]}
        found = client.post("/v1/estimates", json=body).json()["estimates"]
        times = [one["tpot_ms"]["mean"]["expected"] for one in found]
        assert times == sorted(times)
        assert times[2] - times[0] == pytest.approx(32 * 0.05, rel=0.25)
        assert {"grammar_masks"} <= {term["term"] for term in found[2]["step"]}
        assert [one["basis"] for one in found] == ["measured", "borrowed", "borrowed"]

    @pytest.mark.parametrize("share", [-0.1, 1.1, "all"])
    def test_no_share_is_a_mistake(self, client: TestClient, share: Any) -> None:
        body = {"estimates": [changed(self.BODY, "traffic/structured_fraction", share)]}
        assert client.post("/v1/estimates", json=body).status_code == 422


class TestTokenIds:
    def test_they_are_taken_in_more_slowly_than_texts(self, client: TestClient) -> None:
        shares = (0.0, 0.5, 1.0)
        body = {"estimates": [changed(ESTIMATE, "traffic/token_ids_fraction", share) for share in shares]}
        found = client.post("/v1/estimates", json=body).json()["estimates"]
        assert [one["outcome"] for one in found] == ["estimated"] * 3
        times = [one["ttft_ms"]["mean"]["expected"] for one in found]
        assert times == sorted(times)
        assert times[2] - times[0] >= 0.9 * 400 * (0.0135 - 0.00089), "400 tokens an item, 13.5 and 0.89 us each"

    def test_models_that_reply_are_refused(self, client: TestClient) -> None:
        body = {"estimates": [changed(TestGrammars.BODY, "traffic/token_ids_fraction", 1.0)]}
        found = client.post("/v1/estimates", json=body).json()["estimates"][0]
        assert (found["outcome"], found["reason"]) == ("unsupported", "not_items")
        workload = {
            "name": "w", "llm": "llama-3.1-8b", "targets": {"ttft_ms": {"p95": 9000}},
            "traffic": TestGrammars.BODY["traffic"] | {"requests_per_s": 1, "token_ids_fraction": 0.5},
        }  # fmt: skip
        answer = client.post("/v1/recommendations", json={"workloads": [workload]})
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == "/workloads/0/traffic/token_ids_fraction"

    @pytest.mark.parametrize("share", [-0.1, 1.1, "all"])
    def test_no_share_is_a_mistake(self, client: TestClient, share: Any) -> None:
        body = {"estimates": [changed(ESTIMATE, "traffic/token_ids_fraction", share)]}
        assert client.post("/v1/estimates", json=body).status_code == 422

    def test_a_plan_needs_more_for_them(self, client: TestClient) -> None:
        """A front end takes so many token ids a second, whatever the device could do."""
        workload = {
            "name": "w", "llm": "qwen3-embedding-0.6b", "targets": {"ttft_ms": {"p95": 1000}},
            "traffic": {"prompt_tokens": 512, "output_tokens": 1, "requests_per_s": 300},
        }  # fmt: skip
        costs = []
        for share in (0.0, 1.0):
            body = {
                "workloads": [changed(workload, "traffic/token_ids_fraction", share)],
                "limits": {"devices": ["h100-sxm"]},
            }
            found = client.post("/v1/recommendations", json=body).json()
            costs.append(sum(float(line["usd_per_hour"]) for line in found["plan"]))
        assert costs[0] < costs[1]
