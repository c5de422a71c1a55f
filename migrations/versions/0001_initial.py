"""The catalog, prices, recommendations and tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "constant",
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("family", sa.String(120), nullable=False),
        sa.Column("device", sa.String(120), nullable=False),
        sa.Column("engine", sa.String(120), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("name", "family", "device", "engine", name=op.f("pk_constant")),
    )
    op.create_table(
        "device",
        sa.Column("id", sa.String(120), nullable=False),
        sa.Column("vendor", sa.String(120), nullable=False),
        sa.Column("family", sa.String(120), nullable=False),
        sa.Column("category", sa.String(40), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device")),
    )
    op.create_index(op.f("ix_device_vendor"), "device", ["vendor"], unique=False)
    op.create_table(
        "edition",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("seeded_digest", sa.String(64), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_edition_single_row")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_edition")),
    )
    op.create_table(
        "energy",
        sa.Column("region", sa.String(120), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("region", name=op.f("pk_energy")),
    )
    op.create_table(
        "llm",
        sa.Column("id", sa.String(120), nullable=False),
        sa.Column("family", sa.String(120), nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_llm")),
    )
    op.create_table(
        "recommendation",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(20), nullable=False),
        sa.Column("objective", sa.String(20), nullable=False),
        sa.Column("usd_per_hour", sa.Numeric(18, 6).with_variant(sa.BigInteger(), "sqlite"), nullable=True),
        sa.Column("price_as_of", sa.DateTime(timezone=True), nullable=False),
        sa.Column("catalog_digest", sa.String(64), nullable=False),
        sa.Column("correction_set", sa.Integer(), nullable=True),
        sa.Column("version", sa.String(40), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recommendation")),
    )
    op.create_table(
        "token",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("sha256", name=op.f("uq_token_sha256")),
    )
    op.create_table(
        "node",
        sa.Column("id", sa.String(120), nullable=False),
        sa.Column("device_id", sa.String(120), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_node_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_node")),
    )
    op.create_index(op.f("ix_node_device_id"), "node", ["device_id"], unique=False)
    op.create_table(
        "offer",
        sa.Column("id", sa.String(300), nullable=False),
        sa.Column("provider", sa.String(120), nullable=False),
        sa.Column("instance", sa.String(120), nullable=False),
        sa.Column("region", sa.String(120), nullable=False),
        sa.Column("commitment", sa.String(40), nullable=False),
        sa.Column("node_id", sa.String(120), nullable=False),
        sa.Column("max_nodes", sa.Integer(), nullable=True),
        sa.Column("notes", sa.String(2000), nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["node.id"], name=op.f("fk_offer_node_id_node")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_offer")),
    )
    op.create_index(op.f("ix_offer_node_id"), "offer", ["node_id"], unique=False)
    op.create_index(op.f("ix_offer_provider"), "offer", ["provider"], unique=False)
    op.create_index(op.f("ix_offer_region"), "offer", ["region"], unique=False)
    op.create_table(
        "price_step",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("offer_id", sa.String(300), nullable=False),
        sa.Column("valid_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("usd_per_hour", sa.Numeric(18, 6).with_variant(sa.BigInteger(), "sqlite"), nullable=True),
        sa.Column("source", sa.String(2000), nullable=False),
        sa.Column("retrieved_on", sa.Date(), nullable=False),
        sa.Column("confidence", sa.String(10), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["offer_id"], ["offer.id"], name=op.f("fk_price_step_offer_id_offer")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price_step")),
        sa.UniqueConstraint(
            "offer_id", "valid_from", "recorded_at", name=op.f("uq_price_step_offer_id_valid_from_recorded_at")
        ),
    )
    op.create_index("ix_price_step_valid_from", "price_step", ["valid_from"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_price_step_valid_from", table_name="price_step")
    op.drop_table("price_step")
    op.drop_index(op.f("ix_offer_region"), table_name="offer")
    op.drop_index(op.f("ix_offer_provider"), table_name="offer")
    op.drop_index(op.f("ix_offer_node_id"), table_name="offer")
    op.drop_table("offer")
    op.drop_index(op.f("ix_node_device_id"), table_name="node")
    op.drop_table("node")
    op.drop_table("token")
    op.drop_table("recommendation")
    op.drop_table("llm")
    op.drop_table("energy")
    op.drop_table("edition")
    op.drop_index(op.f("ix_device_vendor"), table_name="device")
    op.drop_table("device")
    op.drop_table("constant")
