"""From a checked request to the planner over time, and back to the wire's result."""

import time
from collections.abc import Callable

from service.clock import elapsed_s
from service.fleets.prepare import FleetInputs, fleet_input
from service.fleets.result import present_result
from service.problems import FieldError, InvalidFieldsError
from service.wire.fleet_answers import FleetResultOut
from solver.errors import InvalidInputError

Observe = Callable[[str, float | None, float | None], None]
"""Stage, USD of the best plan over the horizon, bound."""


def plan(inputs: FleetInputs, observe: Observe | None = None) -> FleetResultOut:
    """Runs in a solver thread or a job's process; no database connection is held.

    Raises InvalidFieldsError where the solver refuses a workload.
    """
    # Imported when first needed: the optimiser loads libraries that listing the catalog does without.
    from solver.horizon.fleet import plan_fleet

    began = time.perf_counter()
    asked = fleet_input(inputs)
    try:
        found = plan_fleet(asked, inputs.planning.spaces, elapsed_s, observe)
    except InvalidInputError as refused:
        raise InvalidFieldsError([FieldError(str(refused), pointer="/workloads")]) from refused
    return present_result(inputs, found, time.perf_counter() - began)
