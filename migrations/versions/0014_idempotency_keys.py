"""Keys under which requests were stored: one that is sent again finds the first one's record."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotency_key",
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("resource", sa.String(320), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=True),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("caller", "key", name=op.f("pk_idempotency_key")),
    )
    op.create_index(op.f("ix_idempotency_key_resource"), "idempotency_key", ["resource"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_idempotency_key_resource"), table_name="idempotency_key")
    op.drop_table("idempotency_key")
