"""Effective rates of one device, or arrays of them over many candidates: datasheet rate × efficiency, in SI."""

import math
from dataclasses import dataclass, fields
from operator import attrgetter

from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Device
from solver.layout import Layout
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS, Precision
from solver.step.constants import Constants
from solver.step.gemm import Quantity

GEMM_EFFICIENCY = {
    "bf16": "gemm_efficiency_16bit",
    "fp16": "gemm_efficiency_16bit",
    "fp8": "gemm_efficiency_fp8",
    "int8": "gemm_efficiency_int8",
    "fp4": "gemm_efficiency_fp4",
    "fp32": "gemm_efficiency_32bit",
    "tf32": "gemm_efficiency_32bit",
}
"""Which efficiency belongs to which compute dtype."""
NARROW_DTYPES = ("fp8", "int8", "fp4")


@dataclass(frozen=True, slots=True)
class Rates:
    """Everything about the device, precision and layout that the step laws read. Fields broadcast together."""

    tensor_parallel: Quantity
    expert_parallel: Quantity
    weight_bytes: Quantity
    """Stored bytes of a quantised weight."""
    activation_bytes: Quantity
    kv_bytes: Quantity
    quantised_activations: Quantity
    """1 where activations are quantised on the fly (fp8, int8, fp4 compute), else 0."""
    partial_tile_slowdown: Quantity
    """Dense products: how much longer, per share of their row tiles left empty; 0 beyond 8 bits."""
    partial_tile_read_slowdown: Quantity
    gemm_flop_per_s: Quantity
    expert_flop_per_s: Quantity
    """Routed products wide enough to be as good as dense ones."""
    wide_flop_per_s: Quantity
    """16-bit products: head, router."""
    expert_half_width: Quantity
    """Expert width per rank at which routed products reach half the dense efficiency."""
    expert_widest_share: Quantity
    """What products of the widest experts reach of a dense one's rate."""
    expert_evenness: Quantity
    """Shape of the gamma law of experts' popularity; large where all are alike."""
    expert_weight_bytes: Quantity
    attention_flop_per_s: Quantity
    weight_bytes_per_s: Quantity
    wide_bytes_per_s: Quantity
    """Reading the weights of 16-bit products."""
    expert_bytes_per_s: Quantity
    expert_tile_rows: Quantity
    """Of the tiles that one expert's rows fill, the last of them half."""
    kv_bytes_per_s: Quantity
    shared_read_fraction: Quantity
    """Share of its read that context takes which another sequence of the batch has read."""
    stream_bytes_per_s: Quantity
    state_bytes_per_s: Quantity
    """Reading and writing recurrent states."""
    recurrent_chunk_tokens: Quantity
    """Tokens of a prompt that pass through a recurrent layer at once."""
    delta_scan_flop_per_s: Quantity
    """Scanning prompts by a gated delta rule, with what stands around the scan in such a layer."""
    delta_scan_start_s: Quantity
    link_bytes_per_s: Quantity
    all_reduce_latency_s: Quantity
    exchange_latency_s: Quantity
    """Starting one gather or reduction among devices whose copies share experts, and (next) what each device more adds."""
    exchange_hop_s: Quantity
    exchange_start_s: Quantity
    """What the protocol that reaches the link's rate takes longer to start."""
    exchange_quick_share: Quantity
    """Of the link's rate, what the protocol that starts at once reaches."""
    exchange_own_share: Quantity
    """What copying an own row takes of receiving one."""
    hand_over_bytes_per_s: Quantity
    hand_over_latency_s: Quantity
    layer_overhead_s: Quantity
    quantised_layer_overhead_s: Quantity
    """Quantising what the products of a layer multiply, attention's and feed-forward's."""
    expert_layer_overhead_s: Quantity
    qk_norm_layer_overhead_s: Quantity
    linear_layer_overhead_s: Quantity
    latent_layer_overhead_s: Quantity
    index_layer_overhead_s: Quantity
    eager_layer_s: Quantity
    image_eager_layer_s: Quantity
    """Of encoders of images; NaN where no figure is known."""
    item_eager_layer_s: Quantity
    """Of models that embed; NaN where no figure is known."""
    eager_expert_layer_s: Quantity
    eager_linear_layer_s: Quantity
    eager_latent_layer_s: Quantity
    captured_latent_layer_s: Quantity
    """Launching latent attention over prompts between captured pieces of a step; over replies beside them, the next."""
    captured_latent_replies_s: Quantity
    captured_linear_layer_s: Quantity
    """The same of recurrent layers."""
    captured_linear_replies_s: Quantity
    captured_delta_replies_s: Quantity
    """Of gated delta rules, whose replies are launched alike whatever scans prompts."""
    piecewise_decode_layer_s: Quantity
    """Launching a layer of replies between captured pieces, where no graph captures attention."""
    delta_launch_ratio: Quantity
    """Launching a layer with a gated delta rule, over one with a state space."""
    eager_collective_s: Quantity
    eager_exchange_call_s: Quantity
    """Launching one call of an exchange from the host, where copies have different numbers of tokens."""
    spread_expert_layer_s: Quantity
    """Kernels of a layer that find which experts are a device's own, where copies share them."""
    expert_sort_s: Quantity
    """Sorting few pairs of tokens and experts."""
    step_overhead_s: Quantity
    pipeline_step_overhead_s: Quantity
    pipeline_slowed_fraction: Quantity
    sequence_overhead_s: Quantity
    decode_sequence_tokens: Quantity
    expert_imbalance: Quantity
    adapter_product_overhead_s: Quantity
    """Starting the two kernels of one adapted product; NaN where no figure is known (``check_adapters_served``)."""
    adapter_eager_product_s: Quantity
    """Launching them from the host, outside a captured graph."""
    adapter_stream_bytes_per_s: Quantity
    """What adapted products move of their inputs and outputs."""
    adapter_read_bytes_per_s: Quantity
    """Reading the adapters of a batch."""
    grammar_mask_s: Quantity
    """Host time to find which tokens a grammar admits next; NaN where no figure is known."""
    host_bytes_per_s: Quantity
    """From the host's memory to the device; NaN where its link is not known."""
    peak_flop_per_s: Quantity
    """Datasheet rate of the weights' compute dtype, for bounds and power."""
    peak_bytes_per_s: Quantity


_VALUES = attrgetter(*(field.name for field in fields(Rates)))


def rates_key(of_one: Rates) -> tuple[Quantity | None, ...]:
    """The rates of one deployment to look up by, equal where they are: figures that are not known (NaN) are None."""
    return tuple(None if value != value else value for value in _VALUES(of_one))


def compute_dtype(device: Device, weights: str) -> str:
    """The dtype in which this device multiplies that weight format: the first of the format's list that it has, or 16 bits
    where an engine widens the format as it reads it.

    Raises UnsupportedError for an unknown format or one the device cannot multiply, FigureMissingError when the
    device's matrix rates are unpublished altogether.
    """
    form = WEIGHT_FORMATS.get(weights)
    if form is None:
        raise UnsupportedError("unknown_precision", f"{weights!r} is not a weight format known here")
    if not device.flop_per_s:
        raise FigureMissingError(device.id, f"matrix rate for {weights}")
    for dtype in form.compute:
        if dtype in device.flop_per_s:
            return dtype
    if weights in device.widened:
        return wide_dtype(device)
    raise UnsupportedError(
        "precision_not_on_device",
        f"{device.id} has no matrix unit for {weights} weights (needs one of {', '.join(form.compute)})",
    )


def multiplies_narrow(device: Device, weights: str) -> bool:
    """Whether products with this format are of 8 bits or fewer on the device. Raises as ``compute_dtype`` does."""
    return compute_dtype(device, weights) in NARROW_DTYPES


def widens(device: Device, weights: str) -> bool:
    """Whether weights below 8 bits are widened as they are read, in front of 16-bit products. Raises as ``compute_dtype`` does."""
    return not multiplies_narrow(device, weights) and WEIGHT_FORMATS[weights].bytes_per_weight < 1.0


def wide_dtype(device: Device) -> str:
    """The 16-bit dtype of unquantised tensors: bf16, else fp16, else fp32."""
    for dtype in ("bf16", "fp16", "fp32"):
        if dtype in device.flop_per_s:
            return dtype
    raise FigureMissingError(device.id, "16-bit matrix rate")


def link_inside_node(
    device: Device, constants: Constants, devices: int, link_domain_devices: int
) -> tuple[float, float] | None:
    """(bytes/s, latency in s) among ``devices`` of one node that exchange data; None where nothing joins them.

    The scale-up link if its domain holds them all, else PCIe. One device alone needs no link: endless and immediate.
    """
    if devices == 1:
        return math.inf, 0.0
    if devices <= link_domain_devices and device.link_bytes_per_s > 0:
        return device.link_bytes_per_s * constants.si("link_efficiency"), constants.si("all_reduce_latency_us")
    if device.pcie_bytes_per_s > 0:
        return device.pcie_bytes_per_s * constants.si("network_efficiency"), constants.si("all_reduce_latency_us")
    return None


def rates(
    device: Device,
    constants: Constants,
    precision: Precision,
    layout: Layout,
    *,
    link_domain_devices: int,
    network_bytes_per_s: float = 0.0,
    beside_experts_bytes: float | None = None,
    scan_kernel: str = "triton",
) -> Rates:
    """Effective rates for one deployment.

    link_domain_devices: how many devices of the node share the scale-up link. network_bytes_per_s: per device, where
    stages lie on several nodes: they hand over by it, and so does a tensor-parallel group that nothing else joins.
    beside_experts_bytes: stored bytes of a weight outside the routed experts, where a checkpoint keeps those wider.
    scan_kernel: whose kernels scan prompts in layers of a gated delta rule (``solver.engine.profiles``).
    Raises UnsupportedError and FigureMissingError as compute_dtype does.
    """
    dtype = compute_dtype(device, precision.weights)
    wide = wide_dtype(device)
    if precision.kv_cache not in KV_CACHE_BYTES:
        raise UnsupportedError("unknown_precision", f"{precision.kv_cache!r} is not a KV-cache format known here")
    kv_bytes = KV_CACHE_BYTES[precision.kv_cache]
    narrow = dtype in NARROW_DTYPES
    eight_bit_cache = kv_bytes < 2.0
    stored = WEIGHT_FORMATS[precision.weights].bytes_per_weight
    beside = stored if beside_experts_bytes is None else beside_experts_bytes
    widened, widened_experts = not narrow and beside < 1.0, not narrow and stored < 1.0
    # A checkpoint that keeps all but its experts in 16 bits has nothing to quantise in front of dense products.
    narrow_dense = narrow and beside < 2.0
    c = constants.si
    known = constants.si_or_nan
    memory = device.memory_bytes_per_s
    peak, wide_peak = device.flop_per_s[dtype], device.flop_per_s[wide]
    dense, dense_peak = (dtype, peak) if narrow_dense or not narrow else (wide, wide_peak)
    dense_flop_per_s = dense_peak * c(GEMM_EFFICIENCY[dense])
    between_nodes = None
    if network_bytes_per_s > 0:
        between_nodes = network_bytes_per_s * c("network_efficiency"), c("network_latency_us")
    sharing = max(layout.tensor_parallel, layout.expert_parallel)
    inside = link_inside_node(device, constants, sharing, link_domain_devices)
    collective = inside or between_nodes
    passing = layout.devices_per_replica if layout.pipeline_parallel > 1 else 1
    hand_over = between_nodes or link_inside_node(device, constants, passing, link_domain_devices)
    if collective is None or hand_over is None:
        raise FigureMissingError(device.id, "link between devices")
    layer = c("layer_overhead_us")
    if eight_bit_cache:
        layer += c("quantised_cache_layer_overhead_us")
    bits = "8bit" if narrow else "16bit"
    routing = "int4" if bits == "16bit" and precision.weights == "int4" else bits
    return Rates(
        tensor_parallel=float(layout.tensor_parallel),
        expert_parallel=float(layout.expert_parallel),
        weight_bytes=beside,
        activation_bytes=1.0 if narrow_dense else 2.0,
        kv_bytes=kv_bytes,
        quantised_activations=1.0 if narrow_dense else 0.0,
        partial_tile_slowdown=c("partial_tile_slowdown_8bit") if narrow_dense else 0.0,
        partial_tile_read_slowdown=c("partial_tile_read_slowdown_8bit") if narrow_dense else 0.0,
        gemm_flop_per_s=dense_flop_per_s,
        expert_flop_per_s=peak * c(GEMM_EFFICIENCY[dtype]) * (c("widened_expert_share") if widened_experts else 1.0),
        wide_flop_per_s=wide_peak * c(GEMM_EFFICIENCY[wide]),
        expert_half_width=c(f"expert_half_width_{bits}"),
        expert_widest_share=c(f"expert_widest_share_{bits}"),
        expert_evenness=c(f"expert_evenness_{routing}"),
        expert_weight_bytes=stored,
        attention_flop_per_s=wide_peak * c("attention_efficiency"),
        weight_bytes_per_s=memory * c("weight_read_efficiency") * (c("widened_read_share") if widened else 1.0),
        wide_bytes_per_s=memory * c("weight_read_efficiency"),
        expert_bytes_per_s=memory
        * c("expert_read_efficiency")
        * (c("widened_expert_read_share") if widened_experts else 1.0),
        expert_tile_rows=0.0 if widened_experts else c("expert_tile_rows"),
        kv_bytes_per_s=memory * c("kv_read_efficiency_8bit" if eight_bit_cache else "kv_read_efficiency"),
        shared_read_fraction=c("shared_read_fraction"),
        stream_bytes_per_s=memory * c("stream_efficiency"),
        state_bytes_per_s=memory * c("state_efficiency"),
        recurrent_chunk_tokens=c("recurrent_chunk_tokens"),
        delta_scan_start_s=c(f"delta_scan_start_us_{scan_kernel}"),
        delta_scan_flop_per_s=wide_peak * c(f"delta_scan_efficiency_{scan_kernel}"),
        link_bytes_per_s=collective[0],
        all_reduce_latency_s=collective[1],
        exchange_latency_s=c("exchange_latency_us") if inside else collective[1],
        exchange_hop_s=c("exchange_hop_us") if inside else 0.0,
        exchange_start_s=c("exchange_start_us") if inside else 0.0,
        exchange_quick_share=c("exchange_quick_share") if inside else 1.0,
        exchange_own_share=c("exchange_own_share"),
        hand_over_bytes_per_s=hand_over[0],
        hand_over_latency_s=hand_over[1],
        layer_overhead_s=layer,
        quantised_layer_overhead_s=c("quantised_layer_overhead_us") if narrow_dense else 0.0,
        expert_layer_overhead_s=c("expert_layer_overhead_us") + (c("quantised_expert_layer_us") if narrow else 0.0),
        qk_norm_layer_overhead_s=c("qk_norm_layer_overhead_us"),
        linear_layer_overhead_s=c("linear_layer_overhead_us"),
        latent_layer_overhead_s=c("latent_layer_overhead_us"),
        index_layer_overhead_s=c("index_layer_overhead_us"),
        eager_layer_s=c("eager_layer_us"),
        image_eager_layer_s=known("image_eager_layer_us"),
        item_eager_layer_s=known("item_eager_layer_us"),
        eager_expert_layer_s=c("eager_expert_layer_us"),
        eager_linear_layer_s=c("eager_linear_layer_us"),
        eager_latent_layer_s=c("eager_latent_layer_us"),
        captured_latent_layer_s=c("captured_latent_layer_us"),
        captured_latent_replies_s=c("captured_latent_replies_us"),
        captured_linear_layer_s=c("captured_linear_layer_us"),
        captured_linear_replies_s=c("captured_linear_replies_us"),
        captured_delta_replies_s=c("captured_delta_replies_us"),
        piecewise_decode_layer_s=c("piecewise_decode_layer_us"),
        delta_launch_ratio=c(f"delta_launch_ratio_{scan_kernel}"),
        eager_collective_s=c("eager_collective_us"),
        eager_exchange_call_s=c("eager_exchange_call_us"),
        spread_expert_layer_s=c("spread_expert_layer_us"),
        expert_sort_s=c("expert_sort_us"),
        step_overhead_s=c("step_overhead_us"),
        pipeline_step_overhead_s=c("pipeline_step_overhead_us"),
        pipeline_slowed_fraction=c("pipeline_slowed_fraction"),
        sequence_overhead_s=c("sequence_overhead_us"),
        decode_sequence_tokens=c("decode_sequence_tokens"),
        expert_imbalance=c("expert_imbalance"),
        adapter_product_overhead_s=known("adapter_product_overhead_us"),
        adapter_eager_product_s=known("adapter_eager_product_us"),
        adapter_stream_bytes_per_s=memory * known("adapter_stream_efficiency"),
        adapter_read_bytes_per_s=memory * known("adapter_read_efficiency"),
        grammar_mask_s=known("grammar_mask_us"),
        host_bytes_per_s=device.pcie_bytes_per_s * c("network_efficiency") if device.pcie_bytes_per_s > 0 else math.nan,
        peak_flop_per_s=peak,
        peak_bytes_per_s=memory,
    )
