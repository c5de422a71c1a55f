"""Jobs and their events; on PostgreSQL also the tables of procrastinate, whose messages wake the workers.

Procrastinate brings its schema as SQL. A later release with another schema brings migrations of its own, which then
become a version here: a test compares the schema with the one this version was made for.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "job",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("caller", sa.String(200), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_id", sa.String(40), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(200), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("progress", sa.JSON(), nullable=True),
        sa.Column("result", sa.String(200), nullable=True),
        sa.Column("problem", sa.JSON(), nullable=True),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
    )
    op.create_index("ix_job_state_id", "job", ["state", "id"], unique=False)
    op.create_index("ix_job_caller_state", "job", ["caller", "state"], unique=False)
    op.create_table(
        "job_event",
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event", sa.String(16), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_event_job_id_job")),
        sa.PrimaryKeyConstraint("job_id", "number", name=op.f("pk_job_event")),
    )
    if op.get_bind().dialect.name == "postgresql":
        from procrastinate.schema import SchemaManager

        _run(SchemaManager.get_schema())


DROP_PROCRASTINATE = """
DO $$
DECLARE
    named text;
BEGIN
    FOR named IN
        SELECT p.oid::regprocedure::text FROM pg_proc p
        WHERE p.pronamespace = current_schema()::regnamespace AND p.proname LIKE 'procrastinate\\_%'
    LOOP
        EXECUTE 'DROP FUNCTION ' || named || ' CASCADE';
    END LOOP;
    DROP TABLE procrastinate_events, procrastinate_periodic_defers, procrastinate_jobs, procrastinate_workers;
    DROP TYPE procrastinate_job_status, procrastinate_job_event_type, procrastinate_job_to_defer_v1;
END
$$
"""


def _run(script: str) -> None:
    """Several statements with percent signs of their own: straight to the driver, in the migration's transaction."""
    driver = op.get_bind().connection.driver_connection
    assert driver is not None
    driver.execute(script)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _run(DROP_PROCRASTINATE)
    op.drop_table("job_event")
    op.drop_table("job")
