"""Offers that a plan over time cannot take, and why."""

from collections.abc import Iterable

from service.tco.prices import TERM_MONTHS
from service.wire.fleet_answers import CommitmentLeftOutOut
from service.wire.fleets import FleetIn
from solver.hardware import Offer


def left_out(asked: FleetIn, offers: Iterable[Offer]) -> tuple[CommitmentLeftOutOut, ...]:
    """By kind of commitment; only where the request leaves the kinds open (a kind it names is refused instead)."""
    if asked.limits.commitments is not None:
        return ()
    found = []
    for kind in sorted({offer.commitment for offer in offers}):
        term = TERM_MONTHS.get(kind)
        if kind == "spot" and asked.spot is None:
            found.append(CommitmentLeftOutOut(commitment=kind, why="the request states no share of spot"))
        elif term is not None and term > asked.horizon.months and asked.commitment_tail == "inside":
            found.append(
                CommitmentLeftOutOut(
                    commitment=kind, why=f"its {term} months end after the horizon of {asked.horizon.months}"
                )
            )
        elif term is None and kind not in ("on_demand", "spot"):
            found.append(CommitmentLeftOutOut(commitment=kind, why="not planned over time"))
    return tuple(found)
