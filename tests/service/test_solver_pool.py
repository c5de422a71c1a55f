"""Solving in threads of its own: bounded, and a clean end."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from service.metrics import Metrics
from service.problems import UnavailableError
from service.solver_pool import SolverPool


class Blocked(threading.Event):
    """A job that ends once it is set, and says when it has begun."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def __call__(self) -> bool:
        self.began.set()
        return self.wait()

    async def runs(self) -> None:
        assert await asyncio.to_thread(self.began.wait, 30)


@pytest.fixture
def job() -> Iterator[Blocked]:
    """Blocked until the end of a test at most."""
    event = Blocked()
    yield event
    event.set()


def pool(*, workers: int = 1, queue: int = 0, grace_s: float = 0.1) -> SolverPool:
    return SolverPool(workers=workers, queue=queue, grace_s=grace_s, metrics=Metrics())


class TestRun:
    def test_answers_and_raises_what_the_job_does(self) -> None:
        async def story() -> None:
            solvers = pool(queue=1)
            assert await solvers.run("test", lambda: 42) == 42
            with pytest.raises(ZeroDivisionError):
                await solvers.run("test", lambda: 1 // 0)
            assert await solvers.run("test", lambda: "still working") == "still working"
            solvers.close()

        asyncio.run(story())

    def test_a_full_queue_is_refused_at_once(self, job: Blocked) -> None:
        async def story() -> None:
            solvers = pool(workers=1, queue=1)
            running = [asyncio.ensure_future(solvers.run("test", job)) for _ in range(2)]
            await job.runs()
            with pytest.raises(UnavailableError, match="queue is full"):
                await solvers.run("test", lambda: 1)
            job.set()
            assert await asyncio.gather(*running) == [True, True]
            assert await solvers.run("test", lambda: 1) == 1
            solvers.close()

        asyncio.run(story())


class TestHelpers:
    def test_threads_with_nothing_else_to_do_help(self) -> None:
        async def story() -> None:
            solvers, helped = pool(workers=2), threading.Event()
            assert await solvers.run("test", lambda: helped.wait(30), lambda _: helped.set())
            solvers.close()

        asyncio.run(story())

    def test_who_waits_goes_before_more_help(self, job: Blocked) -> None:
        async def story() -> None:
            solvers, goes_on = pool(workers=2, queue=1), threading.Event()
            helping = asyncio.ensure_future(
                solvers.run("test", job, lambda asked: (goes_on.wait(30), seen.append(asked())))
            )
            seen: list[bool] = []
            await job.runs()
            waiting = asyncio.ensure_future(solvers.run("test", lambda: 42))
            await asyncio.sleep(0)
            goes_on.set()
            assert await waiting == 42
            assert seen == [False]
            job.set()
            assert await helping
            solvers.close()

        asyncio.run(story())

    def test_nobody_helps_where_every_thread_is_busy(self, job: Blocked) -> None:
        async def story() -> None:
            solvers, asked = pool(workers=1, queue=1), threading.Event()
            running = asyncio.ensure_future(solvers.run("test", job, lambda _: asked.set()))
            await job.runs()
            job.set()
            assert await running
            assert await solvers.run("test", lambda: asked.is_set()) is False
            solvers.close()

        asyncio.run(story())


class TestStop:
    def test_a_job_that_ends_within_the_grace_period_is_answered(self, job: Blocked) -> None:
        async def story() -> None:
            solvers = pool(grace_s=5.0)
            running = asyncio.ensure_future(solvers.run("test", job))
            await job.runs()
            solvers.stop()
            assert not (await asyncio.wait({running}, timeout=0.05))[0], "it still has its time"
            job.set()
            assert await running is True

        asyncio.run(story())

    def test_a_longer_one_is_unavailable(self, job: Blocked) -> None:
        async def story() -> None:
            solvers = pool(grace_s=0.1)
            running = asyncio.ensure_future(solvers.run("test", job))
            await job.runs()
            solvers.stop()
            with pytest.raises(UnavailableError, match="nothing was stored"):
                await running
            assert not job.is_set(), "nobody waited for it"
            with pytest.raises(UnavailableError, match="stopping"):
                await solvers.run("test", lambda: 1)

        asyncio.run(story())
