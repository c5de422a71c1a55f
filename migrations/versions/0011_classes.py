"""Classes of providers and devices, and whether an offer's region names a place."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider",
        sa.Column("id", sa.String(120), nullable=False),
        sa.Column("provider_class", sa.String(20), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_provider")),
    )
    op.add_column("device", sa.Column("device_class", sa.String(20), nullable=True))
    op.add_column("offer", sa.Column("provider_class", sa.String(20), nullable=True))
    op.add_column("offer", sa.Column("named_place", sa.Boolean(), nullable=False, server_default=sa.true()))


def downgrade() -> None:
    op.drop_column("offer", "named_place")
    op.drop_column("offer", "provider_class")
    op.drop_column("device", "device_class")
    op.drop_table("provider")
