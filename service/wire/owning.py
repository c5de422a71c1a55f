"""Sites where machines may be bought, in the request of a fleet over time, and what buying there was taken to cost."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from service.wire.quantities import Answer, Fraction, Name, Request, Usd
from service.wire.tco import ElectricityIn, Percent, PurchaseIn, SiteIn, UsdOrFree
from service.wire.tco_answers import DefaultOut

MOST_SITES = 10
MOST_MACHINES = 100
MOST_COUNT = 100_000


class OwnMachineIn(Request):
    """A machine of the catalog that may be bought. ``purchase``: null takes the site's. ``max_nodes``: ever at work."""

    node: Name
    purchase: PurchaseIn | None = None
    max_nodes: Annotated[int, Field(ge=0, le=MOST_COUNT)] | None = None


class OwnSiteIn(Request):
    """A place of your own, with what a comparison of costs states of one; null takes the catalog's figure.

    region: its name, for workloads that are pinned to regions or state round trips; one of the providers' or a new one.
    machines: null is every machine of the catalog with a price, but for providers' own instance types; workstations, desktops, edge
    boards and CPU servers only where ``limits.devices`` names their devices.
    purchase_months: months at whose start machines may be bought; null is each.
    utilisation_fraction: share of the time in which bought nodes serve, for their electricity; 1 is the upper end.
    staffed_nodes: nodes of a kind that the site's staff keep running; a node needs fewer people the more there are.
    """

    region: Name
    machines: Annotated[tuple[OwnMachineIn, ...], Field(min_length=1, max_length=MOST_MACHINES)] | None = None
    purchase: PurchaseIn = PurchaseIn()
    max_nodes: Annotated[int, Field(ge=0, le=MOST_COUNT)] | None = None
    """Of each machine, where it states none itself."""
    purchase_months: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=240)] | None = (
        None
    )
    operator: Annotated[str, Field(max_length=40)] = "enterprise"
    electricity: ElectricityIn = ElectricityIn()
    power_usage_effectiveness: Annotated[float, Field(ge=1, le=5, allow_inf_nan=False)] | None = None
    colocation_usd_per_kw_month: UsdOrFree | None = None
    inflation_percent_per_year: Annotated[float, Field(ge=-20, le=100, allow_inf_nan=False)] | None = None
    tax_percent: Percent | None = None
    utilisation_fraction: Fraction = 1.0
    staffed_nodes: Annotated[int, Field(ge=1, le=MOST_COUNT)] = 1
    site: SiteIn | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [one.node for one in self.machines or ()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"machines name {twice!r} twice")
        return self


class OwnedMachineOut(Answer):
    """A machine as it was offered to the plan. ``usd_per_node``: all payments of a node bought at the start and kept to
    the end of its life or of the horizon, less what it is then sold for; ``lines``: by kind, sales negative."""

    node: str
    region: str
    life_months: int
    usd_per_node: Usd
    usd_per_node_hour: Usd
    lines: dict[str, Usd]
    peak_kw_per_node: float | None
    defaults: list[DefaultOut]
    notes: list[str]


class OwnUsedOut(Answer):
    """What owning was taken to cost. Electricity is that of ``utilisation_fraction`` around the clock, whatever the plan
    makes the nodes do."""

    region: str
    operator: str
    utilisation_fraction: float
    defaults: list[DefaultOut]
    """Of the place: electricity, inflation, taxes."""
    machines: list[OwnedMachineOut]


class DiscountOut(Answer):
    """The rate at which payments are weighed: what is minimised is present value at the start of the horizon."""

    percent_per_year: float
    source: str
