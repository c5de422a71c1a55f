"""Fixed deployments beyond one pool of replicas: drafting, and prefill and decode in pools of their own."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.deployment import EngineIn, LayoutIn
from service.wire.quantities import Answer, Fraction, Name, Percentiles, Request, WeightFormat

MOST_DRAFT_TOKENS = 64
MOST_POOL_REPLICAS = 64

DraftTokens = Annotated[int, Field(ge=1, le=MOST_DRAFT_TOKENS)]
PoolReplicas = Annotated[int, Field(ge=1, le=MOST_POOL_REPLICAS)]
KvTransferOver = Literal["node_link", "pcie", "network"]


class DraftModelIn(Request):
    """A smaller model drafts, on the same devices in the same layout. ``acceptance_fraction``: of each drafted token.

    ``draft_weights``: null means the served model's format.
    """

    method: Literal["draft_model"]
    draft_tokens: DraftTokens
    acceptance_fraction: Fraction
    draft_llm: Name
    draft_weights: WeightFormat | None = None


class StatedDraftIn(Request):
    """What drafts has no model of its own: look-up in the context (``ngram``), or heads on the served model (``head``,
    as EAGLE or Medusa). ``draft_step_fraction``: seconds of drafting one token over seconds of one plain decode step,
    as measured; ``draft_cost_source`` says where that figure is from.
    """

    method: Literal["ngram", "head"]
    draft_tokens: DraftTokens
    acceptance_fraction: Fraction
    draft_step_fraction: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    draft_cost_source: Name


SpeculativeIn = Annotated[DraftModelIn | StatedDraftIn, Field(discriminator="method")]


class DraftingEngineIn(EngineIn):
    """The engine, and what it drafts with; null: nothing."""

    speculative: SpeculativeIn | None = None


class PoolIn(Request):
    """Replicas for one role. ``node``: the machine they stand in; its network joins the pools.

    ``weights``: null means the format in ``precision``; the cache's format is the same in both pools.
    """

    device: Name
    node: Name | None = None
    layout: LayoutIn = LayoutIn()
    replicas: PoolReplicas = 1
    weights: WeightFormat | None = None


class KvTransferIn(Request):
    """Over which link the cache of a prompt travels."""

    over: KvTransferOver


class DisaggregatedIn(Request):
    """Prefill and decode in pools of their own."""

    prefill: PoolIn
    decode: PoolIn
    kv_transfer: KvTransferIn

    @model_validator(mode="after")
    def _nodes_known(self) -> Self:
        if self.kv_transfer.over != "node_link":
            for role, pool in (("prefill", self.prefill), ("decode", self.decode)):
                if pool.node is None:
                    raise ValueError(
                        f"{role}.node is needed: a transfer over {self.kv_transfer.over} goes by the node's figures"
                    )
        return self


class SpeculativeOut(Answer):
    """``tokens_per_step``: mean tokens one verification yields. GiB per device, null without a draft model."""

    tokens_per_step: float
    draft_weights_gib: float | None
    draft_kv_cache_gib: float | None
    caution: str | None


class KvTransferOut(Answer):
    """``time_ms``: from the first token to the arrival of the prompt's cache, waiting for the link included.

    ``gb_per_s``: what all prefill replicas together send at most, one direction, 10^9 bytes.
    """

    over: KvTransferOver
    gb_per_s: float
    busy_fraction: float
    time_ms: Percentiles
