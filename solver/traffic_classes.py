"""Workloads by the kinds of their requests: each kind as a workload of its own, and the same workload with kinds changed."""

from collections.abc import Sequence
from dataclasses import replace

from solver.workload import Targets, TrafficClass, Workload

ClassSet = tuple[int, ...]
"""Numbers of the traffic classes that replicas take, ascending; ``ALL_CLASSES`` is every class of the workload."""
ALL_CLASSES: ClassSet = ()
ALONE: ClassSet = (-1,)
"""Stands for what is known of any class without company, whichever others its replicas would take."""


def each_alone(workload: Workload) -> tuple[Workload, ...]:
    """Each class as a workload of its own."""
    return tuple(replace(workload, classes=(one,)) for one in workload.classes)


def admitted(workload: Workload, classes: ClassSet) -> ClassSet:
    """Numbers of the classes that are meant."""
    return classes or tuple(range(len(workload.classes)))


def with_targets_of(workload: Workload, number: int, targets: Targets) -> Workload:
    """The workload with the targets of one class changed."""
    changed = replace(workload.classes[number], targets=targets)
    return replace(workload, classes=(*workload.classes[:number], changed, *workload.classes[number + 1 :]))


def with_confidence(workload: Workload, fraction: float) -> Workload:
    """The workload with all its targets to be met with this confidence."""
    sure = (replace(one, targets=replace(one.targets, confidence_fraction=fraction)) for one in workload.classes)
    return replace(workload, classes=tuple(sure))


def with_rate(workload: Workload, requests_per_s: float) -> Workload:
    """The workload at another rate, in the same proportions."""
    whole = workload.requests_per_s
    scaled = (replace(one, requests_per_s=one.requests_per_s / whole * requests_per_s) for one in workload.classes)
    return replace(workload, classes=tuple(scaled))


def longest_request_tokens(workload: Workload) -> int:
    """Prompt and reply of the longest request of any class."""
    return max(one.traffic.maximum for one in workload.classes)


def alike(classes: Sequence[TrafficClass]) -> list[list[int]]:
    """Numbers of classes that no engine tells apart, together: same lengths, same targets."""
    groups: list[list[int]] = []
    for number, one in enumerate(classes):
        for group in groups:
            first = classes[group[0]]
            if first.traffic == one.traffic and first.targets == one.targets:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups
