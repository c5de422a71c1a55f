"""A worker's hold on the process that computes its jobs (``service.jobs.child``)."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from service.settings import Settings
from service.wire.jobs import JobIn

ENDS_WITHIN_S = 10.0


class ProcessDiedError(Exception):
    """The process ended by itself: killed by the system, or a solver crashed."""


class WorkProcess:
    """One process, for one job after another: what it has read and built for one serves the next."""

    def __init__(self, settings: Settings, registry: str) -> None:
        their_requests, self._requests = os.pipe()
        self._answers, their_answers = os.pipe()
        paths = [os.path.abspath(p) for p in sys.path]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "service.jobs.child", str(their_requests), str(their_answers)],
                pass_fds=(their_requests, their_answers),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # solvers print there; the log is on standard error
                env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,  # a group of its own, so that a solver's children are killed with it
            )
        except BaseException:
            os.close(self._requests)
            os.close(self._answers)
            raise
        finally:
            os.close(their_requests)
            os.close(their_answers)
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, name="job-answers", daemon=True).start()
        self._send(
            {
                "registry": registry,
                "database_url": settings.database_url,
                "lock_timeout_s": settings.database_lock_timeout_s,
                "log_level": settings.log_level,
            }
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, job: JobIn) -> None:
        self._send(job.model_dump(mode="json"))

    def message(self, timeout_s: float) -> dict[str, Any] | None:
        """What it says next; None when it says nothing in time. Raises ProcessDiedError."""
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            return None
        if message is None:
            self.kill()
            raise ProcessDiedError(f"the process that computed it ended with status {self._process.returncode}")
        return message

    def kill(self) -> None:
        """End it, and the solvers it started, at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(ENDS_WITHIN_S)
        if self._requests >= 0:
            os.close(self._requests)
            self._requests = -1

    def _send(self, document: dict[str, Any]) -> None:
        line = (json.dumps(document) + "\n").encode()
        try:
            while line:
                line = line[os.write(self._requests, line) :]
        except OSError:
            pass  # it is gone: message() will say so

    def _listen(self) -> None:
        with os.fdopen(self._answers, encoding="utf-8") as answers:
            for line in answers:
                self._messages.put(json.loads(line))
        self._messages.put(None)
