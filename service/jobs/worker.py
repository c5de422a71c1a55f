"""A worker: takes jobs one after another, has them computed in a process of its own, and stores the results.

While a job is computed the worker wakes several times a second: it extends its lease, notes the progress, and learns
whether the job is to be cancelled. It trusts nothing it cannot write down: when the database is out of reach for
as long as the lease, another worker may have the job, and the work is stopped.
"""

import datetime as dt
import importlib
import logging
import os
import socket
import threading
import time
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from service.clock import Clock
from service.database import Database
from service.jobs import lifecycle
from service.jobs.kind import JobKind
from service.jobs.lifecycle import Claim, Verdict
from service.jobs.process import ProcessDiedError, WorkProcess
from service.jobs.queries import any_overdue, any_queued
from service.settings import Settings
from service.wire.jobs import JobIn

POLL_S = 0.25
"""How often a worker looks: for a job when idle, for a cancellation while working."""
SWEEP_S = 1.0
KEEP_IDLE_S = 60.0
"""An idle process is kept for so long: its catalog and search spaces serve the next job."""
JOB_KINDS = "service.job_kinds"
PATIENCE_S = 60.0
"""How long a finished answer waits for a database that is out of reach."""

log = logging.getLogger("clusterwright.jobs")


class LeaseLostError(Exception):
    """The job has another lease by now."""


class Slot:
    """One job at a time."""

    def __init__(
        self, database: Database, settings: Settings, clock: Clock, stopping: threading.Event, registry: str
    ) -> None:  # fmt: skip
        self._database = database
        self._registry = registry
        self._kinds: dict[str, JobKind[Any]] = importlib.import_module(registry).KINDS
        self._settings = settings
        self._clock = clock
        self._stopping = stopping
        self._name = f"{socket.gethostname()}:{os.getpid()}"[:200]
        self._process: WorkProcess | None = None
        self._idle_since = time.monotonic()

    def work_once(self) -> bool:
        """Take a job and bring it to its end; False when there is none. Raises SQLAlchemyError."""
        with self._database.reading() as session:
            if not any_queued(session, list(self._kinds), self._clock()):
                self._rest()
                return False
        with self._database.writing() as session:
            held = lifecycle.claim(session, list(self._kinds), self._name, self._settings.job_lease_s, self._clock())
        if held is None:
            return False
        try:
            self._bring_to_end(held)
        except LeaseLostError:
            log.warning("job %s was taken up by another worker", held.job_id)
            self._kill()
        except BaseException:
            self._kill()
            raise
        self._idle_since = time.monotonic()
        return True

    def close(self) -> None:
        self._kill()

    def _bring_to_end(self, held: Claim) -> None:
        process = self._process = self._process or WorkProcess(self._settings, self._registry)
        process.start(JobIn(id=held.job_id, kind=held.kind, request=held.request, asked_at=held.asked_at))
        pulse = _Pulse(self._database, held, self._settings, self._clock)
        stop_at: float | None = None
        while True:
            try:
                message = process.message(POLL_S)
            except ProcessDiedError as died:
                self._process = None
                self._end(held, {"again": str(died)})
                return
            if message is not None and "progress" not in message:
                self._end(held, message)
                return
            verdict = pulse.beat(message["progress"] if message else None)
            if verdict == "cancelled":
                self._kill()
                self._write(lambda s, now: lifecycle.stopped(s, held, now))
                return
            if self._stopping.is_set():
                stop_at = stop_at or time.monotonic() + self._settings.shutdown_grace_s
                if time.monotonic() >= stop_at:
                    self._kill()
                    self._write(lambda s, now: lifecycle.hand_back(s, held, now))
                    return

    def _end(self, held: Claim, message: dict[str, Any]) -> None:
        if "answer" in message:
            kind = self._kinds[held.kind]
            self._write(lambda s, now: lifecycle.succeed(s, held, kind, message["answer"], now))
        elif "problem" in message:
            self._write(lambda s, now: lifecycle.fail(s, held, message["problem"], now))
        else:
            self._write(lambda s, now: lifecycle.attempt_died(s, held, self._settings, message["again"], now))

    def _write(self, change: Any) -> None:
        """Make a change, as soon as the database lets us. Raises LeaseLostError when it no longer is ours to make."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                with self._database.writing() as session:
                    verdict: Verdict | None = change(session, self._clock())
            except SQLAlchemyError as error:
                if time.monotonic() >= until:
                    raise
                log.warning("cannot write a job's state yet: %s", type(error).__name__)
                time.sleep(POLL_S)
            else:
                if verdict == "lost":
                    raise LeaseLostError
                return

    def _rest(self) -> None:
        if self._process is not None and time.monotonic() - self._idle_since > KEEP_IDLE_S:
            self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None


class _Pulse:
    """Heartbeats of one attempt: often enough to learn of a cancellation, written as seldom as the lease allows."""

    def __init__(self, database: Database, held: Claim, settings: Settings, clock: Clock) -> None:
        self._database = database
        self._held = held
        self._lease_s = settings.job_lease_s
        self._clock = clock
        self._extended = self._asked = time.monotonic()
        self._progress: dict[str, Any] | None = None

    def beat(self, progress: dict[str, Any] | None) -> Verdict:
        """Raises LeaseLostError when the lease is another's, or may be because it could not be extended for its whole length."""
        self._progress = progress or self._progress
        now = time.monotonic()
        since = now - self._extended
        try:
            if since >= self._lease_s / 3 or (self._progress is not None and since >= POLL_S):
                verdict = self._extend()
            elif now - self._asked >= POLL_S:
                verdict = self._ask()
            else:
                return "go_on"  # work that reports often is not written more often
        except SQLAlchemyError as error:
            log.warning("no heartbeat: %s", type(error).__name__)
            if since >= self._lease_s:
                raise LeaseLostError from None
            return "go_on"
        self._asked = now
        if verdict == "lost":
            raise LeaseLostError
        return verdict

    def _ask(self) -> Verdict:
        with self._database.reading() as session:
            return lifecycle.verdict(session, self._held)

    def _extend(self) -> Verdict:
        with self._database.writing() as session:
            said = lifecycle.heartbeat(session, self._held, self._lease_s, self._progress, self._clock())
        self._extended, self._progress = time.monotonic(), None
        return said


class JobWorker:
    """Slots, each a thread, and a thread that sweeps. With no slots it only sweeps.

    registry: the module whose ``KINDS`` are worked on.
    """

    def __init__(
        self, database: Database, settings: Settings, clock: Clock, slots: int, registry: str = JOB_KINDS
    ) -> None:
        self._database = database
        self._settings = settings
        self._clock = clock
        self._stopping = threading.Event()
        self._slots = [Slot(database, settings, clock, self._stopping, registry) for _ in range(slots)]
        self._threads = [
            threading.Thread(target=self._work, args=(slot,), name=f"jobs-{n}") for n, slot in enumerate(self._slots)
        ]
        self._threads.append(threading.Thread(target=self._sweep, name="jobs-sweep"))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """Take no more jobs; what runs has the grace period, then goes back into the queue."""
        self._stopping.set()

    def close(self) -> None:
        self.stop()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _work(self, slot: Slot) -> None:
        while not self._stopping.is_set():
            try:
                worked = slot.work_once()
            except SQLAlchemyError as error:  # not migrated yet, busy, or out of reach: the jobs wait
                log.debug("no job can be taken: %s", error)
                worked = False
            except Exception:
                log.exception("a job could not be brought to its end; its lease will run out")
                worked = False
            if not worked:
                self._stopping.wait(POLL_S)
        slot.close()

    def _sweep(self) -> None:
        while not self._stopping.wait(SWEEP_S):
            try:
                sweep_once(self._database, self._settings, self._clock())
            except SQLAlchemyError as error:
                log.debug("no sweep: %s", error)


def sweep_once(database: Database, settings: Settings, now: dt.datetime) -> int:
    """Writes only where there is something to put right. How many jobs were changed."""
    with database.reading() as session:
        if not any_overdue(session, now, lifecycle.forget_before(settings, now)):
            return 0
    with database.writing() as session:
        return lifecycle.sweep(session, settings, now)
