"""Settings, read from the environment with the prefix ``CLUSTERWRIGHT_``. Each is described in docs/settings.md."""

import ipaddress
import os
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "CLUSTERWRIGHT_"
DEFAULT_DATABASE_URL = "sqlite:///clusterwright.sqlite"
IN_THIS_PROCESS = "local"
"""Instead of the service's address: the command asks its own process, whatever service may run."""
TEST_ONLY = frozenset({"CLUSTERWRIGHT_TEST_DATABASE_URL"})
"""Read by the test suite, not by the service."""
AGENT_ONLY = frozenset({"CLUSTERWRIGHT_SPOOL"})
"""Read by the worker agent, not by the service."""


class SettingsError(Exception):
    """A setting has a value that the service refuses to run with."""


class Settings(BaseSettings):
    """What an operator decides. An unknown or unsafe value stops the process before it serves anything."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    home: str | None = None
    """Folder of the default database, so that commands of any folder mean the same one; unset: the working directory."""
    database_url: str = DEFAULT_DATABASE_URL
    """``sqlite:///FILE`` (default: a file in the working directory) or ``postgresql+psycopg://…``."""
    database_pool_size: int = Field(default=10, ge=1, le=200)
    """Connections kept open; as many again may be opened under load."""
    database_lock_timeout_s: float = Field(default=10.0, gt=0, le=600)
    """How long a statement waits for a lock before the request is answered 503."""
    body_limit_bytes: int = Field(default=2_000_000, ge=10_000, le=100_000_000)
    """Largest request body."""
    import_body_limit_bytes: int = Field(default=16_000_000, ge=10_000, le=1_000_000_000)
    """Largest body of the import routes, which take whole files of other tools, of fleets and of traces."""
    head_limit_bytes: int = Field(default=32_768, ge=1_000, le=1_000_000)
    """Largest request line with headers; more is answered 431."""
    head_timeout_s: float = Field(default=10.0, gt=0, le=600)
    """Request line and headers must arrive within so long (408)."""
    body_timeout_s: float = Field(default=60.0, gt=0, le=3_600)
    """A body must arrive within so long (408)."""
    connections: int = Field(default=1_000, ge=1, le=100_000)
    """Connections open at the same time; the next one is answered 503 and closed."""
    import_time_limit_s: float = Field(default=5.0, gt=0, le=600)
    """How long reading one imported file may take; it has a process of its own, which is ended then."""
    import_memory_limit_bytes: int = Field(default=100_000_000, ge=20_000_000, le=10_000_000_000)
    """Memory that reading one imported file may take."""
    rate_limit_requests_per_s: float = Field(default=500.0, gt=0, le=1_000_000)
    """Sustained requests per second of one token, or of one address without a token."""
    rate_limit_burst: int = Field(default=1_000, ge=1, le=10_000_000)
    """Requests that may come at once before the rate limit applies."""
    trusted_proxies: str | None = None
    """Addresses or networks, separated by commas, whose ``X-Forwarded-For`` and ``-Proto`` are believed; none unless set."""
    solver_workers: int = Field(default=2, ge=1, le=64)
    """Plans and estimates computed at the same time."""
    solver_queue: int = Field(default=32, ge=0, le=10_000)
    """Requests that may wait for a solver worker; the next one is answered 503 with Retry-After."""
    synchronous_time_limit_s: float = Field(default=10.0, ge=0, le=300)
    """A request that states a longer time limit is answered 202 and becomes a job."""
    estimate_time_limit_s: float = Field(default=10.0, gt=0, le=600)
    """How long the estimates of one request may take; the answer to more says how many were done."""
    synchronous_workloads: int = Field(default=10, ge=0, le=50)
    """A request of more workloads becomes a job; each of their traffic classes counts as one."""
    jobs_in_service: int | None = Field(default=None, ge=0, le=64)
    """Jobs the service computes itself at the same time; unset: one on SQLite, none on PostgreSQL, where workers do."""
    job_lease_s: float = Field(default=15.0, ge=1, le=3600)
    """A worker that is not heard of for so long has lost its job to another."""
    job_most_attempts: int = Field(default=3, ge=1, le=100)
    """A job whose workers died so often has failed."""
    job_expiry_s: float = Field(default=86_400.0, gt=0, le=31_536_000)
    """A job that no worker takes for so long expires."""
    job_retention_days: float = Field(default=30.0, gt=0, le=3650)
    """Finished jobs are forgotten after so long; their results stay."""
    job_queue: int = Field(default=1_000, ge=1, le=1_000_000)
    """Unfinished jobs of all callers; the next one is answered 429."""
    job_queue_per_caller: int = Field(default=100, ge=1, le=1_000_000)
    """Unfinished jobs of one token, or of one address without a token; the next one is answered 429."""
    shutdown_grace_s: float = Field(default=8.0, ge=0, le=600)
    """After SIGTERM, how long running requests may take before they are answered 503."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    url: str | None = None
    """Command line only: address of the service to talk to, or ``local`` for this process itself."""
    token: SecretStr | None = None
    """Command line only: bearer token to send."""

    @field_validator("database_url")
    @classmethod
    def _database_is_supported(cls, value: str) -> str:
        if value == DEFAULT_DATABASE_URL:
            return value
        from sqlalchemy.engine import make_url  # a command that asks a running service starts sooner without
        from sqlalchemy.exc import ArgumentError

        try:
            url = make_url(value)
        except ArgumentError:
            raise ValueError("not a database URL; for example sqlite:///clusterwright.sqlite") from None
        if url.drivername == "sqlite":
            if not url.database or url.database == ":memory:" or "mode=memory" in url.database:
                raise ValueError("an in-memory database forgets everything; name a file: sqlite:///FILE")
        elif url.drivername != "postgresql+psycopg":
            raise ValueError(f"{url.drivername} is not supported; use sqlite:/// or postgresql+psycopg://")
        return value

    @model_validator(mode="before")
    @classmethod
    def _database_is_at_home(cls, stated: dict[str, Any]) -> dict[str, Any]:
        if stated.get("home") is None:
            return stated
        home = Path(str(stated["home"])).expanduser()
        if not home.is_dir():
            raise ValueError(f"{PREFIX}HOME: there is no folder {str(home)!r}")
        return {"database_url": f"sqlite:///{home.resolve() / 'clusterwright.sqlite'}"} | stated

    @field_validator("trusted_proxies")
    @classmethod
    def _proxies_are_networks(cls, value: str | None) -> str | None:
        for name in filter(None, (part.strip() for part in (value or "").split(","))):
            try:
                ipaddress.ip_network(name)
            except ValueError:
                raise ValueError(f"{name!r} is neither an address nor a network such as 10.0.0.0/8") from None
        return value

    @field_validator("url", "token", mode="before")
    @classmethod
    def _empty_is_unset(cls, value: Any) -> Any:
        """As a shell writes a variable that it does not set for one command."""
        return None if value == "" else value

    @field_validator("url")
    @classmethod
    def _url_is_http(cls, value: str | None) -> str | None:
        if value not in (None, IN_THIS_PROCESS) and not value.startswith(("http://", "https://")):
            raise ValueError(f"must start with http:// or https://, or be {IN_THIS_PROCESS}")
        return value

    @model_validator(mode="after")
    def _limits_agree(self) -> "Settings":
        if self.import_body_limit_bytes < self.body_limit_bytes:
            raise ValueError("import_body_limit_bytes is below body_limit_bytes")
        return self


def read_settings() -> Settings:
    """The environment's settings; raises SettingsError with one line for each bad value, never showing a secret."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | TEST_ONLY | AGENT_ONLY
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        raise SettingsError(f"unknown settings: {', '.join(unknown)}; known: {', '.join(sorted(known - TEST_ONLY))}")
    try:
        return Settings()
    except ValidationError as bad:
        lines = [
            f"{PREFIX}{'_'.join(map(str, e['loc'])).upper()}: {e['msg']}"
            if e["loc"]
            else e["msg"].removeprefix("Value error, ")
            for e in bad.errors()
        ]
        raise SettingsError("; ".join(lines)) from None
