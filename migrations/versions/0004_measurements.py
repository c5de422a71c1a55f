"""Wanted measurements, leases, agents, micro-measurements of devices."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("version", sa.String(100), nullable=False),
        sa.Column("hostname", sa.String(200), nullable=False),
        sa.Column("device", sa.String(120), nullable=True),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("probe", sa.JSON(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent")),
    )
    op.create_table(
        "measurement",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("device_id", sa.String(120), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("llm_id", sa.String(120), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("most_attempts", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_id", sa.String(40), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wanted", sa.JSON(), nullable=False),
        sa.Column("benchmarks", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_measurement_device_id_device")),
        sa.ForeignKeyConstraint(["llm_id"], ["llm.id"], name=op.f("fk_measurement_llm_id_llm")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement")),
    )
    op.create_index(op.f("ix_measurement_device_id"), "measurement", ["device_id"], unique=False)
    op.create_index(op.f("ix_measurement_status"), "measurement", ["status"], unique=False)
    op.create_table(
        "measurement_lease",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("measurement_id", sa.String(40), nullable=False),
        sa.Column("agent_id", sa.String(200), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("detail", sa.String(2_000), nullable=False),
        sa.ForeignKeyConstraint(
            ["measurement_id"], ["measurement.id"], name=op.f("fk_measurement_lease_measurement_id_measurement")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurement_lease")),
    )
    op.create_index(op.f("ix_measurement_lease_measurement_id"), "measurement_lease", ["measurement_id"], unique=False)
    op.create_table(
        "device_measurement",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("device_id", sa.String(120), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_device_measurement_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_measurement")),
        sa.UniqueConstraint("digest", name=op.f("uq_device_measurement_digest")),
    )
    op.create_index(op.f("ix_device_measurement_device_id"), "device_measurement", ["device_id"], unique=False)


def downgrade() -> None:
    for table in ("device_measurement", "measurement_lease", "measurement", "agent"):
        op.drop_table(table)
