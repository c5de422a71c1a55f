"""Weights of random values, over HTTP: what was measured of mixtures of experts with them says nothing of trained weights."""

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.service.bodies import changed, estimated
from tests.service.test_correction_loop import settled

ASKED: dict[str, Any] = {
    "llm": "qwen3-30b-a3b",
    "device": "h200-sxm",
    "precision": {"weights": "fp8"},
    "engine": {"name": "vllm", "version": "0.24.0"},
    "traffic": {
        "prompt_tokens": {"distribution": "fixed", "tokens": 500},
        "output_tokens": {"distribution": "fixed", "tokens": 100},
    },
    "load": {"kind": "closed", "concurrency": 32, "requests": 128},
}
DOUBT = "random values"
SLOWER = 1.3


def of_weights(client: TestClient, load_format: str, **changes: Any) -> dict[str, Any]:
    found = estimated(client, changed(ASKED | changes, "engine/load_format", load_format))
    assert found["outcome"] == "estimated", found
    return found


def tpot_ms(found: dict[str, Any]) -> float:
    return float(found["tpot_ms"]["mean"]["expected"])


def figures(found: dict[str, Any]) -> dict[str, Any]:
    """All but what says how it was asked, and what it cautions of."""
    return {name: value for name, value in found.items() if name not in ("engine", "cautions")}


def upload(client: TestClient, llm: str, load_format: str, arguments: list[str], device: str = ASKED["device"]) -> str:
    """A run that took longer than is said of a server with such weights; its identifier."""
    said = of_weights(client, load_format, llm=llm, device=device)
    ttft, tpot = (SLOWER * said[name]["mean"]["expected"] for name in ("ttft_ms", "tpot_ms"))
    e2e, load, output = ttft + 99 * tpot, ASKED["load"], 100
    rate = 0.95 * load["concurrency"] / (e2e / 1e3)
    run = {
        "context": {
            "device": device, "llm": llm, "precision": ASKED["precision"], "devices": 1,
            "engine": ASKED["engine"] | {"arguments": arguments},
        },
        "load": load, "traffic": ASKED["traffic"],
        "results": {
            "completed": load["requests"], "failed": 0, "duration_s": load["requests"] / rate, "requests_per_s": rate,
            "output_tokens_per_s": rate * output, "ttft_ms": {"mean": ttft}, "tpot_ms": {"mean": tpot}, "e2e_ms": {"mean": e2e},
        },
    }  # fmt: skip
    answer = client.post("/v1/benchmarks", json=run)
    assert answer.status_code == 201, answer.text
    assert answer.json()["status"] == "accepted", answer.text
    return str(answer.json()["id"])


def test_a_mixture_measured_with_random_weights_is_measured_for_those_and_slower_with_trained_ones(
    client: TestClient,
) -> None:
    hybrid = {"llm": "nemotron-3-nano-30b-a3b", "device": "h100-sxm", "precision": {"weights": "bf16"}}
    trained, drawn = (of_weights(client, name, **hybrid) for name in ("auto", "dummy"))
    assert (trained["basis"], drawn["basis"]) == ("corrected", "measured")
    assert tpot_ms(drawn) < 0.85 * tpot_ms(trained)
    assert drawn["engine"]["load_format"] == "dummy"
    assert any(DOUBT in said for said in trained["cautions"])
    assert not any(DOUBT in said for said in drawn["cautions"])


def test_a_mixture_whose_experts_were_drawn_evenly_too_is_measured_for_both(client: TestClient) -> None:
    trained, drawn = (of_weights(client, name) for name in ("auto", "dummy"))
    assert (trained["basis"], drawn["basis"]) == ("measured", "measured")
    assert tpot_ms(drawn) < 0.85 * tpot_ms(trained)
    assert not set(trained["evidence"]) & set(drawn["evidence"])
    assert not any(DOUBT in said for said in trained["cautions"])


def test_trained_weights_are_what_is_meant_unless_told(client: TestClient) -> None:
    assert estimated(client, ASKED) == of_weights(client, "auto")


def test_a_dense_model_answers_the_same_with_both(client: TestClient) -> None:
    trained, drawn = (of_weights(client, name, llm="llama-3.1-8b") for name in ("auto", "dummy"))
    assert figures(trained) == figures(drawn)
    assert trained["cautions"] == drawn["cautions"]


@pytest.mark.parametrize("value", ["random", "", None, 1, True])
def test_other_formats_are_refused_by_name(client: TestClient, value: object) -> None:
    answer = client.post("/v1/estimates", json={"estimates": [changed(ASKED, "engine/load_format", value)]})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/estimates/0/engine/load_format"


@pytest.mark.parametrize(
    ("llm", "taught", "other", "arguments"),
    [
        ("mixtral-8x7b", "dummy", "auto", ["--load-format", "dummy"]),
        ("gpt-oss-120b", "auto", "dummy", []),
    ],
)
def test_an_uploaded_run_teaches_the_weights_it_had(
    client: TestClient, app: FastAPI, llm: str, taught: str, other: str, arguments: list[str]
) -> None:
    before = {name: of_weights(client, name, llm=llm) for name in (taught, other)}
    run = upload(client, llm, taught, arguments)
    settled(app)
    after = {name: of_weights(client, name, llm=llm) for name in (taught, other)}
    assert (after[taught]["basis"], after[taught]["evidence"]) == ("measured", [run])
    assert tpot_ms(after[taught]) == pytest.approx(SLOWER ** (1 / 3) * tpot_ms(before[taught]), rel=1e-3)
    assert figures(after[other]) == figures(before[other])
    assert any(DOUBT in said for said in after["auto"]["cautions"]) == (taught == "dummy")


def test_a_run_that_joins_the_catalogs_is_of_the_same_weights(client: TestClient, app: FastAPI) -> None:
    """The catalog's runs of this configuration had random weights: one with trained ones stands alone."""
    device = "h100-sxm"  # not that of the test above, which shares the database
    run = upload(client, ASKED["llm"], "auto", [], device)
    settled(app)
    trained, drawn = (of_weights(client, name, device=device) for name in ("auto", "dummy"))
    assert (trained["basis"], trained["evidence"]) == ("measured", [run])
    assert drawn["basis"] == "measured"
    assert run not in drawn["evidence"]
    assert not any(DOUBT in said for said in trained["cautions"])
