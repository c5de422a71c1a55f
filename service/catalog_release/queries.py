"""Read and advance the catalog release."""

import datetime as dt
import hashlib
import json
from typing import Any

from sqlmodel import Session, select

from service.catalog_release.tables import CatalogReleaseTable
from service.problems import UnavailableError

NOT_SEEDED = "the catalog is empty; run `clusterwright seed`"


def current_release(session: Session) -> CatalogReleaseTable | None:
    return session.exec(select(CatalogReleaseTable)).one_or_none()


def require_release(session: Session) -> CatalogReleaseTable:
    release = current_release(session)
    if release is None:
        raise UnavailableError(NOT_SEEDED)
    return release


def record_seeding(session: Session, seeded_digest: str, now: dt.datetime) -> None:
    """Note that the files with this digest were seeded. A fresh database takes the files' digest as its own."""
    release = session.exec(select(CatalogReleaseTable).with_for_update()).one_or_none()
    if release is None:
        session.add(CatalogReleaseTable(revision=1, digest=seeded_digest, seeded_digest=seeded_digest, changed_at=now))
        return
    untouched = release.digest == release.seeded_digest
    release.digest = seeded_digest if untouched else _chain(release.digest, "catalog", seeded_digest)
    release.seeded_digest = seeded_digest
    release.revision += 1
    release.changed_at = now


def record_change(session: Session, kind: str, fact: dict[str, Any], now: dt.datetime) -> None:
    """Note one added fact, in the transaction that adds it. Locks the row, so that writers queue up."""
    release = session.exec(select(CatalogReleaseTable).with_for_update()).one_or_none()
    if release is None:
        raise UnavailableError(NOT_SEEDED)
    release.digest = _chain(release.digest, kind, json.dumps(fact, sort_keys=True, default=str))
    release.revision += 1
    release.changed_at = now


def _chain(digest: str, kind: str, fact: str) -> str:
    return hashlib.sha256(f"{digest}\n{kind}\n{fact}".encode()).hexdigest()
