"""From a request to rows ready to be stored, by names and predictions that may be a moment old."""

from collections.abc import Callable
from functools import partial

from fastapi import FastAPI

from service.access import Caller
from service.benchmarks.comparison import Loop, NotKeptError
from service.benchmarks.intake import Checked, Submission, canonical_run, check
from service.benchmarks.known import KnownNames
from service.benchmarks.names import names_of
from service.benchmarks.normalise import Completed
from service.benchmarks.storing import Pending, prepare
from service.database import Database
from service.problems import InvalidFieldsError
from service.wire.benchmarks import BenchmarkUpload

MOST_BYTES_AT_ONCE = 20_000
"""Larger bodies are checked on a thread of their own, so that one with thousands of bins delays nobody."""


def loop_of(app: FastAPI) -> Loop:
    """How results meet predictions; an application without a planner takes results in all the same."""
    loop: Loop = getattr(app.state, "benchmark_loop", None) or Loop()
    return loop


def prepared_at_once(app: FastAPI, caller: Caller, submission: Submission, upload: BenchmarkUpload) -> Pending | None:
    """Checked by what is in memory, in well under a millisecond; None when the database must be asked.

    That is the case about twice a second, for a configuration that was not predicted lately, and before anything is
    refused as unknown.
    """
    loop, known = loop_of(app), names_of(app).kept()
    if known is None or (loop.predict is not None and loop.predict_kept is None):
        return None
    try:
        checked = check(canonical_run(upload), submission.received_at, known, loop.predict_kept)
    except (NotKeptError, InvalidFieldsError):
        return None
    return prepare(caller, submission, checked)


def prepared(
    app: FastAPI, caller: Caller, submission: Submission, runs: Callable[[KnownNames], list[Completed]]
) -> Pending:
    """Checked, with a look into the database where needed. Raises InvalidFieldsError for what cannot be taken in."""
    database: Database = app.state.database
    loop, names = loop_of(app), names_of(app)

    def checked_with(known: KnownNames) -> list[Checked]:
        completed = runs(known)
        if loop.predict is None:
            return check(completed, submission.received_at, known, None)
        with database.reading() as session:
            return check(completed, submission.received_at, known, partial(loop.predict, session))

    recent = names.recent(database)
    try:
        checked = checked_with(recent)
    except InvalidFieldsError:
        fresh = names.fresh(database)
        if fresh is recent:
            raise
        checked = checked_with(fresh)
    return prepare(caller, submission, checked)
