"""Kill the agent with SIGKILL while it uploads its spool, again and again, and count what was lost or doubled.

    python -m tests.hostile.agent_kills --url sqlite:////tmp/agents.sqlite --kills 50

The database is migrated and seeded. Lost: a spooled result that is not stored in the end. Doubled: one stored twice.
"""

import argparse
import copy
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from sqlalchemy import text

from service.agent.spool import Spool
from service.database import Database
from tests.bench.kill_storm import RUN, _notes
from tests.bench.server_process import ServerProcess
from tests.hostile.corpus import prepared

AGENT = "import sys; from service.agent.cli import main; sys.exit(main(sys.argv[1:]))"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--results-a-kill", type=int, default=20)
    options = parser.parse_args()
    prepared(options.url)
    draw = random.Random(1)
    tag = f"agent kills {time.time_ns():x}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spool = Spool(folder / "spool")
        server = ServerProcess(options.url, folder / "log")
        server.start()
        upload = [sys.executable, "-c", AGENT, "upload", "--url", server.address, "--spool", str(folder / "spool")]
        spooled = 0
        try:
            for _ in range(options.kills):
                for _ in range(options.results_a_kill):
                    run = copy.deepcopy(RUN)
                    run["context"]["notes"] = f"{tag} {spooled}"
                    spool.add("/v1/benchmarks", run)
                    spooled += 1
                agent = subprocess.Popen(upload, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.uniform(0.5, 2.5))
                agent.kill()
                agent.wait()
            code = subprocess.run(upload, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        finally:
            server.stop()
    database = Database(options.url)
    with database.reading() as session:
        rows = session.connection().execute(text("SELECT document FROM benchmark")).scalars().all()
    database.close()
    stored = Counter(notes for notes in map(_notes, rows) if notes.startswith(tag))
    doubled = sum(count > 1 for count in stored.values())
    print(
        f"{options.kills} kills, {spooled} results spooled, {len(stored)} stored: lost {spooled - len(stored)}, doubled {doubled}"
    )
    raise SystemExit(bool(spooled - len(stored) or doubled or code not in (0, 1)))


if __name__ == "__main__":
    main()
