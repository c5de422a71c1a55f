"""What is sent before the clock starts."""

import asyncio
import threading

import pytest

from service.agent.bench import LoadPoint, NothingMeasuredError, Prompts, clients_of, warm_up
from service.agent.lengths import FixedTokens
from service.agent.load import ClosedLoop, OpenLoop
from service.agent.stream import Endpoint
from tests.agent.streaming_server import StreamingServer

PROMPTS = Prompts(FixedTokens(20), FixedTokens(12), vocabulary_tokens=1000)


def warmed(requests: int, clients: int) -> StreamingServer:
    """An engine in a thread of its own, after the warm-up."""
    engine = StreamingServer(interval_s=0.002, first_token_after_s=0.05)
    ready, done = threading.Event(), threading.Event()
    port = 0

    async def serve() -> None:
        nonlocal port
        server, port = await engine.start()
        steps = asyncio.create_task(engine.tick())
        ready.set()
        while not done.is_set():
            await asyncio.sleep(0.01)
        steps.cancel()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10.0)
    try:
        warm_up(Endpoint(f"http://127.0.0.1:{port}", "m"), PROMPTS, requests, 10.0, clients)
    finally:
        done.set()
        thread.join(10.0)
    return engine


def test_batches_grow_to_the_clients_of_the_load() -> None:
    engine = warmed(requests=4, clients=20)
    assert engine.most_in_flight == 20
    assert engine.requests_seen == 4 + 1 + 2 + 4 + 8 + 16 + 20


def test_a_wave_that_takes_too_long_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.agent.bench.WARM_UP_WAVE_S", 0.0)
    engine = warmed(requests=4, clients=20)
    assert engine.requests_seen == 4 + 1


def test_none_asked_for_none_sent() -> None:
    assert warmed(requests=0, clients=20).requests_seen == 0


def test_an_engine_that_answers_nothing_is_an_error() -> None:
    with pytest.raises(NothingMeasuredError):
        warm_up(Endpoint("http://127.0.0.1:9", "m"), PROMPTS, 2, 1.0, 4)


def test_the_most_clients_of_a_sweep_count_and_an_open_loop_for_64() -> None:
    closed = LoadPoint(ClosedLoop(8, 24), 1), LoadPoint(ClosedLoop(128, 384), 2)
    assert clients_of(closed) == 128
    assert clients_of([closed[0], LoadPoint(OpenLoop(2.0, 10, 1), 3)]) == 64
