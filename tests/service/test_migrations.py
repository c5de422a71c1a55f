"""Migrations are applied, never ``create_all``; the tables in code and in the database agree."""

import hashlib
from collections.abc import Iterator

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from procrastinate.schema import SchemaManager
from sqlalchemy import inspect

from service.all_tables import METADATA, TABLES
from service.database import Database
from service.migrate import alembic_config, migrate, newest_revision, stored_revision

PROCRASTINATE_SCHEMA = "c70ec4b400a60ad9592787653aae5ae77ae41bf801d56b5bd2712751a07f2009"


@pytest.fixture
def database(empty_url: str) -> Iterator[Database]:
    database = Database(empty_url)
    yield database
    database.close()


def is_ours(name: str | None, kind: str, _parents: object = None) -> bool:
    return kind != "table" or name is None or not name.startswith("procrastinate_")


def own_tables(database: Database) -> set[str]:
    return {name for name in inspect(database.engine).get_table_names() if is_ours(name, "table")}


class TestMigrate:
    def test_makes_every_table(self, database: Database) -> None:
        before, after = migrate(database)
        assert before is None
        assert after == newest_revision()
        made = own_tables(database)
        assert made == {t.__tablename__ for t in TABLES} | {"alembic_version"}

    def test_twice_changes_nothing(self, database: Database) -> None:
        migrate(database)
        assert migrate(database) == (newest_revision(), newest_revision())

    def test_leaves_nothing_to_generate(self, database: Database) -> None:
        migrate(database)
        with database.reading() as session:
            context = MigrationContext.configure(
                session.connection(), opts={"compare_type": True, "include_name": is_ours}
            )
            assert compare_metadata(context, METADATA) == []

    def test_can_be_undone(self, database: Database) -> None:
        migrate(database)
        config = alembic_config()
        with database.writing() as session:
            config.attributes["connection"] = session.connection()
            command.downgrade(config, "base")
        assert stored_revision(database) is None
        assert set(inspect(database.engine).get_table_names()) == {"alembic_version"}

    def test_the_queue_has_the_schema_its_version_was_made_for(self) -> None:
        """Fails when an upgrade of procrastinate changes its schema: then its migrations become a version of ours."""
        digest = hashlib.sha256(SchemaManager.get_schema().encode()).hexdigest()
        assert digest == PROCRASTINATE_SCHEMA

    def test_every_constraint_has_a_name(self) -> None:
        unnamed = [(t.name, c) for t in METADATA.tables.values() for c in t.constraints if c.name is None]
        assert unnamed == []

    def test_sqlite_uses_a_write_ahead_log(self, database: Database) -> None:
        migrate(database)
        if database.is_sqlite:
            with database.reading() as session:
                assert session.connection().exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
                assert session.connection().exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
