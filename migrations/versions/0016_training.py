"""Measured training runs, and stored training plans."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "training_run",
        sa.Column("id", sa.String(60), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("retracted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("llm", sa.String(200), nullable=False),
        sa.Column("device", sa.String(200), nullable=False),
        sa.Column("tokens_per_s_per_device", sa.Float(), nullable=False),
        sa.Column("peak_memory_gib", sa.Float(), nullable=True),
        sa.Column("steps", sa.Integer(), nullable=True),
        sa.Column("run", sa.JSON(), nullable=False),
        sa.Column("log", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_run")),
    )
    op.create_index(op.f("ix_training_run_llm"), "training_run", ["llm"])
    op.create_table(
        "training_plan",
        sa.Column("id", sa.String(60), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("jobs", sa.JSON(), nullable=False),
        sa.Column("usd", sa.Numeric(18, 6).with_variant(sa.BigInteger(), "sqlite"), nullable=True),
        sa.Column("price_as_of", sa.DateTime(timezone=True), nullable=False),
        sa.Column("catalog_digest", sa.String(64), nullable=False),
        sa.Column("training_digest", sa.String(64), nullable=False),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_training_plan")),
    )


def downgrade() -> None:
    op.drop_table("training_plan")
    op.drop_index(op.f("ix_training_run_llm"), table_name="training_run")
    op.drop_table("training_run")
