"""``clusterwright worker``: takes jobs from a PostgreSQL database until it is told to stop. Any number may run anywhere."""

import asyncio
import contextlib
import functools
import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy.exc import SQLAlchemyError

from service.clock import Clock
from service.database import Database
from service.jobs.delivery import QUEUE, announce, drop_lost, listener, waiting_messages
from service.jobs.queries import count_queued
from service.jobs.worker import JOB_KINDS, JobWorker, Slot
from service.settings import Settings

LOOK_EVERY_S = 2.0
"""How often a worker looks whether a message is missing. Not how fast jobs start: messages do that."""

log = logging.getLogger("clusterwright.jobs")


async def run_worker(settings: Settings, clock: Clock, slots: int, registry: str = JOB_KINDS) -> None:
    """Work until SIGTERM or SIGINT; then running jobs have the grace period, and what is left is handed back."""
    database = Database(settings.database_url, pool_size=slots + 2, lock_timeout_s=settings.database_lock_timeout_s)
    stopping = threading.Event()
    sweeper = JobWorker(database, settings, clock, 0, registry)
    free: asyncio.Queue[Slot] = asyncio.Queue()
    for _ in range(slots):
        free.put_nowait(Slot(database, settings, clock, stopping, registry))
    threads = ThreadPoolExecutor(slots, thread_name_prefix="jobs")

    async def take_job() -> None:
        slot = await free.get()
        try:
            await asyncio.get_running_loop().run_in_executor(threads, slot.work_once)
        except SQLAlchemyError as error:  # the job waits in its row; another message will be sent for it
            log.warning("no job can be taken: %s", type(error).__name__)
        finally:
            free.put_nowait(slot)

    from procrastinate.exceptions import ConnectorException

    app = listener(database.url, take_job)
    async with app.open_async():
        silent_for_s = settings.job_lease_s
        listening = asyncio.create_task(
            app.run_worker_async(
                queues=[QUEUE],
                concurrency=slots,
                install_signal_handlers=False,
                delete_jobs="always",
                update_heartbeat_interval=silent_for_s / 3,
                stalled_worker_timeout=silent_for_s,
            )
        )

        def stop() -> None:
            stopping.set()
            listening.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop)
        sweeper.start()

        async def look_after() -> None:
            while True:
                await asyncio.sleep(LOOK_EVERY_S)
                try:
                    await drop_lost(app, silent_for_s)
                    missing = functools.partial(_top_up, database, await waiting_messages(app))
                    await asyncio.to_thread(missing)
                except (SQLAlchemyError, ConnectorException) as error:  # the database is out of reach: later
                    log.warning("cannot look after the queue: %s", type(error).__name__)

        looking = asyncio.create_task(look_after())
        with contextlib.suppress(asyncio.CancelledError):
            await listening
        looking.cancel()
    while not free.empty():
        free.get_nowait().close()
    threads.shutdown()
    await asyncio.to_thread(sweeper.close)
    database.close()


def _top_up(database: Database, waiting: int) -> None:
    """As many messages as there are jobs: after a worker died between taking a message and the job, for one."""
    with database.reading() as session:
        missing = count_queued(session) - waiting
    if missing > 0:
        with database.writing() as session:
            announce(session, missing)
