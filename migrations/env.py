"""Run by Alembic.

The connection comes from ``service.migrate``, or from the settings when Alembic's own command runs.
"""

from typing import Any, Literal

from alembic import context
from sqlalchemy.engine import Connection
from sqlmodel.sql.sqltypes import AutoString

from service.all_tables import METADATA
from service.database import Database, Usd, UtcInstant
from service.settings import read_settings


def written_type(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """A version stands on its own: it names plain SQL types, not this project's."""
    if kind != "type":
        return False
    if isinstance(item, AutoString):
        return f"sa.String({item.length})"
    if isinstance(item, UtcInstant):
        return "sa.DateTime(timezone=True)"
    if isinstance(item, Usd):
        return "sa.Numeric(18, 6).with_variant(sa.BigInteger(), 'sqlite')"
    return False


def is_ours(name: str | None, kind: str, _parents: Any) -> bool:
    """Procrastinate's tables are made by its own SQL."""
    return kind != "table" or name is None or not name.startswith("procrastinate_")


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        render_as_batch=connection.dialect.name == "sqlite",
        render_item=written_type,
        compare_type=True,
        include_name=is_ours,
    )
    with context.begin_transaction():
        context.run_migrations()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    database = Database(read_settings().database_url)
    with database.engine.connect() as own:
        run(own)
        own.commit()
    database.close()
