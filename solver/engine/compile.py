"""Compile the event simulation now rather than at the first request: ``python -m solver.engine.compile``.

The machine code is kept on disk for later processes (``kernel.compiled`` says where); where it is there already this takes
half a second. Without numba there is nothing to do.
"""

import numpy as np

from solver.engine.simulate import Schedule, simulate
from solver.step.tables import StepTables


def compile_simulation() -> bool:
    """Have the kernel compiled, or loaded; whether there is a compiled one on this machine."""
    from solver.engine.kernel.compiled import COMPILED
    from solver.engine.kernel.interpolation import interpolated
    from solver.engine.kernel.selection import ordered_at

    one: np.typing.NDArray[np.float64] = np.ones(2)
    tables = StepTables(
        decode_s=one, mixed_s=one, head_s=one, sequence_s=0.0, context=(), pairs=(), decode_bytes=one, mixed_bytes=one,
        flops_per_token=1.0, head_flops=1.0, head_bytes=one, lanes=1, sustained_flop_per_s=1.0, peak_flop_per_s=1.0,
        peak_bytes_per_s=1.0, devices_per_replica=1,
    )  # fmt: skip
    simulate(tables, Schedule(1, 1, 100.0), [1], [2], arrivals_s=[0.0])
    ordered_at(np.ones((1, 2)), np.zeros(1, dtype=np.int64))
    interpolated(np.ones((1, 2)), np.arange(2.0), np.ones((1, 1)))
    return COMPILED


if __name__ == "__main__":
    compile_simulation()
