"""The database: one engine, one way to read, one way to write.

Writing commits before the response is sent (``scope="function"``), so a client never holds a 201 for a row that does
not exist; nothing else in the service calls commit. On SQLite a write transaction begins with BEGIN IMMEDIATE:
a deferred one loses updates between read and write.
"""

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from decimal import Decimal
from typing import Annotated, Any

from fastapi import Depends, Request
from sqlalchemy import BigInteger, DateTime, Dialect, Engine, Numeric, create_engine, event
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.types import TypeDecorator, TypeEngine
from sqlmodel import Session, SQLModel

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

MICRO = Decimal(1_000_000)


class Usd(TypeDecorator[Decimal]):
    """US dollars with six decimal places, exact: NUMERIC(18,6), or micro-dollars where there is no decimal type."""

    impl = Numeric(18, 6)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(Numeric(18, 6))

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        if value is None or dialect.name != "sqlite":
            return value
        return int(value * MICRO)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        if value is None or dialect.name != "sqlite":
            return None if value is None else Decimal(value)
        return Decimal(value) / MICRO


class UtcInstant(TypeDecorator[dt.datetime]):
    """An instant in UTC; SQLite, which has no time zones, stores it without one."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("an instant needs a time zone")
        in_utc = value.astimezone(dt.UTC)
        return in_utc.replace(tzinfo=None) if dialect.name == "sqlite" else in_utc

    def process_result_value(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:  # noqa: ARG002 - its caller's signature
        if value is None:
            return None
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


class Database:
    """An engine with a reading and a writing face."""

    def __init__(self, url: str, *, pool_size: int = 10, lock_timeout_s: float = 10.0) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        milliseconds = int(lock_timeout_s * 1000)
        arguments: dict[str, Any] = {}
        if not self.is_sqlite:
            options = f"-c timezone=UTC -c lock_timeout={milliseconds}"
            arguments = {"options": f"{self.url.query.get('options', '')} {options}".strip(), "connect_timeout": 5}
        self.engine: Engine = create_engine(
            self.url,
            pool_size=pool_size,
            max_overflow=pool_size,
            pool_timeout=lock_timeout_s,
            pool_pre_ping=not self.is_sqlite,
            connect_args=arguments,
        )
        if self.is_sqlite:
            _prepare_sqlite(self.engine, busy_timeout_ms=milliseconds)
        self._writers_turn: AbstractContextManager[Any] = threading.Lock() if self.is_sqlite else nullcontext()
        self._read_engine = self.engine.execution_options(postgresql_readonly=True)
        self._write_engine = self.engine.execution_options(begin_immediate=True)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A short read transaction."""
        with Session(self._read_engine) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A write transaction: committed when the block ends, rolled back when it raises.

        SQLite has one writer at a time and lets the others sleep for up to 100 ms between tries; writers of this
        process take turns instead.
        """
        with self._writers_turn, Session(self._write_engine) as session, session.begin():
            yield session

    def close(self) -> None:
        self.engine.dispose()


def _prepare_sqlite(engine: Engine, *, busy_timeout_ms: int) -> None:
    @event.listens_for(engine, "connect")
    def set_pragmas(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions on its own
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {busy_timeout_ms}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("begin_immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def use_write_ahead_log(database: Database) -> None:
    """Put a SQLite file into WAL mode, once, at migration: the mode is a property of the file."""
    if database.is_sqlite:
        raw = database.engine.raw_connection()
        try:
            raw.cursor().execute("PRAGMA journal_mode = WAL")
        finally:
            raw.close()


def database_of(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


def open_session(request: Request) -> Iterator[Session]:
    with database_of(request).writing() as session:
        yield session


def open_read_session(request: Request) -> Iterator[Session]:
    with database_of(request).reading() as session:
        yield session


WriteSession = Annotated[Session, Depends(open_session, scope="function")]
"""Commits after the route returns and before the response is sent."""
ReadSession = Annotated[Session, Depends(open_read_session, scope="function")]
