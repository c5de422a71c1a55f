"""Bring the database's schema to the version of this code.

Alembic is imported where it is used: with the templates that it brings it is large, and a plan does without.
"""

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

import migrations
from service.database import Database, use_write_ahead_log

if TYPE_CHECKING:
    from alembic.config import Config

ADVISORY_LOCK = 0x636C7573
"""Any fixed number: PostgreSQL lets one migration at a time hold it."""


def alembic_config() -> "Config":
    """Points at the ``migrations`` package wherever it is installed."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    return config


@cache
def newest_revision() -> str:
    from alembic.script import ScriptDirectory

    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    if head is None:
        raise RuntimeError("the migrations folder is empty")
    return head


def stored_revision(database: Database) -> str | None:
    """The schema version the database says it has; None before the first migration."""
    from alembic.runtime.migration import MigrationContext

    with database.reading() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def migrate(database: Database, target: str = "head") -> tuple[str | None, str]:
    """Apply what is missing, in one transaction. Returns the revisions before and after."""
    from alembic import command
    from alembic.runtime.migration import MigrationContext

    if database.is_sqlite and database.url.database:
        Path(database.url.database).expanduser().parent.mkdir(parents=True, exist_ok=True)
    use_write_ahead_log(database)
    config = alembic_config()
    with database.writing() as session:
        connection = session.connection()
        if not database.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        before = MigrationContext.configure(connection).get_current_revision()
        config.attributes["connection"] = connection
        command.upgrade(config, target)
    return before, stored_revision(database) or ""
