"""Planning from a fleet that runs already."""

from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.wire.diff import NodesChangeOut
from service.wire.quantities import Answer, Instant, Name, Request, Usd, UsdIn, decimal_text

MOST_OFFERS = 5_000
UsdOrZeroIn = Annotated[
    Decimal,
    BeforeValidator(decimal_text, json_schema_input_type=str),
    Field(ge=0, le=10_000_000, max_digits=14, decimal_places=6, allow_inf_nan=False),
]
Hours = Annotated[float, Field(ge=1e-9, le=1_000_000, allow_inf_nan=False)]


class CurrentNodesIn(Request):
    """Nodes of one offer that run now. committed_until: until then they are paid for, used or not."""

    nodes: Annotated[int, Field(ge=1, le=1_000_000)]
    committed_until: Instant | None = None


class SwitchingIn(Request):
    """What a change of nodes costs, once. Nothing is assumed: what is left out is zero.

    overlap_hours: how long a node that goes runs on beside those that come. payback_hours: over how many hours a switch
    must pay for itself; needed as soon as it costs anything.
    """

    usd_per_node_added: UsdOrZeroIn = Decimal(0)
    usd_per_node_removed: UsdOrZeroIn = Decimal(0)
    overlap_hours: Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)] = 0.0
    payback_hours: Hours | None = None

    @model_validator(mode="after")
    def _pays_back(self) -> Self:
        costs = self.usd_per_node_added or self.usd_per_node_removed or self.overlap_hours
        if costs and self.payback_hours is None:
            raise ValueError("state payback_hours: over how many hours a switch must pay for itself")
        return self


class KeepUnlessIn(Request):
    """The fleet is kept as it is unless switching, its cost counted, saves more than every threshold stated."""

    saving_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    saving_usd_per_hour: UsdIn | None = None


class CurrentIn(Request):
    """The fleet that runs now: the plan of a recommendation, or nodes by offer id."""

    recommendation: Name | None = None
    nodes: Annotated[dict[str, CurrentNodesIn], Field(max_length=MOST_OFFERS)] = Field(default_factory=dict)
    switching: SwitchingIn = SwitchingIn()
    keep_unless: KeepUnlessIn = KeepUnlessIn()

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.recommendation is None) == (not self.nodes):
            raise ValueError("name a recommendation or state nodes by offer, one of the two")
        return self


class ReplanningOut(Answer):
    """How the plan follows from the fleet that runs.

    decision: ``switched``, ``kept`` (switching saves less than asked), ``infeasible``
    (nothing serves the request), or ``unchanged`` (the best plan rents what runs
    already). total_usd_per_hour: rent and the switch spread over ``payback_hours``: what was minimised.
    kept_usd_per_hour: rent of the fleet as it is, null where it cannot serve the demand. saves_usd_per_hour: of the best
    plan over keeping the fleet, its switch counted.
    """

    decision: Literal["switched", "kept", "unchanged", "infeasible"]
    total_usd_per_hour: Usd | None
    switching_usd: Usd
    switching_usd_per_hour: Usd
    kept_usd_per_hour: Usd | None
    saves_usd_per_hour: Usd | None
    idle_but_paid: dict[str, int]
    """Nodes by offer that are paid for in any case: committed, or dearer to give back than to keep."""
    nodes: list[NodesChangeOut]
    words: list[str]
