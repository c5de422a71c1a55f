"""What the API can, the command line and the page can: every field of a workload and of an estimate is stated by an option, those of
traffic and adapters by an input too, or a reason stands here."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from service.cli.estimate_arguments import deployment_of
from service.cli.main import build_parser
from service.cli.plan_arguments import request_of
from service.page.routes import FILES
from service.wire.estimates import EstimateIn
from service.wire.recommendations import RecommendationIn, WorkloadIn
from tests.service.schema_fields import fields_of, stated_in

TRAFFIC = (
    "--prompt 9 --output 1200:4000 --thinking 100-900 --structured 0.5 --shared-prefix 0.2",
    "--prompt 100-900 --output 9 --thinking 100:900 --images 2:640x480",
    "--prompt 1200:4000 --output 100-900 --thinking 9 --video 2:9.5x1.5x640x480",
    "--prompt 9 --output 9 --audio 2:9.5 --adapters 8:16:4 --adapter-zipf 1.5 --adapter-modules q_proj,v_proj",
    "--prompt 9 --output 9 --adapters 2:8x1+16x1 --adapter-shares 0.25,0.75",
    "--prompt 9 --output 1 --token-ids 0.5",
    "--turns 3:6 --user 100:300 --output 9 --think 5 --system-prompt 500 --system-prompts 3 --document 900 --documents 7"
    " --routing least_loaded --random-over 2 --host-cache 16 --disk-cache 100 --disk-rate 3",
    "--turns 3 --user 100 --output 9 --think 5",
    "--turns 3-6 --user 100-300 --output 9 --think 5",
)
PLANS = [
    f"plan llama-3.1-8b --rate 2 {options}"
    for options in (
        *(f"{traffic} --ttft-p95 9000" for traffic in TRAFFIC),
        "--prompt 9 --output 9 --thinking 9 --ttft-p95 1 --tpot-p95 1 --e2e-p95 1 --ttfat-p95 1 --confidence 90",
        "--prompt 9 --output 9 --ttft-p95 1 --draft ngram:4:0.6:0 --weights fp8 --kv-cache fp8 --engine vllm --busy-at-most 70",
        "--prompt 9 --output 9 --ttft-p95 1 --context 4000 --over-context refuse --min-replicas 2 --role disaggregated",
        "--prompt 9 --output 9 --ttft-p95 1 --without-provider aws --without-region us-east-1",
    )
]
ESTIMATES = [
    *(f"estimate llama-3.1-8b --device h100-sxm --rate 2 {traffic}" for traffic in TRAFFIC),
    "estimate llama-3.1-8b --device h100-sxm --prompt 9 --output 9 --concurrency 8 --requests 80 --node dgx-h100 --partition 1g.10gb"
    " --tensor-parallel 2 --pipeline-parallel 2 --data-parallel 2 --expert-parallel 2 --weights fp8 --kv-cache fp8 --engine sglang"
    " --engine-version 0.5.11 --release planned --max-batched-tokens 4096 --max-sequences 64 --memory-fraction 0.8 --context 4000"
    " --admission-interval 4 --over-context refuse --draft ngram:4:0.6:0",
    "estimate llama-3.1-8b --device h100-sxm --prompt 9 --output 9 --rate 2 --api-servers 4"
    " --max-captured-tokens 2048 --scan-kernel triton --load-format dummy --draft draft_model:4:0.6:qwen3-0.6b:fp8",
]
SEVERAL = "what several workloads, or kinds of requests, share among them is stated in a file"
MEASURED = "shares of many counts are measured, not typed: a trace states them (--trace, --trace-sessions), or a file"
NOT_OF_PLANS = {
    "traffic_classes": SEVERAL, "requests_per_s": SEVERAL, "priority": SEVERAL,
    "providers.only": "--provider states it of the plan, whose only workload it is",
    "regions.only": "--region states it of the plan, whose only workload it is",
    "network_ms_by_region": "one figure for each of many regions is stated in a file",
    "*.histogram": MEASURED,
}  # fmt: skip
NOT_OF_ESTIMATES = {
    "disaggregated": "two pools, each a deployment of its own, are stated in a file",
    "*.histogram": MEASURED,
}

TYPED_ON_THE_PAGE = "a mean and a 95th percentile are two inputs; ranges are stated on the command line or in a file"
NOT_ON_THE_PAGE = {
    "*.histogram": MEASURED, "*.low": TYPED_ON_THE_PAGE, "*.high": TYPED_ON_THE_PAGE, "*.distribution": TYPED_ON_THE_PAGE,
    "adapters.shares": "one figure for each of many adapters is no input", "adapters.zipf_exponent": "stated on the command line",
    "adapters.target_modules": "all that a model has, as engines keep room for; fewer are stated on the command line",
}  # fmt: skip
PLACE = re.compile(r'"(/[a-z0-9_/]+)": "(\w+)"')


def unstated(model: type[BaseModel], bodies: Iterable[Any], reasons: Iterable[str]) -> set[str]:
    """Fields that no body states and no reason is given for; and reasons for what is stated."""
    known = fields_of(model)
    reached = {path for body in bodies for path in stated_in(body, known)}
    excused = {path for path in known for name in reasons if _is_of(path, name)}
    needless = {name for name in reasons if not any(_is_of(path, name) for path in known - reached)}
    return known - reached - excused | needless


def _is_of(path: str, name: str) -> bool:
    if name.startswith("*."):
        return f".{name[2:]}." in f"{path}."
    return path == name or path.startswith(f"{name}.")


def test_inputs_of_the_page_state_every_field_of_traffic_and_adapters() -> None:
    """By the map with which the page finds the input of a refused field; every input of it is in a form."""
    places = dict(PLACE.findall((FILES / "traffic.js").read_text() + (FILES / "form.js").read_text()))
    inputs = {
        name for file in ("traffic.js", "form.js") for name in re.findall(r"(\w+): [\"\[]", (FILES / file).read_text())
    }
    known = {path for path in fields_of(WorkloadIn) if path.split(".")[0] in ("traffic", "adapters")}
    reached = {path for path in known if _on_page(path, places)}
    excused = {path for path in known for name in NOT_ON_THE_PAGE if _is_of(path, name)}
    assert known - reached - excused == set()
    assert {name for name in places.values() if name not in inputs} <= OF_ESTIMATES


OF_ESTIMATES = {"device", "node", "tp", "pp", "dp", "ep", "engine", "concurrency"}
"""Inputs that the estimate's form alone has."""


def _on_page(path: str, places: dict[str, str]) -> bool:
    pointer = "/" + path.replace(".", "/")
    of_lengths = re.fullmatch(r"(.*_tokens|.*/turns)/(mean|tokens)", pointer)
    return pointer in places or (of_lengths is not None and of_lengths[1] in places)


def planned(command: str) -> dict[str, Any]:
    return request_of(build_parser().parse_args(shlex.split(command)))


def deployed(command: str) -> dict[str, Any]:
    return deployment_of(build_parser().parse_args(shlex.split(command)))


def test_options_state_every_field_of_a_workload() -> None:
    assert unstated(WorkloadIn, (planned(command)["workloads"][0] for command in PLANS), NOT_OF_PLANS) == set()


def test_options_state_every_field_of_an_estimate() -> None:
    assert unstated(EstimateIn, map(deployed, ESTIMATES), NOT_OF_ESTIMATES) == set()


@pytest.mark.parametrize("command", PLANS)
def test_what_plans_state_is_read(command: str) -> None:
    assert TypeAdapter(RecommendationIn).validate_python(planned(command)).workloads


@pytest.mark.parametrize("command", ESTIMATES)
def test_what_estimates_state_is_read(command: str) -> None:
    assert TypeAdapter(EstimateIn).validate_python(deployed(command)).traffic


def test_a_target_has_a_statistic() -> None:
    body = planned(
        "plan llama-3.1-8b --rate 2 --prompt 9 --output 9 --ttft-p95 900 --target ttft.p99=1500 --target e2e.mean=4000"
    )
    assert body["workloads"][0]["targets"] == {"ttft_ms": {"p95": 900, "p99": 1500}, "e2e_ms": {"mean": 4000}}


def test_the_largest_throughput_has_no_rate() -> None:
    body = planned(
        "plan llama-3.1-8b --prompt 9 --output 9 --ttft-p95 900 --objective throughput --max-usd-per-hour 50"
    )
    assert body["workloads"][0]["traffic"]["requests_per_s"] is None
