"""What a plan must outlive is `limits.fault_tolerance`: stored requests and answers said `limits.survive`."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

RECOMMENDATION = sa.table(
    "recommendation", sa.column("id", sa.String), sa.column("request", sa.JSON), sa.column("result", sa.JSON)
)
JOB = sa.table("job", sa.column("id", sa.String), sa.column("request", sa.JSON))


def _rewrite(before: str, after: str) -> None:
    connection = op.get_bind()
    for table in (RECOMMENDATION, JOB):
        columns = [column.name for column in table.c if column.name != "id"]
        for row in connection.execute(sa.select(table)).all():
            values = {name: _renamed(getattr(row, name), before, after) for name in columns}
            if any(values[name] != getattr(row, name) for name in columns):
                connection.execute(table.update().where(table.c.id == row.id).values(**values))


def _renamed(value: Any, before: str, after: str) -> Any:
    """The field of any ``limits``, and the names of limits that begin with its path."""
    if isinstance(value, list):
        return [_renamed(one, before, after) for one in value]
    if isinstance(value, dict):
        found = {name: _renamed(one, before, after) for name, one in value.items()}
        if isinstance(found.get("limits"), dict) and before in found["limits"]:
            limits = {(after if name == before else name): one for name, one in found["limits"].items()}
            found["limits"] = limits
        return found
    if isinstance(value, str) and value.startswith(f"limits.{before}"):
        return f"limits.{after}" + value.removeprefix(f"limits.{before}")
    return value


def upgrade() -> None:
    _rewrite("survive", "fault_tolerance")


def downgrade() -> None:
    _rewrite("fault_tolerance", "survive")
