"""Workloads whose requests are of several kinds: their mixture, and each kind seen as a workload of its own."""

import math
from collections.abc import Sequence
from dataclasses import replace

from solver.errors import InvalidInputError
from solver.workload import Lengths, Targets, Traffic, TrafficClass, Workload

ClassSet = tuple[int, ...]
"""Numbers of the traffic classes that replicas take, ascending; ``ALL_CLASSES`` is every class of the workload."""
ALL_CLASSES: ClassSet = ()
ALONE: ClassSet = (-1,)
"""Stands for what is known of any class without company, whichever others its replicas would take."""


def with_classes(workload: Workload, classes: Sequence[TrafficClass]) -> Workload:
    """The workload with these classes: their rates add up, its traffic is their mixture.

    Raises InvalidInputError for two classes of one name and rates that are not above zero.
    """
    if len({one.name for one in classes}) != len(classes):
        raise InvalidInputError(f"{workload.name}: two traffic classes have one name")
    if any(not (math.isfinite(one.requests_per_s) and one.requests_per_s > 0.0) for one in classes):
        raise InvalidInputError(f"{workload.name}: a traffic class needs a rate above zero")
    return replace(
        workload,
        requests_per_s=math.fsum(one.requests_per_s for one in classes),
        traffic=mixed_traffic([(one.traffic, one.requests_per_s) for one in classes]),
        classes=tuple(classes),
    )


def streams_of(workload: Workload) -> tuple[Workload, ...]:
    """Each class as a workload of its own; the workload itself where it has none."""
    if not workload.classes:
        return (workload,)
    return tuple(
        replace(
            workload,
            requests_per_s=one.requests_per_s,
            traffic=one.traffic,
            targets=one.targets,
            classes=(),
            class_name=one.name,
        )
        for one in workload.classes
    )


def simplest(workload: Workload) -> Workload:
    """A workload of one traffic class as the plain workload it is; the name of the class stays with it."""
    return streams_of(workload)[0] if len(workload.classes) == 1 else workload


def with_targets_of(workload: Workload, number: int, targets: Targets) -> Workload:
    """The workload with the targets of one stream changed: of its class, or its own where it has none."""
    if not workload.classes:
        return replace(workload, targets=targets)
    changed = replace(workload.classes[number], targets=targets)
    return replace(workload, classes=(*workload.classes[:number], changed, *workload.classes[number + 1 :]))


def with_confidence(workload: Workload, fraction: float) -> Workload:
    """The workload with all its targets to be met with this confidence."""
    changed = replace(workload, targets=replace(workload.targets, confidence_fraction=fraction))
    for number, one in enumerate(workload.classes):
        changed = with_targets_of(changed, number, replace(one.targets, confidence_fraction=fraction))
    return changed


def with_rate(workload: Workload, requests_per_s: float) -> Workload:
    """The workload at another rate, in the same proportions."""
    if not workload.classes:
        return replace(workload, requests_per_s=requests_per_s)
    factor = requests_per_s / workload.requests_per_s
    return with_classes(
        workload, [replace(one, requests_per_s=one.requests_per_s * factor) for one in workload.classes]
    )


def longest_request_tokens(workload: Workload) -> int:
    """Prompt and reply of the longest request of any class."""
    return max(one.traffic.maximum for one in streams_of(workload))


def mixed_traffic(parts: Sequence[tuple[Traffic, float]]) -> Traffic:
    """Traffic of several streams by their rates: lengths mix by requests, cached prefixes by prompt tokens.

    >>> from solver.workload import fixed_lengths
    >>> one, other = (Traffic(fixed_lengths(p), fixed_lengths(10), s) for p, s in ((100, 0.0), (300, 0.5)))
    >>> mixed = mixed_traffic([(one, 3.0), (other, 1.0)])
    >>> mixed.prompt.mean, mixed.shared_prefix_fraction
    (150.0, 0.25)
    """
    tokens = math.fsum(traffic.prompt.mean * rate for traffic, rate in parts)
    cached = math.fsum(traffic.prompt.mean * traffic.shared_prefix_fraction * rate for traffic, rate in parts)
    return Traffic(
        mixed_lengths([(traffic.prompt, rate) for traffic, rate in parts]),
        mixed_lengths([(traffic.output, rate) for traffic, rate in parts]),
        cached / tokens if tokens > 0.0 else 0.0,
        max((t.longest_tokens for t, _ in parts if t.longest_tokens is not None), default=None),
    )


def mixed_lengths(parts: Sequence[tuple[Lengths, float]]) -> Lengths:
    """A mixture of distributions by weight."""
    if all(lengths == parts[0][0] for lengths, _ in parts):
        return parts[0][0]
    total = math.fsum(weight for _, weight in parts)
    shares: dict[int, float] = {}
    for lengths, weight in parts:
        for tokens, share in zip(lengths.tokens, lengths.shares, strict=True):
            shares[tokens] = shares.get(tokens, 0.0) + share * weight / total
    return Lengths(tuple(sorted(shares)), tuple(shares[tokens] for tokens in sorted(shares)))


def alike(workloads: Sequence[Workload]) -> list[list[int]]:
    """Numbers of streams that no engine tells apart, together: same lengths, same targets."""
    groups: list[list[int]] = []
    for number, one in enumerate(workloads):
        for group in groups:
            first = workloads[group[0]]
            if first.traffic == one.traffic and first.targets == one.targets:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups
