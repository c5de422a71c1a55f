"""Can this version answer over this database? Asked by GET /readyz, and said in the log where a service or a worker starts."""

import logging
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from service.catalog_release.queries import require_release
from service.catalog_release.tables import CatalogReleaseTable
from service.constants.needed import require_constants
from service.database import Database
from service.migrate import newest_revision, stored_revision
from service.problem_handlers import DAMAGED, DAMAGED_ADVICE
from service.problems import UnavailableError

log = logging.getLogger("clusterwright")


class Ready(NamedTuple):
    """schema: revision of the tables. release: of the catalog in them."""

    schema: str
    release: CatalogReleaseTable


def require_ready(database: Database) -> Ready:
    """Raises UnavailableError saying what is missing and what mends it."""
    try:
        stored = stored_revision(database)
        if stored != newest_revision():
            raise UnavailableError(
                f"the database is at schema {stored or 'none'}, this version needs {newest_revision()}; "
                "run `clusterwright migrate`"
            )
        with database.reading() as session:
            release = require_release(session)
            require_constants(session)
            return Ready(stored, release)
    except SQLAlchemyError as error:
        if DAMAGED.search(str(error)):
            raise UnavailableError(DAMAGED_ADVICE, retry_after_s=60) from error
        raise UnavailableError(f"the database cannot be used: {type(error).__name__}") from error


def log_unreadiness(database: Database) -> None:
    """A line where requests will be refused: whoever starts the process sees it before the first of them."""
    try:
        require_ready(database)
    except UnavailableError as problem:
        log.warning("not ready: %s", problem.detail)
