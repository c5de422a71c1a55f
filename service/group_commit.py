"""Group commit: what waits while one transaction is under way is written together by the next.

A commit waits for the disk, and a transaction costs its statements' round trips, whether it carries one record or
fifty. One thread writes; requests wait for it without a thread of their own. Nothing is answered before the commit
that holds it, and one work's error is its own: when a transaction with several works fails, each is tried again alone.
"""

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlmodel import Session

from service.database import Database
from service.problems import ProblemError, UnavailableError

Work = TypeVar("Work")
Result = TypeVar("Result")
Write = Callable[[Session, Sequence[Work]], Sequence[Result | ProblemError]]
"""Writes works in the given transaction; answers each, in order, with its result or with why it was refused.

A refused work must have written nothing. What it raises undoes the whole transaction.
"""

MOST_TOGETHER = 64
MOST_WAITING = 2_000
"""Beyond, requests are answered 503 instead of waiting."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[Work, Result]):
    work: Work
    answer: "asyncio.Future[Result]"


class GroupCommit(Generic[Work, Result]):
    """One writing thread for the application. Works are written in the order in which they came."""

    def __init__(self, database: Database, write: Write[Work, Result], name: str) -> None:
        self._database = database
        self._write = write
        self._queue: SimpleQueue[_Waiting[Work, Result] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Write what waits, then end."""
        self._closed = True
        self._queue.put(None)
        self._thread.join(timeout=10.0)

    async def add(self, work: Work) -> Result:
        """The work's result once it is committed. Raises what its writing raised, or UnavailableError when full."""
        if self._closed or self._queue.qsize() >= MOST_WAITING:
            raise UnavailableError("too many uploads are waiting to be stored", retry_after_s=2)
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._queue.put(_Waiting(work, answer))
        return await answer

    def _run(self) -> None:
        ended = False
        while not ended:
            batch: list[_Waiting[Work, Result]] = []
            following = self._queue.get()
            while following is not None:
                batch.append(following)
                if len(batch) == MOST_TOGETHER:
                    break
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
            ended = following is None
            if batch:
                _settle(batch, self._written([waiting.work for waiting in batch]))

    def _written(self, works: Sequence[Work]) -> Sequence[Result | BaseException]:
        """Each work's result or error, after the commit."""
        try:
            with self._database.writing() as session:
                return self._write(session, works)
        except (OperationalError, PoolTimeoutError) as error:  # locked or out of reach: it would be so for each
            return [error] * len(works)
        except Exception as error:  # noqa: BLE001  whatever it is belongs to the request that waits
            if len(works) == 1:
                return [error]
            log.debug("a group of %d is written one by one: %s", len(works), error)
            return [answer for work in works for answer in self._written([work])]


def _settle(batch: Sequence[_Waiting[Work, Result]], answers: Sequence[Result | BaseException]) -> None:
    """Hand the answers to the event loops that wait for them: one wake-up a loop, not one an answer."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Result], Result | BaseException]]]
    by_loop = defaultdict(list)
    for waiting, answer in zip(batch, answers, strict=True):
        by_loop[waiting.answer.get_loop()].append((waiting.answer, answer))
    for loop, pairs in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_answer, pairs)


def _answer(pairs: "Sequence[tuple[asyncio.Future[Result], Result | BaseException]]") -> None:
    for future, answer in pairs:
        if future.done():  # the client is gone; what it sent is stored all the same
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
