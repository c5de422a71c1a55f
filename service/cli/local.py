"""Commands about this machine's database and server: migrate, seed, serve, token."""

import argparse
import gc
import socket
import sqlite3
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import standard_output
from service.clock import rfc3339, system_clock
from service.process_memory import hold_together
from service.settings import Settings

if TYPE_CHECKING:
    from service.database import Database

errors = Console(stderr=True)

SWITCH_INTERVAL_S = 0.0005


@contextmanager
def local_database(settings: Settings) -> Iterator["Database"]:
    """The settings' database; what goes wrong with it becomes one line for the user."""
    from sqlalchemy.exc import SQLAlchemyError

    from service.database import Database
    from service.problem_handlers import DAMAGED, DAMAGED_ADVICE, NOT_MIGRATED
    from service.problems import ProblemError

    database = Database(settings.database_url, lock_timeout_s=settings.database_lock_timeout_s)
    try:
        yield database
    except ProblemError as problem:
        raise CommandError(problem.detail, ExitCode.bad_input) from None
    except (SQLAlchemyError, sqlite3.Error) as error:
        text = str(getattr(error, "orig", error)).splitlines()[0]
        if DAMAGED.search(text):
            raise CommandError(f"database: {text}; {DAMAGED_ADVICE}") from None
        hint = "; run `clusterwright migrate`" if NOT_MIGRATED.search(str(error)) else ""
        raise CommandError(f"database: {text}{hint}") from None
    finally:
        database.close()


def migrate_command(_arguments: argparse.Namespace, settings: Settings) -> int:
    from service.migrate import migrate

    with local_database(settings) as database, errors.status("migrating the database"):
        before, after = migrate(database)
    errors.print(f"database at schema {after}" + ("" if before == after else f" (was {before or 'empty'})"))
    return ExitCode.ok


def seed_command(_arguments: argparse.Namespace, settings: Settings) -> int:
    from catalog.read import CatalogError, read_catalog
    from service.seeding import seed

    with local_database(settings) as database, errors.status("seeding the catalog"):
        try:
            catalog = read_catalog()
        except CatalogError as bad:
            raise CommandError(str(bad)) from None
        with database.writing() as session:
            report = seed(session, catalog, system_clock)
    release = report.digest[:12]
    if report.unchanged:
        errors.print(f"catalog release {release} is there already")
    else:
        errors.print(
            f"catalog release {release}: {report.devices} devices, {report.nodes} nodes, {report.llms} llms, "
            f"{report.offers} offers, {report.price_steps} price steps, {report.withdrawn} offers withdrawn, "
            f"{report.benchmarks} measured runs"
        )
    return ExitCode.ok


def serve_command(arguments: argparse.Namespace, settings: Settings) -> int:
    from service.access import is_loopback

    if not is_loopback(arguments.host):
        _refuse_open_door(arguments.host, settings)
    return run_server(arguments.host, arguments.port, settings)


def load_for_good() -> None:
    """Beside what follows, so that the first request does not wait for it."""
    threading.Thread(target=_load_for_good, name="for good", daemon=True).start()


def _load_for_good() -> None:
    """What has been loaded by then stays for good: left to the collector, it would be walked again and again, and every
    request would wait 0.3 to 0.6 s meanwhile."""
    from service.warm import load_planning

    load_planning()
    gc.collect()
    gc.freeze()


def run_server(host: str, port: int, settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C; running requests finish within the grace period or are answered 503."""
    import uvicorn

    # Request threads hold the interpreter for well under a millisecond between waits: with the default of 5 ms the
    # event loop stands in line behind them, and a third of the uploads a second are lost.
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    hold_together()

    from service.bounded_http import HttpLimits, bounded_http
    from service.main import create_app
    from service.request_log import configure_logging

    configure_logging(settings.log_level)
    app = create_app(settings)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            load_for_good()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if hasattr(app.state, "solver_pool"):
                app.state.solver_pool.stop()
            if hasattr(app.state, "job_worker"):
                app.state.job_worker.stop()
            super().handle_exit(sig, frame)

    limits = HttpLimits(
        settings.head_limit_bytes, settings.head_timeout_s, settings.body_timeout_s, settings.connections
    )
    config = uvicorn.Config(
        app,
        http=bounded_http(limits),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=[p.strip() for p in (settings.trusted_proxies or "").split(",") if p.strip()],
        timeout_graceful_shutdown=max(1, round(settings.shutdown_grace_s) + 2),
    )
    server = Server(config)
    try:
        server.run()
    except KeyboardInterrupt:
        pass
    except SystemExit as failed:
        return ExitCode.failed if failed.code else ExitCode.ok
    return ExitCode.ok if server.started else ExitCode.failed


def _refuse_open_door(host: str, settings: Settings) -> None:
    from service.tokens.queries import any_active_token

    with local_database(settings) as database, database.reading() as session:
        if any_active_token(session):
            return
    raise CommandError(
        f"refusing to listen on {host} without tokens: anybody could change the catalog. Make one with "
        "`clusterwright token create NAME --role editor`, or serve on 127.0.0.1",
        ExitCode.bad_input,
    )


def token_command(arguments: argparse.Namespace, settings: Settings) -> int:
    with local_database(settings) as database:
        match arguments.action:
            case "create":
                _create_token(database, arguments)
            case "revoke":
                _revoke_token(database, arguments)
            case _:
                _list_tokens(database)
    return ExitCode.ok


def _create_token(database: "Database", arguments: argparse.Namespace) -> None:
    from service.tokens.create import create_token
    from service.tokens.queries import any_active_token

    with database.writing() as session:
        if arguments.if_none and any_active_token(session):
            errors.print("there is a token already")
            return
        row, secret = create_token(session, arguments.name, arguments.role, system_clock)
        token_id = row.id
    errors.print(f"token {token_id} with role {arguments.role}; it is shown once:")
    sys.stdout.write(secret + "\n")


def _revoke_token(database: "Database", arguments: argparse.Namespace) -> None:
    from service.tokens.create import revoke_token

    with database.writing() as session:
        revoke_token(session, arguments.id, system_clock)
    errors.print(f"token {arguments.id} is revoked")


def _list_tokens(database: "Database") -> None:
    from service.tokens.queries import all_tokens

    table = Table("id", "name", "role", "created", "revoked")
    with database.reading() as session:
        for token in all_tokens(session):
            revoked = rfc3339(token.revoked_at) if token.revoked_at else ""
            table.add_row(token.id, token.name, token.role, rfc3339(token.created_at), revoked)
    standard_output().print(table)
