"""A comparison in three sentences: what it costs, when the choice pays, how sure that is; and a fourth where nobody states a price."""

from collections.abc import Collection, Sequence

from solver.tco.compare import CostComparison, Doubt
from solver.tco.money import MICRO_PER_USD

MEASURE = "net present value over the horizon, every input at its typical value"


TREND = "_change_fraction_per_year"


def summary_of(comparison: CostComparison, horizon_months: int, at_ratio: Collection[str] = ()) -> str:
    """Three sentences, or two where there is nothing to compare with. at_ratio: alternatives at a price that no seller states."""
    found = comparison.verdict
    costs = {cost.name: cost for cost in comparison.alternatives}
    first = costs[found.name]
    per_million = first.unit.usd_per_million_tokens
    rate = "" if per_million is None else f", {per_million:,.3f} USD per million tokens"
    months = "1 month" if horizon_months == 1 else f"{horizon_months} months"
    sentences = []
    if found.runner_up is None or found.lead_micro is None:
        sentences.append(f"{found.name} costs {_usd(found.npv_micro)} in present value over {months}{rate}.")
    else:
        lead = found.lead_micro / max(1, abs(costs[found.runner_up].npv))
        sentences.append(
            f"Over {months} {found.name} is cheapest at {_usd(found.npv_micro)} in present value{rate}: "
            f"{_usd(found.lead_micro)} ({lead:.0%}) less than {found.runner_up}."
        )
        sentences.append(_break_even(comparison))
    sentences.append(_sure(comparison))
    unstated = [name for name in (found.name, found.runner_up or "") if name in at_ratio]
    if unstated:
        sentences.append(
            f"No seller states the price of {' and '.join(unstated)}: a ratio to the price on demand stands in, so ask for a "
            "quote first."
        )
    return " ".join(sentences)


def why_not(comparison: CostComparison) -> str | None:
    """Why the alternative that is cheapest as stated is not the one that is cheapest most often; None where it is."""
    found = comparison.verdict
    if found.agrees is not False or found.chance is None or found.most_often_chance is None:
        return None
    return (
        f"{found.name} is ahead by {_usd(found.lead_micro or 0)} at typical inputs, but {found.most_often} is cheapest in "
        f"{found.most_often_chance:.0%} of the draws and {found.name} in {found.chance:.0%}: the lead is within what the "
        f"inputs leave open{_mostly(comparison.doubts)}"
    )


def _break_even(comparison: CostComparison) -> str:
    found = comparison.verdict
    pair = next(
        pair for pair in comparison.break_even_months if {pair.first, pair.second} == {found.name, found.runner_up}
    )
    crossing = pair.discounted
    if crossing.month is None:
        return (
            f"No break-even with {found.runner_up}: {crossing.cheaper_at_start or 'neither'} is ahead from the start."
        )
    later = found.name if crossing.cheaper_at_start == found.runner_up else found.runner_up
    return (
        f"Discounted, {later} pays back against {crossing.cheaper_at_start} after {crossing.month:.1f} months, machines "
        "counted at what they fetch by then."
    )


def _sure(comparison: CostComparison) -> str:
    found = comparison.verdict
    if found.chance is None or found.value_at_stake_usd is None:
        return "How sure that is was not asked for (no draws)."
    if found.runner_up is None:
        spread = comparison.alternatives[0].uncertainty
        assert spread is not None
        return f"Half of all draws lie between {spread.npv_usd.p25:,.0f} and {spread.npv_usd.p75:,.0f} USD."
    other = "" if found.agrees else f" ({found.most_often} more often)"
    return (
        f"It is cheapest in {found.chance:.0%} of the draws{other}; choosing it when another turns out cheaper costs "
        f"{found.value_at_stake_usd:,.0f} USD on average{_mostly(comparison.doubts)}.{_alone(comparison)}"
    )


def _alone(comparison: CostComparison) -> str:
    """An input that would turn the choice if it moved alone, which no draw shows: there all prices move together."""
    found = comparison.verdict
    for doubt in comparison.doubts:
        for end, usd in (("low", doubt.usd_at_low), ("high", doubt.usd_at_high)):
            if usd < 0.0 and doubt.input.endswith(TREND):
                return (
                    f" In a draw all prices move together; {doubt.input} alone at its {end} end would put {found.runner_up} "
                    f"ahead by {-usd:,.0f} USD."
                )
    return ""


def _mostly(doubts: Sequence[Doubt]) -> str:
    return f", and {doubts[0].input} matters most" if doubts else ""


def _usd(micro: int) -> str:
    return f"{micro / MICRO_PER_USD:,.0f} USD"
