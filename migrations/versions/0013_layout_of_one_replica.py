"""The layout of a plan's line is of one replica, as everywhere else: stored lines counted data parallelism over all replicas."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STORED = sa.table("recommendation", sa.column("id", sa.String), sa.column("result", sa.JSON))


def _rewrite(degree: Callable[[int, int], int]) -> None:
    connection = op.get_bind()
    for row_id, result in connection.execute(sa.select(STORED.c.id, STORED.c.result)).all():
        _lines(result, degree)
        connection.execute(STORED.update().where(STORED.c.id == row_id).values(result=result))


def _lines(value: Any, degree: Callable[[int, int], int]) -> None:
    """Changes every line in place: lines stand in plans, alternatives and what the policy costs, and look the same everywhere."""
    if isinstance(value, list):
        for one in value:
            _lines(one, degree)
    elif isinstance(value, dict):
        if {"layout", "replicas", "serves_requests_per_s"} <= value.keys():
            layout = value["layout"]
            layout["data_parallel"] = degree(layout["data_parallel"], max(1, value["replicas"]))
        for one in value.values():
            _lines(one, degree)


def upgrade() -> None:
    _rewrite(lambda counted, replicas: max(1, counted // replicas))


def downgrade() -> None:
    _rewrite(lambda one, replicas: one * replicas)
