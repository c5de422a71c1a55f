"""Do plans equal brute force, and does the checker accept them? ``python -m tests.bench.brute_force_verdicts``; ALL_SEEDS=1: all."""

import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.solver.fleet import test_brute_force, test_properties

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Runs the tests that compare; their number of instances is their own."""
    table, failed = Table("what", "verdict"), False
    tests = (
        ("MILP equals brute force", test_brute_force.INSTANCES, "test_brute_force.py::test_highs_pruned_equals_enumeration"),
        (
            "plans that verify accepts",
            test_properties.INSTANCES,
            "test_properties.py::test_verify_accepts_every_plan_and_rejects_its_mutations",
        ),
    )  # fmt: skip
    for what, instances, test in tests:
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", f"tests/solver/fleet/{test}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        failed |= ran.returncode != 0
        table.add_row(what, f"all of {instances}" if ran.returncode == 0 else f"FAILED: {ran.stdout.splitlines()[-1]}")
    Console().print(table)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
