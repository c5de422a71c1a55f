"""Real catalog rows and small hand-made models as the solver takes them, for tests of time and scheduling."""

from functools import cache

from catalog.read import Catalog
from service.recommendations.from_rows import device_from_row, prior_from_row
from solver.deployment.configuration import Configuration
from solver.hardware import Device
from solver.layout import Layout
from solver.llm_shape import AttentionGroup, FeedForwardGroup, LlmShape
from solver.precision import Precision
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from solver.workload import EngineSettings
from tests.whole_catalog import whole_catalog

ONE_DEVICE = Layout()
SIXTEEN_BITS = Precision()
DEFAULT_ENGINE = EngineSettings()


@cache
def catalog() -> Catalog:
    return whole_catalog()


@cache
def priors() -> tuple[ConstantPrior, ...]:
    return tuple(prior_from_row(row.model_dump()) for row in catalog().constants)


@cache
def device(device_id: str) -> Device:
    """Raises FigureMissingError for a device that lacks a figure nothing works without."""
    return device_from_row(catalog().devices[device_id].model_dump())


@cache
def constants(device_id: str, engine: str = "vllm") -> Constants:
    return resolve_constants(priors(), device=device_id, family=device(device_id).family, engine=engine)


def dense_shape(
    *, layers: int = 4, hidden: int = 512, heads: int = 8, kv_heads: int = 2, intermediate: int = 1024,
    vocabulary: int = 4096, window_tokens: int = 0,
) -> LlmShape:  # fmt: skip
    """A dense decoder; with ``window_tokens`` half of its layers look back no further than that."""
    head_dim = hidden // heads
    attention = hidden * head_dim * (2 * heads + 2 * kv_heads)
    sliding = layers // 2 if window_tokens else 0
    groups = [AttentionGroup("full", layers - sliding, heads, kv_heads, head_dim, weights=attention)]
    if sliding:
        groups.append(
            AttentionGroup(
                "sliding", sliding, heads, kv_heads, head_dim, window_tokens=window_tokens, weights=attention
            )
        )
    block = 3.0 * hidden * intermediate
    return LlmShape(
        id="dense", family="test", hidden=hidden, vocabulary=vocabulary, tied_embeddings=False,
        max_context_tokens=131_072, attention=tuple(groups),
        feed_forward=(FeedForwardGroup(layers, intermediate, weights=block, active_weights=block),),
    )  # fmt: skip


def sparse_shape(*, layers: int = 4, hidden: int = 512, experts: int = 8, top_k: int = 2, width: int = 256) -> LlmShape:
    """A mixture of experts without shared ones."""
    dense = dense_shape(layers=layers, hidden=hidden)
    router, expert = hidden * experts, 3.0 * hidden * width
    block = FeedForwardGroup(
        layers, experts=experts, top_k=top_k, expert_intermediate=width,
        weights=router + experts * expert, active_weights=router + top_k * expert,
    )  # fmt: skip
    return LlmShape(
        id="sparse", family="test", hidden=hidden, vocabulary=4096, tied_embeddings=False,
        max_context_tokens=131_072, attention=dense.attention, feed_forward=(block,),
    )  # fmt: skip


def configuration(
    shape: LlmShape,
    device_id: str = "h100-sxm",
    layout: Layout = ONE_DEVICE,
    precision: Precision = SIXTEEN_BITS,
    *,
    engine: EngineSettings = DEFAULT_ENGINE,
    kv_cache_tokens: float = 1e6,
    link_domain_devices: int | None = None,
) -> Configuration:
    """A deployment inside one node, with as much cache as is asked for."""
    chosen = device(device_id)
    return Configuration(
        shape=shape,
        device=chosen,
        constants=constants(device_id, engine.name),
        layout=layout,
        precision=precision,
        engine=engine,
        link_domain_devices=chosen.link_domain_devices if link_domain_devices is None else link_domain_devices,
        network_bytes_per_s=0.0,
        kv_cache_tokens=kv_cache_tokens,
    )
