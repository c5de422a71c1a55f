"""LLM row → wire, with the sizes that follow from its shape."""

from service.llms.tables import LlmTable
from service.recommendations.from_rows import llm_from_row
from service.wire.llms import LlmOut
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.kv_cache import kv_cache_bytes_per_token, request_cache
from solver.memory.weights import stage_weight_bytes
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS


def present_llm(table: LlmTable) -> LlmOut:
    shape = llm_from_row(table.row)
    return LlmOut.model_validate(
        table.row
        | {
            "origin": table.origin,
            "layers": shape.layers,
            "embeds": shape.embeds,
            "bidirectional": shape.bidirectional,
            "total_weights": shape.total_weights,
            "active_weights": shape.active_weights,
            "weight_bytes": {name: whole_model_bytes(shape, name) for name in WEIGHT_FORMATS},
            "kv_cache_bytes_per_token": {name: kv_cache_bytes_per_token(shape, name) for name in KV_CACHE_BYTES},
            "state_bytes_per_sequence": request_cache(shape).state_bytes,
        }
    )


def whole_model_bytes(shape: LlmShape, weights: str) -> int:
    """Bytes of the weights on one device that holds all of them."""
    return round(stage_weight_bytes(shape, weights, Layout(), layers_fraction=1.0, embedding=True, head=True))
