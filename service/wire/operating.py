"""What makes a fleet over time one that people can run: ``limits.operation`` of a request, and what it costs in the answer."""

from typing import Annotated, Literal

from pydantic import Field

from service.wire.quantities import Answer, Request, Usd

MOST_HOURS_UP = 168
"""A week, the shortest time after which hours repeat."""
OperationRule = Literal["max_configurations", "min_up_hours", "max_change_percent_per_hour"]


class OperationIn(Request):
    """Rules of operation; null lifts one. Committed nodes may stand idle, and are not bound by hours."""

    max_configurations: Annotated[int, Field(ge=1, le=1_000)] | None = 2
    """Of each workload over the whole horizon: one to deploy and one to burst, unless stated."""
    min_up_hours: Annotated[int, Field(ge=1, le=MOST_HOURS_UP)] | None = 4
    """Least hours that a node taken by the hour stays; of one offer the last that came goes first."""
    max_change_percent_per_hour: Annotated[float, Field(ge=1e-9, le=100, allow_inf_nan=False)] | None = 25.0
    """Of the replicas of a configuration that would serve its workload's peak alone: how many are started, or stopped, from one
    hour to the next at most; one always may be. Batch work is not bound."""


Operation = OperationIn | Literal["any"]
"""``any`` lifts all rules."""


class StockOut(Answer):
    """Nodes by the hour that the plan counts on: whether the provider has them at that hour is assumed, not known."""

    offer: str
    provider: str
    region: str
    commitment: str
    node: str
    usd: Usd
    """Over the horizon, undiscounted."""
    most_nodes: int
    """At once, in the busiest hour."""
    most_started: int
    """Nodes more from one hour to the next, at most."""
    assumed_nodes: int
    """The plan could have had so many: what the offer states, else the request's ``max_nodes_per_offer``."""


class FreedomOut(Answer):
    """The demand planned without one rule of operation, or without all of them (``rule`` null), in present value. What is saved
    lies between ``saves_usd``, by the best plan found, and ``saves_at_most_usd``, by the bound that no plan is below."""

    rule: str | None
    usd: Usd | None
    """Null where no plan was confirmed in the time."""
    bound_usd: Usd | None
    saves_usd: Usd | None
    """US dollars over the horizon, by the best plan found; 0 where that is no cheaper. Null without one."""
    saves_at_most_usd: Usd | None
    """US dollars over the horizon, by the bound; null where there is none."""
    saves_fraction: float | None
    """Share of the cost without the rule by which the plan is dearer, by the best plan found."""


class OperationOut(Answer):
    """How the plan is run, and what the rules of operation cost."""

    configurations: int
    """Different ways of running workloads, over the whole horizon."""
    configurations_by_workload: dict[str, int]
    """The same of each workload, by its name."""
    least_hours_up: int | None
    """Fewest hours that a node by the hour stays, the last that came going first; null where none comes or goes."""
    stock: list[StockOut]
    """What is taken by the hour."""
    freedoms: list[FreedomOut]
    """Without all rules, and where that may gain anything without each alone; empty where no rule was in force."""
