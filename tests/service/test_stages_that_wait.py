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


def test_dense_models_wait_no_longer_from_0_25_on_and_mixtures_from_0_29_on(client: TestClient) -> None:
    def waits(llm: str, version: str) -> bool:
        case = MIXTURE | TWO | {"llm": llm, "engine": {"name": "vllm", "version": version}}
        (found,) = client.post("/v1/estimates", json={"estimates": [case]}).json()["estimates"]
        told = [caution for caution in found["cautions"] if "one batch at a time" in caution]
        assert all(f"from {since[llm]} on" in caution for caution in told)
        return bool(told)

    since = {"phi-4-14b": "0.25", "qwen3.5-27b": "0.29", "qwen3-30b-a3b": "0.29"}
    releases = ("0.24.0", "0.25.0", "0.29.0")
    assert [waits("phi-4-14b", version) for version in releases] == [True, False, False]
    assert [waits("qwen3.5-27b", version) for version in releases] == [True, True, False]
    assert [waits("qwen3-30b-a3b", version) for version in releases] == [True, True, False]


def test_who_states_no_release_is_told_what_stages_do_in_either(client: TestClient) -> None:
    """A plan's files start one release, so its intervals hold what that does."""
    engines = ({"name": "vllm"}, {"name": "vllm", "release": "planned"}, {"name": "vllm", "version": "0.29.0"})
    four = MIXTURE | {"layout": {"pipeline_parallel": 4}, "load": {"kind": "closed", "concurrency": 256}}
    any_release, planned, at_once = client.post(
        "/v1/estimates", json={"estimates": [four | {"engine": engine} for engine in engines]}
    ).json()["estimates"]
    assert any_release["output_tokens_per_s"]["expected"] == planned["output_tokens_per_s"]["expected"]
    for figure in ("ttft_ms", "tpot_ms", "e2e_ms"):
        for percentile in ("mean", "p95"):
            low, high = (any_release[figure][percentile][end] for end in ("low", "high"))
            assert 0.999 * low <= at_once[figure][percentile]["expected"] <= 1.001 * high
    assert 1.001 * any_release["output_tokens_per_s"]["high"] >= at_once["output_tokens_per_s"]["expected"]
    assert planned["output_tokens_per_s"]["high"] < at_once["output_tokens_per_s"]["expected"]


def test_two_such_stages_write_no_faster_than_one_device(client: TestClient) -> None:
    one, two = (
        found["output_tokens_per_s"]["expected"]
        for found in client.post("/v1/estimates", json={"estimates": [MIXTURE, MIXTURE | TWO]}).json()["estimates"]
    )
    assert 0.75 * one < two < 1.05 * one
