"""What storing blocks to a disk costs steps, from the measured loads of sessions: ``python -m tests.bench.tier_costs``.

Of each load over a disk, ``tier_store_us`` with which the median request's TPOT is predicted. Who is evicted, and waits then, hangs on
milliseconds, so a load is replayed with think times a little apart, and what its replays say is averaged; means and waits are shown beside.
"""

from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.table import Table

from solver.engine.replayable import SessionTurns
from solver.engine.simulate import Schedule, simulate_sessions
from solver.step.tables import StepTables
from tests.bench.measured_sessions import MS_PER_S, Measured, measured_runs, recorded_turns

REPLAYS = 16
JITTER = 0.01
"""Standard deviation of think times over what was recorded."""
MOST_US = 8000.0


@dataclass(frozen=True)
class Load:
    """A measured load, ready to be replayed with any cost of storing."""

    measured: Measured
    tables: StepTables
    schedule: Schedule
    turns: SessionTurns
    prompts: np.ndarray
    outputs: np.ndarray
    arrivals_s: np.ndarray

    def predicted(self, store_us: float) -> dict[str, float]:
        """Means over replays: TTFT and TPOT in ms, of the mean request and of the median one, and the share of prompts found."""
        schedule = replace(self.schedule, tier_store_s=store_us * 1e-6)
        factors = self.measured.factors
        said = []
        for replay in range(REPLAYS):
            noise = np.random.default_rng(replay).standard_normal(len(self.turns.think_s))
            turns = replace(self.turns, think_s=self.turns.think_s * (1.0 + JITTER * noise))
            run = simulate_sessions(
                self.tables, schedule, self.prompts, self.outputs, turns, arrivals_s=self.arrivals_s, notes_gaps=False
            )
            ttft = run.trace.time_to_first_token_s * MS_PER_S * factors.get("time_to_first_token", 1.0)
            tpot = run.trace.time_per_output_token_s * MS_PER_S * factors.get("time_per_output_token", 1.0)
            said.append((100.0 * run.found_fraction(), ttft.mean(), tpot.mean(), np.median(tpot)))
        return dict(zip(("hits", "TTFT", "TPOT", "median TPOT"), np.mean(said, axis=0).tolist(), strict=True))

    def seen(self) -> dict[str, float]:
        requests = self.measured.run["requests"]
        ttft, e2e, outputs = (np.array(requests[name]) for name in ("ttft_ms", "e2e_ms", "output_tokens"))
        tpot = (e2e - ttft) / (outputs - 1)
        found = 100.0 * self.measured.measured()["hits"]
        return {"hits": found, "TTFT": ttft.mean(), "TPOT": tpot.mean(), "median TPOT": float(np.median(tpot))}

    def fitting_us(self) -> float:
        """By bisection: the median rises with the cost."""
        low, high = 0.0, MOST_US
        aim = self.seen()["median TPOT"]
        for _ in range(10):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.predicted(middle)["median TPOT"] < aim else (low, middle)
        return (low + high) / 2.0


def load_of(measured: Measured) -> Load:
    schedule = measured.configuration.schedule()
    turns, prompts, outputs, arrivals_s = recorded_turns(measured.run, schedule.block_tokens)
    return Load(measured, measured.configuration.tables(), schedule, turns, prompts, outputs, arrivals_s)


def main() -> None:
    table = Table("load", "tier_store_us", "", "found %", "TTFT mean ms", "TPOT mean ms", "TPOT median ms")
    for load in map(load_of, measured_runs()):
        if not load.schedule.disk_cache_tokens:
            continue
        fitted, stands = load.fitting_us(), load.schedule.tier_store_s * 1e6
        rows = [("", "measured", load.seen())]
        rows += [
            (f"{us:.0f}", says, load.predicted(us)) for us, says in ((0.0, "nothing"), (stands, "row"), (fitted, "fit"))
        ]
        for us, says, values in rows:
            table.add_row(load.measured.name, us, says, *(f"{values[name]:.2f}" for name in values))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
