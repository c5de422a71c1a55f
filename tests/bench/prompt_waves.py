"""How an engine's front end takes in prompts that are sent at once: ``python -m tests.bench.prompt_waves --endpoint URL --model NAME``.

Each client sends one prompt of the same many tokens, which the engine has cached, and a hundred of its own, all at the same moment and
encoded before. ``--token-ids`` asks for the ids of prompt and reply too, as the worker agent's sessions do. Without an endpoint:
the waves that were measured (``catalog/benchmarks/waves``), in the same form.
"""

import argparse
import asyncio
import json
import random
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT

OWN_TOKENS, REPLY_TOKENS = 100, 50
WAVES = DEFAULT_ROOT / "waves"
MS_PER_S = 1e3


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


async def wave(endpoint: str, model: str, tokens: int, clients: int, *, token_ids: bool) -> dict[str, float | str]:
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


def measured() -> list[dict[str, float | str]]:
    return [json.loads(line) for file in sorted(WAVES.glob("*.jsonl")) for line in Path(file).read_text().splitlines()]


def show(rows: Iterable[dict[str, float | str]]) -> None:
    """By length, clients and variant: medians over waves, the first of a length, which nothing was cached for, left out."""
    table = Table(
        "shared tokens", "clients", "token ids", "waves", "first ms", "mean ms", "last ms", "last, µs a token"
    )
    kinds: dict[tuple[float | str, ...], list[dict[str, float | str]]] = {}
    lengths = set()
    for row in rows:
        if row["length"] in lengths:
            kinds.setdefault((row["length"], row["clients"], row["variant"]), []).append(row)
        lengths.add(row["length"])
    for (length, clients, variant), waves in sorted(kinds.items(), key=str):
        first, mean, last = (
            sorted(float(row[name]) for row in waves)[len(waves) // 2] for name in ("first_ms", "mean_ms", "last_ms")
        )
        each = last * MS_PER_S / (float(clients) * (float(length) + OWN_TOKENS))
        asked = "asked" if variant == "ids" else "not asked"
        table.add_row(
            str(length),
            str(clients),
            asked,
            str(len(waves)),
            f"{first:.0f}",
            f"{mean:.0f}",
            f"{last:.0f}",
            f"{each:.2f}",
        )
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prompt_waves", description=__doc__)
    parser.add_argument("--endpoint", help="address of an engine, such as http://127.0.0.1:8000")
    parser.add_argument("--model", default="m")
    parser.add_argument("--tokens", type=int, nargs="+", default=[20_000, 5_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 24])
    parser.add_argument("--token-ids", action="store_true")
    parser.add_argument("--waves", type=int, default=5)
    options = parser.parse_args()
    if options.endpoint is None:
        show(measured())
        return
    show(
        asyncio.run(wave(options.endpoint, options.model, tokens, clients, token_ids=options.token_ids))
        for tokens in options.tokens
        for clients in options.clients
        for _ in range(options.waves)
    )


if __name__ == "__main__":
    main()
