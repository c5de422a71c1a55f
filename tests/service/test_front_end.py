"""How busy the process is that passes tokens on, over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.service.bodies import changed, estimated

SHORT: dict[str, Any] = {
    "prompt_tokens": {"distribution": "uniform", "low": 30, "high": 70},
    "output_tokens": {"distribution": "uniform", "low": 200, "high": 400},
}  # fmt: skip
ASKED: dict[str, Any] = {
    "llm": "qwen3-30b-a3b",
    "device": "h100-sxm",
    "precision": {"weights": "fp8", "kv_cache": "fp16"},
    "engine": {"name": "vllm", "version": "0.24.0", "max_captured_tokens": 4096},
    "traffic": SHORT,
    "load": {"kind": "open", "requests_per_s": 40},
}  # fmt: skip


@pytest.mark.parametrize(("rate", "said"), [(40, False), (48, True)])
def test_a_load_that_lagged_where_it_was_measured_is_cautioned_and_one_that_did_not_is_not(
    client: TestClient, rate: int, said: bool
) -> None:
    """First tokens of 48 requests a second came after 900 ms on H100, where 44 are said; those of 40 after 56."""
    found = estimated(client, changed(ASKED, "load/requests_per_s", rate))
    assert found["front_end_fraction"] == pytest.approx(rate * 300 * 60e-6, rel=0.05)
    assert any("--api-server-count" in one for one in found["cautions"]) == said


def test_several_processes_and_copies_of_attention_divide_it(client: TestClient) -> None:
    one = estimated(client, ASKED)["front_end_fraction"]
    assert estimated(client, changed(ASKED, "engine/api_servers", 4))["front_end_fraction"] == pytest.approx(
        one / 4, rel=0.01
    )
    copies = changed(ASKED, "layout", {"data_parallel": 2, "expert_parallel": 2})
    assert estimated(client, copies)["front_end_fraction"] == pytest.approx(one / 2, rel=0.02)


def test_advice_is_more_processes_than_there_are_each_copy_having_one(client: TestClient) -> None:
    load = {"kind": "open", "requests_per_s": 96}
    copies = changed(changed(ASKED, "layout", {"data_parallel": 2, "expert_parallel": 2}), "load", load)
    (said,) = [one for one in estimated(client, copies)["cautions"] if "--api-server-count" in one]
    assert "--api-server-count 8," in said
