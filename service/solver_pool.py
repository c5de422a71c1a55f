"""Where solving happens: a few threads of its own, a short queue, and a clean end.

A request waits for its answer or for the end of the service, whichever comes first. After SIGTERM a running solve has
the grace period to finish; then the request is answered 503 and nothing is stored, because storing comes after.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from service.metrics import Metrics
from service.problems import UnavailableError

Result = TypeVar("Result")


class SolverPool:
    """Daemon threads: a solve that outlives the grace period does not keep the process alive."""

    def __init__(self, *, workers: int, queue: int, grace_s: float, metrics: Metrics) -> None:
        self._workers = workers
        self._capacity = workers + queue
        self._grace_s = grace_s
        self._metrics = metrics
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._pending = 0
        self._stop_at: float | None = None
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._threads = [threading.Thread(target=self._work, name=f"solver-{n}", daemon=True) for n in range(workers)]
        for thread in self._threads:
            thread.start()

    async def run(
        self, kind: str, job: Callable[[], Result], helper: Callable[[Callable[[], bool]], None] | None = None
    ) -> Result:
        """The job's result or exception; UnavailableError when the queue is full or the service ends first.

        helper: does a part of the job, then looks whether it goes on; on every thread that has nothing else to do.
        """
        if self._stopping.is_set():
            raise UnavailableError("the service is stopping")
        if self._pending >= self._capacity:
            raise UnavailableError("every solver is busy and the queue is full", retry_after_s=10)
        self._loop = asyncio.get_running_loop()
        future: Future[Result] = Future()
        self._pending += 1
        self._jobs.put(lambda: self._run_one(kind, job, future))
        if helper is not None:
            for _ in range(self._workers - self._pending):
                self._jobs.put(lambda: helper(self._has_nothing_else))
        answer = asyncio.wrap_future(future)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            either: set[asyncio.Future[Any]] = {answer, stopping}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                await asyncio.wait({answer}, timeout=max(0.0, (self._stop_at or 0.0) - time.monotonic()))
            if not answer.done():
                raise UnavailableError("the service stopped before the answer was found; nothing was stored")
            return answer.result()
        finally:
            stopping.cancel()
            answer.cancel()
            self._pending -= 1

    def stop(self) -> None:
        """Called once from the signal handler or at the end: running jobs have the grace period left."""
        if self._stop_at is None:
            self._stop_at = time.monotonic() + self._grace_s
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._stopping.set)
        else:
            self._stopping.set()

    def close(self) -> None:
        self.stop()
        for _ in self._threads:
            self._jobs.put(None)

    def _has_nothing_else(self) -> bool:
        return self._jobs.empty() and not self._stopping.is_set()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _run_one(self, kind: str, job: Callable[[], Result], future: "Future[Result]") -> None:
        if not future.set_running_or_notify_cancel():
            return  # the client is gone
        started = time.perf_counter()
        try:
            result = job()
        except BaseException as error:  # noqa: BLE001  whatever it is belongs to the request that waits
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            self._metrics.observe_solve(kind, time.perf_counter() - started)
