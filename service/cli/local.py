"""Commands about this machine's database and server: migrate, seed, serve, token."""

import argparse
import os
import signal
import sys
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

from service.cli.exit_codes import CommandError, ExitCode
from service.clock import system_clock
from service.settings import Settings

errors = Console(stderr=True)


def migrate_command(_arguments: argparse.Namespace, settings: Settings) -> int:
    from service.database import Database
    from service.migrate import migrate

    database = Database(settings.database_url, lock_timeout_s=settings.database_lock_timeout_s)
    with errors.status("migrating the database"):
        before, after = migrate(database)
    database.close()
    errors.print(f"database at schema {after}" + ("" if before == after else f" (was {before or 'empty'})"))
    return ExitCode.ok


def seed_command(_arguments: argparse.Namespace, settings: Settings) -> int:
    from catalog.read import CatalogError, read_catalog
    from service.database import Database
    from service.seeding import seed

    database = Database(settings.database_url, lock_timeout_s=settings.database_lock_timeout_s)
    with errors.status("seeding the catalog"):
        try:
            catalog = read_catalog()
        except CatalogError as bad:
            raise CommandError(str(bad)) from None
        with database.writing() as session:
            report = seed(session, catalog, system_clock)
    database.close()
    edition = report.digest[:12]
    if report.unchanged:
        errors.print(f"catalog edition {edition} is there already")
    else:
        errors.print(
            f"catalog edition {edition}: {report.devices} devices, {report.nodes} nodes, {report.llms} llms, "
            f"{report.offers} offers, {report.price_steps} price steps, {report.withdrawn} offers withdrawn"
        )
    return ExitCode.ok


def serve_command(arguments: argparse.Namespace, settings: Settings) -> int:
    from service.access import is_loopback

    if not is_loopback(arguments.host):
        _refuse_open_door(arguments.host, settings)
    return run_server(arguments.host, arguments.port, settings)


def run_server(host: str, port: int, settings: Settings) -> int:
    """Serve until SIGTERM or Ctrl-C; running requests finish within the grace period or are answered 503."""
    import uvicorn

    from service.main import create_app
    from service.request_log import configure_logging

    configure_logging(settings.log_level)
    app = create_app(settings)

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if hasattr(app.state, "solver_pool"):
                app.state.solver_pool.stop()
            super().handle_exit(sig, frame)

    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
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
    from sqlalchemy.exc import SQLAlchemyError

    from service.database import Database
    from service.tokens.queries import any_active_token

    database = Database(settings.database_url)
    try:
        with database.reading() as session:
            if any_active_token(session):
                return
    except SQLAlchemyError:
        raise CommandError("the database is not migrated; run `clusterwright migrate`") from None
    finally:
        database.close()
    raise CommandError(
        f"refusing to listen on {host} without tokens: anybody could change the catalog. Make one with "
        "`clusterwright token create NAME --role editor`, or serve on 127.0.0.1",
        ExitCode.bad_input,
    )


def token_command(arguments: argparse.Namespace, settings: Settings) -> int:
    from service.database import Database
    from service.tokens.create import create_token, revoke_token
    from service.tokens.queries import all_tokens, any_active_token

    database = Database(settings.database_url)
    try:
        if arguments.action == "create":
            with database.writing() as session:
                if arguments.if_none and any_active_token(session):
                    errors.print("there is a token already")
                    return ExitCode.ok
                row, secret = create_token(session, arguments.name, arguments.role, system_clock)
                token_id = row.id
            errors.print(f"token {token_id} with role {arguments.role}; it is shown once:")
            sys.stdout.write(secret + "\n")
        elif arguments.action == "revoke":
            with database.writing() as session:
                revoke_token(session, arguments.id, system_clock)
            errors.print(f"token {arguments.id} is revoked")
        else:
            with database.reading() as session:
                tokens: list[dict[str, Any]] = [
                    t.model_dump(mode="json", exclude={"sha256"}) for t in all_tokens(session)
                ]
            table = Table("id", "name", "role", "created", "revoked")
            for token in tokens:
                table.add_row(token["id"], token["name"], token["role"], token["created_at"], token["revoked_at"] or "")
            Console().print(table)
    finally:
        database.close()
    return ExitCode.ok


def end_process(code: int) -> None:
    """Leave at once: a solver thread that outlived the grace period must not hold the process."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ignore_sigpipe() -> None:
    """``clusterwright offers | head`` ends quietly."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
