"""Adapters as asked for → a served shape, and what they take → wire."""

from collections.abc import Sequence
from dataclasses import replace

from catalog.engine_adapters import read_engine_adapters
from service.wire.adapters import AdaptersIn, AdaptersOut
from solver.adapted_products import adapter_values
from solver.adapters import Adapters, grouped, grouped_ranks, zipf_popularity
from solver.deployment.configuration import Configuration
from solver.llm_shape import LlmShape
from solver.memory.weights import adapter_slot_bytes
from solver.precision import UNQUANTISED_BYTES
from solver.units import GIB_BYTES
from solver.workload import Traffic

MIB_BYTES = 2.0**20


def adapters_from_wire(asked: AdaptersIn, traffic: Sequence[Traffic], engines: Sequence[str]) -> Adapters:
    """engines: that may serve them; rank and products are those of the one that pads most. traffic: class by class."""
    rows = [read_engine_adapters()[name] for name in engines if name in read_engine_adapters()]
    ranks = asked.rank if isinstance(asked.rank, tuple) else (asked.rank,) * asked.count
    return Adapters(
        popularity=grouped(asked.shares)
        if asked.shares is not None
        else zipf_popularity(asked.count, asked.zipf_exponent or 0.0),
        rank=max((row.padded(max(ranks)) for row in rows), default=max(ranks)),
        slots=asked.slots or asked.count,
        modules=tuple(dict.fromkeys(asked.target_modules)),
        prompt_tokens=max(
            1.0, sum(t.prompt.mean * (1.0 - t.shared_prefix_fraction) for t in traffic) / max(1, len(traffic))
        ),
        ranks=_ranks_of_classes(asked, ranks),
        largest_rank=max(ranks),
        multiplies_padded=any(row.multiplies == "padded" for row in rows) or not rows,
    )


def _ranks_of_classes(asked: AdaptersIn, ranks: Sequence[int]) -> tuple[float, ...]:
    """In the classes of popularity that the adapters fall into; all alike are one."""
    if asked.shares is None and not asked.zipf_exponent:
        return (sum(ranks) / len(ranks),)
    return grouped_ranks(ranks, asked.shares)


def with_adapters(shape: LlmShape, adapters: Adapters | None) -> LlmShape:
    """The model as one workload serves it."""
    return shape if adapters is None else replace(shape, adapters=adapters)


def present_adapters(configuration: Configuration, requests_at_once: float) -> AdaptersOut | None:
    """None without adapters. requests_at_once: of the batch in which different ones are counted."""
    shape, tensor_parallel = configuration.shape, configuration.layout.tensor_parallel
    if shape.adapters is None:
        return None
    each = UNQUANTISED_BYTES * adapter_values(shape, shape.adapters.rank)
    rates = configuration.rates()
    loaded = UNQUANTISED_BYTES * adapter_values(shape, shape.adapters.mean_loaded_rank, tensor_parallel)
    load_s = loaded / float(rates.host_bytes_per_s)
    return AdaptersOut(
        slots=shape.adapters.slots,
        rank=shape.adapters.rank,
        mean_rank=round(shape.adapters.mean_rank, 3),
        mib_each=round(each / MIB_BYTES, 3),
        gib_on_device=round(
            adapter_slot_bytes(shape, tensor_parallel) / GIB_BYTES / configuration.layout.pipeline_parallel, 3
        ),
        different_in_batch=round(float(shape.adapters.distinct(max(1.0, requests_at_once))), 3),
        resident_fraction=round(shape.adapters.resident_fraction, 4),
        load_ms=None if load_s != load_s else round(load_s * 1e3, 4),
    )
