"""The service as a process of its own, to be measured and killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

START = "from service.cli import main; raise SystemExit(main())"


class ServerProcess:
    """``clusterwright serve`` on a free port of loopback, against the database at ``url``."""

    def __init__(self, url: str, log: Path, log_level: str = "warning", **settings: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        # Modules are compiled once, as they are where the service is installed.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.environment = {k: v for k, v in inherited.items() if not k.startswith("CLUSTERWRIGHT_")} | {
            "CLUSTERWRIGHT_DATABASE_URL": url,
            "CLUSTERWRIGHT_RATE_LIMIT_REQUESTS_PER_S": "100000",
            "CLUSTERWRIGHT_RATE_LIMIT_BURST": "1000000",
            "CLUSTERWRIGHT_LOG_LEVEL": log_level,
            **settings,
        }
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, asked: str = "/readyz") -> None:
        """Start and wait until it answers 200 at the address that is asked."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", START, "serve", "--port", str(self.port)],
                env=self.environment, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the service stopped: {self._log.read_text()[-2000:]}")
            try:
                if httpx.get(f"{self.address}{asked}", timeout=2).status_code == 200:
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"the service did not become ready: {self._log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, number)
            self._process.wait(30)
        self._process = None
