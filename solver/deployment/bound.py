"""The roofline no engine can beat: datasheet rates, nothing lost, nothing waited for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solver.engine.speculative import expected_tokens_per_step
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS
from solver.step import blocks
from solver.step.rates import compute_dtype
from solver.workload import Load, Traffic

if TYPE_CHECKING:
    from solver.deployment.configuration import Configuration


@dataclass(frozen=True, slots=True)
class Bound:
    """Least time per output token (s), and most output tokens per second of the whole deployment."""

    time_per_output_token_s: float
    output_tokens_per_s: float


def weights_read_bytes(configuration: "Configuration") -> float:
    """Bytes of weights a step must read over all devices of one replica: dense parts once, and of the routed experts
    the ``top_k`` that even perfectly concentrated routing touches."""
    shape = configuration.shape
    width = WEIGHT_FORMATS[configuration.precision.weights].bytes_per_weight
    narrowest = min(width, 2.0)
    total = float(shape.logits) * shape.hidden * narrowest
    for attention in shape.attention:
        total += attention.layers * attention.weights * narrowest
    for ffn in shape.feed_forward:
        if ffn.experts:
            inner = ffn.expert_hidden or shape.hidden
            expert = ffn.matrices * float(inner) * ffn.expert_intermediate
            touched = float(min(ffn.top_k, ffn.experts))
            dense = max(0.0, ffn.weights - ffn.experts * expert)
            total += ffn.layers * (touched * expert + dense) * narrowest
        else:
            total += ffn.layers * ffn.weights * narrowest
    return total


def step_bound_s(
    configuration: "Configuration", sequences: float, context_tokens: float, queries: float = 1.0
) -> float:
    """Least time of a decode step of one replica: bytes at the datasheet bandwidth or FLOPs at the datasheet rate.

    queries: tokens of each sequence worked on at once; its cache is read once for all of them. The devices of a replica
    work at once, so both are divided by tensor_parallel; pipeline stages follow one another.
    """
    shape, device, layout = configuration.shape, configuration.device, configuration.layout
    parallel = max(layout.tensor_parallel, layout.expert_parallel)
    value_bytes = KV_CACHE_BYTES[configuration.precision.kv_cache]
    cache = sum(
        a.layers
        * float(blocks.kv_values_read_per_token(a, 1.0))
        * value_bytes
        * min(context_tokens, blocks.context_limit(a))
        for a in shape.attention
    )
    size = weights_read_bytes(configuration) + sequences * cache
    flops = 2.0 * shape.active_weights * sequences * queries
    peak = device.flop_per_s[compute_dtype(device, configuration.precision.weights)]
    fastest = max(peak, *device.flop_per_s.values())
    return max(size / (device.memory_bytes_per_s * parallel), flops / (fastest * parallel))


def token_bound_s(configuration: "Configuration", sequences: float, context_tokens: float) -> float:
    """Least time per token of each of ``sequences``: a decode step, or with k drafted tokens accepted with a each

        (verification of k+1 tokens + k steps of the draft model) / E,   E = (1 − a^(k+1)) / (1 − a)

    A stated cost of drafting is no roofline and counts as nothing.
    """
    speculation = configuration.speculation
    if speculation is None:
        return step_bound_s(configuration, sequences, context_tokens)
    decoding = speculation.decoding
    step = step_bound_s(configuration, sequences, context_tokens, decoding.draft_tokens + 1.0)
    if speculation.draft is not None:
        step += decoding.draft_tokens * step_bound_s(speculation.draft, sequences, context_tokens)
    return step / expected_tokens_per_step(decoding.draft_tokens, decoding.acceptance_fraction)


def roofline_bound(configuration: "Configuration", traffic: Traffic, load: Load) -> Bound:
    """Bound of a deployment: one lone short sequence for latency, as many at once as the load or the cache allows for rate."""
    alone = token_bound_s(configuration, 1.0, float(traffic.prompt.tokens[0]))
    layout = configuration.layout
    copies = layout.data_parallel
    held = max(1.0, traffic.prompt.mean * (1.0 - traffic.shared_memory_fraction) + 1.0)
    most = min(float(configuration.engine.max_sequences), max(1.0, configuration.kv_cache_tokens / held))
    if load.kind == "closed":
        most = min(most, max(1.0, load.concurrency / copies))
    step = token_bound_s(configuration, most, float(traffic.prompt.tokens[0]))
    # Stages of a pipeline work on different batches at the same time.
    return Bound(alone, most * copies * layout.pipeline_parallel / max(step, 1e-15))
