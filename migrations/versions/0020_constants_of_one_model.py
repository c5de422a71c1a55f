"""Constants of the performance model are told apart by the models they are of, too: one of every model and one of a few."""

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
    columns = [sa.Column(name, sa.String(1000 if name == "llms" else 120), nullable=False) for name in key]
    constraint = sa.PrimaryKeyConstraint(*key, name=op.f("pk_constant"))
    return op.create_table("constant", *columns, sa.Column("row", sa.JSON(), nullable=False), constraint)


def _stored() -> list[dict[str, Any]]:
    table = sa.table("constant", *(sa.column(name, sa.String) for name in KEY), sa.column("row", sa.JSON))
    return [dict(row) for row in op.get_bind().execute(sa.select(table)).mappings()]


def _of_some(row: dict[str, Any]) -> dict[str, Any]:
    """A document as it is read from here on: ``llms``, none of them where it is of every model."""
    kept = {name: value for name, value in row.items() if name != "llm"}
    return kept | {"llms": [] if row.get("llm", ANY) == ANY else [row["llm"]]}


def _of_one(row: dict[str, Any]) -> dict[str, Any]:
    """A document as it was read before: ``llm``, the first where it is of several."""
    kept = {name: value for name, value in row.items() if name != "llms"}
    return kept | {"llm": (row.get("llms") or [ANY])[0]}


def upgrade() -> None:
    rows = [row | {"llms": row["row"].get("llm", ANY), "row": _of_some(row["row"])} for row in _stored()]
    op.drop_table("constant")
    op.bulk_insert(_table(*KEY, "llms"), rows)


def downgrade() -> None:
    """Of rows that differ in nothing but the models the one of all models stays, else one of them."""
    kept: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in sorted(_stored(), key=lambda row: not row["row"].get("llms")):
        kept[tuple(row[name] for name in KEY)] = row | {"row": _of_one(row["row"])}
    op.drop_table("constant")
    op.bulk_insert(_table(*KEY), list(kept.values()))
