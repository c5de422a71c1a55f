"""SEAM: one resolved case to the solver, and its prediction back to the wire.

``solver.estimate`` is connected here, and only here. Until then a case that could be predicted is answered 503.
"""

from dataclasses import dataclass

from service.problems import UnavailableError
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.wire.estimates import DoesNotFitOut, EstimatedOut, EstimateIn, SaturatedOut, UnsupportedOut
from solver.hardware import Device
from solver.llm_shape import LlmShape

Outcome = EstimatedOut | DoesNotFitOut | UnsupportedOut | SaturatedOut


@dataclass(frozen=True)
class Case:
    """One deployment whose names are all known. ``device`` carries the constants of the asked engine."""

    asked: EstimateIn
    shape: LlmShape
    device: Device
    snapshot: CatalogSnapshot


def predict(case: Case) -> EstimatedOut:
    """Runs in a solver thread. Raises what the solver raises: ``present.outcome_of`` turns that into an outcome.

    To connect: layout, precision, engine, traffic and load have converters in ``recommendations.snapshot``.
    """
    raise UnavailableError(f"estimating on {case.device.id} is not connected in this version")
