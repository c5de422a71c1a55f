"""Read and advance the edition."""

import datetime as dt
import hashlib
import json
from typing import Any

from sqlmodel import Session, select

from service.catalog_edition.tables import EditionTable
from service.problems import UnavailableError

NOT_SEEDED = "the catalog is empty; run `clusterwright seed`"


def current_edition(session: Session) -> EditionTable | None:
    return session.exec(select(EditionTable)).one_or_none()


def require_edition(session: Session) -> EditionTable:
    edition = current_edition(session)
    if edition is None:
        raise UnavailableError(NOT_SEEDED)
    return edition


def record_seeding(session: Session, seeded_digest: str, now: dt.datetime) -> None:
    """Note that the files with this digest were seeded. A fresh database takes the files' digest as its own."""
    edition = session.exec(select(EditionTable).with_for_update()).one_or_none()
    if edition is None:
        session.add(EditionTable(revision=1, digest=seeded_digest, seeded_digest=seeded_digest, changed_at=now))
        return
    untouched = edition.digest == edition.seeded_digest
    edition.digest = seeded_digest if untouched else _chain(edition.digest, "edition", seeded_digest)
    edition.seeded_digest = seeded_digest
    edition.revision += 1
    edition.changed_at = now


def record_change(session: Session, kind: str, fact: dict[str, Any], now: dt.datetime) -> None:
    """Note one added fact, in the transaction that adds it. Locks the row, so that writers queue up."""
    edition = session.exec(select(EditionTable).with_for_update()).one_or_none()
    if edition is None:
        raise UnavailableError(NOT_SEEDED)
    edition.digest = _chain(edition.digest, kind, json.dumps(fact, sort_keys=True, default=str))
    edition.revision += 1
    edition.changed_at = now


def _chain(digest: str, kind: str, fact: str) -> str:
    return hashlib.sha256(f"{digest}\n{kind}\n{fact}".encode()).hexdigest()
