"""Releases of an engine: the numbers that tell them, and what those before a certain one did otherwise."""

import re
from collections.abc import Mapping

Since = Mapping[str, tuple[tuple[int, ...], str]]
"""By engine, from which release on, and where that is stated."""

SCHEDULES_AHEAD_SINCE: Since = {
    "vllm": ((0, 14), "https://github.com/vllm-project/vllm/releases/tag/v0.14.0 (asynchronous scheduling by default), recalled"),
}  # fmt: skip
"""From which release on an engine composes a step while the one before runs, by default."""

WROTE_ANEW_WITH: Since = {
    "vllm": ((0, 8), "https://github.com/vllm-project/vllm/releases/tag/v0.8.0 (the V1 engine by default), recalled"),
}  # fmt: skip
"""With which release an engine's loop was written anew: what its host takes for a step fell with it."""


def release(version: str) -> tuple[int, ...]:
    """The numbers that a version begins with, two or more with points between them; none where it begins otherwise, as a commit does.

    What follows them is not told apart: a candidate or a patch of a release counts as that release.

    >>> release("0.24.0"), release("v0.9.1rc2"), release("0.6.3.post1"), release("main"), release("20251124"), release("")
    ((0, 24, 0), (0, 9, 1), (0, 6, 3), (), (), ())
    """
    numbers = re.match(r"\s*v?([0-9]+(?:\.[0-9]+)+)", version)
    return () if numbers is None else tuple(int(one) for one in numbers[1].split("."))


def waits_for_steps(engine: str, version: str | None) -> bool:
    """Does the engine compose each step when the one before is done?

    >>> [waits_for_steps("vllm", version) for version in ("0.12.0", "0.14.1", "nightly", None)]
    [True, False, False, False]
    """
    return _is_before(SCHEDULES_AHEAD_SINCE, engine, version)


def has_first_loop(engine: str, version: str | None) -> bool:
    """Is the release from before its engine's loop was written anew?

    >>> [has_first_loop("vllm", version) for version in ("0.7.3", "0.8.0", "nightly", None)]
    [True, False, False, False]
    """
    return _is_before(WROTE_ANEW_WITH, engine, version)


def _is_before(since: Since, engine: str, version: str | None) -> bool:
    """A release that is not stated, or has no numbers, is one of today."""
    first, _ = since.get(engine, ((), ""))
    numbers = release(version or "")
    return bool(numbers) and numbers < first
