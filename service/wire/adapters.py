"""Low-rank adapters served over one base."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.wire.quantities import Answer, Fraction, Request

MOST_ADAPTERS = 10_000
MOST_SHARES = 1_000
Rank = Annotated[int, Field(ge=1, le=4096)]
TargetModule = Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ALL_MODULES: tuple[TargetModule, ...] = (
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
)  # fmt: skip
ADAPTERS_ARE_AGGREGATED = "adapters are modelled on replicas that prefill and decode; pools of their own are not"
ADAPTERS_DO_NOT_DRAFT = (
    "engines that document both adapters and drafting do not document them together: state one of them"
)


class AdaptersIn(Request):
    """Adapters of one base, each request naming one of them: tenants, tasks or languages that share the base's weights."""

    count: Annotated[int, Field(ge=1, le=MOST_ADAPTERS)]
    rank: Rank | Annotated[tuple[Rank, ...], Field(min_length=1, max_length=MOST_SHARES)] = 16
    """One for all, or one for each where they differ: in the order of ``shares``, else the most popular first. Engines keep room for the
    largest in every slot."""
    target_modules: Annotated[tuple[TargetModule, ...], Field(min_length=1, max_length=len(ALL_MODULES))] = ALL_MODULES
    zipf_exponent: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] | None = None
    """0 where all are named alike, which null means too; or state ``shares``."""
    shares: Annotated[tuple[Fraction, ...], Field(min_length=1, max_length=MOST_SHARES)] | None = None
    """One for each adapter, together 1."""
    slots: Annotated[int, Field(ge=1, le=MOST_ADAPTERS)] | None = None
    """Adapters that a device holds at once; null: all of them. With fewer, others are loaded from the host as requests name them,
    and no more requests run at once than name that many on average."""

    @property
    def largest_rank(self) -> int:
        return max(self.rank) if isinstance(self.rank, tuple) else self.rank

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.shares is not None and self.zipf_exponent is not None:
            raise ValueError("state either zipf_exponent or shares")
        if self.shares is not None and len(self.shares) != self.count:
            raise ValueError(f"{len(self.shares)} shares for {self.count} adapters: state one for each")
        if self.shares is not None and abs(sum(self.shares) - 1.0) > 1e-6:
            raise ValueError(f"shares sum to {sum(self.shares):.6g}, not to 1")
        if isinstance(self.rank, tuple) and len(self.rank) != self.count:
            raise ValueError(f"{len(self.rank)} ranks for {self.count} adapters: state one for each, or one for all")
        if self.slots is not None and self.slots > self.count:
            raise ValueError(f"{self.slots} slots for {self.count} adapters: state at most as many")
        return self


class AdaptersOut(Answer):
    """What serving adapters takes. ``rank``: what the engine pads them to; ``mean_rank``: own rank of the adapter that a request names, on
    average. ``load_ms``: of one that is loaded, in its own rank."""

    slots: int
    rank: int
    mean_rank: float
    mib_each: float
    gib_on_device: float
    different_in_batch: float
    resident_fraction: float
    load_ms: float | None
    """Null where the device's link to the host is not known."""
