"""Engines with one pool of blocks do not start with more seats than they have recurrent states for: plans, files and estimates know."""

from fastapi.testclient import TestClient

HYBRID = "qwen3.5-27b"
TRAFFIC = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 1000},
    "output_tokens": {"distribution": "fixed", "tokens": 200},
}


def test_files_of_a_hybrid_start_with_seats_that_its_cache_has_states_for(client: TestClient) -> None:
    """On one H100 some 20 GiB are left beside its weights: states of about 400 requests, where 512 seats are the engine's default."""
    body = {
        "workloads": [
            {
                "name": "chat",
                "llm": HYBRID,
                "context_tokens": 8192,
                "traffic": {"requests_per_s": 0.5, **TRAFFIC},
                "precision": {"weights": ["bf16"], "kv_cache": ["bf16"]},
            }
        ],
        "limits": {"devices": ["h100-sxm"]},
        "alternatives": 0,
    }
    answer = client.post("/v1/recommendations", json=body)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    (line,) = found["plan"]
    assert line["engine_settings"]["max_sequences"] == 256
    files = client.get(f"/v1/recommendations/{found['id']}/deployments", params={"target": "vllm"}).json()["files"]
    assert any("--max-num-seqs 256" in file["content"] for file in files)


def test_an_estimate_says_with_how_many_seats_its_engine_starts(client: TestClient) -> None:
    one = {"llm": HYBRID, "device": "h100-sxm", "traffic": TRAFFIC, "load": {"kind": "closed", "concurrency": 8}}
    body = {"estimates": [one, one | {"engine": {"max_sequences": 128}}, one | {"llm": "qwen3-32b"}]}
    told = [found["cautions"] for found in client.post("/v1/estimates", json=body).json()["estimates"]]
    assert [any("recurrent states" in caution for caution in cautions) for cautions in told] == [True, False, False]
