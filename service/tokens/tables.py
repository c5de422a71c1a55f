"""Bearer tokens. Only the SHA-256 of a token is stored: a token has 256 random bits, so a plain hash is enough."""

import datetime as dt

from sqlmodel import Field, SQLModel

from service.database import UtcInstant


class TokenTable(SQLModel, table=True):
    __tablename__ = "token"

    id: str = Field(primary_key=True, max_length=40)
    name: str = Field(max_length=120)
    role: str = Field(max_length=16)
    sha256: str = Field(max_length=64, unique=True)
    created_at: dt.datetime = Field(sa_type=UtcInstant)
    revoked_at: dt.datetime | None = Field(default=None, sa_type=UtcInstant)
