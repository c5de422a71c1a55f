"""How workers on PostgreSQL learn of queued jobs: one message a job, through procrastinate.

The job's row says what a job is and who holds it; a message says only that there is something to take. Messages are
sent in the transaction that queues the job, so neither is there without the other, and wake an idle worker at once. One too
many finds nothing and does no harm; one too few is made up for by ``top_up``.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sqlalchemy.engine import URL
from sqlmodel import Session

if TYPE_CHECKING:
    from procrastinate import App

QUEUE = "clusterwright-jobs"
MESSAGE = "take_job"

log = logging.getLogger("clusterwright.jobs")


def announce(session: Session, messages: int = 1) -> None:
    """Send messages in the session's transaction. On SQLite nobody listens: the worker inside the service looks."""
    connection = session.connection()
    if connection.dialect.name != "postgresql":
        return
    from procrastinate import App, SyncPsycopgConnector  # slow to load, and not needed on SQLite

    task = App(connector=SyncPsycopgConnector()).configure_task(
        MESSAGE, queue=QUEUE, connection=connection.connection.driver_connection
    )
    for _ in range(messages):
        task.defer()


def listener(url: URL, take_job: Callable[[], Awaitable[None]]) -> "App":
    """An application that calls ``take_job`` for every message. Its connections are its own, of the same database."""
    from procrastinate import App, PsycopgConnector
    from psycopg.conninfo import make_conninfo

    named = url.translate_connect_args(username="user", database="dbname")
    conninfo = make_conninfo(**named, **{name: str(value) for name, value in url.query.items()})
    app = App(connector=PsycopgConnector(conninfo=conninfo, min_size=1, max_size=4))
    app.task(name=MESSAGE, queue=QUEUE)(take_job)
    return app


async def drop_lost(app: "App", silent_for_s: float) -> None:
    """Messages that dead workers took with them are no use any more: their jobs come back by their leases."""
    from procrastinate.jobs import Status

    for message in await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=silent_for_s):
        if message.id is not None:
            await app.job_manager.finish_job_by_id_async(message.id, Status.FAILED, delete_job=True)
    await app.job_manager.prune_stalled_workers(silent_for_s)


async def waiting_messages(app: "App") -> int:
    queues = await app.job_manager.list_queues_async(queue=QUEUE)
    return sum(int(queue["todo"]) for queue in queues)
