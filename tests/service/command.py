"""``clusterwright`` as tests call it: in this process, where what was simulated before is known; test_serve starts the real one."""

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest

from service.cli.main import main

Done = subprocess.CompletedProcess[str]


def ours_alone(url: str) -> dict[str, str]:
    """Settings of a command that asks its own database, although somebody's service may run on the default port."""
    return {"CLUSTERWRIGHT_DATABASE_URL": url, "CLUSTERWRIGHT_URL": "local", "CLUSTERWRIGHT_SHUTDOWN_GRACE_S": "1"}


def run(*arguments: str, url: str) -> Done:
    """What a command said and how it ended, asked of the database at ``url``."""
    said, complained = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as environment, redirect_stdout(said), redirect_stderr(complained):
        for name, value in ours_alone(url).items():
            environment.setenv(name, value)
        try:
            code = main(arguments)
        except SystemExit as ended:  # of argparse
            code = int(ended.code or 0)
    return Done(arguments, code, said.getvalue(), complained.getvalue())
