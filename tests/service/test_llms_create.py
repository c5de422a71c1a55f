"""POST /v1/llms."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import TINY_CONFIG


class TestPostLlm:
    def test_answers_sizes_and_is_listed(self, client: TestClient) -> None:
        answer = client.post("/v1/llms", json={"id": "tiny-post", "config": TINY_CONFIG})
        assert answer.status_code == 201
        made = answer.json()
        # Attention: 64·64 + 2·64·32 + 64·64 + 64 (norm) = 12,352; feed-forward: 3·64·128 + 64 = 24,640; two layers;
        # embedding and head 2·1000·64; final norm 64.
        assert made["total_weights"] == 2 * (12_352 + 24_640) + 2 * 64_000 + 64
        assert made["kv_cache_bytes_per_token"]["bf16"] == 2 * 2 * 2 * 16 * 2
        assert made["origin"] == "user"
        assert client.get("/v1/llms/tiny-post").json() == made

    def test_again_is_the_same_another_is_a_conflict(self, client: TestClient) -> None:
        body = {"id": "tiny-twice", "config": TINY_CONFIG}
        assert client.post("/v1/llms", json=body).status_code == 201
        assert client.post("/v1/llms", json=body).status_code == 200
        other = {"id": "tiny-twice", "config": TINY_CONFIG | {"num_hidden_layers": 3}}
        assert client.post("/v1/llms", json=other).status_code == 409

    @pytest.mark.parametrize(
        "config",
        [
            {},
            {"hello": "world"},
            [],
            "config",
            None,
            TINY_CONFIG | {"hidden_size": -1},
            TINY_CONFIG | {"hidden_size": "many"},
            TINY_CONFIG | {"num_hidden_layers": 10**30},
            TINY_CONFIG | {"vocab_size": 1.5},
            TINY_CONFIG | {"num_attention_heads": 0},
            TINY_CONFIG | {"num_hidden_layers": float("inf")},
        ],
    )
    def test_what_is_no_config_is_refused(self, client: TestClient, config: Any) -> None:
        import json

        body = json.dumps({"id": "no-config", "config": config})
        answer = client.post("/v1/llms", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["pointer"].startswith("/config")
        assert client.get("/v1/llms/no-config").status_code == 404

    def test_deeply_nested_is_refused(self, client: TestClient) -> None:
        nested = '{"a":' * 500 + "1" + "}" * 500
        answer = client.post(
            "/v1/llms", content=f'{{"id": "deep", "config": {nested}}}', headers={"content-type": "application/json"}
        )
        assert answer.status_code == 400

    def test_bad_id_is_refused(self, client: TestClient) -> None:
        answer = client.post("/v1/llms", json={"id": "Not A Slug", "config": TINY_CONFIG})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["pointer"] == "/id"
