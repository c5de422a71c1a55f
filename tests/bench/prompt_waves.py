"""How an engine's front end takes in prompts that are sent at once: ``python -m tests.bench.prompt_waves --endpoint URL --model NAME``.

Each client sends one prompt of the same many tokens, which the engine has cached, and a hundred of its own, all at the same moment and
encoded before. ``--token-ids`` asks for the ids of prompt and reply too, as the worker agent's sessions do. Without an endpoint:
the waves that were measured (``catalog/benchmarks/waves``), in the same form, with what is predicted of them; ``--stages``: what each
stage of the engine took for a token of prompt in those whose times were taken inside it, and the constants.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from solver.deployment.configuration import Configuration
from solver.engine.replayable import SessionTurns
from solver.engine.simulate import simulate_sessions
from tests.bench.measured_sessions import measured_runs

OWN_TOKENS, REPLY_TOKENS = 100, 50
WAVES = DEFAULT_ROOT / "waves"
MS_PER_S = 1e3
US_PER_MS = 1e3
SERVED_AS = "h100-l8b-bf16-tp1-20k-8_l"
"""The run of sessions whose configuration the measured waves were sent to."""
APART_S = 10.0
"""Between the prompt that puts the opening into the cache and the wave."""
Row = dict[str, Any]
STAGES = {
    "taken in": ("taken_in_ms", "prompt_token_us"),
    "hashed": ("hashing_ms", "prefix_token_us"),
    "admitted": ("admitting_ms", "admitted_token_us"),
    "answered": ("answering_ms", "answered_token_us"),
}
"""By name: what was measured, and the constant."""


def request_of(host: str, model: str, shared: list[int], rng: random.Random, *, token_ids: bool) -> bytes:
    """The whole HTTP request for one prompt."""
    body = {
        "model": model, "prompt": shared + rng.choices(range(1000, 120_000), k=OWN_TOKENS), "max_tokens": REPLY_TOKENS,
        "min_tokens": REPLY_TOKENS, "ignore_eos": True, "temperature": 0, "stream": True, "return_token_ids": token_ids,
    }  # fmt: skip
    encoded = json.dumps(body, separators=(",", ":")).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(encoded)}\r\n\r\n".encode() + encoded


async def answered_ms(host: str, port: int, request: bytes, start: asyncio.Event) -> tuple[float, float]:
    """Until the first token and until the last, from when the wave starts."""
    reader, writer = await asyncio.open_connection(host, port)
    await start.wait()
    sent, first = time.perf_counter(), 0.0
    writer.write(request)
    while chunk := await reader.read(65_536):
        if not first and b'"text"' in chunk:
            first = time.perf_counter()
    writer.close()
    return (first - sent) * MS_PER_S, (time.perf_counter() - sent) * MS_PER_S


async def wave(endpoint: str, model: str, tokens: int, clients: int, *, token_ids: bool) -> Row:
    """One wave."""
    address = urlsplit(endpoint)
    host, port = address.hostname or "127.0.0.1", address.port or 80
    shared, rng, start = random.Random(tokens).choices(range(1000, 120_000), k=tokens), random.Random(), asyncio.Event()
    requests = [request_of(host, model, shared, rng, token_ids=token_ids) for _ in range(clients)]
    waiting = [asyncio.create_task(answered_ms(host, port, request, start)) for request in requests]
    await asyncio.sleep(0.3)
    start.set()
    found = await asyncio.gather(*waiting)
    first = sorted(to_first for to_first, _ in found)
    return {
        "length": tokens, "clients": clients, "variant": "ids" if token_ids else "plain", "first_ms": first[0],
        "mean_ms": sum(first) / clients, "last_ms": first[-1], "end_ms": max(end for _, end in found),
    }  # fmt: skip


def measured() -> list[Row]:
    """All waves but the first of each length in a file, for which nothing was cached."""
    rows = []
    for file in sorted(WAVES.glob("*.jsonl")):
        lengths = set()
        for row in map(json.loads, Path(file).read_text().splitlines()):
            if row["length"] in lengths:
                rows.append({**row, "file": file.stem.rsplit("_", 1)[1]})
            lengths.add(row["length"])
    return rows


def predicted(on: Configuration, length: int, clients: int) -> Row:
    """A wave over an opening that one prompt has put into the cache before."""
    schedule, count = on.schedule(), clients + 1
    opening = length // schedule.block_tokens
    prompts, outputs = np.full(count, length + OWN_TOKENS), np.full(count, REPLY_TOKENS)
    none = np.zeros(count, dtype=np.int64)
    turns = SessionTurns(
        think_s=np.zeros(count), later=none, aside_tokens=np.full(count, opening * schedule.block_tokens),
        kept_tokens=prompts + outputs - 1, chain=np.arange(count), starts=np.arange(count),
        parent=np.array([*[count] * count, -1]), blocks=np.array([*none, opening]), held_chains=none[:0], held_blocks=none[:0],
    )  # fmt: skip
    arrivals_s = np.array([0.0, *[APART_S] * clients])
    found = simulate_sessions(on.tables(), schedule, prompts, outputs, turns, arrivals_s=arrivals_s).trace
    first = found.time_to_first_token_s[1:] * MS_PER_S
    return {"first_ms": first.min(), "mean_ms": first.mean(), "last_ms": first.max(),
            "end_ms": found.end_to_end_s[1:].max() * MS_PER_S}  # fmt: skip


def kinds_of(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """By where, length, clients and variant."""
    kinds: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        kinds.setdefault((row.get("file", ""), row["length"], row["clients"], row["variant"]), []).append(row)
    return dict(sorted(kinds.items()))


def median(rows: Iterable[Row], name: str) -> float:
    return float(np.median([row[name] for row in rows]))


def show(rows: Iterable[Row], on: Configuration | None = None) -> None:
    """Medians over waves of one kind, and beside them what is predicted on ``on``."""
    times = ("first_ms", "mean_ms", "last_ms", "end_ms")
    table = Table(
        "", "shared tokens", "clients", "token ids", "waves", *(name.replace("_", " ") for name in times), "µs a token"
    )
    for (file, length, clients, variant), waves in kinds_of(rows).items():
        found = predicted(on, int(length), int(clients)) if on else None
        each = median(waves, "last_ms") * US_PER_MS / (clients * (length + OWN_TOKENS))
        columns = [f"{median(waves, name):.0f}" + (f", {found[name]:.0f}" if found else "") for name in times]
        asked = "asked" if variant == "ids" else "not asked"
        table.add_row(file, str(length), str(clients), asked, str(len(waves)), *columns, f"{each:.2f}")
    Console(width=130).print(table)


def show_stages(rows: Iterable[Row], on: Configuration) -> None:
    """Microseconds a token of prompt by stage: medians over waves; of what a step admits, over the prompts of the largest step."""
    table = Table("shared tokens", "clients", *STAGES)
    for (_, length, clients, _), waves in kinds_of(row for row in rows if "stages" in row).items():
        found = []
        for measure, _ in STAGES.values():
            of = {"admitting_ms": "admitted"}.get(measure)
            each = [
                wave["stages"][measure] * US_PER_MS / ((wave["stages"][of] if of else clients) * (length + OWN_TOKENS))
                for wave in waves
                if wave["stages"][measure] is not None
            ]
            found.append(f"{np.median(each):.2f}" if each else "")
        table.add_row(str(length), str(clients), *found)
    table.add_section()
    table.add_row("constants", "", *(f"{on.constants.priors[name].value:.2f}" for _, name in STAGES.values()))
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prompt_waves", description=__doc__)
    parser.add_argument("--endpoint", help="address of an engine, such as http://127.0.0.1:8000")
    parser.add_argument("--model", default="m")
    parser.add_argument("--tokens", type=int, nargs="+", default=[20_000, 5_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 24])
    parser.add_argument("--token-ids", action="store_true")
    parser.add_argument("--waves", type=int, default=5)
    parser.add_argument("--stages", action="store_true")
    options = parser.parse_args()
    if options.endpoint is None:
        on = next(run.configuration for run in measured_runs() if run.name == SERVED_AS)
        show_stages(measured(), on) if options.stages else show(measured(), on)
        return
    show(
        asyncio.run(wave(options.endpoint, options.model, tokens, clients, token_ids=options.token_ids))
        for tokens in options.tokens
        for clients in options.clients
        for _ in range(options.waves)
    )


if __name__ == "__main__":
    main()
