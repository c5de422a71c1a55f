"""How often a comparison's headline agrees with its own draws: ``python -m tests.bench.tco_verdicts [--cases 200] [--plans]``.

Random comparisons of one stored plan (tests/service/tco_cases.py) and the committed example; with ``--plans`` also every example
that plans, rented, bought, leased and by an API, where the catalog has a price. Ends with 1 where the cheapest alternative is not the one
that is cheapest most often and the answer does not say why.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from tests.bench.cost_service import cost_service
from tests.service.tco_cases import MODELS, random_comparison

URL = "/v1/tco/comparisons"
EXAMPLES = Path("examples")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--plans", action="store_true", help="plan the examples too: some minutes")
    arguments = parser.parse_args()
    found: Counter[str] = Counter()
    with cost_service() as (client, _):
        bodies = [random_comparison(number, draws=1000) for number in range(arguments.cases)]
        bodies.append(json.loads((EXAMPLES / "tco-rent-buy-api.json").read_text(encoding="utf-8")))
        for body in [*bodies, *(_planned(client) if arguments.plans else [])]:
            _count(client, body, found)
    print(
        f"{found['comparisons']} comparisons, {found['alternatives']} alternatives: {found['inside']} stated cases between their own "
        f"P25 and P75, {found['said']} outside and said; the cheapest is cheapest most often in {found['agrees']}, in "
        f"{found['explained']} another is and the answer says why, in {found['silent']} it does not; {found['refused']} refused"
    )
    return 1 if found["silent"] or found["inside"] + found["said"] != found["alternatives"] else 0


def _count(client: TestClient, body: dict[str, Any], found: Counter[str]) -> None:
    made = client.post(URL, json=body)
    if made.status_code != 201:
        found["refused"] += 1
        print(made.json()["errors"][0]["detail"])
        return
    answer = made.json()
    found["comparisons"] += 1
    for alternative in answer["alternatives"]:
        found["alternatives"] += 1
        spread = alternative["uncertainty"]["npv_usd"]
        inside = float(spread["p25"]) - 0.01 <= float(alternative["npv_usd"]) <= float(spread["p75"]) + 0.01
        noted = any("middle half of its own draws" in note for note in alternative["notes"])
        found["inside"] += inside
        found["said"] += not inside and noted
    cheapest = answer["cheapest"]
    most = max(alternative["uncertainty"]["cheapest_fraction"] for alternative in answer["alternatives"])
    agrees = cheapest["chance"] == most
    found["agrees" if agrees else "explained" if cheapest["why_not"] else "silent"] += 1


def _planned(client: TestClient) -> list[dict[str, Any]]:
    """The plans of the examples, in every way that the catalog has a price for."""
    bodies = []
    for own in sorted((EXAMPLES / "offers").glob("*.json")):
        client.post("/v1/offers", json=json.loads(own.read_text(encoding="utf-8"))).raise_for_status()
    for path in sorted(EXAMPLES.glob("*.json")):
        asked = json.loads(path.read_text(encoding="utf-8"))
        if "horizon" in asked or isinstance(asked.get("alternatives"), list):
            continue  # a fleet over time or a comparison
        plan = client.post("/v1/recommendations", json=asked, headers={"Prefer": "wait=300"}).json()
        if plan.get("outcome") not in ("optimal", "feasible"):
            continue
        planned = {"recommendation": plan["id"]}
        ways = [
            {"name": "rent", **planned},
            {"name": "buy", **planned, "acquisition": "purchase"},
            {"name": "lease", **planned, "acquisition": "lease", "lease": {"term_months": 36}},
            {"name": "API", "api": {"model": MODELS[0]}},
        ]
        base = {"horizon_months": 36, "utilisation_fraction": 0.6}
        priced = [way for way in ways if _priced(client, {**base, "alternatives": [ways[0], {**way, "name": "it"}]})]
        if priced:  # not where no rate of requests is stated
            bodies.append({**base, "alternatives": priced})
    return bodies


def _priced(client: TestClient, body: dict[str, Any]) -> bool:
    return client.post(URL, json={**body, "monte_carlo": {"draws": 0}}).status_code == 201


if __name__ == "__main__":
    sys.exit(main())
