"""``clusterwright`` as tests call it: in this process, where what was simulated before is known; test_serve starts the real one."""

import io
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import pytest

from service.cli.main import main

Done = subprocess.CompletedProcess[str]


def run(*arguments: str, url: str) -> Done:
    """What a command said and how it ended, asked of the database at ``url``, whoever serves on the default port."""
    said, complained = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as environment, redirect_stdout(said), redirect_stderr(complained):
        environment.setenv("CLUSTERWRIGHT_DATABASE_URL", url)
        environment.setenv("CLUSTERWRIGHT_URL", "local")
        environment.setenv("CLUSTERWRIGHT_SHUTDOWN_GRACE_S", "1")
        try:
            code = main(arguments)
        except SystemExit as ended:  # of argparse
            code = int(ended.code or 0)
    return Done(arguments, code, said.getvalue(), complained.getvalue())
