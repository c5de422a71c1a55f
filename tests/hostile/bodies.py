"""Bodies that are answered, one for each way of asking, and what becomes of them where a single value is another."""

import json
import random
from collections.abc import Iterator
from typing import Any

from service.wire.examples import examples
from tests.hostile.cases import NUMBERS
from tests.service.bodies import changed, small_estimate

VALUES = (
    *NUMBERS, "9" * 400, "1e-9", "1e7", "0.5", "100", "[null]", "[1, 2]", '{"x": 1}', '""', '" "', '"x"', '"NaN"', '"Infinity"', '"-1"',
    '"1e400"', '"0.000001"', '"\\u202e"',
)  # fmt: skip
"""JSON of values that fit some fields, and of those that fit none; the longest number has more digits than a float holds."""
TEXT = {"prompt_tokens": 300, "output_tokens": 50}
PLAIN = small_estimate(TEXT, 2.0)
CLOSED = PLAIN | {"load": {"kind": "closed", "concurrency": 16, "requests": 64}}
ENGINE = {
    "name": "vllm", "version": "0.24.0", "release": "any", "max_batched_tokens": 4096, "max_sequences": 128, "memory_fraction": 0.9,
    "max_context_tokens": 4096, "host_cache_gib": 0, "disk_cache_gib": 0, "admission_interval_steps": None, "api_servers": 2,
    "max_captured_tokens": 512,
}  # fmt: skip
DRAFTED = {"method": "draft_model", "draft_tokens": 4, "acceptance_fraction": 0.7, "draft_llm": "llama-3.2-1b"}
POOL = {"device": "h100-sxm", "layout": {"tensor_parallel": 1}, "replicas": 1}
ESTIMATES: dict[str, dict[str, Any]] = {
    "closed": CLOSED | {"engine": ENGINE, "layout": {"tensor_parallel": 2}, "precision": {"weights": "fp8", "kv_cache": "fp8"}},
    "draft model": CLOSED | {"engine": {"name": "vllm", "speculative": DRAFTED}},
    "partition": CLOSED | {"llm": "llama-3.2-1b", "partition": "1g.10gb"},
    "node": {name: value for name, value in CLOSED.items() if name != "device"} | {"node": "aws-p5.48xlarge"},
    "embedding": PLAIN | {"llm": "qwen3-embedding-0.6b", "traffic": {"prompt_tokens": 300, "output_tokens": 1, "token_ids_fraction": 0.5}},
    "pools": {
        "llm": "llama-3.1-8b", "disaggregated": {"prefill": POOL, "decode": POOL, "kv_transfer": {"over": "node_link"}}, "traffic": TEXT,
        "load": {"kind": "open", "requests_per_s": 2.0},
    },
}  # fmt: skip
BOUGHT = {
    "usd_per_node": "300000", "peak_kw_per_node": 10, "network_usd_per_node": "1000", "storage_usd_per_node": "1000",
    "software_usd_per_device_year": "100", "staff_fte_per_node": 0.05, "maintenance_percent_per_year": 3, "residual_fraction": 0.1,
    "depreciation_months": 48, "depreciation": "straight_line", "finance_rate_percent": 6, "finance_months": 36, "lead_time_months": 2,
    "availability_fraction": 0.99, "decommissioning_usd_per_node": "500",
}  # fmt: skip
OWN = {"fleet": [{"node": "hgx-h200-8", "count": 2}]}
RENTED = {"fleet": [{"node": "aws-p5en.48xlarge", "count": 2, "offer": "aws:p5en.48xlarge:us-east-1:on_demand"}]}
WAYS: list[dict[str, Any]] = [
    RENTED | {"name": "rent", "acquisition": "on_demand", "egress_gb_per_month": 100, "storage_usd_per_month": "50", "carries": 2.0},
    RENTED | {"name": "commit", "acquisition": "reserved_3y", "payment": "partial_upfront", "commitment_used_fraction": 0.8},
    OWN | {"name": "buy", "acquisition": "purchase", "purchase": BOUGHT},
    OWN | {"name": "lease", "acquisition": "lease", "lease": {"term_months": 24, "usd_per_node_month": "9000"}},
    OWN | {"name": "keep", "acquisition": "purchase", "owned": {"age_months": 12, "nodes": 1, "usd_paid_per_node": "250000"}},
    {"name": "API", "api": {"usd_per_million_input_tokens": "0.60", "usd_per_million_output_tokens": "0.80"}},
]  # fmt: skip
COMPARED: dict[str, Any] = {
    "horizon_months": 36, "discount_rate_percent": 8.0, "utilisation_fraction": 0.6, "growth_percent_per_month": 1.0, "ramp_months": 2,
    "inflation_percent_per_year": 2.0, "tax_percent": 5, "income_tax_percent": 20, "power_usage_effectiveness": 1.3,
    "market": {"rent_percent_per_year": -10, "api_percent_per_year": -5, "hardware_percent_per_year": -8},
    "electricity": {"usd_per_kwh": "0.09", "demand_charge_usd_per_kw_month": "10"}, "colocation_usd_per_kw_month": "150",
    "currency": {"code": "EUR", "usd_per_unit": "1.1"}, "site": {"feed_kw": 200, "cooling_kw": 200, "racks": 10, "rack_kw": 40},
    "machines": [{"node": "hgx-h200-8", "usd_per_node": "310000", "network_usd_per_node": "1000", "storage_usd_per_node": "0"}],
    "sensitivity": {"mode": "step", "step_percent": 20}, "monte_carlo": {"draws": 20, "seed": 1},
    "workloads": examples()["ComparisonIn"]["workloads"], "alternatives": WAYS,
}  # fmt: skip
TUNE: dict[str, Any] = {
    "name": "tune", "llm": "llama-3.1-8b", "method": "lora", "tokens": 5e7, "sequence_tokens": 4096, "max_devices": 8, "max_usd": "500",
    "deadline": "2027-02-01T00:00:00Z",
}  # fmt: skip
TRAINED: dict[str, Any] = {
    "jobs": [TUNE], "starts_at": "2026-12-01T00:00:00Z", "time_limit_s": 10,
    "limits": {"devices": ["h100-sxm"], "commitments": ["on_demand", "spot"], "sourcing": "any", "max_usd": "1000",
               "spot_preemptions_per_node_hour": 0.01},
}  # fmt: skip
SITE: dict[str, Any] = {
    "region": "hall", "machines": [{"node": "hgx-h100-8", "max_nodes": 2}], "max_nodes": 4, "operator": "enterprise",
    "electricity": {"usd_per_kwh": "0.1"}, "power_usage_effectiveness": 1.2, "utilisation_fraction": 0.8, "staffed_nodes": 2,
}  # fmt: skip
DAY = [2.0] * 24
FLEET: dict[str, Any] = {
    "workloads": [
        {"name": "chat", "llm": "llama-3.1-8b", "traffic": TEXT, "targets": {"ttft_ms": {"p95": 2000}},
         "demand": {"kind": "profile", "weekday_requests_per_s": DAY, "growth_percent_per_month": 1}},
        {"name": "nights", "llm": "llama-3.1-8b", "traffic": TEXT, "targets": {"ttft_ms": {"p95": 2000}},
         "batch": {"requests": 100_000, "from_month": 0, "to_month": 2}},
        {"name": "measured", "llm": "llama-3.1-8b", "traffic": TEXT, "targets": {"ttft_ms": {"p95": 2000}},
         "demand": {"kind": "series", "step_s": 3600, "requests_per_s": DAY * 7}},
    ],
    "horizon": {"months": 2, "periods_per_month": 2}, "time_limit_s": 5, "gap_fraction": 0.05,
    "limits": {"devices": ["h100-sxm"], "providers": ["verda", "nebius"], "sourcing": "any"},
}  # fmt: skip
EXAMPLES = {
    "/v1/benchmarks": "BenchmarkUpload", "/v1/benchmarks/import": "BenchmarkImport", "/v1/benchmarks/training-runs": "TrainingRunIn",
    "/v1/measurements": "MeasurementIn", "/v1/device-measurements": "DeviceMeasurementIn", "/v1/llms": "LlmIn", "/v1/traces": "TraceIn",
    "/v1/offers": "OfferIn", "/v1/offers/import": "PricesImportIn", "/v1/training/estimates": "TrainingEstimatesIn",
    "/v1/offers/aws:p5.48xlarge:us-east-1:on_demand/prices": "PriceIn",
}  # fmt: skip


def bodies() -> dict[str, tuple[str, dict[str, Any]]]:
    """By name: where it is sent, and the body."""
    found = {f"estimate: {name}": ("/v1/estimates", {"estimates": [body]}) for name, body in ESTIMATES.items()}
    found |= {path: (path, examples()[name]) for path, name in EXAMPLES.items()}
    bought = TRAINED | {"limits": {"devices": ["h100-sxm"]}, "own": [SITE], "own_months": 24}
    return found | {
        "comparison": ("/v1/tco/comparisons", COMPARED),
        "training plan": ("/v1/training/recommendations", TRAINED),
        "training plan that buys": ("/v1/training/recommendations", bought),
        "fleet": ("/v1/fleets", FLEET),
    }


def mutated(body: dict[str, Any], seed: int) -> Iterator[tuple[str, bytes]]:
    """(place and value, body) with one value another, every place with every value, in an order of the seed's."""
    every = [(place, value) for place in places(body) for value in VALUES]
    random.Random(seed).shuffle(every)
    for place, value in every:
        text = json.dumps(changed(body, place, "HERE")).replace('"HERE"', value)
        yield f"{place} {value[:30]}", text.encode("utf-8", "surrogatepass")


def misspelt(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place of an object, the body with a field in it that there is not), of every object but what tools wrote."""
    for place in ["", *places(body)]:
        here: Any = body
        for step in filter(None, place.split("/")):
            here = here[int(step) if isinstance(here, list) else step]
        if isinstance(here, dict) and not {"payload", "config"} & set(place.split("/")):
            yield place, changed(body, f"{place}/no_such_field".lstrip("/"), 1)


def places(value: Any, here: str = "") -> Iterator[str]:
    """Paths of everything in it, containers too; of long lists of numbers the first alone.

    >>> list(places({"a": [{"b": 1}]}))
    ['a', 'a/0', 'a/0/b']
    """
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    if here:
        yield here
    for name, one in inside:
        if not (isinstance(value, list | tuple) and name and isinstance(one, int | float)):
            yield from places(one, f"{here}/{name}".lstrip("/"))
