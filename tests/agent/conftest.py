"""A real service and a real engine, each on a socket of its own."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.server_process import ServerProcess


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, seeded_template: Path) -> Iterator[ServerProcess]:
    """A service process on a seeded database."""
    folder = tmp_path_factory.mktemp("service")
    shutil.copy(seeded_template, folder / "seeded.sqlite")
    server = ServerProcess(f"sqlite:///{folder / 'seeded.sqlite'}", folder / "server.log")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """The address of an engine: first token after 20 ms, then one every 10 ms on each stream."""
    program = Path(__file__).parent / "local_engine.py"
    with subprocess.Popen([sys.executable, str(program), "--port", "0"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()
