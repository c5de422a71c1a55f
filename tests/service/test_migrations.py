"""Migrations are applied, never ``create_all``; the tables in code and in the database agree."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from procrastinate.schema import SchemaManager
from sqlalchemy import JSON, column, insert, inspect, select, table

from service.all_tables import METADATA, TABLES
from service.database import Database
from service.migrate import alembic_config, migrate, newest_revision, stored_revision
from tests.conftest import NOW

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


ROW: dict[str, Any] = dict.fromkeys(("outcome", "objective", "catalog_digest", "version"), "-") | {
    "created_at": NOW, "price_as_of": NOW, "correction_set": 0, "usd_per_hour": None,
}  # fmt: skip
"""A stored recommendation, less its id, request and result."""


def stepper(database: Database) -> Callable[[str, Callable[[Config, str], None]], None]:
    """Goes to a revision by upgrade or downgrade."""
    config = alembic_config()

    def to(revision: str, go: Callable[[Config, str], None]) -> None:
        with database.writing() as session:
            config.attributes["connection"] = session.connection()
            go(config, revision)

    return to


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

    def test_requests_of_before_the_buying_policy_say_that_they_had_none(self, database: Database) -> None:
        to = stepper(database)

        def requests() -> dict[str, Any]:
            with database.reading() as session:
                rows = session.connection().execute(select(stored.c.id, stored.c.request)).all()
            return {row.id: row.request["limits"].get("sourcing") for row in rows}

        stored = METADATA.tables["recommendation"]
        to("0011", command.upgrade)
        with database.writing() as session:
            for name, limits in (("rec_old", {"devices": None}), ("rec_new", {"sourcing": {"named_place": False}})):
                row = ROW | {"id": name, "request": {"limits": limits}, "result": {}}
                session.connection().execute(insert(stored).values(**row))
        to("0012", command.upgrade)
        assert requests() == {"rec_old": "any", "rec_new": {"named_place": False}}
        to("0011", command.downgrade)
        assert requests() == {"rec_old": None, "rec_new": None}

    def test_stored_lines_take_the_layout_of_one_replica(self, database: Database) -> None:
        to = stepper(database)

        def line(replicas: int, data_parallel: int) -> dict[str, Any]:
            layout = {"tensor_parallel": 2, "data_parallel": data_parallel}
            return {"replicas": replicas, "serves_requests_per_s": 1.5, "layout": layout}

        def result(*lines: dict[str, Any]) -> dict[str, Any]:
            return {"plan": [lines[0]], "alternatives": [{"why": "-", "plan": [lines[1]]}], "sourcing": None}

        def stored_result() -> dict[str, Any]:
            with database.reading() as session:
                return dict(session.connection().execute(select(stored.c.result)).scalar_one())

        stored = METADATA.tables["recommendation"]
        counted, of_one = result(line(3, 3), line(2, 8)), result(line(3, 1), line(2, 4))
        to("0012", command.upgrade)
        with database.writing() as session:
            session.connection().execute(insert(stored).values(**ROW, id="rec_old", request={}, result=counted))
        to("0013", command.upgrade)
        assert stored_result() == of_one
        to("0012", command.downgrade)
        assert stored_result() == counted

    def test_stored_limits_take_their_new_name(self, database: Database) -> None:
        to, stored = stepper(database), METADATA.tables["recommendation"]

        def plan(name: str) -> dict[str, Any]:
            request = {"limits": {name: {"regions": 1}, "spare_nodes": 0}, "note": "limits survive"}
            return {"request": request, "result": {"binding": [{"limit": f"limits.{name}.regions", "gains": 1.0}]}}

        def read() -> dict[str, Any]:
            with database.reading() as session:
                row = session.connection().execute(select(stored.c.request, stored.c.result)).one()
                return {"request": row.request, "result": row.result}

        to("0015", command.upgrade)
        with database.writing() as session:
            session.connection().execute(insert(stored).values(**ROW, id="rec_old", **plan("survive")))
        to("0017", command.upgrade)
        assert read() == plan("fault_tolerance")
        to("0015", command.downgrade)
        assert read() == plan("survive")

    def test_what_comes_with_the_package_is_of_the_catalog(self, database: Database) -> None:
        to = stepper(database)

        def read(table: str, column: str) -> list[Any]:
            with database.reading() as session:
                return list(session.connection().exec_driver_sql(f"SELECT {column} FROM {table}").scalars())

        to("0017", command.upgrade)
        with database.writing() as session:
            run = session.connection().exec_driver_sql
            run("INSERT INTO edition VALUES (1, 7, 'd', 's', '2026-01-01 00:00:00')")
            for number, origin in ((1, "edition"), (1_000_001, "uploads")):
                run(
                    "INSERT INTO correction_set (number, made_at, origin, content)"
                    f" VALUES ({number}, '2026-01-01 00:00:00', '{origin}', '{{}}')"
                )
        to("0018", command.upgrade)
        assert read("catalog_release", "revision") == [7]
        assert sorted(read("correction_set", "origin")) == ["catalog", "uploads"]
        to("0017", command.downgrade)
        assert read("edition", "digest") == ["d"]
        assert sorted(read("correction_set", "origin")) == ["edition", "uploads"]

    def test_constants_of_one_model_stand_beside_those_of_all(self, database: Database) -> None:
        to, stored = stepper(database), METADATA.tables["constant"]
        key = {"name": "widened_expert_share", "family": "hopper", "device": "*", "engine": "vllm"}

        def rows() -> dict[str, float]:
            with database.reading() as session:
                found = session.connection().exec_driver_sql('SELECT "row" FROM constant').scalars()
                read = [one if isinstance(one, dict) else json.loads(one) for one in found]
                return {" ".join(row["llms"]) if "llms" in row else row["llm"]: row["value"] for row in read}

        to("0019", command.upgrade)
        with database.writing() as session:
            of_one = key | {"llm": "gpt-oss-120b", "value": 0.4}
            before = table("constant", *(column(name) for name in key), column("row", JSON))
            session.connection().execute(insert(before).values(**key, row=of_one))
        to("0020", command.upgrade)
        with database.writing() as session:
            of_all = insert(stored).values(**key, llms="*", row=key | {"llms": [], "value": 0.5})
            session.connection().execute(of_all)
        assert rows() == {"gpt-oss-120b": 0.4, "": 0.5}
        to("0019", command.downgrade)
        assert rows() == {"*": 0.5}

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
