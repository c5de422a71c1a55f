"""POST /v1/training/estimates over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

PATH = "/v1/training/estimates"
LAYOUT = {"tensor_parallel": 4, "pipeline_parallel": 8, "virtual_pipeline": 5}
PRETRAIN = {
    "llm": "llama-3-70b", "device": "h100-sxm", "devices": 64, "method": "pretrain", "precision": "fp8",
    "sequence_tokens": 8192, "global_batch_sequences": 128, "stack": "megatron-bridge 26.04",
    "layout": LAYOUT, "micro_batch_sequences": 1,
}  # fmt: skip
LORA = {"llm": "llama-3.1-8b", "device": "h100-sxm", "devices": 1, "method": "lora", "sequence_tokens": 4096}


def asked(client: TestClient, *cases: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.post(PATH, json={"estimates": list(cases)})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["estimates"]
    return found


class TestAnswers:
    def test_a_stated_layout_is_kept_and_terms_sum_to_the_step(self, client: TestClient) -> None:
        (found,) = asked(client, PRETRAIN)
        assert found["outcome"] == "estimated"
        assert found["layout"].items() >= LAYOUT.items()
        assert found["layout"]["data_parallel"] == 2
        assert sum(term["time_s"] for term in found["terms"]) == pytest.approx(found["step_s"]["expected"])
        assert found["step_s"]["expected"] * found["tokens_per_s_per_device"]["expected"] * 64 == pytest.approx(
            128 * 8192
        )
        assert found["basis"] == "corrected"
        assert found["evidence"]

    def test_unstated_layouts_are_searched_and_the_shortlist_is_close(self, client: TestClient) -> None:
        (found,) = asked(client, PRETRAIN | {"layout": {}})
        best = found["tokens_per_s_per_device"]["expected"]
        assert found["considered"] > 100
        assert all(one["tokens_per_s_per_device"] >= 0.95 * best for one in found["shortlist"])
        (stated,) = asked(client, PRETRAIN)
        assert best >= stated["tokens_per_s_per_device"]["expected"] * 0.99

    def test_adapters_are_faster_and_smaller_than_all_weights(self, client: TestClient) -> None:
        lora, qlora, full = asked(client, LORA, LORA | {"method": "qlora"}, LORA | {"method": "full"})
        assert lora["tokens_per_s_per_device"]["expected"] > full["tokens_per_s_per_device"]["expected"]
        assert qlora["memory"]["weights_gib"] < lora["memory"]["weights_gib"] / 2
        assert full["memory"]["optimizer_gib"] > 10 > lora["memory"]["optimizer_gib"]

    def test_preferences_cost_a_reference(self, client: TestClient) -> None:
        dpo = LORA | {"method": "dpo", "adapters": "lora", "global_batch_sequences": 16}
        plain, computed, before = asked(
            client, LORA | {"global_batch_sequences": 16, "micro_batch_sequences": 2},
            *(dpo | {"micro_batch_sequences": 2, "reference": one} for one in ("computed", "precomputed")),
        )  # fmt: skip
        rates = [one["tokens_per_s_per_device"]["expected"] for one in (plain, computed, before)]
        assert rates[0] == pytest.approx(rates[2])
        assert 0.5 < rates[1] / rates[0] < 0.8
        assert computed["memory"]["weights_gib"] == plain["memory"]["weights_gib"]
        (whole,) = asked(client, LORA | {"method": "dpo", "devices": 8, "sharding": "zero1"})
        assert whole["memory"]["weights_gib"] > 1.9 * plain["memory"]["weights_gib"]
        assert any("preference" in one for one in computed["cautions"])

    def test_what_memory_cannot_hold_says_so(self, client: TestClient) -> None:
        (found,) = asked(client, LORA | {"llm": "llama-3.1-70b", "method": "full"})
        assert found["outcome"] == "does_not_fit"
        assert found["memory"]["verdict"] == "does_not_fit"
        assert found["memory"]["peak_gib"] > found["memory"]["available_gib"]

    def test_an_anchor_moves_the_prediction_to_what_was_measured(self, client: TestClient) -> None:
        (before,) = asked(client, PRETRAIN)
        measured = before["tokens_per_s_per_device"]["expected"] * 0.8
        anchor = {"devices": 64, "tokens_per_s_per_device": measured, "layout": PRETRAIN["layout"]}
        (after,) = asked(client, PRETRAIN | {"anchors": [anchor]})
        rate = after["tokens_per_s_per_device"]
        assert rate["expected"] == pytest.approx(measured)
        wide = before["tokens_per_s_per_device"]
        assert rate["high"] / rate["low"] < wide["high"] / wide["low"]


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"global_batch_sequences": 127}, "global_batch_sequences", "multiples of 2"),
    ({"layout": {"tensor_parallel": 128}}, "layout/tensor_parallel", "64 heads"),
    ({"layout": {"pipeline_parallel": 128}}, "layout/pipeline_parallel", "80 layers"),
    ({"layout": {"expert_parallel": 8}}, "layout/expert_parallel", "0 experts"),
    ({"layout": {"tensor_parallel": 8, "pipeline_parallel": 3}}, "devices", "do not divide 64"),
    ({"sequence_tokens": 10_000_000}, "sequence_tokens", "at most"),
    ({"device": "groq-lpu-v1"}, "device", "groq-lpu-v1"),
    ({"device": "a100-sxm-80"}, "precision", "no fp8"),
    ({"precision": "fp3"}, "precision", "mxfp8"),
    ({"llm": "lama-3-70b"}, "llm", "llama-3-70b"),
    (
        {"method": "dpo", "stack": None, "layout": {}, "precision": "bf16", "global_batch_sequences": 127},
        "global_batch_sequences",
        "preference pair",
    ),
    ({"method": "dpo", "stack": None, "layout": {}, "precision": "bf16"}, "micro_batch_sequences", "preference pair"),
    ({"device": "h100-smx"}, "device", "did you mean"),
    ({"method": "sft"}, "method", "qlora"),
    ({"devices": 0}, "devices", "1"),
]


class TestBadInput:
    @pytest.mark.parametrize(("change", "field", "said"), BAD, ids=[f"{f}-{n}" for n, (_, f, _) in enumerate(BAD)])
    def test_names_the_field_and_what_would_be_right(
        self, client: TestClient, change: dict[str, Any], field: str, said: str
    ) -> None:
        answer = client.post(PATH, json={"estimates": [PRETRAIN | change]})
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["pointer"] == f"/estimates/0/{field}"
        assert said in error["detail"]

    def test_one_bad_case_does_not_spoil_the_rest(self, client: TestClient) -> None:
        good, bad = asked(client, LORA, LORA | {"llm": "nobody-9b"})
        assert good["outcome"] == "estimated"
        assert (bad["outcome"], bad["reason"]) == ("unsupported", "unknown_llm")
