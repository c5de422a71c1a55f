"""Reads untrusted files in a process that may die: one process a file, limited in time and memory.

A parser in C, or one that takes a gigabyte, ends or is ended there and not here. The process is forked from a clean one
(multiprocessing's fork server) which has the readers imported and neither database connections nor sockets of clients;
what it answers is JSON, so nothing it says can run here. Decision 0027.
"""

import importlib
import json
import logging
import multiprocessing
import os
import resource
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from service.problems import FieldError, InvalidFieldsError, UnavailableError

log = logging.getLogger(__name__)

Options = Mapping[str, Any]
Reader = Callable[[Options, Any], Any]
"""Takes options and a payload, answers what JSON can hold. It may raise InvalidFieldsError."""

READERS = ("service.benchmarks.sandboxed", "service.prices_import.sandboxed", "service.traces.sandboxed")
"""Imported by the clean process, so that each file's own starts at once."""
SMALL_CHARACTERS = 50_000
"""A payload of so few characters that is not YAML is read in the asking process: Python's own readers of JSON and CSV
take milliseconds for it."""
MOST_ANSWER_BYTES = 64_000_000
WAIT_FOR_TURN_S = 10.0


class ReadingApart:
    """At most ``at_once`` files are read at the same time; others wait for their turn, or are answered 503."""

    def __init__(self, *, time_limit_s: float, memory_limit_bytes: int, at_once: int = 2) -> None:
        self.time_limit_s = time_limit_s
        self.memory_limit_bytes = memory_limit_bytes
        self._turns = threading.BoundedSemaphore(at_once)
        self._starting = threading.Lock()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(READERS))

    def read(self, reader: str, options: Options, payload: Any) -> Any:
        """The answer of ``module:function`` to the payload.

        Raises InvalidFieldsError for what the reader refuses and for a file that cannot be read within the limits,
        UnavailableError when too many files are being read.
        """
        if not self._turns.acquire(timeout=WAIT_FOR_TURN_S):
            raise UnavailableError("too many files are being read; send this one again", retry_after_s=5)
        try:
            return self._answer(self._ask(reader, options, payload))
        finally:
            self._turns.release()

    def _ask(self, reader: str, options: Options, payload: Any) -> bytes:
        is_text = isinstance(payload, str)
        sent = payload if is_text else json.dumps(payload, ensure_ascii=False)
        head = {"reader": reader, "options": dict(options), "is_text": is_text}
        ours, theirs = self._context.Pipe()
        with ours:
            with theirs, self._starting:
                process = self._context.Process(
                    target=_read_one, args=(theirs, self.time_limit_s, self.memory_limit_bytes), daemon=True
                )
                process.start()
            late = threading.Event()

            def end() -> None:
                late.set()
                process.kill()

            ending = threading.Timer(self.time_limit_s, end)
            ending.start()
            try:
                ours.send_bytes(json.dumps(head).encode())
                ours.send_bytes(sent.encode("utf-8", "surrogatepass"))
                return ours.recv_bytes(MOST_ANSWER_BYTES)
            except (EOFError, OSError):
                process.kill()
                process.join()
                if late.is_set() or process.exitcode == -_SIGXCPU:
                    raise _refused(f"takes longer than {self.time_limit_s:g} s to read; send it in parts") from None
                log.warning("a process that read a file ended with %s", process.exitcode)
                raise _refused("ended the process that read it; it is not a file of a known tool") from None
            finally:
                ending.cancel()
                process.kill()
                process.join()
                process.close()

    def _answer(self, answered: bytes) -> Any:
        document = json.loads(answered)
        if "answer" in document:
            return document["answer"]
        if "errors" in document:
            raise InvalidFieldsError(FieldError(e["detail"], pointer=e["pointer"]) for e in document["errors"])
        raise _refused(f"takes more than {self.memory_limit_bytes // 1_000_000} MB of memory to read; send it in parts")


def is_small(payload: Any) -> bool:
    """Whether a payload may be read without a process of its own, as far as its size goes.

    >>> is_small("a,b"), is_small([0] * 100_000), is_small({"a": [1]})
    (True, False, True)
    """
    if isinstance(payload, str):
        return len(payload) <= SMALL_CHARACTERS
    left, level = SMALL_CHARACTERS, [payload]
    while level and left > 0:
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                left -= sum(len(key) for key in item)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item[: left + 1])
            left -= len(item) if isinstance(item, str) else 1
            if left <= 0:
                return False
        level = below
    return left > 0


def _refused(detail: str) -> InvalidFieldsError:
    return InvalidFieldsError([FieldError(detail, pointer="/payload")])


_SIGXCPU = 24


def _read_one(connection: Connection, time_limit_s: float, memory_limit_bytes: int) -> None:
    """What the process of one file does: limit itself, read, answer, end."""
    _limit_this_process(time_limit_s, memory_limit_bytes)
    head = json.loads(connection.recv_bytes())
    try:
        connection.send_bytes(json.dumps(_outcome(head, connection)).encode())
    except MemoryError:
        connection.send_bytes(b'{"out_of_memory": true}')


def _outcome(head: dict[str, Any], connection: Connection) -> dict[str, Any]:
    module, _, name = str(head["reader"]).partition(":")
    read: Reader = getattr(importlib.import_module(module), name)
    try:
        payload: Any = connection.recv_bytes().decode("utf-8", "surrogatepass")
        if not head["is_text"]:
            payload = json.loads(payload)
        return {"answer": read(head["options"], payload)}
    except InvalidFieldsError as invalid:
        return {"errors": [{"pointer": e.pointer, "detail": e.detail} for e in invalid.field_errors]}


def _limit_this_process(time_limit_s: float, memory_limit_bytes: int) -> None:
    """Also when the asking process is gone: this one ends by itself. It opens no file for writing, leaves no core."""
    seconds = max(1, round(time_limit_s) + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    held = _address_space_bytes()
    if held is not None:
        most = held + memory_limit_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _address_space_bytes() -> int | None:
    """What this process has mapped by now; None where /proc does not say (memory is then bounded by size alone)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


__all__: Sequence[str] = ("READERS", "ReadingApart", "is_small")
