"""Comparisons as people might ask for them, drawn at random: the same ones every time."""

import random
from typing import Any

OPERATORS = ("enterprise", "neocloud", "hyperscaler")
REGIONS = ("us", "us-texas", "us-california-northeast", "de", "nordics", "in")
MODELS = (
    "novita/meta-llama/llama-3.3-70b-instruct",
    "aws/meta.llama3-1-70b-instruct-v1:0",
    "llama-3.3-70b-instruct",
)


def random_comparison(number: int, plan: str = "rec_plan", draws: int = 600) -> dict[str, Any]:
    """Circumstances at random; three to six ways to serve the plan, with terms at random, some stated, most not."""
    chance = random.Random(number)
    body: dict[str, Any] = {
        "horizon_months": chance.choice((6, 12, 18, 24, 36, 48, 60, 84)),
        "utilisation_fraction": round(chance.uniform(0.05, 1.0), 2),
        "growth_percent_per_month": chance.choice((0.0, 0.0, round(chance.uniform(-2.0, 4.0), 1))),
        "operator": chance.choice(OPERATORS),
        "electricity": {"region": chance.choice(REGIONS)},
        "monte_carlo": {"draws": draws, "seed": number},
    }
    if chance.random() < 0.3:
        body["discount_rate_percent"] = round(chance.uniform(0.0, 15.0), 1)
    if chance.random() < 0.3:
        body["income_tax_percent"] = round(chance.uniform(10.0, 30.0), 1)
    if chance.random() < 0.2:
        body["ramp_months"] = chance.randint(1, 6)
    if chance.random() < 0.2:
        body["market"] = {"rent_percent_per_year": round(chance.uniform(-25.0, 15.0), 1)}
    ways = _ways(chance, plan)
    chosen = chance.sample(range(1, len(ways)), chance.randint(2, 5))
    body["alternatives"] = [ways[0], *(ways[position] for position in sorted(chosen))]
    return body


def _ways(chance: random.Random, plan: str) -> list[dict[str, Any]]:
    planned = {"recommendation": plan}
    credit = {
        "finance_rate_percent": round(chance.uniform(4.0, 14.0), 1),
        "finance_months": chance.choice((24, 36, 48)),
    }
    buyout = {"buyout_usd_per_node": str(chance.choice((1, 20_000, 60_000)))} if chance.random() < 0.5 else {}
    age = chance.randint(1, 50)
    return [
        {"name": "rent", **planned, "acquisition": "on_demand"},
        {"name": "commit 1 year", **planned, "acquisition": "reserved_1y_no_upfront"},
        {
            "name": "commit 3 years ahead",
            **planned,
            "acquisition": "reserved_3y",
            "payment": chance.choice(("no_upfront", "partial_upfront", "all_upfront")),
        },
        {"name": "spot", **planned, "acquisition": "spot"},
        {"name": "buy", **planned, "acquisition": "purchase"},
        {"name": "buy on credit", **planned, "acquisition": "purchase", "purchase": credit},
        {
            "name": "lease",
            **planned,
            "acquisition": "lease",
            "lease": {"term_months": chance.choice((24, 36, 48)), **buyout},
            "payment_timing": chance.choice(("in_arrears", "in_advance")),
        },
        {"name": "keep", **planned, "acquisition": "purchase", "owned": {"age_months": age}},
        {"name": "API", "api": {"model": chance.choice(MODELS)}},
    ]
