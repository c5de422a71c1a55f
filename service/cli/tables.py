"""Answers as tables for people."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from service.figures import readable

NONE = "–"

COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "devices": (
        ("id", "id"), ("vendor", "vendor"), ("status", "status"), ("memory_gib", "memory GiB"),
        ("memory_bandwidth_gb_per_s", "memory GB/s"), ("dense_bf16_tflop_per_s", "bf16 TFLOP/s"),
        ("dense_fp8_tflop_per_s", "fp8 TFLOP/s"), ("power_limit_w", "W"),
    ),
    "nodes": (
        ("id", "id"), ("device", "device"), ("devices", "devices"), ("kind", "kind"),
        ("link_domain_devices", "linked"), ("network_gbit_per_s", "network Gbit/s"),
    ),
    "llms": (
        ("id", "id"), ("family", "family"), ("total_weights", "parameters"), ("active_weights", "active"),
        ("max_context_tokens", "context"), ("native_weights", "native"), ("origin", "origin"),
    ),
    "jobs": (
        ("id", "id"), ("kind", "kind"), ("state", "state"), ("stage", "stage"), ("usd_per_hour", "USD/h so far"),
        ("created_at", "created"), ("result", "result"),
    ),
    "api-prices": (
        ("id", "id"), ("usd_per_million_input_tokens", "USD/M in"), ("usd_per_million_output_tokens", "USD/M out"),
        ("usd_per_million_cached_tokens", "cached"), ("valid_from", "since"), ("seen_on", "seen"), ("ends", "ends"),
    ),
    "providers": (("id", "id"), ("name", "name"), ("provider_class", "class")),
    "offers": (
        ("id", "id"), ("usd_per_hour", "USD/h"), ("usd_per_device_hour", "USD/device-h"), ("devices", "devices"),
        ("device", "device"), ("commitment", "commitment"), ("valid_from", "since"), ("age_days", "age days"),
    ),
}  # fmt: skip


def list_rows(noun: str, items: list[dict[str, Any]]) -> list[list[str]]:
    """The cells of a list, a row for each entry."""
    rows = []
    for item in by_price(items) if noun == "offers" else items:
        flat = item | (item.get("price") or {}) | (item.get("progress") or {})
        for instant in ("valid_from", "created_at"):
            if flat.get(instant) is not None:  # some prices say when they were seen, and not from when they hold
                flat[instant] = flat[instant][
                    : len("2026-11-21T12:00") if instant == "created_at" else len("2026-11-21")
                ]
        rows.append(
            [_money(flat.get(field)) if "usd" in field else _cell(flat.get(field)) for field, _ in COLUMNS[noun]]
        )
    return rows


def by_price(offers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cheapest device first, then by id; those without a price come last.

    >>> dear, cheap = {"id": "a", "usd_per_device_hour": "9.5"}, {"id": "b", "usd_per_device_hour": "10"}
    >>> [one["id"] for one in by_price([{"id": "c", "usd_per_device_hour": None}, cheap, dear])]
    ['a', 'b', 'c']
    """

    def key(offer: dict[str, Any]) -> tuple[bool, float, str]:
        usd = offer.get("usd_per_device_hour")
        return usd is None, float(usd or 0), str(offer["id"])

    return sorted(offers, key=key)


def show_estimates(asked: Mapping[str, Any], answer: Mapping[str, Any], console: Console) -> None:
    table = Table(title="estimates")
    for heading in (
        "llm", "device", "layout", "precision", "outcome", "mean TTFT ms", "mean TPOT ms", "tokens/s", "basis",
    ):  # fmt: skip
        table.add_column(heading, overflow="fold")
    for case, result in zip(asked["estimates"], answer["estimates"], strict=True):
        is_estimated = result["outcome"] == "estimated"
        table.add_row(
            case["llm"],
            *where_it_runs(case, result),
            f"{result['precision']['weights']} / {result['precision']['kv_cache']}",
            result["outcome"] if is_estimated else f"{result['outcome']}: {result['detail']}",
            interval(result["ttft_ms"]["mean"]) if is_estimated else NONE,
            interval(result["tpot_ms"]["mean"]) if is_estimated else NONE,
            interval(result["output_tokens_per_s"]) if is_estimated else NONE,
            result["basis"] if is_estimated else NONE,
        )
    console.print(table)


def where_it_runs(case: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[str, str]:
    """Device and layout; of both pools, where prefill and decode have their own."""
    pools = result["disaggregated"]
    if pools is None:
        return case["device"], layout_text(result["layout"])
    both = (pools["prefill"], pools["decode"])
    return (
        " → ".join(f"{pool['replicas']} × {pool['device']}" for pool in both),
        " → ".join(layout_text(pool["layout"]) for pool in both),
    )


def layout_text(layout: Mapping[str, int]) -> str:
    """
    >>> layout_text({"tensor_parallel": 2, "pipeline_parallel": 1, "data_parallel": 4, "expert_parallel": 1})
    'TP2 DP4'
    """
    short = (("TP", "tensor_parallel"), ("PP", "pipeline_parallel"), ("DP", "data_parallel"), ("EP", "expert_parallel"))
    parts = [f"{name}{layout[field]}" for name, field in short if layout[field] > 1]
    return " ".join(parts) or "TP1"


def interval(stated: Mapping[str, float]) -> str:
    return f"{readable(stated['expected'])} ({readable(stated['low'])}–{readable(stated['high'])})"


def _money(amount: str | None) -> str:
    """
    >>> _money("47.760000"), _money("0.003500")
    ('47.76', '0.0035')
    """
    if amount is None:
        return NONE
    return f"{float(amount):,.2f}" if float(amount) >= 0.1 else f"{float(amount):.3g}"


def _cell(value: Any) -> str:
    if value is None:
        return NONE
    if isinstance(value, float):
        return f"{value / 1e9:.3g} G" if value >= 1e8 else readable(value, 4)
    return str(value)
