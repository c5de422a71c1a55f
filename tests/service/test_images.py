"""Images in prompts, over HTTP: tokens by resolution, encoding, memory, plans, deployments, refusals."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed, estimated

IMAGES: dict[str, Any] = {"per_request": 2, "width_px": 1024, "height_px": 768}
ESTIMATE: dict[str, Any] = {
    "llm": "qwen3-vl-8b",
    "device": "h100-sxm",
    "traffic": {"prompt_tokens": 200, "output_tokens": 100},
    "load": {"kind": "closed", "concurrency": 8, "requests": 32},
}
PLAN: dict[str, Any] = {
    "workloads": [
        {
            "name": "pictures",
            "llm": "qwen3-vl-8b",
            "traffic": {"requests_per_s": 3, "prompt_tokens": 200, "output_tokens": 100, "images": IMAGES},
            "targets": {"ttft_ms": {"p95": 2000}},
        }
    ],
    "limits": {"devices": ["h100-sxm"], "sourcing": "any"},
    "alternatives": 0,
}

LLAMA_4_TEXT: dict[str, Any] = {
    "model_type": "llama4_text", "hidden_size": 1024, "intermediate_size": 2048, "intermediate_size_mlp": 4096, "num_attention_heads": 8,
    "num_key_value_heads": 2, "head_dim": 128, "num_hidden_layers": 4, "vocab_size": 32000, "max_position_embeddings": 65536,
    "num_local_experts": 4, "num_experts_per_tok": 1, "interleave_moe_layer_step": 1, "attention_chunk_size": 8192,
    "no_rope_layers": [1, 1, 1, 0],
}  # fmt: skip


class TestEstimates:
    def test_images_are_tokens_work_and_memory(self, client: TestClient) -> None:
        plain = estimated(client, ESTIMATE)
        seen = estimated(client, changed(ESTIMATE, "traffic/images", IMAGES))
        assert seen["outcome"] == "estimated", seen
        assert seen["images"]["tokens_each"] == 32 * 24
        assert seen["images"]["patches_each"] == 4 * 32 * 24
        assert seen["engine"]["max_context_tokens"] == 200 + 2 * 768 + 100
        assert seen["memory"]["weights_gib"] == pytest.approx(
            plain["memory"]["weights_gib"] + 2 * 575_926_272 / 2**30, abs=0.01
        )
        as_text = estimated(client, changed(ESTIMATE, "traffic/prompt_tokens", 200 + 2 * 768))
        assert seen["ttft_ms"]["mean"]["expected"] > as_text["ttft_ms"]["mean"]["expected"]
        assert seen["basis"] == "borrowed"
        assert plain["images"] is None

    def test_llama_4_cuts_images_into_tiles(self, client: TestClient) -> None:
        asked = ESTIMATE | {"llm": "llama-4-scout", "layout": {"tensor_parallel": 8}}
        plain, small, large = (
            estimated(client, asked if side is None else changed(asked, "traffic/images", {"width_px": side, "height_px": side}))
            for side in (None, 300, 1344)
        )  # fmt: skip
        assert small["outcome"] == large["outcome"] == "estimated"
        assert (small["images"]["tokens_each"], large["images"]["tokens_each"]) == (145, 17 * 145)
        assert (small["images"]["patches_each"], large["images"]["patches_each"]) == (24 * 24, 17 * 24 * 24)
        assert (
            small["images"]["encoding_ms"] <= large["images"]["encoding_ms"]
        )  # both may wait for the host to launch layers
        added = small["memory"]["weights_gib"] - plain["memory"]["weights_gib"]
        assert added == pytest.approx(2 * 871_304_448 / 8 / 2**30, rel=0.02)
        assert (
            large["ttft_ms"]["mean"]["expected"]
            > small["ttft_ms"]["mean"]["expected"]
            > plain["ttft_ms"]["mean"]["expected"]
        )

    def test_a_larger_image_is_more_of_everything(self, client: TestClient) -> None:
        sizes = [
            estimated(client, changed(ESTIMATE, "traffic/images", {"width_px": side, "height_px": side}))
            for side in (256, 1024, 2048)
        ]
        for field in ("tokens_each", "encoding_ms", "host_ms"):
            values = [one["images"][field] for one in sizes]
            assert values == sorted(values)
            assert values[0] < values[-1]

    @pytest.mark.parametrize("llm", ["llama-3.1-8b", "kimi-k2.5"])
    def test_a_model_without_the_figures_of_an_encoder_is_refused(self, client: TestClient, llm: str) -> None:
        found = estimated(client, changed(ESTIMATE, "traffic/images", IMAGES) | {"llm": llm})
        assert (found["outcome"], found["reason"]) == ("unsupported", "figure_missing")
        assert "vision encoder" in found["detail"]
        body = changed(PLAN, "workloads/0/llm", llm)
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/workloads/0/traffic/images"

    @pytest.mark.parametrize(
        "images",
        [
            {"width_px": 0, "height_px": 10}, {"width_px": 10}, {"width_px": 10**9, "height_px": 10}, IMAGES | {"per_request": 0},
            {"width_px": "wide", "height_px": 1}, [],
        ],
    )  # fmt: skip
    def test_mistakes_are_said(self, client: TestClient, images: Any) -> None:
        answer = client.post("/v1/estimates", json={"estimates": [changed(ESTIMATE, "traffic/images", images)]})
        assert answer.status_code == 422
        assert "/estimates/0/traffic/images" in answer.json()["errors"][0]["pointer"]

    def test_a_shape_that_encoders_do_not_take_is_refused(self, client: TestClient) -> None:
        found = estimated(client, changed(ESTIMATE, "traffic/images", {"width_px": 10_000, "height_px": 10}))
        assert (found["outcome"], found["reason"]) == ("unsupported", "invalid_input")


class TestPlans:
    def test_a_plan_serves_them_and_its_files_say_so(self, client: TestClient) -> None:
        made = client.post("/v1/recommendations", json=PLAN).json()
        assert made["outcome"] == "optimal", made
        assert made["plan"][0]["predicted"]["ttft_ms"]["p95"]["expected"] <= 2000
        answer = client.get(f"/v1/recommendations/{made['id']}/deployments", params={"target": "vllm"})
        assert answer.status_code == 200, answer.text
        assert "--limit-mm-per-prompt" in answer.text
        wanted = client.get(f"/v1/recommendations/{made['id']}/measurements")
        assert wanted.status_code in (200, 404)

    def test_images_within_classes_and_sessions_are_refused(self, client: TestClient) -> None:
        body = changed(ESTIMATE, "traffic/images", IMAGES)
        body = changed(body, "traffic/sessions", {"turns": 3, "user_tokens": 50, "think_time_s": 1})
        body["traffic"].pop("prompt_tokens")
        assert client.post("/v1/estimates", json={"estimates": [body]}).status_code == 422


class TestModels:
    def test_a_vision_model_is_added_from_its_config(self, client: TestClient) -> None:
        config = {
            "model_type": "qwen3_vl",
            "text_config": {
                "model_type": "qwen3_vl_text", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 16, "head_dim": 128,
                "num_hidden_layers": 28, "num_key_value_heads": 8, "vocab_size": 151936, "max_position_embeddings": 262144,
                "tie_word_embeddings": True,
            },
            "vision_config": {
                "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "num_heads": 16, "patch_size": 16,
                "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304, "deepstack_visual_indexes": [5, 11, 17],
            },
        }  # fmt: skip
        added = client.post("/v1/llms", json={"id": "our-vision", "config": config})
        assert added.status_code == 201, added.text
        found = estimated(client, changed(ESTIMATE, "traffic/images", IMAGES) | {"llm": "our-vision"})
        assert found["images"]["tokens_each"] == 768
        tiles = {
            "hidden_size": 1408, "image_size": 336, "intermediate_size": 5632, "num_attention_heads": 16, "num_hidden_layers": 34,
            "patch_size": 14, "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096, "projector_output_dim": 4096,
            "vision_output_dim": 4096,
        }  # fmt: skip
        tiled = config | {"model_type": "llama4", "text_config": LLAMA_4_TEXT, "vision_config": tiles}
        added = client.post("/v1/llms", json={"id": "our-tiles", "config": tiled})
        assert added.status_code == 201, added.text
        assert (added.json()["vision"]["most_tiles"], added.json()["vision"]["projector"]) == (16, 4096)
        for field, wrong in (
            ("pixel_shuffle_ratio", 0.3),
            ("pixel_shuffle_ratio", 0),
            ("projector_output_dim", 2048),
            ("image_size", 337),
        ):
            worse = changed({"id": "worse-tiles", "config": tiled}, f"config/vision_config/{field}", wrong)
            assert client.post("/v1/llms", json=worse).status_code == 422, field
        worse = changed({"id": "worse-vision", "config": config}, "config/vision_config/depth", -1)
        refused = client.post("/v1/llms", json=worse)
        assert refused.status_code == 422
        assert "depth" in refused.text
