"""Stored fleets over time."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "fleet",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("months", sa.Integer(), nullable=False),
        sa.Column("workloads", sa.JSON(), nullable=False),
        sa.Column("usd", sa.Numeric(18, 6).with_variant(sa.BigInteger(), "sqlite"), nullable=True),
        sa.Column("price_as_of", sa.DateTime(timezone=True), nullable=False),
        sa.Column("catalog_digest", sa.String(64), nullable=False),
        sa.Column("correction_set", sa.Integer(), nullable=True),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fleet")),
    )


def downgrade() -> None:
    op.drop_table("fleet")
