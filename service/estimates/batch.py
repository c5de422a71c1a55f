"""The cases of one request: those on the same deployment one after another, on every solver thread that has nothing else to do."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from pydantic import TypeAdapter

from service.clock import elapsed_s
from service.estimates.predict import Case, Outcome, predict
from service.estimates.predict_disaggregated import DisaggregatedCase, predict_disaggregated
from service.estimates.present import outcome_of
from service.estimates.published import PublishedCase, predict_published, published_case
from service.estimates.smallest import smallest_layout
from service.problems import FieldError, InvalidFieldsError
from service.wire.estimates import EstimateOut, UnsupportedOut
from solver.deployment.kept_tables import KeptTables
from solver.errors import DoesNotFitError, FigureMissingError, SolverError, UnsupportedError

AnyCase = Case | DisaggregatedCase | PublishedCase
CASES_AT_ONCE = 20
"""A thread takes at most so many at a time, so that threads end together, and others get a turn in between."""


@dataclass(frozen=True)
class Unresolved:
    """A case that cannot be predicted as it is named. field: the name the catalog does not know; None: another reason."""

    answer: UnsupportedOut
    field: str | None = None


class WrittenOutcome(NamedTuple):
    """What becomes of one case, as it is sent. Kept so: as objects a thousand of them take more memory, and writing them all in one
    go would keep every other thread waiting."""

    outcome: str
    document: bytes


_AS_SENT: TypeAdapter[Outcome] = TypeAdapter(EstimateOut)


class Batch:
    """Answers to cases, in the order asked, found by one thread or several."""

    def __init__(self, cases: Sequence[AnyCase | Unresolved], time_limit_s: float) -> None:
        self._cases = cases
        self._time_limit_s = time_limit_s
        self._until = elapsed_s() + time_limit_s
        self._parts: Iterator[list[int]] = iter(_parts(cases))
        self._answers: dict[int, WrittenOutcome] = {}
        self._failure: BaseException | None = None
        self._taken = 0
        self._change = threading.Condition()

    def answers(self) -> list[WrittenOutcome]:
        """All of them, once those that other threads took are done. Raises InvalidFieldsError when time is up before the last; begun
        ones are finished."""
        self.take_part(lambda: True)
        with self._change:
            self._change.wait_for(lambda: not self._taken)
        if self._failure is not None:
            raise self._failure
        if len(self._answers) < len(self._cases):
            detail = (
                f"{len(self._answers)} of {len(self._cases)} estimates took the {self._time_limit_s:g} s that a request may;"
                " send about so many at a time"
            )
            raise InvalidFieldsError([FieldError(detail, pointer="/estimates")])
        return [self._answers[n] for n in range(len(self._cases))]

    def take_part(self, goes_on: Callable[[], bool]) -> None:
        """Finds answers while there are cases, and time, left, and ``goes_on`` says so before each part."""
        tables_of = KeptTables()
        while goes_on():
            with self._change:
                part = None if self._failure is not None else next(self._parts, None)
                if part is None:
                    return
                self._taken += 1
            try:
                for number in part:
                    if elapsed_s() > self._until:
                        break
                    found = _outcome(self._cases[number], tables_of)
                    self._answers[number] = WrittenOutcome(found.outcome, _AS_SENT.dump_json(found, by_alias=True))
            except BaseException as failure:  # noqa: BLE001  of the request, whichever thread meets it
                self._failure = failure
            finally:
                with self._change:
                    self._taken -= 1
                    self._change.notify_all()


def _parts(cases: Sequence[AnyCase | Unresolved]) -> list[list[int]]:
    """Which cases to look at together, each one once."""
    deployments = [_deployment(case) for case in cases]
    found: list[list[int]] = []
    for _, alike in groupby(sorted(range(len(cases)), key=deployments.__getitem__), key=deployments.__getitem__):
        numbers = list(alike)
        for first in range(0, len(numbers), CASES_AT_ONCE):
            part = numbers[first : first + CASES_AT_ONCE]
            if found and len(found[-1]) + len(part) <= CASES_AT_ONCE:
                found[-1] += part
            else:
                found.append(part)
    return found


def _deployment(case: AnyCase | Unresolved) -> str:
    """Alike where loads and traffic alone differ: such cases have constants, and mostly step tables, in common."""
    if isinstance(case, Unresolved):
        return ""
    asked = case.asked
    return f"{asked.device} {asked.engine!r} {asked.llm} {asked.precision!r} {asked.layout!r} {asked.partition} {asked.node}"


def _outcome(case: AnyCase | Unresolved, tables_of: KeptTables) -> Outcome:
    if isinstance(case, Unresolved):
        return case.answer
    try:
        if isinstance(case, Case):
            return _aggregated(case, tables_of)
        return predict_published(case) if isinstance(case, PublishedCase) else predict_disaggregated(case)
    except SolverError as error:
        return outcome_of(case.asked, error)


def _aggregated(case: Case, tables_of: KeptTables) -> Outcome:
    """On the layout stated; where none is, on the smallest that holds the model, or where nothing can be computed by a speed that
    was published. Raises what ``predict`` raises."""
    try:
        return _computed(case, tables_of)
    except (DoesNotFitError, UnsupportedError, FigureMissingError) as error:
        published = published_case(case.asked, case.shape)
        if published is not None:
            return predict_published(published)
        if not isinstance(error, DoesNotFitError):
            raise
        return outcome_of(case.asked, error).model_copy(update={"smallest_layout": smallest_layout(case)})


def _computed(case: Case, tables_of: KeptTables) -> Outcome:
    try:
        return predict(case, tables_of)
    except DoesNotFitError:
        layout = None if "layout" in case.asked.model_fields_set else smallest_layout(case)
        if layout is None:
            raise
        return predict(replace(case, asked=case.asked.model_copy(update={"layout": layout})), tables_of)
