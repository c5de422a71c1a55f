"""The load generator: sends planned requests to an OpenAI-compatible server and records what came back when.

Two ways of sending. Closed loop: all requests exist at once and `concurrency` of them are in flight, each client
sending its next request when the last is answered. Open loop: requests arrive as a Poisson process, whether or not
earlier ones are answered.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from service.agent.lengths import LengthDistribution
from service.agent.records import LoadRun, RequestRecord
from service.agent.stream import Endpoint, StreamedAnswer, StreamingConnection

IDLE_REUSE_S = 2.0
"""Servers close idle connections, commonly after 5 s; one idle for longer than this is not trusted with a request."""


@dataclass(frozen=True)
class ClosedLoop:
    """`concurrency` clients, all starting at once, until `requests` are answered."""

    concurrency: int
    requests: int

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.requests < 1:
            raise ValueError(f"a closed loop needs a client and a request, got {self}")

    def as_json(self) -> dict[str, object]:
        return {"kind": "closed", "concurrency": self.concurrency, "requests": self.requests}


@dataclass(frozen=True)
class OpenLoop:
    """Poisson arrivals at `requests_per_s`, the gaps drawn from `seed`, after a burst of `at_once` of the requests."""

    requests_per_s: float
    requests: int
    seed: int = 0
    at_once: int = 0

    def __post_init__(self) -> None:
        if self.requests_per_s <= 0.0 or self.requests < 1:
            raise ValueError(f"an open loop needs a positive rate and a request, got {self}")
        if not 0 <= self.at_once <= self.requests:
            raise ValueError(f"a burst is some of the {self.requests} of an open loop, got {self.at_once}")

    def arrivals_s(self) -> list[float]:
        """When each request is sent, from the start of the run: independent exponential gaps of mean 1 / rate."""
        return arrivals_s(self.requests_per_s, self.requests, self.seed, self.at_once)

    def as_json(self) -> dict[str, object]:
        said = {"kind": "open", "requests_per_s": self.requests_per_s, "requests": self.requests, "seed": self.seed}
        return said | ({"at_once": self.at_once} if self.at_once else {})


Load = ClosedLoop | OpenLoop


def arrivals_s(per_s: float, count: int, seed: int, at_once: int = 0) -> list[float]:
    """Times of a Poisson process, from the start of a run: independent exponential gaps of mean 1 / per_s after ``at_once`` zeros.

    >>> arrivals_s(1.0, 3, seed=1, at_once=2)[:2]
    [0.0, 0.0]
    """
    generator = random.Random(seed)
    later_s = itertools.accumulate(generator.expovariate(per_s) for _ in range(count - at_once))
    return [*[0.0] * at_once, *later_s]


def after_burst(at_once: int) -> str:
    """What the name of an open load says of a burst."""
    return f" after {at_once} at once" if at_once else ""


async def until(started_at: float, at_s: float) -> None:
    """Waits for a time of a run."""
    await asyncio.sleep(max(started_at + at_s - time.perf_counter(), 0.0))


@dataclass(frozen=True)
class SentTraffic:
    """What requests look like. Prompts are random token ids, so that no prefix is shared and nothing is cached."""

    prompt_tokens: LengthDistribution
    output_tokens: LengthDistribution
    vocabulary_tokens: int
    """Token ids are drawn below this; the lowest ids, often control tokens, are left out by `first_token_id`."""
    first_token_id: int = 100

    def __post_init__(self) -> None:
        if self.first_token_id >= self.vocabulary_tokens:
            raise ValueError("the vocabulary holds no token ids to draw prompts from")

    def as_json(self) -> dict[str, object]:
        return {"prompt_tokens": self.prompt_tokens.as_json(), "output_tokens": self.output_tokens.as_json()}


@dataclass(frozen=True)
class PlannedRequest:
    """A request ready for the socket: encoding it during the run would delay the answers of others."""

    encoded: bytes = field(repr=False)
    prompt_tokens: int
    output_tokens: int


def plan_requests(endpoint: Endpoint, traffic: SentTraffic, requests: int, seed: int) -> list[PlannedRequest]:
    """Draw lengths and prompts for a run; the same seed gives the same requests.

    Raises ValueError for the chat API, which takes text rather than token ids.
    """
    if endpoint.api != "completions":
        raise ValueError("prompts of token ids go to the completions API")
    generator = random.Random(seed)
    token_ids = range(traffic.first_token_id, traffic.vocabulary_tokens)
    planned = []
    for _ in range(requests):
        prompt = generator.choices(token_ids, k=traffic.prompt_tokens.draw(generator))
        output_tokens = traffic.output_tokens.draw(generator)
        body = {"prompt": prompt} | sampling_fields(endpoint.served_model, output_tokens)
        encoded = endpoint.encode(json.dumps(body, separators=(",", ":")).encode())
        planned.append(PlannedRequest(encoded, len(prompt), output_tokens))
    return planned


def plan_text_requests(
    endpoint: Endpoint, prompts: Sequence[str], output_tokens: LengthDistribution, requests: int, seed: int
) -> list[PlannedRequest]:
    """Requests with text prompts, taken in turn; how many tokens a prompt has only the server can say.

    Raises ValueError when there are no prompts.
    """
    if not prompts:
        raise ValueError("text requests need at least one prompt")
    generator = random.Random(seed)
    planned = []
    for number in range(requests):
        text = prompts[number % len(prompts)]
        asked_tokens = output_tokens.draw(generator)
        prompt = (
            {"prompt": text} if endpoint.api == "completions" else {"messages": [{"role": "user", "content": text}]}
        )
        body = prompt | sampling_fields(endpoint.served_model, asked_tokens)
        planned.append(PlannedRequest(endpoint.encode(json.dumps(body).encode()), 0, asked_tokens))
    return planned


def sampling_fields(served_model: str, output_tokens: int) -> dict[str, object]:
    """The fields that make an answer exactly `output_tokens` long, streamed, with the usage at its end."""
    return {
        "model": served_model,
        "max_tokens": output_tokens,
        "min_tokens": output_tokens,
        "ignore_eos": True,
        "temperature": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def run_load(
    endpoint: Endpoint,
    planned: Sequence[PlannedRequest],
    load: Load,
    timeout_s: float = 600.0,
    on_answer: Callable[[RequestRecord], None] | None = None,
) -> LoadRun:
    """Send every planned request as the load says and wait for all answers.

    A request that fails is recorded with its error and never retried. The wall time runs from the start of the
    load (all clients connected) to the last answer. ``on_answer`` sees every record as it is made.
    """

    async def drive(pools: Sequence[ConnectionPool], started_at: float) -> list[RequestRecord]:
        if isinstance(load, ClosedLoop):
            return await _send_closed(pools[0], planned, load, started_at, timeout_s)
        return await _send_open(pools[0], planned, load, started_at, timeout_s)

    at_first = load.concurrency if isinstance(load, ClosedLoop) else max(load.at_once, 1)
    return await timed_run([endpoint], at_first, drive, on_answer)


async def timed_run(
    endpoints: Sequence[Endpoint],
    connected: int,
    drive: Callable[[Sequence[ConnectionPool], float], Awaitable[list[RequestRecord]]],
    on_answer: Callable[[RequestRecord], None] | None = None,
) -> LoadRun:
    """A run of what ``drive(pools, started_at)`` sends, with so many connections to each endpoint open before the clock starts."""
    pools = [ConnectionPool(endpoint, on_answer) for endpoint in endpoints]
    await asyncio.gather(*(pool.prepare(connected) for pool in pools))
    gc.collect()
    gc.disable()  # a collection pauses the event loop for longer than an engine step lasts
    try:
        started_at = time.perf_counter()
        records = await drive(pools, started_at)
        duration_s = time.perf_counter() - started_at
    finally:
        gc.enable()
        for pool in pools:
            pool.close()
    return LoadRun(duration_s=duration_s, records=tuple(records))


async def _send_closed(
    connections: ConnectionPool,
    planned: Sequence[PlannedRequest],
    load: ClosedLoop,
    started_at: float,
    timeout_s: float,
) -> list[RequestRecord]:
    waiting = iter(planned)

    async def client(requests: Iterator[PlannedRequest]) -> list[RequestRecord]:
        return [(await send(connections, request, started_at, timeout_s))[0] for request in requests]

    clients = min(load.concurrency, len(planned))
    by_client = await asyncio.gather(*(client(waiting) for _ in range(clients)))
    return sorted((record for records in by_client for record in records), key=lambda record: record.sent_s)


async def _send_open(
    connections: ConnectionPool, planned: Sequence[PlannedRequest], load: OpenLoop, started_at: float, timeout_s: float
) -> list[RequestRecord]:
    async def arrive(request: PlannedRequest, at_s: float) -> RequestRecord:
        await until(started_at, at_s)
        return (await send(connections, request, started_at, timeout_s))[0]

    return list(await asyncio.gather(*map(arrive, planned, load.arrivals_s())))


async def send(
    connections: ConnectionPool,
    request: PlannedRequest,
    started_at: float,
    timeout_s: float,
    *,
    keep_events: bool = False,
    told: Callable[[RequestRecord], RequestRecord] = lambda record: record,
) -> tuple[RequestRecord, list[bytes]]:
    """Send one request and wait for its answer: what was seen of it, and its events where they are kept.

    told: adds to the record what is known of the request beside its answer.
    """
    events: list[bytes] = []
    asked_at = time.perf_counter()
    try:
        connection = await connections.take()
    except OSError as error:
        record = RequestRecord(asked_at - started_at, request.prompt_tokens, 0, (), error=f"no connection: {error}")
    else:
        answer = await connection.stream(request.encoded, timeout_s, events if keep_events else None)
        connections.give_back(connection)
        record = _record(request, answer, started_at)
    record = told(record)
    connections.on_answer(record)
    return record, events


def _record(request: PlannedRequest, answer: StreamedAnswer, started_at: float) -> RequestRecord:
    error = answer.error
    if error is None and not answer.chunk_at:
        error = "no token arrived"
    counted = answer.output_tokens is not None
    return RequestRecord(
        sent_s=answer.sent_at - started_at,
        prompt_tokens=answer.prompt_tokens if answer.prompt_tokens is not None else request.prompt_tokens,
        output_tokens=answer.output_tokens if answer.output_tokens is not None else len(answer.chunk_at),
        chunk_s=tuple(at - started_at for at in answer.chunk_at),
        tokens_counted_by="usage" if counted else "chunks",
        cached_tokens=answer.cached_tokens,
        error=error,
    )


class ConnectionPool:
    """Open connections, the most recently used first."""

    def __init__(self, endpoint: Endpoint, on_answer: Callable[[RequestRecord], None] | None = None) -> None:
        self._endpoint = endpoint
        self._idle: list[StreamingConnection] = []
        self.on_answer = on_answer or (lambda _record: None)

    async def prepare(self, count: int) -> None:
        """Open connections before the clock starts; those that fail are tried again, and recorded, when needed."""
        opened = await asyncio.gather(
            *(StreamingConnection.open(self._endpoint) for _ in range(count)), return_exceptions=True
        )
        self._idle += [connection for connection in opened if isinstance(connection, StreamingConnection)]

    async def take(self) -> StreamingConnection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_reusable and time.perf_counter() - connection.idle_since < IDLE_REUSE_S:
                return connection
            connection.close()
        return await StreamingConnection.open(self._endpoint)

    def give_back(self, connection: StreamingConnection) -> None:
        if connection.is_reusable:
            self._idle.append(connection)
        else:
            connection.close()

    def close(self) -> None:
        for connection in self._idle:
            connection.close()
        self._idle.clear()
