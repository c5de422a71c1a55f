"""Prints docs/systems.md: every system that the background documents name, and what is there of it.

``python -m tests.bench.systems > docs/systems.md``. Cells come from a database seeded with the catalog, over the service's own routes:
figures, engine, an estimate, an offer, a plan of a request limited to the device, measured runs. Plans take minutes and the rest
seconds, so a test compares everything but plans, and some of those.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient

from catalog.published_speeds import read_published
from service.main import create_app
from service.settings import Settings
from service.tco.bought import published_machines, with_bought
from solver.engine.profiles import engines_for
from tests.bench.named_systems import NAMED
from tests.bench.planner import seeded_database

DOCUMENT = Path("docs/systems.md")
COLUMNS = ("system", "device", "status", "figures", "engine", "estimate", "offer", "plan", "measured runs")
HEAD = """# Systems

Every accelerator that the project set out to choose among, and what is there of it. Printed by `python -m tests.bench.systems` from
a database seeded with the catalog; where a cell says "no", the rest of it is the reason.

- **figures**: memory, bandwidth and a dense matrix rate are published; otherwise the first that is not.
- **engine**: what estimates and plans take where a request names none.
- **estimate**: the model, weights and parallelism (tensor × pipeline) of one that `POST /v1/estimates` makes; by published speed where
  only that of one stream of requests is known.
- **offer**: rented by the hour; bought, at what an hour of it costs to own; by the token, from its maker.
- **plan**: what a recommendation limited to the device answers for that model and those weights at one request in twenty seconds,
  by whatever commitment it is sold, its maker's tokens among them (`limits.by_the_token`).
- **measured runs**: of this project, in `catalog/benchmarks/`; other predictions rest on physics or on siblings.

"""
VARIANTS: tuple[tuple[str, str, int, int], ...] = (
    ("llama-3.1-8b", "bf16", 1, 1), ("llama-3.1-8b", "fp16", 1, 1), ("llama-3.1-8b", "fp8", 1, 1),
    ("llama-3.1-8b", "int4", 1, 1), ("llama-3.1-8b", "q4_k_m", 1, 1), ("llama-3.1-8b", "bf16", 2, 1),
    ("llama-3.1-8b", "bf16", 8, 1), ("llama-3.1-8b", "int8", 8, 8), ("qwen2.5-0.5b", "fp16", 1, 1),
    ("qwen2.5-0.5b", "int8", 1, 1), ("qwen2.5-0.5b", "q8_0", 1, 1), ("qwen2.5-0.5b", "bf16", 1, 8),
)  # fmt: skip
"""Model, weights, tensor and pipeline parallelism, as they are tried; the first that runs is shown."""
BY_SPEED = ("llama-3.1-8b", "llama-3.3-70b", "llama-2-7b", "gpt-oss-120b")
"""Models of which a published speed is tried where none of those runs."""
LENGTHS = {"prompt_tokens": 500, "output_tokens": 100}


@dataclass
class System:
    """One line of the table."""

    name: str
    device: str
    status: str
    figures: str = "yes"
    engine: str = ""
    estimate: str = ""
    offer: str = ""
    plan: str = ""
    measured: str = ""
    variant: tuple[str, str, int, int] | None = None
    by_speed: tuple[str, str] | None = None
    """Model and weights that a published speed is of."""
    seller: str | None = None
    """The maker's own shop, where it sells tokens."""

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.name, self.device, self.status, self.figures, self.engine, self.estimate, self.offer, self.plan, self.measured,
        )  # fmt: skip


def systems(app: FastAPI, client: TestClient) -> list[System]:
    """Every line, without plans."""
    rows = {device: _row(client, name, device) for name, devices in NAMED.items() for device in devices}
    with app.state.database.reading() as session:
        snapshot = with_bought(session, app.state.snapshots.at(session, app.state.clock()), rows)
        machines = {one.device for one in published_machines(session, rows)}
    for device, row in rows.items():
        if device in snapshot.refused:
            row.figures, row.estimate = f"no: {snapshot.refused[device]}", "no: figures"
        speed = next((one for one in read_published().speeds if one.device == device), None)
        runs = engines_for(snapshot.devices[device].engines, "vllm") if device in snapshot.devices else ()
        none = "no: none is known to serve language models on it"
        row.engine = runs[0] if runs else none if speed is None else speed.engine
        offers = [offer for offer in snapshot.offers if offer.node.device.id == device]
        seller = snapshot.vendors[device].lower()
        if any((one.seller, one.device) == (seller, device) for one in read_published().services):
            row.seller = seller
        kinds = [
            "bought"
            if device in machines
            else ""
            if not offers
            else "bought"
            if offers[0].id in snapshot.bought
            else "rented",
            "by the token" if row.seller else "",
        ]
        lacks = snapshot.not_bought.get(device)
        none = "no: nobody rents it out" + (f", and no {lacks}" if lacks else "")
        row.offer = ", ".join(kind for kind in kinds if kind) or none
    _estimate(client, [row for row in rows.values() if row.figures == "yes"])
    _by_speed(client, [row for row in rows.values() if row.variant is None])
    return list(rows.values())


def _row(client: TestClient, name: str, device: str) -> System:
    shown = client.get(f"/v1/devices/{device}").json()
    runs = client.get("/v1/benchmarks", params={"device": device, "limit": 1}).json()
    return System(name, device, shown["status"], measured="yes" if runs.get("items") else "no: none made")


def _estimate(client: TestClient, wanted: list[System]) -> None:
    """The first variant that each can run; of those that can run none, why the first could not."""
    for variant in VARIANTS:
        left = [row for row in wanted if row.variant is None and not row.engine.startswith("no")]
        if not left:
            break
        answers = client.post("/v1/estimates", json={"estimates": [_case(row.device, variant) for row in left]}).json()
        for row, answer in zip(left, answers["estimates"], strict=True):
            if answer["outcome"] == "estimated":
                llm, weights, tensor, stages = row.variant = variant
                row.estimate = f"{llm} {weights} {tensor} × {stages}"
            elif not row.estimate:
                row.estimate = f"no: {answer.get('reason') or answer['outcome']}"
    for row in wanted:
        row.estimate = row.estimate or "no: no engine"


def _by_speed(client: TestClient, wanted: list[System]) -> None:
    """Of those that no layout runs on: the first model of which a speed is published."""
    for llm in BY_SPEED:
        left = [row for row in wanted if row.by_speed is None]
        if not left:
            break
        cases = [_case(row.device, (llm, "", 0, 0)) for row in left]
        for case in cases:
            del case["layout"], case["precision"]
        answers = client.post("/v1/estimates", json={"estimates": cases}).json()["estimates"]
        for row, answer in zip(left, answers, strict=True):
            if answer["outcome"] == "estimated" and answer["memory"] is None:
                row.by_speed = (llm, answer["precision"]["weights"])
                row.estimate = f"{llm} {answer['precision']['weights']} by published speed"


def _case(device: str, variant: tuple[str, str, int, int]) -> dict[str, Any]:
    llm, weights, tensor, stages = variant
    return {
        "llm": llm, "device": device, "traffic": LENGTHS, "load": {"kind": "closed", "concurrency": 1, "requests": 1},
        "layout": {"tensor_parallel": tensor, "pipeline_parallel": stages}, "precision": {"weights": weights},
        "engine": {"max_context_tokens": 1024},
    }  # fmt: skip


def plan_of(client: TestClient, row: System) -> str:
    """What a recommendation limited to the device answers."""
    if row.variant is None and row.by_speed is None:
        return "no: no estimate"
    if row.offer.startswith("no"):
        return "no: no offer"
    llm, weights = row.by_speed or (row.variant or ("", ""))[:2]
    if row.seller:
        llm = next(one.llm for one in read_published().services if one.device == row.device)
    workload = {
        "name": "few", "llm": llm, "context_tokens": 1024, "precision": {"weights": [weights]},
        "traffic": {**LENGTHS, "requests_per_s": 0.05},
    }  # fmt: skip
    limits = {
        "devices": [row.device],
        "commitments": None,
        "sourcing": {"named_place": False, "min_price_confidence": None, "provider_classes": None},
        "by_the_token": [row.seller] if row.seller else None,
    }
    asked = {"workloads": [workload], "limits": limits, "alternatives": 0, "time_limit_s": 60}
    answer = client.post("/v1/recommendations", json=asked, headers={"Prefer": "wait=60"}).json()
    if answer.get("published_lines"):
        commitment = answer["published_lines"][0]["commitment"]
        return "by the token" if commitment == "by_the_token" else "bought"
    if answer.get("plan"):
        return "bought" if answer["plan"][0]["commitment"] == "purchase" else "rented"
    return "no: " + ", ".join(dict.fromkeys(one["reason"] for one in answer.get("rejected", []))) if answer else "no"


def table(rows: Iterable[System]) -> str:
    lines = [f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    return "\n".join([*lines, *(f"| {' | '.join(row.cells)} |" for row in rows)]) + "\n"


def summary(rows: list[System]) -> str:
    """How many have what, of all that are or were sold and of those that are."""

    def counted(statuses: tuple[str, ...], whose: str) -> str:
        among = [row for row in rows if row.status in statuses]
        counts: Mapping[str, int] = {
            name: sum(not getattr(row, name).startswith("no") for row in among)
            for name in ("figures", "engine", "estimate", "offer", "plan")
        }
        said = ", ".join(f"{name} {count}" for name, count in counts.items())
        return f"Of {len(among)} that {whose}, so many have: {said}.\n"

    return counted(("shipping", "legacy"), "ship or have shipped") + counted(("shipping",), "ship")


def written(text: str) -> dict[str, dict[str, str]]:
    """The table of the document, by device and column."""
    lines = [re.split(r"\s*\|\s*", line.strip("| \n")) for line in text.splitlines() if line.startswith("| ")]
    return {cells[1]: dict(zip(COLUMNS, cells, strict=True)) for cells in lines[1:]}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.systems", description=__doc__)
    parser.add_argument(
        "--keep-plans", action="store_true", help="take the plans from the document as it stands: seconds"
    )
    parser.add_argument(
        "--except-of", nargs="*", default=[], help="with --keep-plans: devices whose plans are made anew"
    )
    asked = parser.parse_args()
    told = written(DOCUMENT.read_text()) if asked.keep_plans else {}
    told = {device: cells for device, cells in told.items() if device not in asked.except_of}
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "systems.sqlite")
        app = create_app(Settings(database_url=url))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
            rows = systems(app, client)
            for row in rows:
                row.plan = told[row.device]["plan"] if row.device in told else plan_of(client, row)
                print(row.device, row.plan, file=sys.stderr, flush=True)
    sys.stdout.write(HEAD + summary(rows) + "\n" + table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
