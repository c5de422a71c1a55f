"""Where the time of recommendations goes: ``python -m tests.bench.time_spent``.

Processor time of whole answers by a profile, by what is asked and by kind of work. Parts of the second overlap those of the first.
"""

import argparse
import cProfile
import pstats
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from service.recommendations.spaces import SpaceCache
from solver.recommend.recommend import recommend
from tests.bench.planner import planning_of, seeded_database
from tests.bench.workloads import requests

WARM = 5
"""Requests that fill spaces and step tables first."""
ASKED = {
    "the plan": ("recommend.py", "solve_request"), "buying policy": ("sourcing.py", "sourcing_changes"),
    "8-bit formats": ("freed.py", "lower_precision"), "what limits it": ("binding.py", "binding_limits"),
    "without each device": ("alternatives.py", "without_each_device"), "confidence": ("alternatives.py", "confidence_premium"),
}  # fmt: skip
WORK = {
    "simulation": ("runs.py", "_simulated"), "… its compiled loop": ("stepping.py", "run"),
    "fleet problems": ("solve.py", "solve_fleet"), "… made smaller": ("reduce.py", "reduce_problem"),
    "… HiGHS": ("highs.py", "solve_with_highs"), "candidates and offers put together": ("assemble.py", "assemble"),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.time_spent", description=__doc__)
    parser.add_argument("--requests", type=int, default=9)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    spaces, profile = SpaceCache(), cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        for number, body in enumerate(requests(WARM + options.requests, 1, options.seed)):
            planning = planning_of(url, body, spaces)
            if number >= WARM:
                profile.enable()
            recommend(planning, spaces)
            profile.disable()
    found = pstats.Stats(profile).get_stats_profile().func_profiles  # by function, whatever its file is
    spent = {(Path(one.file_name).name, name.partition("(")[0]): one.cumtime for name, one in found.items()}
    whole = spent["recommend.py", "recommend"]
    table = Table(f"of {options.requests} answers", "share")
    for parts in (ASKED, WORK):
        for what, where in parts.items():
            table.add_row(what, f"{spent.get(where, 0.0) / whole:.0%}")
        table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
