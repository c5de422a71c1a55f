"""Pipeline stages of most models work one after another under vLLM: estimates know."""

from fastapi.testclient import TestClient

TRAFFIC = {
    "prompt_tokens": {"distribution": "fixed", "tokens": 1000},
    "output_tokens": {"distribution": "fixed", "tokens": 200},
}
MIXTURE = {
    "llm": "qwen3-30b-a3b",
    "device": "h200-sxm",
    "traffic": TRAFFIC,
    "load": {"kind": "closed", "concurrency": 64},
}
TWO = {"layout": {"pipeline_parallel": 2}}


def test_an_estimate_says_that_stages_wait(client: TestClient) -> None:
    each = [
        MIXTURE | TWO,
        MIXTURE,
        MIXTURE | TWO | {"engine": {"name": "vllm", "version": "0.14.0"}},
        MIXTURE | TWO | {"llm": "llama-3.1-8b"},
    ]
    found = client.post("/v1/estimates", json={"estimates": each}).json()["estimates"]
    told = [any("one batch at a time" in caution for caution in one["cautions"]) for one in found]
    assert told == [True, False, False, False]


def test_two_such_stages_write_no_faster_than_one_device(client: TestClient) -> None:
    one, two = (
        found["output_tokens_per_s"]["expected"]
        for found in client.post("/v1/estimates", json={"estimates": [MIXTURE, MIXTURE | TWO]}).json()["estimates"]
    )
    assert 0.75 * one < two < 1.05 * one
