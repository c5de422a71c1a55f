"""Would a buyer sign what the defaults give? ``python -m tests.bench.default_plans``.

Sixty requests that state a model, its traffic and its targets and nothing else, from one billion weights to 671, from a tenth of a
request a second to 500. Of every line: is the place named, the price within the policy or flagged, is there one provider a
workload, and no consumer card. Exit code 1 where a line breaks one of these.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from service.clock import system_clock
from service.main import create_app
from service.settings import Settings
from tests.bench.planner import seeded_database
from tests.bench.random_requests import DENSE, LARGE, LENGTHS, MIXTURES, TARGETS_MS

ACCEPTED = ("high", "medium")
SLOWEST_PER_S, FASTEST_PER_S, FASTEST_LARGE_PER_S = 0.1, 500.0, 50.0


def default_request(rng: random.Random) -> dict[str, Any]:
    """A body that leaves every choice to its default."""
    llm = rng.choice(DENSE + MIXTURES)
    (prompt, output), (first, each) = rng.choice(LENGTHS), rng.choice(TARGETS_MS)
    fastest = FASTEST_LARGE_PER_S if llm in LARGE else FASTEST_PER_S
    traffic = {
        "requests_per_s": round(SLOWEST_PER_S * (fastest / SLOWEST_PER_S) ** rng.random(), 2),
        "prompt_tokens": {"distribution": "lognormal", "mean": prompt, "p95": 3 * prompt},
        "output_tokens": {"distribution": "lognormal", "mean": output, "p95": 3 * output},
    }
    targets = {"ttft_ms": {"p95": first * (2 if llm in LARGE else 1)}, "tpot_ms": {"p95": each}}
    return {"workloads": [{"name": "w", "llm": llm, "traffic": traffic, "targets": targets}], "time_limit_s": 60}


def broken_rules(answer: dict[str, Any]) -> list[str]:
    """What a buyer would not sign of a plan."""
    plan, policy = answer["plan"], answer["request"]["limits"]["sourcing"]
    found = []
    for line in plan:
        source, where = line["source"], f"{line['nodes']} × {line['offer']}"
        if not source["named_place"]:
            found.append(f"{where}: no named place")
        if source["price_confidence"] not in ACCEPTED:
            found.append(f"{where}: price of {source['price_confidence']} confidence")
        if source["price_age_days"] > policy["max_price_age_days"] and not source["ask_for_quote"]:
            found.append(f"{where}: a price of {source['price_age_days']} days without a flag")
        if source["device_class"] == "consumer":
            found.append(f"{where}: a consumer card")
    used = {kind: sorted({line[kind] for line in plan}) for kind in ("provider", "region", "device")}
    return found + [f"more than one {kind}: {', '.join(names)}" for kind, names in used.items() if len(names) > 1]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.default_plans", description=__doc__)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    outcomes: Counter[str] = Counter()
    cautions: Counter[str] = Counter()
    ages: list[int] = []
    seconds: list[float] = []
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=seeded_database(Path(folder) / "plans.sqlite")), system_clock)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            for number in range(arguments.requests):
                body = default_request(rng)
                began = time.perf_counter()
                response = client.post("/v1/recommendations", json=body, headers={"Prefer": "wait=300"})
                seconds.append(time.perf_counter() - began)
                answer = response.json()
                if response.status_code != 201:
                    print(f"{number}: {response.status_code} {answer.get('detail')}: {body}")
                    wrong += 1
                    continue
                outcomes[answer["outcome"]] += 1
                cautions.update({one["about"] for one in answer["cautions"]})
                ages += [line["source"]["price_age_days"] for line in answer["plan"]]
                for problem in broken_rules(answer):
                    print(f"{number}: {problem}: {body}")
                    wrong += 1
    print(f"outcomes: {dict(outcomes)}")
    print(f"plans with a caution of a kind: {dict(cautions.most_common())}")
    if ages:
        print(f"price ages: median {statistics.median(ages):.0f} days, oldest {max(ages)}")
    print(f"seconds a request: median {statistics.median(seconds):.2f}, longest {max(seconds):.1f}")
    print(f"lines that break a rule, and requests without an answer: {wrong}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
