"""What uploaded results leave unexplained, and which configurations wait for a new correction set."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "benchmark_residual",
        sa.Column("benchmark_id", sa.String(40), nullable=False),
        sa.Column("base", sa.Integer(), nullable=False),
        sa.Column("cell", sa.String(400), nullable=False),
        sa.Column("residuals", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["benchmark_id"], ["benchmark.id"], name=op.f("fk_benchmark_residual_benchmark_id_benchmark")
        ),
        sa.PrimaryKeyConstraint("benchmark_id", "base", name=op.f("pk_benchmark_residual")),
    )
    op.create_index(op.f("ix_benchmark_residual_cell"), "benchmark_residual", ["cell"], unique=False)
    op.create_table(
        "changed_cell",
        sa.Column("id", sa.String(100), nullable=False),
        sa.Column("cell", sa.String(400), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changed_cell")),
    )


def downgrade() -> None:
    op.drop_table("changed_cell")
    op.drop_table("benchmark_residual")
