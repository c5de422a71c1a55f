"""What pools of their own save, and what looking for them costs: ``python -m tests.bench.pools [FILE…]``.

Each request is answered with replicas that do both only, and with either, by an application on a fresh database. Processor
time is of this process, solver included; the first answer, which builds the search space, is not counted.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from rich.console import Console

from service.main import create_app
from service.settings import Settings
from tests.bench.planner import seeded_database

ROOT = Path(__file__).resolve().parents[2]
show = Console(width=200, highlight=False).print
EXAMPLES = (ROOT / "examples" / "summaries-70b-aws.json", ROOT / "examples" / "chat-70b.json")


def with_roles(body: dict[str, Any], *roles: str) -> dict[str, Any]:
    return body | {"workloads": [workload | {"roles": list(roles)} for workload in body["workloads"]]}


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]] or EXAMPLES
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=seeded_database(Path(folder) / "bench.sqlite")))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
            for file in files:
                body = json.loads(file.read_text())
                client.post("/v1/recommendations", json=with_roles(body, "aggregated"))
                for roles in (("aggregated",), ("aggregated", "disaggregated")):
                    began = time.process_time()
                    answer = client.post("/v1/recommendations", json=with_roles(body, *roles)).json()
                    spent = time.process_time() - began
                    solve, pools = answer["solve"], answer["pools"] or {}
                    show(
                        f"{file.stem}, {' or '.join(roles)}: ${float(solve['usd_per_hour']):.2f}/h ({solve['status']}), "
                        f"{spent:.2f} s of processor time"
                    )
                    if pools:
                        show(f"  pools chosen: {pools['chosen']}, save {pools['saves_usd_per_hour']}, "
                              f"would cost {pools['extra_usd_per_hour']} more")  # fmt: skip
                    for line in answer["plan"]:
                        show(
                            f"  {line['role']}: {line['replicas']} replicas on {line['offer']}, ${line['usd_per_hour']}/h"
                        )


if __name__ == "__main__":
    main()
