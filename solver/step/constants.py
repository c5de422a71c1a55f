"""The physical constants of the performance model: names, units, physical ranges, and how the right one is found.

The values are data (catalog rows or fitted corrections), never code. This file only says which constants exist,
what they mean and in which range they are physical: a fit may not leave it, and an efficiency never exceeds 1.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from solver.errors import FigureMissingError


@dataclass(frozen=True, slots=True)
class ConstantLaw:
    """unit: of the catalog row. si: factor from that unit to SI. low–high: physical range in the row's unit."""

    unit: str
    si: float
    low: float
    high: float
    meaning: str


def _efficiency(meaning: str) -> ConstantLaw:
    return ConstantLaw("fraction", 1.0, 0.005, 1.0, meaning)


def _micro(meaning: str, high: float) -> ConstantLaw:
    return ConstantLaw("us", 1e-6, 0.0, high, meaning)


CONSTANTS: dict[str, ConstantLaw] = {
    # Shares of a datasheet rate that operators reach inside a running engine.
    "gemm_efficiency_16bit": _efficiency("dense products in bf16 or fp16, share of the datasheet FLOP/s"),
    "gemm_efficiency_fp8": _efficiency("dense products in fp8"),
    "gemm_efficiency_int8": _efficiency("dense products in int8"),
    "gemm_efficiency_fp4": _efficiency("dense products in a 4-bit float format"),
    "gemm_efficiency_32bit": _efficiency("dense products in fp32 or tf32"),
    "expert_half_width_16bit": ConstantLaw(
        "columns", 1.0, 0.0, 8192.0, "width of a routed expert, per rank, at which its products reach half the efficiency of dense ones"
    ),
    "expert_half_width_8bit": ConstantLaw("columns", 1.0, 0.0, 8192.0, "the same in 8 bits and below"),
    "expert_widest_share_16bit": _efficiency("grouped products of the widest experts, share of what a dense product reaches"),
    "expert_widest_share_8bit": _efficiency("the same in 8 bits and below"),
    "expert_evenness_16bit": ConstantLaw(
        "shape", 1.0, 0.01, 1000.0, "evenness of routing: shape of the gamma law of experts' popularity (large: all alike)"
    ),
    "expert_evenness_8bit": ConstantLaw("shape", 1.0, 0.01, 1000.0, "the same in 8 bits and below"),
    "expert_evenness_int4": ConstantLaw("shape", 1.0, 0.01, 1000.0, "the same of 4-bit integers, multiplied in 16 bits"),
    "partial_tile_slowdown_8bit": ConstantLaw(
        "fraction", 1.0, 0.0, 3.0, "how much longer 8-bit products take, per share of their row tiles left empty"
    ),
    "partial_tile_read_slowdown_8bit": ConstantLaw(
        "fraction", 1.0, 0.0, 3.0, "the same where one tile holds all rows, and reading the weights takes the time"
    ),
    "attention_efficiency": _efficiency("prefill attention, share of the 16-bit FLOP/s"),
    "weight_read_efficiency": _efficiency("reading weights, share of the memory bandwidth"),
    "widened_read_share": ConstantLaw(
        "ratio", 1.0, 0.05, 1.5, "reading weights below 8 bits that are widened before a 16-bit product, over reading others"
    ),
    "widened_expert_share": ConstantLaw(
        "ratio", 1.0, 0.02, 1.5, "products of routed experts whose weights are widened to 16 bits, over those of 16-bit weights"
    ),
    "widened_expert_read_share": ConstantLaw(
        "ratio", 1.0, 0.05, 1.5, "reading routed experts' weights that are widened to 16 bits, over reading others"
    ),
    "expert_read_efficiency": _efficiency("reading routed experts' weights"),
    "expert_tile_rows": ConstantLaw("ratio", 1.0, 0.0, 512.0, "rows of the tiles that rows of one expert fill, the last of them half"),
    "quantised_expert_layer_us": _micro("kernels that quantise what the experts of one layer multiply", 200.0),
    "kv_read_efficiency": _efficiency("reading a 16-bit KV cache in decode attention"),
    "kv_read_efficiency_8bit": _efficiency("reading an 8-bit KV cache in decode attention"),
    "shared_read_fraction": ConstantLaw(
        "fraction", 1.0, 0.0, 1.0, "reading context that another sequence of the batch has read, over reading its own"
    ),
    "stream_efficiency": _efficiency("element-wise passes (norms, activations, quantisation)"),
    "state_efficiency": _efficiency("reading and writing recurrent states (state-space and other linear layers)"),
    "delta_scan_efficiency_triton": _efficiency(
        "scanning prompts by gated delta rules with Triton's kernels, convolution and gates included, share of the 16-bit FLOP/s"
    ),
    "delta_scan_efficiency_flashinfer": _efficiency("the same with FlashInfer's kernel"),
    "link_efficiency": _efficiency("collectives over the scale-up link, share of one direction"),
    "network_efficiency": _efficiency("transfers between nodes, share of one direction of the NICs"),
    "host_load_efficiency": _efficiency("loading cached context from host memory, share of one direction of the device's PCIe"),
    "tier_store_us": _micro("host time of a step that leaves new blocks of the cache to a disk", 20000.0),
    "all_reduce_latency_us": _micro("start-up of one collective inside a scale-up domain", 500.0),
    "exchange_latency_us": _micro("start-up of one gather or reduction among devices whose copies of attention share experts", 500.0),
    "exchange_hop_us": _micro("added to it for each device beyond the first", 100.0),
    "exchange_start_us": _micro("how much later the protocol starts that reaches the link's rate", 500.0),
    "exchange_quick_share": _efficiency("of that rate, what the protocol reaches that starts at once"),
    "exchange_own_share": ConstantLaw("fraction", 1.0, 0.0, 2.0, "copying an own row in an exchange, over receiving one"),
    "network_latency_us": _micro("start-up of one transfer or collective between nodes", 2000.0),
    # How much an engine reaches of what bare kernels do on the same device (solver.step.probes).
    "probe_share_gemm_16bit": ConstantLaw("ratio", 1.0, 0.1, 3.0, "gemm_efficiency_16bit over the share of bare products"),
    "probe_share_gemm_fp8": ConstantLaw("ratio", 1.0, 0.1, 3.0, "gemm_efficiency_fp8 over the share of bare products"),
    "probe_share_weight_read": ConstantLaw("ratio", 1.0, 0.1, 3.0, "weight_read_efficiency over the share of a large copy"),
    "probe_share_expert_read": ConstantLaw("ratio", 1.0, 0.1, 3.0, "expert_read_efficiency over the share of a large copy"),
    "probe_share_kv_read": ConstantLaw("ratio", 1.0, 0.1, 3.0, "kv_read_efficiency over the share of a large copy"),
    "probe_share_stream": ConstantLaw("ratio", 1.0, 0.1, 3.0, "stream_efficiency over the share of a large copy"),
    "probe_share_link": ConstantLaw("ratio", 1.0, 0.1, 3.0, "link_efficiency over the share of large all-reduces"),
    # What an engine adds.
    "layer_overhead_us": _micro("kernel boundaries of one layer", 5000.0),
    "quantised_layer_overhead_us": _micro("extra kernels of one layer when activations are quantised", 1000.0),
    "expert_layer_overhead_us": _micro("extra kernels of one mixture-of-experts layer (routing, sorting, combining)", 5000.0),
    "quantised_cache_layer_overhead_us": _micro("extra kernels of one layer with an 8-bit KV cache", 1000.0),
    "qk_norm_layer_overhead_us": _micro("extra kernels of one layer with query/key norms", 1000.0),
    "linear_layer_overhead_us": _micro("extra kernels of one recurrent layer (convolution, state update, gated norm)", 5000.0),
    "latent_layer_overhead_us": _micro("extra kernels of one layer with latent attention (projections of the latent)", 5000.0),
    "index_layer_overhead_us": _micro("extra kernels of one layer that picks the tokens it attends to (indexer, top k)", 5000.0),
    "eager_layer_us": _micro("host time to launch one layer outside a captured graph", 20000.0),
    "eager_expert_layer_us": _micro("extra host time to launch one mixture-of-experts layer outside a graph", 20000.0),
    "eager_linear_layer_us": _micro("extra host time to launch one recurrent layer outside a graph", 20000.0),
    "delta_scan_start_us_triton": _micro("starting the kernels of a gated delta rule's scan, Triton's, a layer and step", 5000.0),
    "delta_scan_start_us_flashinfer": _micro("the same with FlashInfer's kernel", 5000.0),
    "delta_launch_ratio_triton": ConstantLaw(
        "ratio", 1.0, 0.05, 5.0, "host time to launch a gated delta rule scanned with Triton's kernels, over eager_linear_layer_us"
    ),
    "delta_launch_ratio_flashinfer": ConstantLaw("ratio", 1.0, 0.05, 5.0, "the same with FlashInfer's kernel"),
    "eager_latent_layer_us": _micro("extra host time to launch one layer with latent attention outside a graph", 20000.0),
    "captured_latent_layer_us": _micro("host time to launch one layer of latent attention over prompts between captured pieces", 5000.0),
    "captured_latent_replies_us": _micro("the same over replies that decode beside prompts", 5000.0),
    "captured_linear_layer_us": _micro("host time to launch one recurrent layer over prompts between captured pieces", 5000.0),
    "captured_linear_replies_us": _micro("the same over replies that decode beside prompts", 5000.0),
    "captured_delta_replies_us": _micro("the same of a layer with a gated delta rule, over replies", 5000.0),
    "piecewise_decode_layer_us": _micro("host time to launch one layer of replies, of models whose attention no graph captures", 5000.0),
    "eager_collective_us": _micro("host time to launch and meet for one collective outside a captured graph", 5000.0),
    "eager_exchange_call_us": _micro("host time of one call of an exchange outside a graph, one for every device and tensor", 1000.0),
    "spread_expert_layer_us": _micro("extra kernels of one mixture-of-experts layer where copies share experts", 1000.0),
    "expert_sort_us": _micro("sorting few pairs of tokens and experts, which only spread experts need", 1000.0),
    "adapter_stream_efficiency": _efficiency("inputs and outputs of adapters' thin products, share of the memory bandwidth"),
    "adapter_read_efficiency": _efficiency("reading the different adapters of a batch, share of the memory bandwidth"),
    "adapter_eager_product_us": _micro("host time to launch what adapters add to one product, outside a captured graph", 20000.0),
    "adapter_product_overhead_us": _micro("starting the two kernels that adapters add to one product, inside a captured graph", 1000.0),
    "pipeline_slowed_fraction": ConstantLaw("fraction", 1.0, 0.0, 2.0, "how much longer prompts take while several batches are in flight"),
    "pipeline_step_overhead_us": _micro("added to a step of each stage when several batches are in flight", 50000.0),
    "step_overhead_us": _micro("scheduling, sampling and bookkeeping of one step", 50000.0),
    "waited_step_us": _micro("host time a step waits for, where it is composed when the one before is done", 50000.0),
    "waited_sequence_us": _micro("the same for each running sequence", 1000.0),
    "first_loop_step_us": _micro("host time a step waits for, in releases from before an engine's loop was written anew", 50000.0),
    "grammar_mask_us": _micro("host time to find which tokens a grammar admits next, a sequence and step", 100000.0),
    "sequence_overhead_us": _micro("host time per running sequence and step", 1000.0),
    "decode_sequence_tokens": ConstantLaw(
        "tokens", 1.0, 0.0, 5000.0, "fixed cost of one sequence in decode attention, as KV tokens read"
    ),
    "request_overhead_ms": ConstantLaw("ms", 1e-3, 0.0, 1000.0, "HTTP, tokenising, hand-over and detokenising of one request"),
    "request_ingest_us": _micro("serial front-end time per request before it is queued", 20000.0),
    "item_overhead_ms": ConstantLaw("ms", 1e-3, 0.0, 1000.0, "HTTP, hand-over and pooling of one item of a model that embeds"),
    "item_ingest_us": _micro("serial front-end time per item before it is queued", 20000.0),
    "item_token_us": _micro("front-end time per token of an item that is sent as text", 100.0),
    "item_token_id_us": _micro("front-end time per token of an item that is sent as token ids, which are checked one by one", 1000.0),
    "image_eager_layer_us": _micro("host time to launch one layer of an encoder of images, videos or recordings", 20000.0),
    "item_eager_layer_us": _micro("host time to launch one layer of a model that embeds, outside a captured graph", 20000.0),
    "prompt_token_us": _micro("front-end time per prompt token", 100.0),
    "image_overhead_ms": ConstantLaw("ms", 1e-3, 0.0, 1000.0, "hand-over of a request with images, beside one of text"),
    "image_ingest_ms": ConstantLaw("ms", 1e-3, 0.0, 1000.0, "serial host time to receive an image, whatever its size"),
    "prefix_token_us": _micro("time per prompt token to hash it for the cache of prefixes, while no step with prompts begins", 100.0),
    "admitted_token_us": _micro("host time of a step per token of the prompts it admits, found in the cache of prefixes or not", 100.0),
    "turn_overhead_fraction": ConstantLaw(
        "fraction", 1.0, 0.0, 1.0, "what a turn of a session waits of request_overhead_ms, beside what its tokens take"
    ),
    "answered_token_us": _micro("serial front-end time for a first token, per token of its prompt, with a cache of prefixes", 100.0),
    "image_megapixel_ms": ConstantLaw("ms", 1e-3, 0.0, 5000.0, "serial host time to receive, decode, resize and cut an image, a megapixel"),
    "token_front_end_us": _micro("serial front-end time per streamed output token", 5000.0),
    "front_end_busy_fraction": ConstantLaw(
        "fraction", 1.0, 0.05, 1.0, "of the time of the front end of a planned replica, how much passing tokens on may take"
    ),
    "recurrent_chunk_tokens": ConstantLaw(
        "tokens", 1.0, 1.0, 4096.0, "tokens of a prompt that a recurrent layer scans between two passes over its state"
    ),
    "schedule_lag_fraction": ConstantLaw("fraction", 1.0, 0.0, 1.0, "how far ahead a step is composed, in steps"),
    "expert_imbalance": ConstantLaw("ratio", 1.0, 1.0, 10.0, "most loaded expert device over the mean"),
    "clock_headroom_fraction": ConstantLaw(
        "fraction", 1.0, 0.0, 0.5, "how much shorter an arithmetic-bound step is on a board below its sustained power"
    ),
    "clock_sag_fraction": ConstantLaw(
        "fraction", 1.0, 0.0, 0.5, "how much longer a memory-bound step is on a board at its sustained power than on a rested one"
    ),
    "clock_settling_s": ConstantLaw("s", 1.0, 0.01, 60.0, "time constant of settling to the sustained clock"),
    # Memory an engine takes besides weights and cache (solver.memory.fits.EngineMemory).
    "driver_reserve_bytes": ConstantLaw("byte", 1.0, 0.0, 16 * 2.0**30, "memory shown that no process can have"),
    "runtime_bytes": ConstantLaw("byte", 1.0, 0.0, 16 * 2.0**30, "libraries, workspaces and buffers"),
    "collective_bytes": ConstantLaw("byte", 1.0, 0.0, 16 * 2.0**30, "buffers of collective communication"),
    "graph_bytes_per_layer": ConstantLaw("byte", 1.0, 0.0, 2.0**30, "captured graphs, per dense layer"),
    "graph_bytes_per_expert_layer": ConstantLaw("byte", 1.0, 0.0, 2.0**30, "captured graphs, per sparse layer"),
    "graph_bytes_per_size_and_expert_layer": ConstantLaw(
        "byte", 1.0, 0.0, 2.0**24, "captured graphs, per sparse layer and captured size"
    ),
    "joined_graph_bytes_per_size_and_expert_layer": ConstantLaw(
        "byte", 1.0, 0.0, 2.0**24, "the same beyond that, of each size above 512 tokens, where a replica has several devices"
    ),
    "graph_bytes_per_recurrent_layer": ConstantLaw(
        "byte", 1.0, 0.0, 2.0**30, "what a recurrent layer takes beyond that of its block: graphs and working memory"
    ),
    "block_tokens": ConstantLaw("tokens", 1.0, 1.0, 4096.0, "tokens a block of key-value cache holds"),
    "pooled_cache": ConstantLaw("flag", 1.0, 0.0, 1.0, "layers of different kinds share one pool of blocks"),
    "hidden_copies": ConstantLaw("ratio", 1.0, 0.0, 64.0, "hidden-wide vectors alive per token in a block"),
    "logits_copies": ConstantLaw("ratio", 1.0, 0.0, 16.0, "vocabulary-wide rows alive per sequence while sampling"),
    # How much wider an interval is where measurements do not reach (exponents on its factors).
    "interval_widening_borrowed": ConstantLaw("exponent", 1.0, 1.0, 10.0, "only a sibling device or engine version measured"),
    "interval_widening_unseen": ConstantLaw("exponent", 1.0, 1.0, 10.0, "no model of this class and precision measured"),
    "kin_shrinkage": ConstantLaw(
        "ratio", 1.0, 0.0, 100.0, "variance of errors within a model's configurations over that between models, on one device"
    ),
    "kin_run_shrinkage": ConstantLaw("ratio", 1.0, 0.0, 100.0, "variance of one run's own error over that which loads and layouts share"),
    "kin_bandwidth": ConstantLaw(
        "ratio", 1.0, 0.05, 10.0, "how far a run's error reaches, in logarithms of clients, prompt, reply and degrees of a layout"
    ),
    "interval_power_fraction": ConstantLaw("fraction", 1.0, 0.0, 1.0, "half width of a power interval no measured run speaks of"),
    "interval_token_miss": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "measured over predicted time per token beyond the ranges of constants; its range counts"
    ),
    "interval_first_token_miss": ConstantLaw("ratio", 1.0, 0.01, 100.0, "the same of the time to the first token"),
    "interval_token_miss_any_release": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "the same of the time per token where the release is not stated or of an earlier generation"
    ),
    "interval_first_token_miss_any_release": ConstantLaw("ratio", 1.0, 0.01, 100.0, "the same of the time to the first token"),
    "interval_release_miss": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "times of runs of an unstated release over those predicted from runs of a stated one; its range counts"
    ),
    "interval_widened_miss": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "times per token of widened weights, where no run on the device had them; its range counts"
    ),
    "interval_scan_token_miss": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "times per token with Triton's scan of gated delta rules over those with FlashInfer's, which is not told"
    ),
    "interval_scan_first_token_miss": ConstantLaw("ratio", 1.0, 0.01, 100.0, "the same of the time to the first token"),
    "interval_shared_experts_token_miss": ConstantLaw(
        "ratio", 1.0, 0.01, 100.0, "times per token of copies of attention that share experts over what is said of them; its range counts"
    ),
    "interval_shared_experts_first_token_miss": ConstantLaw("ratio", 1.0, 0.01, 100.0, "the same of the time to the first token"),
    "interval_regimes_share": ConstantLaw(
        "fraction", 1.0, 0.0, 1.0, "how far nine of ten loops of equal requests lie from the middle of their regimes, of the way to either"
    ),
    "interval_saturated_stretch": ConstantLaw(
        "ratio", 1.0, 1.0, 10.0, "least factor on times at the slow end of an interval where the load saturates only there"
    ),
    "interval_saturated_wait": ConstantLaw("ratio", 1.0, 1.0, 50.0, "further factor on the wait for the first token there"),
    # Power, as shares of the board limit.
    "idle_power_fraction": ConstantLaw("fraction", 1.0, 0.0, 1.0, "an engine loaded and waiting"),
    "memory_power_fraction": ConstantLaw("fraction", 1.0, 0.0, 3.0, "added at full memory bandwidth"),
    "compute_power_fraction_16bit": ConstantLaw("fraction", 1.0, 0.0, 6.0, "added at the full 16-bit FLOP/s"),
    "compute_power_fraction_8bit": ConstantLaw("fraction", 1.0, 0.0, 6.0, "added at the full 8-bit FLOP/s"),
    "power_cap_fraction": ConstantLaw("fraction", 1.0, 0.1, 1.1, "sustained maximum"),
}  # fmt: skip


OWNED = " of "


def owned(name: str, owner: str) -> str:
    """Name of a constant that belongs to one model, where those of several are fitted beside one another.

    >>> owned("expert_evenness_16bit", "mixtral-8x7b")
    'expert_evenness_16bit of mixtral-8x7b'
    """
    return f"{name}{OWNED}{owner}"


def law_of(name: str) -> ConstantLaw:
    """The law of a constant, or of the one that ``owned`` named."""
    return CONSTANTS[name.partition(OWNED)[0]]


@dataclass(frozen=True, slots=True)
class ConstantPrior:
    """One value with the range in which nine of ten are expected, and to what it applies (``*``: everything)."""

    name: str
    family: str
    device: str
    engine: str
    value: float
    low: float
    high: float
    basis: str
    """measured | corrected | borrowed | analytical."""
    llms: tuple[str, ...] = ()
    """A property of these models alone, such as how evenly a router spreads tokens; of any where none is named."""
    evidence: tuple[str, ...] = ()
    """Micro-measurements of the device that the value comes from."""
    random_weights: bool = False
    """Told by weights of random values, and true of such alone."""


@dataclass(frozen=True)
class Constants:
    """The constants that apply to one device under one engine, by name, in the rows' units.

    unprobed: what applies without the device's micro-measurements, for the constants those changed.
    """

    subject: str
    priors: Mapping[str, ConstantPrior]
    unprobed: Mapping[str, ConstantPrior] = field(default_factory=dict)

    def si(self, name: str) -> float:
        """Value in SI. Raises FigureMissingError when no row gives it."""
        prior = self.priors.get(name)
        if prior is None:
            raise FigureMissingError(self.subject, name)
        return prior.value * CONSTANTS[name].si

    def range_si(self, name: str) -> tuple[float, float]:
        """Both ends of the range in which nine of ten are expected, in SI. Raises FigureMissingError when no row gives it."""
        prior = self.priors.get(name)
        if prior is None:
            raise FigureMissingError(self.subject, name)
        return prior.low * CONSTANTS[name].si, prior.high * CONSTANTS[name].si

    def si_or_nan(self, name: str) -> float:
        """Value in SI, NaN when no row gives it: of what only some deployments need, and refuse to go without."""
        return self.si(name) if name in self.priors else math.nan

    def values_si(self) -> dict[str, float]:
        """All values in SI, by name."""
        return {name: prior.value * CONSTANTS[name].si for name, prior in self.priors.items() if name in CONSTANTS}

    @cached_property
    def basis(self) -> str:
        """The weakest basis among the constants that shape time on the device."""
        order = ("measured", "corrected", "borrowed", "analytical")
        return max(
            (p.basis for n, p in self.priors.items() if n.endswith("efficiency")), key=order.index, default="analytical"
        )

    @cached_property
    def evidence(self) -> tuple[str, ...]:
        """Micro-measurements of the device behind these constants, in order."""
        return tuple(sorted({probe_id for prior in self.priors.values() for probe_id in prior.evidence}))

    @cached_property
    def moved(self) -> dict[tuple[bool, float], "Constants"]:
        """These constants moved within their ranges, as far as they have been (``solver.prediction.estimate``)."""
        return {}

    def without_probes(self) -> "Constants":
        """As if the device had not been probed: what factors of measured configurations were made against."""
        if not self.evidence:
            return self
        kept = {name: prior for name, prior in self.priors.items() if not prior.evidence}
        return Constants(self.subject, kept | dict(self.unprobed))

    def owned_by(self, owner: str, *, stated: bool = False) -> "Constants":
        """The same with what belongs to this owner, a model, in the place of what holds for any. stated: of that only what rows of the
        catalog state for it, and nothing that is fitted."""
        found = {name: self.priors.get(owned(name, owner)) for name in self.priors}
        own = {name: prior for name, prior in found.items() if prior is not None and (prior.llms or not stated)}
        return Constants(self.subject, {**self.priors, **own}, self.unprobed) if own else self

    def with_stated(self, owner: str, whole: "Constants") -> "Constants":
        """The same with what rows state for this owner alone, as ``whole`` has it, once more for it."""
        own = {owned(name, owner): prior for name, prior in whole.priors.items() if prior.llms}
        return Constants(self.subject, {**self.priors, **own}, self.unprobed) if own else self

    def with_owners(self, names: Iterable[str], owners: Iterable[str]) -> "Constants":
        """The same with these constants once more for each owner, each beginning where all begin."""
        chosen = tuple(owners)
        own = {owned(name, owner): self.priors[name] for name in names for owner in chosen if name in self.priors}
        return Constants(self.subject, {**self.priors, **own}, self.unprobed)

    def recentred(self, values: Mapping[str, float]) -> "Constants":
        """The same ranges, as shares of the value, about other values: what a sibling device taught."""
        priors = dict(self.priors)
        for name, value in values.items():
            p = priors.get(name)
            if p is not None and p.value > 0:
                scale = value / p.value
                priors[name] = replace(p, value=value, low=p.low * scale, high=p.high * scale, basis="borrowed")
        return Constants(self.subject, priors, self.unprobed)

    def replaced(self, values: Mapping[str, float], basis: str) -> "Constants":
        """The same with fitted values in place of the priors'."""
        changed = {
            name: ConstantPrior(name, p.family, p.device, p.engine, values[name], p.low, p.high, basis)
            if name in values
            else p
            for name, p in self.priors.items()
        }
        return Constants(self.subject, changed)


def resolve_constants(
    rows: Iterable[ConstantPrior],
    *,
    device: str,
    family: str,
    engine: str,
    llm: str | None = None,
    random_weights: bool = False,
) -> Constants:
    """Pick, for every constant, the most specific row: a device before its family before everything, engine likewise.

    Rows about some models apply to these alone, and before all others; those that random weights told only where weights are random.

    >>> rows = [ConstantPrior("link_efficiency", f, "*", "*", v, 0.1, 1.0, "analytical") for f, v in (("*", 0.5), ("hopper", 0.8))]
    >>> resolve_constants(rows, device="h200-sxm", family="hopper", engine="vllm").si("link_efficiency")
    0.8
    """
    applying = [
        row
        for row in rows
        if row.device in ("*", device)
        and row.family in ("*", family)
        and row.engine in ("*", engine)
        and (not row.llms or llm in row.llms)
        and (random_weights or not row.random_weights)
    ]
    subject = f"{device} under {engine}"
    best = _most_specific(applying)
    if not any(prior.evidence for prior in best.values()):
        return Constants(subject, best)
    plain = _most_specific(row for row in applying if not row.evidence)
    return Constants(subject, best, {name: plain[name] for name, p in best.items() if p.evidence and name in plain})


def _most_specific(rows: Iterable[ConstantPrior]) -> dict[str, ConstantPrior]:
    best: dict[str, tuple[tuple[int, int, int], ConstantPrior]] = {}
    for row in rows:
        rank = (int(bool(row.llms)), 2 * (row.device != "*") + (row.family != "*"), int(row.engine != "*"))
        if row.name not in best or rank > best[row.name][0]:
            best[row.name] = (rank, row)
    return {name: row for name, (_, row) in best.items()}
