"""Our USD per million tokens of a 70B model beside ranges that guides quote.

    python -m tests.bench.published_token_costs

Such ranges come without a workload, a precision, a price or a use, so no figure can agree with them for a stated
reason. Each row therefore says what ours stands for: the model's own throughput at one load, the price on demand of the
median provider, and how busy the machine is.
"""

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from rich.console import Console
from rich.table import Table

from catalog.read import read_catalog
from service.clock import system_clock
from service.database import Database
from service.main import create_app
from service.migrate import migrate
from service.seeding import seed
from service.settings import Settings
from solver.tco.tokens import usd_per_million_tokens_at_rate

LLM = "llama-3.1-70b"
PROMPT_TOKENS, OUTPUT_TOKENS = 1024, 256
ENGINE = {"max_batched_tokens": 2048, "max_context_tokens": 2048}
"""Small batches of prompt tokens, so that the working memory leaves room on devices of 16 GiB too."""
CONCURRENCY = 64
BUSY_FRACTIONS = (1.0, 0.5)


@dataclass(frozen=True, slots=True)
class Quoted:
    """A quoted range, and the smallest usual deployment that holds the model."""

    device: str
    low_usd: float
    high_usd: float
    tensor_parallel: int
    weights: str


QUOTED = (
    Quoted("h100-sxm", 0.50, 1.00, 4, "bf16"),
    Quoted("h100-sxm", 0.50, 1.00, 2, "fp8"),
    Quoted("a100-sxm-80", 0.80, 1.50, 4, "bf16"),
    Quoted("tpu-v5e", 0.30, 0.60, 16, "bf16"),
    Quoted("tpu-v5e", 0.30, 0.60, 8, "int8"),
    Quoted("h200-sxm", 0.40, 0.80, 2, "bf16"),
    Quoted("h200-sxm", 0.40, 0.80, 1, "fp8"),
)


def main() -> None:
    console = Console(width=170)
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.sqlite'}"
        database = Database(url)
        migrate(database)
        with database.writing() as session:
            seed(session, read_catalog(), system_clock)
        database.close()
        app = create_app(Settings(database_url=url))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 0)) as client:
            console.print(_table(client))


def _table(client: TestClient) -> Table:
    table = Table(
        title=f"USD per million tokens, {LLM}, {PROMPT_TOKENS} in and {OUTPUT_TOKENS} out, {CONCURRENCY} at a time; "
        "input and output tokens counted alike, and output alone"
    )
    for heading in ("device", "deployment", "USD/device-h", "output tokens/s"):
        table.add_column(heading)
    for busy in BUSY_FRACTIONS:
        table.add_column(f"all tokens, {busy:.0%} busy", justify="right")
        table.add_column(f"output, {busy:.0%} busy", justify="right")
    table.add_column("quoted", justify="right")
    for quoted in QUOTED:
        table.add_row(*_row(client, quoted))
    return table


def _row(client: TestClient, quoted: Quoted) -> list[str]:
    price = _median_price(client, quoted.device)
    estimate = _estimate(client, quoted)
    deployment = f"TP{quoted.tensor_parallel} {quoted.weights}"
    quote = f"{quoted.low_usd:.2f}–{quoted.high_usd:.2f}"
    if price is None or estimate["outcome"] != "estimated":
        reason = "no listed price" if price is None else str(estimate.get("reason", estimate["outcome"]))
        return [quoted.device, deployment, "" if price is None else f"{price:.2f}", reason, *[""] * 4, quote]
    output_per_s = estimate["output_tokens_per_s"]["expected"]
    usd_per_hour = price * quoted.tensor_parallel
    costs = []
    for busy in BUSY_FRACTIONS:
        every = output_per_s * (PROMPT_TOKENS + OUTPUT_TOKENS) / OUTPUT_TOKENS
        costs.append(f"{usd_per_million_tokens_at_rate(usd_per_hour, every, busy):.2f}")
        costs.append(f"{usd_per_million_tokens_at_rate(usd_per_hour, output_per_s, busy):.2f}")
    return [quoted.device, deployment, f"{price:.2f}", f"{output_per_s:,.0f} ({estimate['basis']})", *costs, quote]


def _estimate(client: TestClient, quoted: Quoted) -> dict[str, Any]:
    body = {
        "llm": LLM,
        "device": quoted.device,
        "layout": {"tensor_parallel": quoted.tensor_parallel},
        "engine": ENGINE,
        "precision": {"weights": quoted.weights},
        "traffic": {
            "prompt_tokens": {"distribution": "fixed", "tokens": PROMPT_TOKENS},
            "output_tokens": {"distribution": "fixed", "tokens": OUTPUT_TOKENS},
        },
        "load": {"kind": "closed", "concurrency": CONCURRENCY},
    }
    answer: dict[str, Any] = client.post("/v1/estimates", json={"estimates": [body]}).json()
    found: dict[str, Any] = answer["estimates"][0]
    return found


def _median_price(client: TestClient, device: str) -> float | None:
    """On demand, per device-hour: the median provider, each at the median of its own regions and sizes."""
    parameters: dict[str, str | int] = {"device": device, "commitment": "on_demand", "limit": 500}
    offers = client.get("/v1/offers", params=parameters).json()["items"]
    by_provider: dict[str, list[float]] = {}
    for offer in offers:
        if offer["usd_per_device_hour"] is not None:
            by_provider.setdefault(offer["provider"], []).append(float(offer["usd_per_device_hour"]))
    medians = [statistics.median(prices) for prices in by_provider.values()]
    return statistics.median(medians) if medians else None


if __name__ == "__main__":
    main()
