"""Requests stored before there was a buying policy were answered without one: they say so, so that asking again is the same."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TABLES = ("recommendation", "fleet", "job")


def _rewrite(*, add: bool) -> None:
    connection = op.get_bind()
    for name in TABLES:
        table = sa.table(name, sa.column("id", sa.String), sa.column("request", sa.JSON))
        for row_id, request in connection.execute(sa.select(table.c.id, table.c.request)).all():
            limits = (request if isinstance(request, dict) else json.loads(request)).get("limits")
            if not isinstance(limits, dict) or add is ("sourcing" in limits):
                continue
            changed = {**limits, "sourcing": "any"} if add else {k: v for k, v in limits.items() if k != "sourcing"}
            connection.execute(
                table.update().where(table.c.id == row_id).values(request={**request, "limits": changed})
            )


def upgrade() -> None:
    _rewrite(add=True)


def downgrade() -> None:
    _rewrite(add=False)
