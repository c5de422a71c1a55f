"""What is said of training plans and layouts on a terminal: amounts, times and degrees in words."""

from collections.abc import Mapping
from typing import Any

from service.training.said import IDLE


def cost_text(line: Mapping[str, Any], answer: Mapping[str, Any]) -> str:
    """What a job costs where it runs, also where nothing is paid by the hour.

    >>> line = {"offer": "aws:p5", "usd": "0.000000"}
    >>> cost_text(line, {"commitments": [{"offer": "aws:p5", "commitment": "reserved_1y", "term_months": 12, "usd": "900.0"}]})
    '$900.00 committed for 12 months, nothing more by the hour'
    >>> cost_text({"offer": "idle:aws:p5", "usd": "0.000000"}, {"commitments": []})
    'nothing more: its nodes are paid for already'
    """
    own = next((one for one in answer["commitments"] if one["offer"] == line["offer"]), None)
    if own is not None:
        how = "bought and sold after" if own["commitment"] == "purchase" else "committed for"
        return f"${money(own['usd'])} {how} {own['term_months']} months, nothing more by the hour"
    idle = line["offer"].startswith(IDLE)
    return "nothing more: its nodes are paid for already" if idle else f"${money(line['usd'])}"


def commitment_text(one: Mapping[str, Any]) -> str:
    """What is paid once, for how long, and how much of it the jobs use."""
    used = f"{100 * one['used_fraction']:.1f} % of it used"
    if one["commitment"] != "purchase":
        return f"committed to {one['nodes']} × {one['offer']} for {one['term_months']} months: ${money(one['usd'])}, {used}"
    return (
        f"bought {one['nodes']} × {one['offer']}: ${money(one['due_at_start_usd'])} at once, ${money(one['usd'])} in all with running"
        f" it {one['term_months']} months and selling it then, {used}"
    )


def beside_text(beside: Mapping[str, Any]) -> str:
    """What fleet and jobs cost, and what planning both at once could save at most.

    >>> beside_text({"fleet": "fleet_1", "fleet_usd": "100.0", "usd": "120.0", "joint_saving_at_most_usd": "21.0"})
    'beside fleet_1: $120.00 in all; both planned at once would cost at most $21.00 less'
    """
    most = beside["joint_saving_at_most_usd"]
    less = "" if most is None else f"; both planned at once would cost at most ${money(most)} less"
    return f"beside {beside['fleet']}: ${money(beside['usd'])} in all{less}"


def serving_text(serving: Mapping[str, Any], usd: float) -> str:
    """Which of its plans serves beside the jobs, and what planning both together saves.

    >>> node = {"offer": "aws:p5", "nodes": 2}
    >>> serving_text({"why": None, "nodes": [node], "usd": "50.0", "usd_apart": "80.0", "considered": 3}, 70.0)
    'served beside: its own plan, 2 × aws:p5, $50.00 until the last deadline; 1 of 3 ways; one after the other $10.00 more'
    """
    nodes = ", ".join(f"{one['nodes']} × {one['offer']}" for one in serving["nodes"])
    apart = serving["usd_apart"]
    saved = (
        "one after the other there is no plan" if apart is None
        else f"one after the other ${float(apart) - usd:,.2f} more"
    )  # fmt: skip
    return (
        f"served beside: {serving['why'] or 'its own plan'}, {nodes}, ${money(serving['usd'])} until the last deadline;"
        f" 1 of {serving['considered']} ways; {saved}"
    )


def days_text(days: float) -> str:
    """
    >>> days_text(2.5), days_text(0.25)
    ('2.5 days', '6 hours')
    """
    return f"{days:.3g} days" if days >= 1.0 else f"{24 * days:.2g} hours"


def money(text: str) -> str:
    """
    >>> money("1234.500000")
    '1,234.50'
    """
    return f"{float(text):,.2f}"


def layout_text(layout: Mapping[str, Any]) -> str:
    """
    >>> layout_text({"tensor_parallel": 4, "pipeline_parallel": 1, "virtual_pipeline": 1, "context_parallel": 1,
    ...     "expert_parallel": 1, "data_parallel": 2, "micro_batch_sequences": 1, "sharding": "zero1", "recompute": "full",
    ...     "recomputed_layers_fraction": 0.25})
    'TP4 DP2, micro-batch 1, zero1, recompute full of 25 % of layers'
    """
    short = (
        ("tensor_parallel", "TP"), ("pipeline_parallel", "PP"), ("virtual_pipeline", "VP"), ("context_parallel", "CP"),
        ("expert_parallel", "EP"), ("data_parallel", "DP"),
    )  # fmt: skip
    degrees = " ".join(f"{letters}{layout[name]}" for name, letters in short if layout[name] > 1) or "one device"
    part = layout["recomputed_layers_fraction"]
    some = f" of {100 * part:.0f} % of layers" if 0.0 < part < 1.0 else ""
    return f"{degrees}, micro-batch {layout['micro_batch_sequences']}, {layout['sharding']}, recompute {layout['recompute']}{some}"
