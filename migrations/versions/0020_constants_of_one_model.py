"""Constants of the performance model are told apart by the model they are of, too: one of many models and one of a single model."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

ANY = "*"
KEY = ("name", "family", "device", "engine")


def _table(*key: str) -> sa.Table:
    columns = [sa.Column(name, sa.String(120), nullable=False) for name in key]
    constraint = sa.PrimaryKeyConstraint(*key, name=op.f("pk_constant"))
    return op.create_table("constant", *columns, sa.Column("row", sa.JSON(), nullable=False), constraint)


def _stored() -> list[dict[str, Any]]:
    table = sa.table("constant", *(sa.column(name, sa.String) for name in KEY), sa.column("row", sa.JSON))
    return [dict(row) for row in op.get_bind().execute(sa.select(table)).mappings()]


def upgrade() -> None:
    rows = [row | {"llm": row["row"].get("llm", ANY)} for row in _stored()]
    op.drop_table("constant")
    op.bulk_insert(_table(*KEY, "llm"), rows)


def downgrade() -> None:
    """Of rows that differ in nothing but the model the one of all models stays, else one of them."""
    kept: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in sorted(_stored(), key=lambda row: row["row"].get("llm", ANY) == ANY):
        kept[tuple(row[name] for name in KEY)] = row
    op.drop_table("constant")
    op.bulk_insert(_table(*KEY), list(kept.values()))
