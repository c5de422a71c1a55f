"""Whose target a question about a workload with traffic classes moves."""

from service.problems import FieldError, unknown_name
from service.wire.recommendations import WorkloadIn


def wrong_class(workload: WorkloadIn, of: str, traffic_class: str | None) -> FieldError | None:
    """What is wrong with naming this class, or none, of the workload; None where nothing is."""
    names = [stream.name for stream in workload.streams if stream.name is not None]
    wrong = None
    if traffic_class is not None:
        if not names:
            wrong = f"{workload.name} has no traffic classes; leave it out"
        elif not of.startswith("targets."):
            wrong = f"{of} is not a traffic class's; leave it out"
        elif traffic_class not in names:
            wrong = unknown_name("traffic class", traffic_class, names)
    elif names and of.startswith("targets.") and not classes_of(workload, of, None):
        wrong = f"every traffic class has targets of its own; name one: {', '.join(names)}"
    return None if wrong is None else FieldError(wrong, pointer="/traffic_class")


def classes_of(workload: WorkloadIn, of: str, traffic_class: str | None) -> tuple[int, ...]:
    """Numbers of the classes whose target is meant: the named one, or all that keep to the workload's own."""
    if not of.startswith("targets."):
        return ()
    own = {one.name for one in workload.traffic_classes or () if one.targets is not None}
    return tuple(
        number
        for number, one in enumerate(workload.streams)
        if one.name is not None and (one.name not in own if traffic_class is None else one.name == traffic_class)
    )


def states_target(workload: WorkloadIn, of: str, traffic_class: str | None) -> bool:
    """Is the target that is meant stated?"""
    _, metric, percentile = of.split(".")
    numbers = classes_of(workload, of, traffic_class)
    streams = workload.streams
    targets = streams[numbers[0]].targets if numbers else streams[0].targets
    return percentile in getattr(targets, metric)
