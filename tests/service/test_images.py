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


VIDEO: dict[str, Any] = {"seconds": 60, "frames_per_s": 2, "width_px": 1280, "height_px": 720}
SHORT: dict[str, Any] = {"seconds": 8, "frames_per_s": 2, "width_px": 640, "height_px": 360}
AUDIO: dict[str, Any] = {"seconds": 45}


class TestVideoAndAudio:
    def test_a_video_is_slices_of_frames(self, client: TestClient) -> None:
        """120 frames, two to a slice: Qwen3-VL keeps all of a clip within 25,165,824 pixels, Qwen2.5-VL each frame like an image."""
        three = estimated(client, changed(ESTIMATE, "traffic/video", VIDEO))
        assert three["images"]["tokens_each"] == 60 * 19 * 10
        older = changed(ESTIMATE, "traffic/video", VIDEO | {"seconds": 8}) | {"llm": "qwen2.5-vl-7b"}
        assert estimated(client, older)["images"]["tokens_each"] == 8 * 46 * 26
        plain = estimated(client, ESTIMATE)
        assert three["ttft_ms"]["mean"]["expected"] > plain["ttft_ms"]["mean"]["expected"]
        assert three["memory"]["kv_cache_tokens"] < plain["memory"]["kv_cache_tokens"]

    def test_no_more_frames_are_sampled_than_the_processor_takes(self, client: TestClient) -> None:
        long, longer = (
            estimated(
                client,
                changed(ESTIMATE, "traffic/video", VIDEO | {"seconds": seconds, "width_px": 64, "height_px": 64}),
            )
            for seconds in (384, 3600)
        )
        assert long["images"]["tokens_each"] == longer["images"]["tokens_each"] == 384 * 2 * 2

    def test_a_recording_is_heard_in_chunks(self, client: TestClient) -> None:
        base = changed(ESTIMATE, "traffic/audio", AUDIO) | {"llm": "voxtral-mini-3b"}
        each = [estimated(client, changed(base, "traffic/audio/seconds", seconds)) for seconds in (10, 30, 31, 300)]
        assert [one["images"]["tokens_each"] for one in each] == [375, 375, 750, 3750]
        assert [one["images"]["patches_each"] for one in each] == [1500, 1500, 3000, 15000]
        times = [one["images"]["encoding_ms"] for one in each]
        assert times[0] == times[1] <= times[2] < times[3]  # a short one takes as long as its layers take to launch
        assert each[0]["images"]["host_ms"] == 0.0

    @pytest.mark.parametrize(
        ("llm", "media", "says"),
        [
            ("llama-3.1-8b", {"audio": AUDIO}, "audio encoder"),
            ("qwen3-vl-8b", {"audio": AUDIO}, "audio encoder"),
            ("llama-3.1-8b", {"video": VIDEO}, "vision encoder"),
            ("gemma-3-4b", {"video": VIDEO}, "takes video"),
        ],
    )
    def test_an_encoder_without_figures_is_refused(
        self, client: TestClient, llm: str, media: dict[str, Any], says: str
    ) -> None:
        found = estimated(client, ESTIMATE | {"llm": llm, "traffic": ESTIMATE["traffic"] | media})
        assert (found["outcome"], found["reason"]) == ("unsupported", "figure_missing")
        assert says in found["detail"]
        (field,) = media
        traffic = {k: v for k, v in PLAN["workloads"][0]["traffic"].items() if k != "images"}
        body = changed(changed(PLAN, "workloads/0/llm", llm), "workloads/0/traffic", traffic | media)
        answer = client.post("/v1/recommendations", json=body)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == f"/workloads/0/traffic/{field}"

    @pytest.mark.parametrize(
        ("media", "at"),
        [
            ({"video": VIDEO | {"seconds": 0}}, "/video/seconds"), ({"video": VIDEO | {"frames_per_s": 1e9}}, "/video/frames_per_s"),
            ({"video": {"seconds": 5}}, "/video"), ({"audio": {"seconds": -3}}, "/audio/seconds"), ({"audio": []}, "/audio"),
            ({"audio": AUDIO, "images": IMAGES}, ""), ({"audio": AUDIO | {"per_request": 10**9}}, "/audio/per_request"),
        ],
    )  # fmt: skip
    def test_mistakes_are_said(self, client: TestClient, media: dict[str, Any], at: str) -> None:
        wrong = ESTIMATE | {"traffic": ESTIMATE["traffic"] | media}
        answer = client.post("/v1/estimates", json={"estimates": [wrong]})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"].startswith(f"/estimates/0/traffic{at}")

    @pytest.mark.parametrize(
        ("llm", "media"), [("qwen3-vl-8b", {"video": SHORT}), ("voxtral-mini-3b", {"audio": AUDIO})]
    )
    def test_a_plan_serves_them_and_its_files_say_so(self, client: TestClient, llm: str, media: dict[str, Any]) -> None:
        traffic = {k: v for k, v in PLAN["workloads"][0]["traffic"].items() if k != "images"}
        made = client.post(
            "/v1/recommendations",
            json=changed(changed(PLAN, "workloads/0/llm", llm), "workloads/0/traffic", traffic | media),
        ).json()
        assert made["outcome"] == "optimal", made
        answer = client.get(f"/v1/recommendations/{made['id']}/deployments", params={"target": "vllm"})
        assert answer.status_code == 200, answer.text
        (field,) = media
        assert f'{{\\"{field}\\": 1}}' in answer.text

    def test_audio_models_are_added_from_their_config(self, client: TestClient) -> None:
        text = {
            "model_type": "qwen2", "hidden_size": 1024, "intermediate_size": 2048, "num_attention_heads": 8, "num_key_value_heads": 8,
            "num_hidden_layers": 4, "vocab_size": 32000, "max_position_embeddings": 8192,
        }  # fmt: skip
        tower = {
            "model_type": "qwen2_audio_encoder", "d_model": 1280, "encoder_layers": 32, "encoder_attention_heads": 20,
            "encoder_ffn_dim": 5120, "num_mel_bins": 128, "max_source_positions": 1500,
        }  # fmt: skip
        config = {"model_type": "qwen2_audio", "text_config": text, "audio_config": tower}
        added = client.post("/v1/llms", json={"id": "our-ears", "config": config})
        assert added.status_code == 201, added.text
        assert (added.json()["audio"]["pooled"], added.json()["audio"]["most_s"]) == (2, 30.0)
        asked = changed(ESTIMATE, "traffic/audio", {"seconds": 10}) | {"llm": "our-ears"}
        assert estimated(client, asked)["images"]["tokens_each"] == 250
        found = estimated(client, changed(asked, "traffic/audio/seconds", 31))
        assert (found["outcome"], found["reason"]) == ("unsupported", "invalid_input")
        assert "longer than the 30 s" in found["detail"]
        wrong = config | {"audio_config": tower | {"d_model": "wide"}}
        refused = client.post("/v1/llms", json={"id": "our-noise", "config": wrong})
        assert refused.status_code == 422
        assert "d_model" in refused.text


class TestPlans:
    def test_a_plan_serves_them_and_its_files_say_so(self, client: TestClient) -> None:
        made = client.post("/v1/recommendations", json=PLAN).json()
        assert made["outcome"] == "optimal", made
        assert made["plan"][0]["predicted"]["ttft_ms"]["p95"]["expected"] <= 2000
        answer = client.get(f"/v1/recommendations/{made['id']}/deployments", params={"target": "vllm"})
        assert answer.status_code == 200, answer.text
        assert "--limit-mm-per-prompt" in answer.text
        assert "--language-model-only" not in answer.text
        wanted = client.get(f"/v1/recommendations/{made['id']}/measurements")
        assert wanted.status_code in (200, 404)

    @pytest.mark.parametrize(("llm", "without"), [("qwen3-vl-8b", True), ("qwen3-8b", False)])
    def test_an_encoder_that_a_plan_for_text_has_no_memory_for_is_not_loaded(
        self, client: TestClient, llm: str, without: bool
    ) -> None:
        traffic = {k: v for k, v in PLAN["workloads"][0]["traffic"].items() if k != "images"}
        body = changed(changed(PLAN, "workloads/0/llm", llm), "workloads/0/traffic", traffic)
        made = client.post("/v1/recommendations", json=body).json()
        assert made["outcome"] == "optimal", made
        answer = client.get(f"/v1/recommendations/{made['id']}/deployments", params={"target": "vllm"})
        assert ("--language-model-only" in answer.text) is without, answer.text

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
