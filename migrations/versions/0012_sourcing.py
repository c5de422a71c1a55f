"""Requests stored before there was a buying policy were answered without one: they say so, so that asking again is the same."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLES = ("recommendation", "fleet", "job")
STATE = {
    "sqlite": """UPDATE {table} SET request = json_set(request, '$.limits.sourcing', 'any')
        WHERE json_type(request, '$.limits') = 'object' AND json_type(request, '$.limits.sourcing') IS NULL""",
    "postgresql": """UPDATE {table} SET request = jsonb_set(request::jsonb, '{{limits,sourcing}}', '"any"')::json
        WHERE jsonb_typeof(request::jsonb -> 'limits') = 'object' AND NOT (request::jsonb -> 'limits') ? 'sourcing'""",
}
FORGET = {
    "sqlite": "UPDATE {table} SET request = json_remove(request, '$.limits.sourcing')",
    "postgresql": "UPDATE {table} SET request = (request::jsonb #- '{{limits,sourcing}}')::json",
}


def _in_every_table(statements: dict[str, str]) -> None:
    connection = op.get_bind()
    for table in TABLES:
        connection.exec_driver_sql(statements[connection.dialect.name].format(table=table))


def upgrade() -> None:
    _in_every_table(STATE)


def downgrade() -> None:
    _in_every_table(FORGET)
