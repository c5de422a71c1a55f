"""``clusterwright worker``."""

import argparse
import asyncio

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.local import errors, load_for_good, local_database
from service.clock import system_clock
from service.process_memory import hold_together
from service.readiness import require_ready
from service.settings import Settings


def worker_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """Work until SIGTERM or Ctrl-C."""
    with local_database(settings) as database:
        if database.is_sqlite:
            raise CommandError(
                "on SQLite the service computes its jobs itself; workers need CLUSTERWRIGHT_DATABASE_URL=postgresql+psycopg://…",
                ExitCode.bad_input,
            )
        require_ready(database)
    from service.jobs.postgres_worker import run_worker
    from service.request_log import configure_logging

    hold_together()
    load_for_good()
    configure_logging(settings.log_level)
    errors.print(f"working, {arguments.jobs} at a time")
    asyncio.run(run_worker(settings, system_clock, arguments.jobs))
    return ExitCode.ok
