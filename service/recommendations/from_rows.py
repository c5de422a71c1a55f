"""Table rows → what the solver sees: the one place where datasheet units become SI and Decimal becomes float.

A figure that nobody has published is never replaced: a device without memory, bandwidth or any matrix rate is refused
with the figure's name; an unknown power limit becomes NaN, which no sum or comparison can mistake for a figure.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

from catalog.engine_adapters import adapters_on
from catalog.engine_encoders import embeds_on
from catalog.engine_formats import formats_of
from catalog.read_serving import is_current
from service.offers.tables import OfferTable, PriceStepTable
from service.wire.deployment import EngineIn, LayoutIn, PrecisionIn
from service.wire.traffic import (
    ClosedLoad,
    FixedLength,
    HistogramLength,
    LognormalLength,
    OpenLoad,
    SessionsIn,
    TrafficShape,
    UniformLength,
)
from solver.adapters import AdapterSupport
from solver.audio import AudioEncoder
from solver.errors import FigureMissingError
from solver.hardware import Device, Loads, Node, Offer, Partition, Sale
from solver.layout import Layout
from solver.lengths import Lengths, fixed_lengths, lognormal_lengths, summed_lengths, uniform_lengths
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.precision import Precision
from solver.sessions import session_traffic
from solver.step.constants import ConstantPrior
from solver.units import bytes_from_gib
from solver.vision import VisionEncoder
from solver.workload import EngineSettings, Load, Sessions, Thinking, Traffic

GIGA = 1e9
TERA = 1e12
BITS_PER_BYTE = 8.0

MATRIX_RATES = {
    "fp32": "dense_fp32_tflop_per_s",
    "tf32": "dense_tf32_tflop_per_s",
    "bf16": "dense_bf16_tflop_per_s",
    "fp16": "dense_fp16_tflop_per_s",
    "fp8": "dense_fp8_tflop_per_s",
    "int8": "dense_int8_top_per_s",
    "fp4": "dense_fp4_tflop_per_s",
}
"""Compute dtype → the datasheet field with its dense rate."""

PCIE_GB_PER_S_PER_LANE = {3: 8 * 128 / 130 / 8, 4: 16 * 128 / 130 / 8, 5: 32 * 128 / 130 / 8, 6: 64 * 242 / 256 / 8}
"""One direction: transfers per second × encoding (128b/130b; flits of 242 in 256 bytes from generation 6) / 8.
PCI Express Base Specification 3.0, 4.0, 5.0, 6.0."""


def pcie_bytes_per_s(generation: int | None, lanes: int | None) -> float:
    """One direction of a PCIe link; 0 where there is none.

    >>> round(pcie_bytes_per_s(5, 16) / 1e9, 1)
    63.0
    """
    if generation is None or lanes is None or generation not in PCIE_GB_PER_S_PER_LANE:
        return 0.0
    return PCIE_GB_PER_S_PER_LANE[generation] * lanes * GIGA


def device_from_row(row: Mapping[str, Any]) -> Device:
    """Raises FigureMissingError naming the first figure without which nothing can be computed."""
    for figure in ("memory_gib", "memory_bandwidth_gb_per_s", "memory_class"):
        if row[figure] is None:
            raise FigureMissingError(row["id"], figure)
    rates = {dtype: row[field] * TERA for dtype, field in MATRIX_RATES.items() if row[field] is not None}
    if not rates:
        raise FigureMissingError(row["id"], "a dense matrix rate")
    return Device(
        id=row["id"],
        name=row["name"],
        vendor=row["vendor"],
        family=row["family"],
        category=row["category"],
        memory_class=row["memory_class"],
        memory_bytes=bytes_from_gib(row["memory_gib"]),
        memory_bytes_per_s=row["memory_bandwidth_gb_per_s"] * GIGA,
        flop_per_s=rates,
        link_bytes_per_s=(row["link_one_direction_gb_per_s"] or 0.0) * GIGA,
        link_domain_devices=row["link_domain_devices"],
        pcie_bytes_per_s=pcie_bytes_per_s(row["pcie_generation"], row["pcie_lanes"]),
        power_limit_w=_figure_or_nan(row["power_limit_w"]),
        engines=tuple(row["engines"]),
        partitions=tuple(partition_from_row(one) for one in row.get("partitions", [])),
        loads=_loads((*row["engines"], *row.get("past_engines", {})), row["family"]),
        adapters=_adapters(row),
        embedding_engines=tuple(engine for engine in row["engines"] if embeds_on(engine, row["vendor"])),
        past_engines=tuple(row.get("past_engines", {})),
    )


def _adapters(row: Mapping[str, Any]) -> dict[str, AdapterSupport]:
    """What each engine documents of adapters on a device."""
    read = {engine: adapters_on(engine, row["vendor"], row["family"]) for engine in row["engines"]}
    return {engine: AdapterSupport(one.ranks, one.largest_rank) for engine, one in read.items() if one is not None}


def _loads(engines: Iterable[str], family: str) -> dict[str, Loads]:
    """What each engine documents to load on a family of devices, where that has been read."""
    read = {engine: formats_of(engine, family) for engine in engines}
    return {
        engine: Loads(row.weights, row.kv_cache, row.widened, row.parallelism, row.features)
        for engine, row in read.items()
        if row is not None
    }


def partition_from_row(row: Mapping[str, Any]) -> Partition:
    """Shares of a device: its multiprocessors, and its slices of memory with their bandwidth."""
    return Partition(
        profile=row["profile"],
        instances=row["instances"],
        compute_fraction=row["multiprocessors"] / row["device_multiprocessors"],
        bandwidth_fraction=row["slices"] / row["device_slices"],
        memory_bytes=bytes_from_gib(row["memory_gib"]),
    )


def node_from_row(row: Mapping[str, Any], device: Device) -> Node:
    """A node states its own PCIe where it differs from the device's datasheet."""
    pcie = pcie_bytes_per_s(row["pcie_generation"], row["pcie_lanes_per_device"])
    if 0.0 < pcie < device.pcie_bytes_per_s:
        device = dataclasses.replace(device, pcie_bytes_per_s=pcie)
    return Node(
        id=row["id"],
        device=device,
        devices=row["devices"],
        network_bytes_per_s=(row["network_gbit_per_s"] or 0.0) * GIGA / BITS_PER_BYTE,
        host_power_w=_figure_or_nan(row["host_power_w"]),
        link_domain_devices=row["link_domain_devices"],
        rack_domain_devices=row["rack_domain_devices"],
        host_memory_bytes=bytes_from_gib(row.get("host_memory_gib") or 0.0),
        host_processors=row.get("vcpus") or 0.0,
        local_disk_bytes=bytes_from_gib(row.get("local_disk_gib") or 0.0),
        local_disk_bytes_per_s=(row.get("local_disk_read_gbytes_per_s") or 0.0) * GIGA,
        can_split_devices=row.get("tenancy") != "container",
    )


def offer_from_rows(row: OfferTable, price: PriceStepTable, node: Node, device_class: str | None) -> Offer:
    """Raises FigureMissingError for a withdrawn offer."""
    if price.usd_per_hour is None:
        raise FigureMissingError(row.id, "usd_per_hour")
    return Offer(
        id=row.id,
        node=node,
        provider=row.provider,
        region=row.region,
        commitment=row.commitment,
        usd_per_hour=float(price.usd_per_hour),
        max_nodes=row.max_nodes,
        sale=Sale(
            provider_class=row.provider_class,
            device_class=device_class,
            named_place=row.named_place,
            confidence=price.confidence,
            priced_day=price.valid_from.toordinal(),
            own=row.origin != "catalog",
        ),
    )


def llm_from_row(row: Mapping[str, Any]) -> LlmShape:
    """The shape, field for field: widths and counts have no units to convert."""
    own = {
        "attention",
        "feed_forward",
        "vision",
        "audio",
        "images",
        "adapters",
        "guided_fraction",
        "token_ids_fraction",
    }
    later = {
        "embeds",
        "bidirectional",
        "extended_context_tokens",
    } - row.keys()  # rows stored before there were any such models
    plain = {f.name: row[f.name] for f in dataclasses.fields(LlmShape) if f.name not in own | later}
    return LlmShape(
        **plain,
        attention=tuple(AttentionGroup(**group) for group in row["attention"]),
        feed_forward=tuple(FeedForwardGroup(**group) for group in row["feed_forward"]),
        vision=None if row.get("vision") is None else VisionEncoder(**row["vision"]),
        audio=None if row.get("audio") is None else AudioEncoder(**row["audio"]),
    )


def prior_from_row(row: Mapping[str, Any]) -> ConstantPrior:
    """A constant keeps the unit of its row: solver.step.constants knows the factor to SI."""
    fields = ("name", "family", "device", "engine", "value", "low", "high", "basis")
    return ConstantPrior(**{name: row[name] for name in fields}, llms=tuple(row.get("llms", ())))


LengthsIn = FixedLength | UniformLength | LognormalLength | HistogramLength


def lengths_from_wire(asked: LengthsIn) -> Lengths:
    """Raises InvalidInputError where no such distribution exists."""
    match asked:
        case FixedLength():
            return fixed_lengths(asked.tokens)
        case UniformLength():
            return uniform_lengths(asked.low, asked.high)
        case LognormalLength():
            return lognormal_lengths(asked.mean, asked.p95)
        case HistogramLength():
            bins = sorted(asked.histogram, key=lambda b: b.tokens)
            return Lengths(tuple(b.tokens for b in bins), tuple(b.share for b in bins))


def stated_lengths(asked: TrafficShape) -> list[tuple[str, LengthsIn]]:
    """Every distribution of lengths that the traffic states, with the field it is in."""
    found: list[tuple[str, LengthsIn]] = [("output_tokens", asked.output_tokens)]
    if asked.prompt_tokens is not None:
        found.insert(0, ("prompt_tokens", asked.prompt_tokens))
    if asked.thinking_tokens is not None:
        found.append(("thinking_tokens", asked.thinking_tokens))
    if asked.sessions is not None:
        found += [("sessions/turns", asked.sessions.turns), ("sessions/user_tokens", asked.sessions.user_tokens)]
    return found


def traffic_from_wire(asked: TrafficShape, image_tokens: int = 0) -> Traffic:
    """image_tokens: of a request's images, on top of its prompt (``service.recommendations.images``).

    Raises InvalidInputError where no such requests exist.
    """
    output = lengths_from_wire(asked.output_tokens)
    if asked.sessions is not None:
        return session_traffic(sessions_from_wire(asked.sessions), output)[0]
    assert asked.prompt_tokens is not None
    prompt = lengths_from_wire(asked.prompt_tokens)
    if image_tokens:
        prompt = Lengths(tuple(tokens + image_tokens for tokens in prompt.tokens), prompt.shares)
    if asked.thinking_tokens is None:
        return Traffic(prompt, output, asked.shared_prefix_fraction)
    hidden = lengths_from_wire(asked.thinking_tokens)
    both = summed_lengths(hidden, output)
    return Traffic(prompt, both, asked.shared_prefix_fraction, thinking=Thinking(hidden, output))


def sessions_from_wire(asked: SessionsIn) -> Sessions:
    """Raises InvalidInputError where no such sessions exist."""
    return Sessions(
        turns=lengths_from_wire(asked.turns),
        user=lengths_from_wire(asked.user_tokens),
        think_s=asked.think_time_s,
        system_tokens=asked.system_prompt_tokens,
        system_prompts=asked.system_prompts,
        document_tokens=asked.document_tokens,
        documents=asked.documents,
        spread_over=asked.replicas or 1,
        routing="random" if asked.routing == "sticky" else asked.routing,
        spread_is_stated=asked.routing == "sticky" or asked.replicas is not None,
    )


def load_from_wire(asked: ClosedLoad | OpenLoad) -> Load:
    if isinstance(asked, ClosedLoad):
        return Load("closed", concurrency=asked.concurrency, requests=asked.requests)
    return Load("open", requests_per_s=asked.requests_per_s, requests=asked.requests)


def layout_from_wire(asked: LayoutIn) -> Layout:
    return Layout(asked.tensor_parallel, asked.pipeline_parallel, asked.data_parallel, asked.expert_parallel)


def precision_from_wire(asked: PrecisionIn) -> Precision:
    return Precision(asked.weights, asked.kv_cache)


def engine_from_wire(asked: EngineIn) -> EngineSettings:
    return EngineSettings(
        asked.name, asked.version, asked.max_batched_tokens, asked.max_sequences, asked.memory_fraction,
        asked.max_context_tokens, bytes_from_gib(asked.host_cache_gib), bytes_from_gib(asked.disk_cache_gib),
        None if asked.disk_read_gbytes_per_s is None else asked.disk_read_gbytes_per_s * GIGA,
        asked.admission_interval_steps or 1,
        asked.api_servers,
        asked.max_captured_tokens,
        asked.scan_kernel,
        asked.load_format == "dummy",
        any_release=asked.release == "any" if asked.version is None else is_current(asked.name, asked.version) is False,
    )  # fmt: skip


def _figure_or_nan(figure: float | None) -> float:
    return math.nan if figure is None else figure
