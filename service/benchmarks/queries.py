"""SQL about measured results."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Executable, bindparam, func, insert, literal
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel, col, select

from service.benchmarks.known import KnownNames
from service.benchmarks.tables import BenchmarkEventTable, BenchmarkTable, BenchmarkUploadTable, IdempotencyKeyTable
from service.catalog_release.tables import CatalogReleaseTable
from service.devices.tables import DeviceTable
from service.listing import Listed, listed
from service.llms.tables import LlmTable
from service.nodes.tables import NodeTable

Row = dict[str, Any]

STATUS_AFTER = {"release": "accepted", "retract": "retracted"}


def release_revision(session: Session) -> int:
    """Counts catalog writes; 0 before the first seeding."""
    return session.exec(select(CatalogReleaseTable.revision)).one_or_none() or 0


def known_names(session: Session) -> KnownNames:
    """Every device, model and node a result may name."""
    devices = {row.id: row.row for row in session.exec(select(DeviceTable)).all()}
    llms = session.exec(select(LlmTable)).all()
    return KnownNames(
        device_memory_gib={key: row.get("memory_gib") for key, row in devices.items()},
        hugging_face_ids={llm.id: llm.row.get("hugging_face_id") for llm in llms},
        device_power_limit_w={key: row.get("power_limit_w") for key, row in devices.items()},
        nodes=frozenset(session.exec(select(NodeTable.id)).all()),
    )


def known_uploads(session: Session, ids: Sequence[str], digests: Sequence[str]) -> tuple[set[str], set[str]]:
    """Which of these uploads' ids, and which of these digests, are stored."""
    by_id = select(BenchmarkUploadTable.id).where(col(BenchmarkUploadTable.id).in_(ids))
    by_digest = select(BenchmarkUploadTable.digest).where(col(BenchmarkUploadTable.digest).in_(digests))
    return set(session.exec(by_id).all()), set(session.exec(by_digest).all())


@cache
def _insert_unless_stored(table: type[SQLModel], dialect: str, *returned: str) -> Executable:
    """Built once: making and hashing a statement costs as much as sending it."""
    module = postgresql if dialect == "postgresql" else sqlite
    columns = [getattr(table, name) for name in returned] or [literal(1)]
    statement: Executable = module.insert(table).on_conflict_do_nothing().returning(*columns)
    return statement


@cache
def _insert(table: type[SQLModel]) -> Executable:
    return insert(table)


def insert_unless_stored(session: Session, row: SQLModel) -> bool:
    """Insert a row whose unique values may be there already; False when they are.

    Another transaction that is inserting the same values is waited for.
    """
    connection = session.connection()
    inserted = connection.execute(_insert_unless_stored(type(row), connection.dialect.name), row.model_dump())
    return inserted.first() is not None


def insert_uploads(session: Session, rows: Sequence[Row]) -> set[str]:
    """Insert uploads by ``BenchmarkUploadTable``'s columns; the digests of those that were not stored before.

    Another transaction that is inserting the same digest is waited for.
    """
    if not rows:
        return set()
    connection = session.connection()
    statement = _insert_unless_stored(BenchmarkUploadTable, connection.dialect.name, "digest")
    return set(connection.execute(statement, list(rows)).scalars())


def insert_keys(session: Session, rows: Sequence[Row]) -> int:
    """Insert idempotency keys that are not stored yet; how many those were."""
    connection = session.connection()
    statement = _insert_unless_stored(IdempotencyKeyTable, connection.dialect.name, "key")
    return len(connection.execute(statement, list(rows)).all())


def insert_rows(session: Session, table: type[SQLModel], rows: Sequence[Row]) -> None:
    """Insert rows of one table; they are new by construction."""
    if rows:
        session.connection().execute(_insert(table), list(rows))


@cache
def _keys() -> Executable:
    columns = (IdempotencyKeyTable.caller, IdempotencyKeyTable.key, IdempotencyKeyTable.digest)
    return select(*columns).where(
        col(IdempotencyKeyTable.caller).in_(bindparam("callers", expanding=True)),
        col(IdempotencyKeyTable.key).in_(bindparam("keys", expanding=True)),
    )


def stored_keys(session: Session, named: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Digests of the bodies that these callers' keys stand for, where a key is stored."""
    callers, keys = ({each[position] for each in named} for position in (0, 1))
    found = session.connection().execute(_keys(), {"callers": sorted(callers), "keys": sorted(keys)})
    wanted = set(named)
    return {(caller, key): digest for caller, key, digest in found if (caller, key) in wanted}


def runs_by_digest(session: Session, digests: Collection[str]) -> list[tuple[str, BenchmarkTable]]:
    """Runs of the uploads with these digests, in the order of each file."""
    wanted = (
        select(BenchmarkUploadTable.digest, BenchmarkTable)
        .join(BenchmarkUploadTable, col(BenchmarkUploadTable.id) == col(BenchmarkTable.upload_id))
        .where(col(BenchmarkUploadTable.digest).in_(digests))
        .order_by(col(BenchmarkTable.upload_id), col(BenchmarkTable.position))
    )
    return [(digest, run) for digest, run in session.exec(wanted).all()]


def benchmark_by_id(session: Session, benchmark_id: str) -> BenchmarkTable | None:
    return session.get(BenchmarkTable, benchmark_id)


def benchmark_for_update(session: Session, benchmark_id: str) -> BenchmarkTable | None:
    """The run, locked until the transaction ends, so that two decisions about it come one after the other."""
    wanted = select(BenchmarkTable).where(BenchmarkTable.id == benchmark_id).with_for_update()
    return session.exec(wanted).one_or_none()


def upload_by_id(session: Session, upload_id: str) -> BenchmarkUploadTable:
    return session.get_one(BenchmarkUploadTable, upload_id)


def events_of(session: Session, benchmark_ids: Sequence[str]) -> dict[str, list[BenchmarkEventTable]]:
    """Events by run, oldest first. Ids of events are made in order of time."""
    wanted = (
        select(BenchmarkEventTable)
        .where(col(BenchmarkEventTable.benchmark_id).in_(benchmark_ids))
        .order_by(col(BenchmarkEventTable.id))
    )
    found: dict[str, list[BenchmarkEventTable]] = {}
    for event in session.exec(wanted).all():
        found.setdefault(event.benchmark_id, []).append(event)
    return found


def current_status(run: BenchmarkTable, events: Sequence[BenchmarkEventTable]) -> str:
    """The status after the last event; as given at intake when there is none."""
    return STATUS_AFTER[events[-1].action] if events else run.status


def list_benchmarks(
    session: Session,
    *,
    after: str | None,
    limit: int,
    status: str | None = None,
    device: str | None = None,
    llm: str | None = None,
    engine: str | None = None,
    tool: str | None = None,
) -> Listed[BenchmarkTable]:
    """Runs in order of arrival. ``status`` is the current one."""
    wanted = select(BenchmarkTable)
    for column, value in (
        (BenchmarkTable.device_id, device),
        (BenchmarkTable.llm_id, llm),
        (BenchmarkTable.engine, engine),
        (BenchmarkTable.tool, tool),
    ):
        if value is not None:
            wanted = wanted.where(column == value)
    if status is not None:
        last = select(func.max(BenchmarkEventTable.id)).group_by(BenchmarkEventTable.benchmark_id)
        actions = [action for action, result in STATUS_AFTER.items() if result == status]
        decided = select(BenchmarkEventTable.benchmark_id).where(
            col(BenchmarkEventTable.id).in_(last), col(BenchmarkEventTable.action).in_(actions)
        )
        undecided = col(BenchmarkTable.id).not_in(select(BenchmarkEventTable.benchmark_id)) & (
            col(BenchmarkTable.status) == status
        )
        wanted = wanted.where(undecided | col(BenchmarkTable.id).in_(decided))
    return listed(session, wanted, BenchmarkTable.id, limit=limit, after=after)


def accepted_benchmarks(
    session: Session, *, device: str | None = None, engine: str | None = None
) -> list[BenchmarkTable]:
    """Every run whose current status is accepted, oldest first: what corrections may be fitted to."""
    return list_benchmarks(session, after=None, limit=1_000_000, status="accepted", device=device, engine=engine).rows
