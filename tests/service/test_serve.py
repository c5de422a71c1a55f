"""The real command in a real process: start, SIGTERM, refusal of open doors."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.service.bodies import RECOMMENDATION
from tests.service.command import ours_alone, run

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "import sys; from service.cli import main; sys.exit(main())"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(url: str) -> dict[str, str]:
    """Of a command of its own database, on a terminal of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CLUSTERWRIGHT_") and k not in ("COLUMNS", "LINES")}
    return kept | ours_alone(url) | {"PYTHONPATH": str(ROOT)}


@pytest.fixture
def server(seeded_url: str) -> Iterator[tuple["subprocess.Popen[str]", httpx.Client, float]]:
    port = free_port()
    started = time.monotonic()
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", str(port)], env=environment(seeded_url), cwd=ROOT, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        while True:
            try:
                if client.get("/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            assert time.monotonic() - started < 30, "not ready"
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        yield process, client, time.monotonic() - started
    if process.poll() is None:
        process.kill()
    process.wait()


class TestServe:
    def test_ends_cleanly_on_sigterm(self, server: tuple["subprocess.Popen[str]", httpx.Client, float]) -> None:
        process, client, ready_after_s = server
        assert ready_after_s < 60  # the bar of 3 s is measured by the bench, on an idle machine
        assert client.get("/v1/devices/h200-sxm").status_code == 200
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGTERM)
        assert "Traceback" not in log

    def test_ctrl_c_ends_it_too(self, server: tuple["subprocess.Popen[str]", httpx.Client, float]) -> None:
        process, _, _ = server
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
        assert "Traceback" not in log

    def test_refuses_an_open_door_without_tokens(self, seeded_url: str) -> None:
        done = subprocess.run(
            [*COMMAND, "serve", "--host", "0.0.0.0", "--port", str(free_port())], env=environment(seeded_url), cwd=ROOT,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "refusing to listen on 0.0.0.0" in done.stderr


class TestCommands:
    def test_migrate_and_seed_make_a_database(self, empty_url: str) -> None:
        assert run("migrate", url=empty_url).returncode == 0
        assert run("seed", url=empty_url).returncode == 0
        listed = run("devices", "--json", "--vendor", "AMD", url=empty_url)
        assert listed.returncode == 0, listed.stderr
        assert "mi300x" in {d["id"] for d in json.loads(listed.stdout)}

    def test_a_job_waits_for_the_service(self, seeded_url: str, tmp_path: Path) -> None:
        asked = tmp_path / "asked.json"
        asked.write_text(json.dumps(RECOMMENDATION))
        queued = run("recommend", str(asked), "--async", url=seeded_url)
        assert queued.returncode == 0, queued.stderr
        job_id = queued.stdout.strip()
        assert job_id in run("jobs", "--json", "--state", "queued", url=seeded_url).stdout
        assert json.loads(run("jobs", job_id, "--cancel", url=seeded_url).stdout)["state"] == "cancelled"

    def test_a_worker_needs_postgresql(self, seeded_url: str, empty_url: str) -> None:
        done = run("worker", url=seeded_url if seeded_url.startswith("sqlite") else empty_url)
        assert done.returncode in (2, 3)
        assert "postgresql+psycopg://" in done.stderr or "clusterwright migrate" in done.stderr

    def test_without_a_database_the_message_helps(self, empty_url: str) -> None:
        done = run("devices", url=empty_url)
        assert done.returncode == 3
        assert "clusterwright migrate" in done.stderr
        assert "Traceback" not in done.stderr

    def test_bad_input_has_its_own_exit_code(self, seeded_url: str, tmp_path: Path) -> None:
        bad = tmp_path / "bad.json"
        bad.write_text('{"workloads": []}')
        done = run("recommend", str(bad), url=seeded_url)
        assert done.returncode == 2
        assert "/workloads" in done.stderr
        assert run("recommend", str(tmp_path / "none.json"), url=seeded_url).returncode == 2

    def test_an_unreachable_service_has_its_own(self, seeded_url: str) -> None:
        assert run("devices", "--url", f"http://127.0.0.1:{free_port()}", url=seeded_url).returncode == 3

    def test_a_misspelt_setting_is_refused(self, seeded_url: str) -> None:
        wrong = environment(seeded_url) | {"CLUSTERWRIGHT_DATABASE_ULR": "sqlite:///x.sqlite"}
        done = subprocess.run([*COMMAND, "devices"], env=wrong, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "CLUSTERWRIGHT_DATABASE_ULR" in done.stderr

    def test_a_token_is_shown_once(self, seeded_url: str) -> None:
        made = run("token", "create", "laptop", "--role", "reader", url=seeded_url)
        secret = made.stdout.strip()
        assert secret.startswith("cw_")
        token_id = next(word for word in made.stderr.split() if word.startswith("tok_"))
        listed = run("token", "list", url=seeded_url)
        assert secret not in listed.stdout
        assert run("token", "revoke", token_id, url=seeded_url).returncode == 0
        assert run("token", "revoke", "tok_none", url=seeded_url).returncode == 2

    def test_help_documents_exit_codes(self, seeded_url: str) -> None:
        assert "exit codes:" in run("--help", url=seeded_url).stdout
