"""A request with a current fleet: planned from what runs, and how the plan follows from it."""

from typing import TYPE_CHECKING

from service.recommendations.current import RunningNodes
from service.recommendations.diff import nodes_changes, nodes_words
from service.recommendations.fleet_of import OfferNodes
from service.recommendations.money import usd
from service.wire.replanning import ReplanningOut
from solver.hardware import Offer

if TYPE_CHECKING:
    from solver.recommend.replan import Replanned

DECISIONS = {
    "kept": "the fleet is kept as it is: switching saves less than was asked for",
    "unchanged": "the fleet stays as it is: nothing better pays for the switch",
}


def present_replanned(made: "Replanned", running: tuple[RunningNodes, ...], offers: tuple[Offer, ...]) -> ReplanningOut:
    known = {o.id: o for o in (*offers, *(one.offer for one in running))}
    before = {one.offer.id: _nodes(one.offer, one.nodes) for one in running}
    after = {name: _nodes(known[name], count) for name, count in made.found.nodes.items() if count}
    changes = nodes_changes(before, after) if made.found.entries else []
    total = made.found.solve.objective
    return ReplanningOut(
        decision=made.decision,
        total_usd_per_hour=None if total is None else usd(total),
        switching_usd=usd(made.switching_usd),
        switching_usd_per_hour=usd(made.switching_usd_per_hour),
        kept_usd_per_hour=None if made.kept_usd_per_hour is None else usd(made.kept_usd_per_hour),
        saves_usd_per_hour=None if made.saves_usd_per_hour is None else usd(made.saves_usd_per_hour),
        idle_but_paid=dict(made.paid),
        nodes=changes,
        words=_words(made, nodes_words(changes)),
    )


def _nodes(offer: Offer, count: int) -> OfferNodes:
    return OfferNodes(offer.id, offer.node.id, offer.node.device.id, count)


def _words(made: "Replanned", changes: list[str]) -> list[str]:
    words = [DECISIONS[made.decision]] if made.decision in DECISIONS else list(changes)
    if made.switching_usd > 0:
        words.append(f"the switch costs {made.switching_usd:,.2f} USD once")
    if made.saves_usd_per_hour is not None and made.decision != "unchanged":
        could = "would save" if made.decision == "kept" else "saves"
        words.append(f"switching {could} {made.saves_usd_per_hour:,.2f} USD an hour, its cost counted")
    if made.kept_usd_per_hour is None and made.found.entries:
        words.append("the fleet as it is cannot serve this demand")
    return words
