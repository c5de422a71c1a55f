"""SEAM: from a checked request and a snapshot to the solver, and back to the wire's result.

``solver.recommend`` is connected here, and only here. Until then a request is answered 503, truthfully.
"""

import datetime as dt
from dataclasses import dataclass

from service.problems import UnavailableError
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.wire.recommendations import RecommendationIn, ResultOut
from solver.llm_shape import LlmShape


@dataclass(frozen=True)
class PlanningInputs:
    """Everything a plan depends on, read in one transaction."""

    request: RecommendationIn
    snapshot: CatalogSnapshot
    shapes: dict[str, LlmShape]
    price_as_of: dt.datetime
    correction_set: int | None


def plan(inputs: PlanningInputs) -> ResultOut:
    """Runs in a solver thread; no database connection is held.

    To connect: build ``solver.recommend.PlanningInput`` from ``inputs`` (offers, shapes and traffic are solver
    dataclasses already; see ``snapshot.traffic_from_wire``), call ``recommend``, and present its result as ResultOut.
    """
    raise UnavailableError(f"planning of {len(inputs.request.workloads)} workload(s) is not connected in this version")
