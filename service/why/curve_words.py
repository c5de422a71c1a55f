"""What a price curve says, in a sentence or two."""

from collections.abc import Sequence

from service.wire.why import CurvePointOut


def curve_says(points: Sequence[CurvePointOut], base_usd_per_hour: float | None) -> str:
    """Whether price moves with the requirement at all, from where to where, and where there is no plan.

    base_usd_per_hour: of the plan that is compared with; None where it has none.
    """
    priced = [(float(point.solved.usd_per_hour), point) for point in points if point.solved.usd_per_hour is not None]
    said = []
    if priced:
        low, high = (chosen(priced, key=lambda pair: pair[0]) for chosen in (min, max))
        is_flat = low[0] == high[0] or (
            base_usd_per_hour is not None and not any(point.solved.measurable for _, point in priced)
        )
        if len(points) == 1:
            said.append(f"the cheapest plan costs {low[0]:,.2f} USD an hour at {low[1].value:,.6g}")
        elif is_flat and len({_rented(point) for _, point in priced}) == 1:
            where = "all of these values" if len(priced) == len(points) > 1 else _values([point for _, point in priced])
            said.append(f"one plan is the cheapest at {where}, {low[0]:,.2f} USD an hour: they do not limit it")
        elif is_flat:
            said.append(
                f"the cheapest plans cost the same, {low[0]:,.2f} USD an hour: these values do not limit the price"
            )
        else:
            (cheap, at_low), (dear, at_high) = low, high
            said.append(
                f"the cheapest plan costs {dear:,.2f} USD an hour at {at_high.value:,.6g} and {cheap:,.2f} at {at_low.value:,.6g}"
            )
    for outcome, words in (("infeasible", "no plan exists at"), ("not_in_time", "not answered within the time limit:")):
        without = [point for point in points if point.solved.outcome == outcome]
        if without:
            said.append(f"{words} {_values(without)}")
    return "; ".join(said)


def _rented(point: CurvePointOut) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((line.offer, line.nodes) for line in point.solved.plan))


def _values(points: Sequence[CurvePointOut]) -> str:
    return ", ".join(f"{point.value:,.6g}" for point in points)
