"""Stored comparisons of total cost of ownership."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "tco_comparison",
        sa.Column("id", sa.String(60), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("price_as_of", sa.DateTime(timezone=True), nullable=False),
        sa.Column("catalog_digest", sa.String(64), nullable=False),
        sa.Column("cost_catalog_digest", sa.String(64), nullable=False),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tco_comparison")),
    )


def downgrade() -> None:
    op.drop_table("tco_comparison")
