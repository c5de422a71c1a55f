"""Plans nearly as cheap that use something else, and what no such plan can do without.

Each device and each offer of the plan is left out in turn and the request solved again: what then costs more than the
stated share, or has no plan, is indispensable within it. The plans found on the way that stay within the share are
near-optimal ones; further ones leave out what all before them rely on most. They differ by construction, but that no
others would differ more is not proven, and the answer says so.
"""

from dataclasses import dataclass, replace
from typing import Literal

from solver.hardware import Offer
from solver.planning.types import PlanEntry
from solver.recommend.recommend import SolvedRequest
from solver.why.resolve import Clock, QuestionOutcome, SolvedChange, assembled, known_of, resolve

Kind = Literal["device", "offer"]
NearPlan = tuple[SolvedChange, tuple[str, ...]]
"""A plan, and the devices and offers it was made without."""


@dataclass(frozen=True, slots=True)
class WithoutOne:
    """The plan without one device or offer. indispensable: none within the share; None: not answered in time."""

    kind: Kind
    name: str
    answer: SolvedChange
    indispensable: bool | None


@dataclass(frozen=True, slots=True)
class NearOptimal:
    """plans: cheapest first, each with the devices and offers it was made without."""

    without: tuple[WithoutOne, ...]
    plans: tuple[NearPlan, ...]


def near_optimal(solved_request: SolvedRequest, within_fraction: float, count: int, clock: Clock) -> NearOptimal:
    """At most ``count`` plans within the share of the plan's price. Raises VerificationError on a defect."""
    base = solved_request.result.usd_per_hour or 0.0
    most = base * (1.0 + within_fraction)
    offers = {offer.id: offer for offer in solved_request.planning.offers}
    plan = solved_request.result.plan
    used = [offers[name] for name in plan.nodes_by_offer()] if plan else []
    devices = dict.fromkeys(o.node.device.id for o in used)
    without = [_without(solved_request, "device", name, frozenset({name}), most, clock) for name in devices]
    without += [_without(solved_request, "offer", o.id, frozenset({o.id}), most, clock) for o in used]
    plans: list[NearPlan] = _distinct([(w.answer, (w.name,)) for w in without if _is_within(w.answer, most)], count)
    while len(plans) < count and plans:
        shunned = frozenset(_mainstay(answer.entries) for answer, _ in plans) | {_mainstay_of(solved_request, used)}
        answer = _leaving_out(solved_request, shunned, clock)
        longer = _distinct([*plans, (answer, tuple(sorted(shunned)))], count) if _is_within(answer, most) else plans
        if len(longer) == len(plans):
            break
        plans = longer
    return NearOptimal(tuple(without), tuple(sorted(plans, key=lambda p: p[0].usd_per_hour or 0.0)))


def _without(
    solved_request: SolvedRequest, kind: Kind, name: str, names: frozenset[str], most: float, clock: Clock
) -> WithoutOne:
    answer = _leaving_out(solved_request, names, clock)
    needed = None if answer.outcome == "not_in_time" else not _is_within(answer, most)
    if needed and answer.usd_per_hour is not None and answer.usd_per_hour * (1.0 - answer.open_fraction) <= most:
        needed = None  # a cheaper plan without it is not ruled out
    return WithoutOne(kind, name, answer, needed)


def _leaving_out(solved_request: SolvedRequest, names: frozenset[str], clock: Clock) -> SolvedChange:
    """The cheapest plan without these devices and offers."""

    def admitted(offer: Offer) -> bool:
        return offer.id not in names and offer.node.device.id not in names

    planning = replace(solved_request.planning, offers=tuple(o for o in solved_request.planning.offers if admitted(o)))
    if not planning.offers:
        return SolvedChange(QuestionOutcome.INFEASIBLE)
    return resolve(
        solved_request, planning, assembled(planning, solved_request.assembly.screened), known_of(solved_request), clock
    )


def _is_within(answer: SolvedChange, most: float) -> bool:
    return answer.usd_per_hour is not None and answer.usd_per_hour <= most * (1.0 + 1e-9)


def _mainstay(entries: tuple[PlanEntry, ...]) -> str:
    """The device that most of a plan's rent goes to."""
    spent: dict[str, float] = {}
    for entry in entries:
        device = entry.offer.node.device.id
        spent[device] = spent.get(device, 0.0) + entry.usd_per_hour
    return max(sorted(spent), key=lambda device: spent[device])


def _mainstay_of(solved_request: SolvedRequest, used: list[Offer]) -> str:
    nodes = solved_request.result.plan.nodes_by_offer() if solved_request.result.plan else {}
    spent: dict[str, float] = {}
    for offer in used:
        device = offer.node.device.id
        spent[device] = spent.get(device, 0.0) + offer.usd_per_hour * nodes[offer.id]
    return max(sorted(spent), key=lambda device: spent[device])


def _distinct(plans: list[NearPlan], count: int) -> list[NearPlan]:
    """The first plans that rent different numbers of nodes."""
    kept: dict[tuple[tuple[str, int], ...], NearPlan] = {}
    for answer, names in plans:
        kept.setdefault(tuple(sorted((answer.nodes or {}).items())), (answer, names))
    return list(kept.values())[:count]
