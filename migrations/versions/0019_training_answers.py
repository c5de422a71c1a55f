"""Stored training plans are answers like others: with a correction set, which they have none of, and ids of 40 characters."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("training_plan") as table:
        table.add_column(sa.Column("correction_set", sa.Integer(), nullable=True))
        table.alter_column("id", existing_type=sa.String(60), type_=sa.String(40), existing_nullable=False)


def downgrade() -> None:
    with op.batch_alter_table("training_plan") as table:
        table.alter_column("id", existing_type=sa.String(40), type_=sa.String(60), existing_nullable=False)
        table.drop_column("correction_set")
