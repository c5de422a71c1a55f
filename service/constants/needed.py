"""Which constants this version computes with that the database does not have: it was seeded by a version that knew fewer.

Not the catalog's digest is compared. Older prices and other values are an operator's choice, and versions that run beside one another
over one database would take each other out of service; a constant that no row gives is none, since every plan reads them all.
"""

from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from catalog.read import read_constants
from catalog.rows import ConstantRow
from service.constants.tables import ConstantTable
from service.devices.tables import DeviceTable
from service.llms.tables import LlmTable
from service.problems import UnavailableError

MOST_NAMED = 5
ANY = "*"


class Reach(NamedTuple):
    """To what a row of a constant applies (``*``: everything). llms: a blank between them."""

    name: str
    family: str
    device: str
    engine: str
    llms: str


def require_constants(session: Session) -> None:
    """Raises UnavailableError naming the constants that this version needs and the database lacks."""
    missing = {row.name: None for row in lacking(session, needed_constants())}
    if not missing:
        return
    more = len(missing) - MOST_NAMED
    named = ", ".join(list(missing)[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    raise UnavailableError(
        f"the catalog in the database lacks constants that this version computes with ({named}), as one seeded by another version does; "
        "run `clusterwright seed`, which keeps offers, prices, models and runs that were added",
        retry_after_s=60,
    )


def lacking(session: Session, wanted: Iterable[ConstantRow]) -> list[ConstantRow]:
    """The rows that apply to something stored, where no stored row of the same name applies to all that they do: what is missing
    has no value at all there, not merely a less specific one."""
    stored: dict[str, list[Reach]] = {}
    columns = (getattr(ConstantTable, name) for name in Reach._fields)
    for values in session.execute(sql_select(*columns)):
        stored.setdefault(values[0], []).append(Reach(*values))
    uncovered = [row for row in wanted if not any(covers(one, _reach(row)) for one in stored.get(row.name, ()))]
    if not uncovered:
        return []
    devices = {row.id: row.family for row in session.execute(select(DeviceTable.id, DeviceTable.family))}
    llms = set(session.exec(select(col(LlmTable.id))).all())
    return [
        row
        for row in uncovered
        if (row.device == ANY or row.device in devices)
        and (row.family == ANY or row.family in devices.values())
        and (not row.llms or llms.intersection(row.llms))
    ]


@cache
def needed_constants() -> tuple[ConstantRow, ...]:
    """Those of the files that came with this version."""
    return read_constants()


def covers(stored: Reach, wanted: Reach) -> bool:
    """Does the stored row apply to everything that the wanted one does?

    >>> wanted = Reach("link_efficiency", "hopper", "*", "vllm", "*")
    >>> covers(Reach("link_efficiency", "*", "*", "vllm", "*"), wanted), covers(wanted, Reach("link_efficiency", "*", "*", "vllm", "*"))
    (True, False)
    """
    places = zip(stored[1:4], wanted[1:4], strict=True)
    named = stored.llms == ANY or (wanted.llms != ANY and set(wanted.llms.split()) <= set(stored.llms.split()))
    return stored.name == wanted.name and named and all(have in (ANY, want) for have, want in places)


def _reach(row: ConstantRow) -> Reach:
    return Reach(row.name, row.family, row.device, row.engine, row.of_llms)
