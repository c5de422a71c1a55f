"""Targets and limits by name: which there are, and the same request under other ones."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from solver.candidates.screening import Screened, with_targets, with_workload
from solver.fleet import limits as fleet_limits
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput
from solver.traffic_classes import with_targets_of
from solver.workload import Percentile, Targets, Workload

TARGET_FIELDS = {
    "ttft_ms": "time_to_first_token_s",
    "tpot_ms": "time_per_output_token_s",
    "e2e_ms": "end_to_end_s",
}


def target_limits(targets: Targets) -> Iterator[tuple[str, str, Percentile, float]]:
    """(wire name, field, percentile, seconds) of every target."""
    for wire, name in TARGET_FIELDS.items():
        for percentile, seconds in getattr(targets, name).items():
            yield f"targets.{wire}.{percentile}", name, percentile, seconds


def stated_targets(one: Screened) -> Iterator[tuple[str, int, str, Percentile, float]]:
    """(wire name, number of the traffic class, field, percentile, seconds) of every target of a workload."""
    for number, stream in enumerate(one.streams):
        prefix = f"traffic_classes.{stream.workload.class_name}." if one.classes else ""
        for limit, name, percentile, seconds in target_limits(stream.workload.targets):
            yield prefix + limit, number, name, percentile, seconds


def retargeted(one: Screened, number: int, name: str, percentile: Percentile, seconds: float | None) -> Screened:
    """A workload with one target of one of its classes moved, or dropped (None)."""
    return with_targets(one, changed_target(one.streams[number].workload.targets, name, percentile, seconds), number)


def with_all_targets(one: Screened, change: Callable[[Targets], Targets]) -> Screened:
    """A workload with the targets of every class changed."""
    workload = one.workload
    for number, stream in enumerate(one.streams):
        workload = with_targets_of(workload, number, change(stream.workload.targets))
    return with_workload(one, workload)


def rate_limit_of(workload: Workload) -> str:
    """A workload's rate as the API spells it: that of its classes together, where it has some."""
    return "traffic_classes.requests_per_s" if workload.classes else "traffic.requests_per_s"


def changed_target(targets: Targets, name: str, percentile: Percentile, seconds: float | None) -> Targets:
    """Targets with one limit moved, or dropped (None)."""
    values: dict[Percentile, float] = dict(getattr(targets, name))
    if seconds is None:
        values.pop(percentile)
    else:
        values[percentile] = seconds
    match name:
        case "time_to_first_token_s":
            return replace(targets, time_to_first_token_s=values)
        case "time_per_output_token_s":
            return replace(targets, time_per_output_token_s=values)
        case _:
            return replace(targets, end_to_end_s=values)


def looser_targets(targets: Targets, factor: float) -> Targets:
    """Every target times a factor."""
    return replace(
        targets,
        time_to_first_token_s={p: v * factor for p, v in targets.time_to_first_token_s.items()},
        time_per_output_token_s={p: v * factor for p, v in targets.time_per_output_token_s.items()},
        end_to_end_s={p: v * factor for p, v in targets.end_to_end_s.items()},
    )


def replaced(planning: PlanningInput, assembly: Assembly, workload: int, screened: Screened) -> Assembly:
    """The assembly with one workload screened anew."""
    every = list(assembly.screened)
    every[workload] = screened
    return assemble(planning, every, assembly.problem.offers)


def wire_limit(limit: str) -> str:
    """The optimiser's name of a limit as the API spells it."""
    return {"limits.budget_usd_per_hour": "limits.max_usd_per_hour", "limits.power_w": "limits.max_power_kw"}.get(
        limit, limit
    )


def named_change(assembly: Assembly, change: fleet_limits.ChangedProblem) -> tuple[str, str | None]:
    """(limit, workload) of a change as the API spells them."""
    if change.workload is None:
        return wire_limit(change.limit), None
    workload = assembly.screened[change.workload].workload
    return " and ".join(stated_places(workload)) if change.limit == "places" else change.limit, workload.name


def stated_places(workload: Workload) -> tuple[str, ...]:
    """The choices of places that a workload states."""
    places = workload.places
    chosen = {
        "regions": places.only_regions is not None or places.never_regions,
        "providers": places.only_providers is not None or places.never_providers,
    }
    return tuple(name for name, stated in chosen.items() if stated)


def new_value(change: fleet_limits.ChangedProblem) -> float | str:
    return "any" if change.relaxing_to is None else wire_value(change.limit, change.relaxing_to)


def wire_value(limit: str, value: float) -> float:
    return value / 1e3 if limit == "limits.power_w" else value


def conflict_names(assembly: Assembly, name: str) -> tuple[str, ...]:
    """A limit of the optimiser as the API spells it, with its number of a workload replaced by the workload's name."""
    parts = name.split(".")
    if parts[0] != "workloads" or parts[-1] not in ("min_replicas", "places"):
        return (wire_limit(name),)
    workload = assembly.screened[int(parts[1])].workload
    fields = stated_places(workload) if parts[-1] == "places" else (parts[-1],)
    return tuple(f"workloads.{workload.name}.{field}" for field in fields)
