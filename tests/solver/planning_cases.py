"""A small market of real devices with hand-made prices, on which whole recommendations take a fraction of a second."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

from solver.hardware import Device, Node, Offer
from solver.lengths import fixed_lengths, uniform_lengths
from solver.limit import TargetLimit
from solver.llm_shape import LlmShape
from solver.objective import Objective
from solver.planning.types import PlanLimits, PlanningInput, Recommendation
from solver.recommend.recommend import SpaceMemo, recommend
from solver.workload import Targets, Traffic, TrafficClass, Workload
from tests.llm_shapes import shape
from tests.solver.samples import device, priors

MEMO: SpaceMemo = {}
"""Spaces depend on nodes, so every market below states a key of its own."""


def node(node_id: str, on: Device, devices: int, *, host_power_w: float = 500.0, network: float = 0.0) -> Node:
    return Node(node_id, on, devices, network, host_power_w, min(devices, on.link_domain_devices))


H100 = node("h100x8", device("h100-sxm"), 8, host_power_w=2_000.0)
H200 = node("h200x8", device("h200-sxm"), 8, host_power_w=2_000.0)
L40S = node("l40sx4", device("l40s"), 4)
L4 = node("l4x1", device("l4"), 1, host_power_w=100.0)
A100 = node("a100x4", device("a100-sxm-80"), 4, host_power_w=1_000.0)
NODES = (H100, H200, L40S, L4, A100)


def offer(on: Node, usd_per_hour: float, most: int | None = None, suffix: str = "") -> Offer:
    return Offer(f"{on.id}{suffix}", on, "maker", "here", "on_demand", usd_per_hour, most)


OFFERS = (offer(H100, 24.0), offer(H200, 30.0), offer(L40S, 7.2), offer(L4, 0.8), offer(A100, 7.0))
CHAT = Traffic(uniform_lengths(200, 1000), uniform_lengths(50, 350))


def workload(name: str = "chat", llm: str = "llama-3.1-8b", rate: float = 20.0, **changes: Any) -> Workload:
    """Chat with comfortable targets. ttft, tpot, e2e: {percentile: seconds}."""
    ttft, tpot = changes.pop("ttft", {"p95": 1.0}), changes.pop("tpot", {"p95": 0.05})
    traffic = changes.pop("traffic", CHAT)
    targets = changes.pop("targets", None) or Targets(ttft, tpot, changes.pop("e2e", {}))
    base = Workload(
        name=name,
        llm_id=llm,
        context_tokens=traffic.prompt.maximum + traffic.output.maximum,
        classes=(TrafficClass(None, rate, traffic, targets),),
        weight_formats=("bf16",),
        kv_cache_formats=("bf16",),
    )
    return dataclasses.replace(base, **changes)


def planning(
    *workloads: Workload, offers: Iterable[Offer] = OFFERS, nodes: tuple[Node, ...] = NODES,
    limits: PlanLimits | None = None, objective: Objective = "cost", explain: bool = False, alternatives: int = 0,
    shapes: dict[str, LlmShape] | None = None,
) -> PlanningInput:  # fmt: skip
    asked = workloads or (workload(),)
    return PlanningInput(
        workloads=asked,
        shapes=shapes or {w.llm_id: shape(w.llm_id) for w in asked},
        nodes=nodes,
        offers=tuple(offers),
        priors=priors(),
        catalog_key=",".join(f"{n.id}:{n.device.power_limit_w}:{n.network_bytes_per_s}" for n in nodes),
        limits=limits or PlanLimits(),
        objective=objective,
        alternatives=alternatives,
        explain=explain,
    )


def plan(*workloads: Workload, **asked: Any) -> Recommendation:
    return recommend(planning(*workloads, **asked), MEMO)


def without(offers: Iterable[Offer], used: Iterable[str]) -> tuple[Offer, ...]:
    gone = set(used)
    return tuple(o for o in offers if o.id not in gone)


def without_power(on: Node) -> Node:
    """The same machine where nobody states what its devices draw."""
    return dataclasses.replace(on, id=f"{on.id}-dark", device=dataclasses.replace(
        on.device, id=f"{on.device.id}-dark", power_limit_w=math.nan
    ))  # fmt: skip


SHORT = Traffic(fixed_lengths(200), fixed_lengths(50))
TPOT_P95 = TargetLimit("time_per_output_token_s", "p95")


def cost(found: Recommendation) -> float:
    """Dollars an hour; without end where nothing serves."""
    return found.usd_per_hour if found.entries else math.inf
