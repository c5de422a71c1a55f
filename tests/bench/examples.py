"""Every example's answer as the command line shows it: the figures of docs/examples.md.

    python -m tests.bench.examples [NAME ...] [--time-limit 120]

On a database of its own; the machines in ``examples/offers`` join it for the examples that are about them.
"""

import argparse
import json
import tempfile
from pathlib import Path

from fastapi.testclient import TestClient
from rich.console import Console

from catalog.read import read_catalog
from service.cli.plan_view import show_recommendation
from service.clock import system_clock
from service.database import Database
from service.main import create_app
from service.migrate import migrate
from service.seeding import seed
from service.settings import Settings

EXAMPLES = Path("examples")
WIDTH = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples without .json; all of them unless named")
    parser.add_argument("--time-limit", type=float, default=120.0, metavar="SECONDS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/examples.sqlite"
        database = Database(url)
        migrate(database)
        with database.writing() as session:
            seed(session, read_catalog(), system_clock)
        database.close()
        app = create_app(Settings(database_url=url), system_clock)
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
            names = arguments.names or sorted(path.stem for path in EXAMPLES.glob("*.json"))
            for name in names:
                if not _is_own(name):
                    _show(client, name, arguments.time_limit)
            for own in sorted((EXAMPLES / "offers").glob("*.json")):
                client.post("/v1/offers", json=json.loads(own.read_text(encoding="utf-8"))).raise_for_status()
            for name in names:
                if _is_own(name):
                    _show(client, name, arguments.time_limit)


def _is_own(name: str) -> bool:
    return '"ours"' in (EXAMPLES / f"{name}.json").read_text(encoding="utf-8")


def _show(client: TestClient, name: str, time_limit_s: float) -> None:
    body = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    if "horizon" in body or isinstance(body.get("alternatives"), list):
        return  # a fleet over time or a comparison of costs: other commands show those
    answer = client.post(
        "/v1/recommendations", json=body | {"time_limit_s": time_limit_s}, headers={"Prefer": "wait=300"}
    )
    print(f"== examples/{name}.json")
    if answer.is_error:
        print(answer.text)
        return
    show_recommendation(answer.json(), Console(width=WIDTH), lambda offer: client.get(f"/v1/offers/{offer}").json())


if __name__ == "__main__":
    main()
