"""Targets: which there are, and the same request under other ones."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from solver.candidates.screening import Screened, with_targets, with_workload
from solver.limit import Limit, LimitKind, TargetLimit, target_limits
from solver.planning.assemble import Assembly, assemble
from solver.planning.types import PlanningInput
from solver.traffic_classes import with_targets_of
from solver.workload import Percentile, Targets


def stated_targets(workload: int, one: Screened) -> Iterator[tuple[Limit, int, float]]:
    """(limit, number of the traffic class, seconds) of every target of the workload with this number."""
    for number, kind in enumerate(one.workload.classes):
        for target, seconds in target_limits(kind.targets):
            limit = Limit(LimitKind.TARGET, workload=workload, target=target, traffic_class=kind.name or "")
            yield limit, number, seconds


def retargeted(one: Screened, number: int, target: TargetLimit, seconds: float | None) -> Screened:
    """A workload with one target of one of its classes moved, or dropped (None)."""
    return with_targets(one, changed_target(one.workload.classes[number].targets, target, seconds), number)


def with_all_targets(one: Screened, change: Callable[[Targets], Targets]) -> Screened:
    """A workload with the targets of every class changed."""
    workload = one.workload
    for number, kind in enumerate(one.workload.classes):
        workload = with_targets_of(workload, number, change(kind.targets))
    return with_workload(one, workload)


def changed_target(targets: Targets, target: TargetLimit, seconds: float | None) -> Targets:
    """Targets with one limit moved, or dropped (None)."""
    values: dict[Percentile, float] = dict(getattr(targets, target.metric))
    if seconds is None:
        values.pop(target.percentile)
    else:
        values[target.percentile] = seconds
    match target.metric:
        case "time_to_first_token_s":
            return replace(targets, time_to_first_token_s=values)
        case "time_per_output_token_s":
            return replace(targets, time_per_output_token_s=values)
        case "time_to_first_answer_s":
            return replace(targets, time_to_first_answer_s=values)
        case _:
            return replace(targets, end_to_end_s=values)


def looser_targets(targets: Targets, factor: float) -> Targets:
    """Every target times a factor."""
    return replace(
        targets,
        time_to_first_token_s={p: v * factor for p, v in targets.time_to_first_token_s.items()},
        time_per_output_token_s={p: v * factor for p, v in targets.time_per_output_token_s.items()},
        end_to_end_s={p: v * factor for p, v in targets.end_to_end_s.items()},
        time_to_first_answer_s={p: v * factor for p, v in targets.time_to_first_answer_s.items()},
    )


def replaced(planning: PlanningInput, assembly: Assembly, workload: int, screened: Screened) -> Assembly:
    """The assembly with one workload screened anew."""
    every = list(assembly.screened)
    every[workload] = screened
    return assemble(planning, every, assembly.problem.offers)
