"""How long rent, buy and an API of a stored plan take as one command: ``python -m tests.bench.tco_command``.

Against a service in a process of its own, as people use it: the command ``clusterwright tco ID --buy --api MODEL`` from its start to its
end, the request that it makes, and its workbook. ``--alone`` times the command where no service runs, which it then computes itself.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from service.cli.main import build_parser
from service.cli.tco import URL, request_of
from tests.bench.cost_service import fill
from tests.bench.server_process import START, ServerProcess

COMMAND = ["tco", "rec_plan", "--buy", "--api", "novita/meta-llama/llama-3.3-70b-instruct"]
RUNS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alone", action="store_true")
    alone = parser.parse_args().alone
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/costs.sqlite"
        fill(url)
        server = ServerProcess(url, Path(folder) / "log")
        if not alone:
            server.start()
        try:
            _measure(server, alone)
        finally:
            server.stop()


def _measure(server: ServerProcess, alone: bool) -> None:
    print("clusterwright " + " ".join(COMMAND))
    environment = dict(server.environment)
    if not alone:  # as on a colleague's machine, which has no database
        del environment["CLUSTERWRIGHT_DATABASE_URL"]
        environment["CLUSTERWRIGHT_URL"] = server.address

    def command() -> None:
        subprocess.run(
            [sys.executable, "-c", START, *COMMAND], env=environment, check=True, stdout=subprocess.DEVNULL
        )  # fmt: skip

    _print("the command, from start to end", command)
    if alone:
        return
    asked = request_of(build_parser().parse_args(COMMAND))
    with httpx.Client(base_url=server.address, timeout=30) as client:
        link = client.post(URL, json=asked).raise_for_status().json()["link"]
        _print("its request", lambda: client.post(URL, json=asked).raise_for_status())
        _print("its workbook", lambda: client.get(link, params={"format": "xlsx"}).raise_for_status())


def _print(what: str, work: Callable[[], object]) -> None:
    work()
    seconds: list[float] = []
    before = os.times()
    for _ in range(RUNS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    after = os.times()
    spent = sum(after[:4]) - sum(before[:4])
    print(
        f"{what}: {1e3 * statistics.median(seconds):.0f} ms at the median of {RUNS}, "
        f"{1e3 * min(seconds):.0f} to {1e3 * max(seconds):.0f}; "
        f"of it {1e3 * spent / RUNS:.0f} ms of processor time here"
    )


if __name__ == "__main__":
    main()
