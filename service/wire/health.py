"""GET /healthz and /readyz."""

from typing import Literal

from service.wire.quantities import Answer


class LiveOut(Answer):
    status: Literal["alive"]
    version: str


class ReadyOut(Answer):
    status: Literal["ready"]
    version: str
    schema_revision: str
    catalog_digest: str
    catalog_revision: int
