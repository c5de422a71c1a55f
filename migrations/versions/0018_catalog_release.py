"""What comes with the package is the catalog's release, and of origin `catalog`: tables and rows said `edition`."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

COLUMNS = (
    ("llm", "origin"),
    ("offer", "origin"),
    ("correction_set", "origin"),
    ("benchmark_upload", "tool"),
    ("benchmark_upload", "caller"),
    ("benchmark", "tool"),
)
BENCHMARK = sa.table(
    "benchmark", sa.column("id", sa.String), sa.column("tool", sa.String), sa.column("checks", sa.JSON)
)


def _table(name: str) -> sa.Table:
    """As it was made first, under either name."""
    return op.create_table(
        name,
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("seeded_digest", sa.String(64), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f(f"ck_{name}_single_row")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{name}")),
    )


def _rename(table: str, new_table: str, word: str, new_word: str) -> None:
    connection = op.get_bind()
    _table(new_table)
    op.execute(
        f"INSERT INTO {new_table} (id, revision, digest, seeded_digest, changed_at) "
        f"SELECT id, revision, digest, seeded_digest, changed_at FROM {table}"
    )
    op.drop_table(table)
    for name, column in COLUMNS:
        one = sa.table(name, sa.column(column, sa.String))
        connection.execute(one.update().where(one.c[column] == word).values({column: new_word}))
    for row_id, checks in connection.execute(
        sa.select(BENCHMARK.c.id, BENCHMARK.c.checks).where(BENCHMARK.c.tool == new_word)
    ).all():
        renamed = [check | {"name": new_word} if check.get("name") == word else check for check in checks]
        connection.execute(BENCHMARK.update().where(BENCHMARK.c.id == row_id).values(checks=renamed))


def upgrade() -> None:
    _rename("edition", "catalog_release", "edition", "catalog")


def downgrade() -> None:
    _rename("catalog_release", "edition", "catalog", "edition")
