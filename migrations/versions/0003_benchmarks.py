"""Measured results."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "benchmark_upload",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("tool", sa.String(40), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark_upload")),
        sa.UniqueConstraint("digest", name=op.f("uq_benchmark_upload_digest")),
    )
    op.create_table(
        "benchmark_idempotency_key",
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("upload_id", sa.String(40), nullable=False),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["benchmark_upload.id"],
            name=op.f("fk_benchmark_idempotency_key_upload_id_benchmark_upload"),
        ),
        sa.PrimaryKeyConstraint("caller", "key", name=op.f("pk_benchmark_idempotency_key")),
    )  # fmt: skip
    op.create_table(
        "benchmark",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("upload_id", sa.String(40), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("measured_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("tool", sa.String(40), nullable=False),
        sa.Column("device_id", sa.String(120), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("llm_id", sa.String(120), nullable=False),
        sa.Column("engine", sa.String(120), nullable=False),
        sa.Column("engine_version", sa.String(200), nullable=True),
        sa.Column("weights", sa.String(20), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("checks", sa.JSON(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("warnings", sa.JSON(), nullable=False),
        sa.Column("predicted_over_measured", sa.JSON(), nullable=True),
        sa.Column("correction_set", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["upload_id"], ["benchmark_upload.id"], name=op.f("fk_benchmark_upload_id_benchmark_upload")
        ),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_benchmark_device_id_device")),
        sa.ForeignKeyConstraint(["llm_id"], ["llm.id"], name=op.f("fk_benchmark_llm_id_llm")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark")),
        sa.UniqueConstraint("upload_id", "position", name=op.f("uq_benchmark_upload_id_position")),
    )
    op.create_index(op.f("ix_benchmark_device_id"), "benchmark", ["device_id"], unique=False)
    op.create_index(op.f("ix_benchmark_llm_id"), "benchmark", ["llm_id"], unique=False)
    op.create_table(
        "benchmark_event",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("benchmark_id", sa.String(40), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(2_000), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name=op.f("fk_benchmark_event_benchmark_id_benchmark")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_benchmark_event")),
    )
    op.create_index(op.f("ix_benchmark_event_benchmark_id"), "benchmark_event", ["benchmark_id"], unique=False)


def downgrade() -> None:
    for table in ("benchmark_event", "benchmark", "benchmark_idempotency_key", "benchmark_upload"):
        op.drop_table(table)
