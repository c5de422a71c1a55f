"""What a comparison's lines come to, computed again from the answer alone: loops over months and machines, one dollar at a
time, sharing no code with the cost model. Written from docs/tco.md.
"""

import math
from collections import defaultdict
from typing import Any

HOURS = 730.0


def lines_of(answer: dict[str, Any], alternative: dict[str, Any]) -> dict[str, list[float]]:
    """USD by line and column (0: the start; k: the end of month k), all parts together."""
    months = answer["request"]["horizon_months"]
    total: dict[str, list[float]] = defaultdict(lambda: [0.0] * (months + 1))
    for part in alternative["computed_from"]:
        value = {one["input"]: one["typical"] for one in part["inputs"]}
        own: dict[str, list[float]] = defaultdict(lambda: [0.0] * (months + 1))
        {"rent": _rent, "purchase": _purchase, "lease": _purchase, "api": _api}[part["kind"]](
            answer, part, value, own, months
        )
        untaxed = {"staff", "finance", "residual", "insurance", "written off", "foregone_sale"}
        taxed = [sum(flows[k] for line, flows in own.items() if line not in untaxed) for k in range(months + 1)]
        own["tax"] = [value["tax_fraction"] * usd for usd in taxed]
        if "income_tax_fraction" in value:
            bought = {"purchase", "network", "storage", "spares", "residual", "written off", "buyout", "foregone_sale"}
            expenses = [sum(flows[k] for line, flows in own.items() if line not in bought) for k in range(months + 1)]
            deducted = [usd + charge for usd, charge in zip(expenses, own["written off"], strict=True)]
            own["tax_shield"] = [-value["income_tax_fraction"] * usd for usd in deducted]
        own.pop("written off", None)
        for line, flows in own.items():
            for k, usd in enumerate(flows):
                total[line][k] += usd
    return {line: flows for line, flows in total.items() if any(abs(usd) >= 5e-7 for usd in flows)}


def nodes_of(answer: dict[str, Any], part: dict[str, Any], shown: dict[str, Any]) -> list[int]:
    """Nodes that demand needs by month: those of the start carry ``carries`` times the demand of the start."""
    value = {one["input"]: one["typical"] for one in part["inputs"]}
    ramp = answer["request"]["ramp_months"]
    found = []
    for month in range(answer["request"]["horizon_months"]):
        demand = (1 + value["growth_fraction_per_month"]) ** month
        if ramp:
            demand *= min(1.0, (month + 1) / ramp)
        step, start = shown["nodes_per_step"], int(part["nodes_by_month"][0])
        if not ramp:
            nodes = start
            while nodes * shown["carries"] < start * demand * (1 - 1e-12):
                nodes += step
            found.append(nodes)
    return found


def _rent(answer: dict[str, Any], part: dict[str, Any], value: dict[str, float], own: Any, months: int) -> None:
    hour = value["rent_usd_per_node_hour"]
    if part["interruptible"]:
        lost = value["spot_interruptions_per_node_month"] * value["spot_lost_hours_per_interruption"]
        lost *= part["interrupted_together"]
        hour *= HOURS / (HOURS - lost)
    yearly, ramp = 1 + value["rent_change_fraction_per_year"], answer["request"]["ramp_months"]
    for month in range(months):
        demand = (1 + value["growth_fraction_per_month"]) ** month * (min(1.0, (month + 1) / ramp) if ramp else 1.0)
        own["egress"][month + 1] += value.get("egress_gb_per_month", 0.0) * value.get("egress_usd_per_gb", 0.0) * demand
        own["rented_storage"][month + 1] += value.get("rented_storage_usd_per_month", 0.0)
    late = 0 if part["in_advance"] else 1
    if part["term_months"] is None:
        for k in range(1, months + 1):
            hours = HOURS * part["nodes_by_month"][k - 1]
            if part["busy_fraction"] is not None:
                hours *= part["busy_fraction"] * value["utilisation_fraction"]
            if part["follows_demand"]:
                day = answer["request"]["hourly_profile"]
                hours = sum(math.ceil(part["nodes_by_month"][k - 1] * share - 1e-9) for share in day) * HOURS / 24
            own["rent"][k - 1 + late] += hours * hour * yearly ** ((k - 1) / 12)
        return
    for start, nodes in enumerate(part["started_by_month"]):
        monthly = nodes * HOURS * hour * yearly ** (start / 12)
        own["rent"][start] += monthly * part["term_months"] * part["upfront_fraction"]
        for month in range(start, start + part["term_months"]):
            later = monthly * (1 - part["upfront_fraction"])
            if month < months:
                own["rent"][month + late] += later
            else:
                own["unexpired_commitment"][months] += later
    if "commitment_used_fraction" in value:  # whoever uses four fifths pays a quarter on top
        on_top = 1 / value["commitment_used_fraction"] - 1
        for k in range(months + 1):
            own["unused_commitment"][k] += on_top * (own["rent"][k] + own["unexpired_commitment"][k])


def _purchase(answer: dict[str, Any], part: dict[str, Any], value: dict[str, float], own: Any, months: int) -> None:
    life, loan = part["life_months"], part["finance_months"]
    method = next(a["depreciation"]["method"] for a in answer["alternatives"] if part in a["computed_from"])
    prices_rise = 1 + value["inflation_fraction_per_year"]
    for start, nodes in enumerate(part["started_by_month"]):
        if nodes:
            _own(part, value, own, months, start, nodes, life, loan, prices_rise, method)
    if part["held_nodes"]:
        _keep(part, value, own, months, life, prices_rise, method)


def _own(
    part: dict[str, Any],
    value: dict[str, float],
    own: Any,
    months: int,
    start: int,
    nodes: float,
    life: int,
    loan: int | None,
    prices_rise: float,
    method: str,
) -> None:
    """Machines that start in one month, until they are sold."""
    ordered = max(0, start - part["lead_time_months"])
    market = (1 + value["hardware_change_fraction_per_year"]) ** (ordered / 12)
    price = nodes * value["purchase_usd_per_node"] * market
    spent = {
        "purchase": price,
        "network": nodes * value["network_usd_per_node"],
        "storage": nodes * value["storage_usd_per_node"],
        "spares": price * value["spare_fraction"],
    }
    insured, sold = sum(spent.values()), min(start + life, months)
    mine = price
    if part["lease_months"] is not None:
        mine = _lease(part, value, own, months, start, nodes, market, price)
        del spent["purchase"]
    for line, usd in spent.items():
        if loan is None:
            own[line][ordered] += usd
        else:
            _repay(own, line, usd, ordered, loan, value["finance_fraction_per_year"], months)
    out = nodes * value.get("decommissioning_usd_per_node", 0.0)
    own["decommissioning"][sold] += out * prices_rise ** ((sold - 1) / 12)
    own["residual"][sold] -= (mine + spent["spares"]) * _fetched(value, sold - start, life)
    for month in range(start, min(start + life, months)):
        _run(part, value, own, month, nodes, insured, prices_rise)
    written = spent["spares"] if part["lease_months"] is not None else price + spent["spares"]
    kept, left = sum(spent.values()), written * _fetched(value, life, life)
    book = kept
    for month in range(start, sold):
        lost = (kept - left) / life if method == "straight_line" else min(book - left, book * 2 / life)
        own["written off"][month + 1] += lost
        book -= lost
    own["written off"][sold] += book - written * _fetched(value, sold - start, life)


def _lease(
    part: dict[str, Any],
    value: dict[str, float],
    own: Any,
    months: int,
    start: int,
    nodes: float,
    market: float,
    price: float,
) -> float:
    """Rates of machines leased in one month, and their buyout; returns what of their price is one's own by then."""
    term, life = part["lease_months"], part["life_months"]
    rate = nodes * value["lease_usd_per_node_month"] * market
    for month in range(start, start + term):
        if month < months:
            own["lease"][month if part["in_advance"] else month + 1] += rate
        else:
            own["unexpired_commitment"][months] += rate
    if not part["bought_out"] or start + term > months:
        return 0.0
    book = nodes * value["buyout_usd_per_node"] * market
    own["buyout"][start + term] += book
    left, sold = min(book, price * _fetched(value, life, life)), min(start + life, months)
    if life > term:
        each = (book - left) / (life - term)
        for month in range(start + term, sold):
            own["written off"][month + 1] += each
            book -= each
    own["written off"][sold] += book - price * _fetched(value, sold - start, life)
    return price


def _keep(
    part: dict[str, Any],
    value: dict[str, float],
    own: Any,
    months: int,
    life: int,
    prices_rise: float,
    method: str,
) -> None:
    """Machines that are there already: as if bought today for what they would fetch today."""
    nodes, age = part["held_nodes"], part["held_age_months"]
    paid, sold = nodes * value["held_usd_per_node"], min(life - age, months)
    left = paid * _fetched(value, life, life)
    books = [paid]
    for _ in range(life):
        lost = (paid - left) / life if method == "straight_line" else min(books[-1] - left, books[-1] * 2 / life)
        books.append(books[-1] - lost)
    own["foregone_sale"][0] += paid * _fetched(value, age, life)
    own["residual"][sold] -= paid * _fetched(value, age + sold, life)
    own["decommissioning"][sold] += (
        nodes * value.get("decommissioning_usd_per_node", 0.0) * prices_rise ** ((sold - 1) / 12)
    )
    own["written off"][0] += paid * _fetched(value, age, life) - books[age]
    for month in range(sold):
        own["written off"][month + 1] += books[age + month] - books[age + month + 1]
        _run(part, value, own, month, nodes, paid, prices_rise)
    own["written off"][sold] += books[age + sold] - paid * _fetched(value, age + sold, life)


def _run(
    part: dict[str, Any],
    value: dict[str, float],
    own: Any,
    month: int,
    nodes: float,
    insured: float,
    prices_rise: float,
) -> None:
    """One month of machines in one's own hall."""
    column, dearer = month + 1, prices_rise ** (month / 12)
    works = value["utilisation_fraction"] * (1.0 if part["busy_fraction"] is None else part["busy_fraction"])
    share = value["idle_power_fraction"] + works * (value["serving_power_fraction"] - value["idle_power_fraction"])
    kilowatts = nodes * value["peak_w_per_node"] / 1000
    energy = kilowatts * share * HOURS
    tariff = value["electricity_usd_per_kwh"] * dearer
    own["power"][column] += energy * tariff
    own["cooling"][column] += energy * tariff * (value["power_usage_effectiveness"] - 1)
    own["demand_charge"][column] += (
        kilowatts * value["power_usage_effectiveness"] * value["demand_charge_usd_per_kw_month"] * dearer
    )
    own["space"][column] += kilowatts * value["colocation_usd_per_kw_month"] * dearer
    for line in ("maintenance", "support", "insurance"):
        own[line][column] += insured * value[f"{line}_fraction_per_year"] / 12
    own["staff"][column] += nodes * value["staff_fte_per_node"] * value["staff_usd_per_fte_year"] / 12 * dearer
    licences = nodes * part["devices_per_node"] * value["software_usd_per_device_year"]
    own["software"][column] += licences / 12 * dearer


def _fetched(value: dict[str, float], age: int, life: int) -> float:
    """Share of the price that a machine fetches at an age, walked month by month."""
    if "residual_fraction" in value:
        return 1 - (1 - value["residual_fraction"]) * min(age, life) / life
    three, five = value["residual_fraction_after_3_years"], value["residual_fraction_after_5_years"]
    left = 1.0
    for month in range(1, age + 1):
        left += (three - 1) / 36 if month <= 36 else (min(five, three) - three) / 24
    return max(0.0, left)


def _repay(own: Any, line: str, usd: float, start: int, term: int, yearly: float, months: int) -> None:
    """Level payments, interest on what is owed; what is left at the horizon is paid there."""
    rate = (1 + yearly) ** (1 / 12) - 1
    level = usd / term if rate == 0 else usd * rate / (1 - (1 + rate) ** -term)
    owed = usd
    for month in range(start, min(start + term, months)):
        interest = owed * rate
        own["finance"][month + 1] += interest
        own[line][month + 1] += level - interest
        owed -= level - interest
    if start + term > months:
        own[line][months] += owed


def _api(answer: dict[str, Any], part: dict[str, Any], value: dict[str, float], own: Any, months: int) -> None:
    del part
    demand, ramp = answer["demand"], answer["request"]["ramp_months"]
    for month in range(months):
        requests = demand["requests_per_s"] * value["utilisation_fraction"] * 3600 * HOURS
        requests *= (1 + value["growth_fraction_per_month"]) ** month * (min(1.0, (month + 1) / ramp) if ramp else 1.0)
        market = (1 + value["api_change_fraction_per_year"]) ** (month / 12)
        cached = requests * demand["input_tokens"] * demand["cached_fraction"]
        fresh = requests * demand["input_tokens"] - cached
        for line, tokens in (("input", fresh), ("cached", cached), ("output", requests * demand["output_tokens"])):
            price = value[f"api_usd_per_million_{line}_tokens"]
            own[f"api_{line}"][month + 1] += tokens / 1e6 * price * market
