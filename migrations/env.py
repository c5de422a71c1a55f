"""Run by Alembic. The connection comes from ``service.migrate``, or from the settings when Alembic's own command runs."""

from alembic import context
from sqlalchemy.engine import Connection

from service.all_tables import METADATA
from service.database import Database
from service.settings import read_settings


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
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
