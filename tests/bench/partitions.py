"""What split devices save, and what looking for them costs: ``python -m tests.bench.partitions [FILE…]``.

Each request is answered with whole devices only, and with devices that may be split, by an application on a fresh database.
Processor time is of this process, solver included; the first answer of either kind, which builds the search space, is
counted apart.
"""

import json
import sys
import tempfile
import time
from pathlib import Path

from fastapi.testclient import TestClient
from rich.console import Console

from service.main import create_app
from service.settings import Settings
from tests.bench.planner import seeded_database

ROOT = Path(__file__).resolve().parents[2]
show = Console(width=200, highlight=False).print
EXAMPLES = (ROOT / "examples" / "small-models.json", ROOT / "examples" / "chat-70b.json")


def main() -> None:
    files = [Path(name) for name in sys.argv[1:]] or EXAMPLES
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=seeded_database(Path(folder) / "bench.sqlite")))
        with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000)) as client:
            for file in files:
                body = json.loads(file.read_text())
                for allowed in (False, True):
                    asked = body | {"limits": body.get("limits", {}) | {"partitions": allowed}}
                    spent = []
                    for time_limit_s in (10.0, 9.5):  # another request, so that nothing kept answers it
                        began = time.process_time()
                        answer = client.post("/v1/recommendations", json=asked | {"time_limit_s": time_limit_s}).json()
                        spent.append(time.process_time() - began)
                    solve = answer["solve"]
                    show(
                        f"{file.stem}, {'devices may be split' if allowed else 'whole devices'}:"
                        f" ${float(solve['usd_per_hour']):.2f}/h ({solve['status']}), {solve['candidates']:,} candidates,"
                        f" {spent[1]:.2f} s of processor time, {spent[0]:.2f} s the first time"
                    )
                    for line in answer["plan"]:
                        part = line["partition"]
                        where = f" on {part['profile']}, {part['instances_per_device']} a device" if part else ""
                        show(f"  {line['workload']}: {line['replicas']} replicas{where}, {line['offer']}")


if __name__ == "__main__":
    main()
