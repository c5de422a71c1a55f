"""The programme as text: a change of any constraint shows as a change of a file.

``python -m tests.solver.fleet.test_golden_lp`` writes the files anew; read the difference before committing it.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from solver.fleet import (
    Demand,
    Deployment,
    DeploymentTable,
    FaultTolerance,
    FleetProblem,
    Limits,
    OfferSlot,
    Quota,
    SolveOptions,
    solve_fleet,
)
from solver.fleet.model.formulation import build_model
from solver.fleet.reduce import reduce_problem

FOLDER = Path(__file__).parent / "lp"


def problem(sizes: tuple[int, ...], limits: Limits | None = None, classes: int = 1) -> FleetProblem:
    """Two node types of 8 and 2 devices; the large one is offered twice, once interruptible."""
    rows = [
        Deployment(0, "large", size, 1, tuple(size * (1.0 - 0.1 * k) for k in range(classes)), 300.0 * size, size)
        for size in sizes
    ]
    rows.append(Deployment(0, "small", 2, 1, (1.5,) * classes, 500.0, 100))
    rows.append(Deployment(0, "large", 8, 2, (14.0,) * classes, 4000.0, 101))
    offers = (
        OfferSlot("large-a", "large", "big", 8, "p", "r", "on_demand", 8.0, 2, 400.0),
        OfferSlot("large-b", "large", "big", 8, "q", "r", "spot", 5.0, 2, 400.0, interruptible=True),
        OfferSlot("small-a", "small", "little", 2, "p", "r", "on_demand", 2.5, None, 100.0),
    )
    demand = Demand(tuple(10.0 / classes for _ in range(classes)), 0.9)
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (demand,), limits or Limits())


def apart(limits: Limits | None = None, classes: int = 1) -> FleetProblem:
    """Two regions that both prefill on large nodes; decoding is on large nodes in one, on small ones in both."""
    rows = [
        Deployment(0, "large", 4, 1, tuple(3.0 - k for k in range(classes)), 1200.0, 0),
        Deployment(0, "large", 2, 1, tuple(4.0 - k for k in range(classes)), 600.0, 1, role="prefill", exchange="fp8"),
        Deployment(0, "large", 4, 1, tuple(6.0 - k for k in range(classes)), 900.0, 2, role="decode", exchange="fp8"),
        Deployment(0, "small", 2, 1, tuple(5.0 - k for k in range(classes)), 500.0, 3, role="decode", exchange="fp8"),
    ]
    offers = (
        OfferSlot("large-a", "large", "big", 8, "p", "east", "on_demand", 8.0, 3, 400.0),
        OfferSlot("large-b", "large", "big", 8, "p", "west", "on_demand", 9.0, 3, 400.0),
        OfferSlot("small-a", "small", "little", 2, "p", "east", "on_demand", 1.5, None, 100.0),
        OfferSlot("small-b", "small", "little", 2, "p", "west", "on_demand", 1.0, None, 100.0),
    )
    demand = Demand(tuple(10.0 / classes for _ in range(classes)), 0.9, 2)
    return FleetProblem(offers, DeploymentTable.from_rows(rows), (demand,), limits or Limits())


EVERY_LIMIT = Limits(60.0, 30_000.0, 0, 0.5, (Quota("q", frozenset({"large-a", "large-b"}), 24),))
CASES: dict[str, tuple[FleetProblem, float]] = {
    "chain": (problem((1, 2, 4)), 10.0),
    "arc_flow": (problem((2, 3)), 10.0),
    "classes": (problem((1, 2, 4), classes=2), 10.0),
    "every_limit": (problem((2, 4), EVERY_LIMIT), 13.0),
    "spare": (problem((2, 4), Limits(spare_nodes=1)), 20.0),
    "throughput": (replace(problem((2, 4), Limits(budget_usd_per_hour=18.0)), objective="throughput"), 2.16),
    "fault_tolerance": (problem((2, 4), Limits(fault_tolerance=FaultTolerance(providers=1))), 23.0),
    "fault_tolerance_classes": (problem((2, 4), Limits(fault_tolerance=FaultTolerance(providers=1)), classes=2), 23.0),
    "exchanges": (apart(), 12.0),
    "exchanges_classes": (apart(classes=2), 12.0),
    "exchanges_fault_tolerance": (apart(Limits(fault_tolerance=FaultTolerance(regions=1))), 22.0),
    "exchanges_fault_tolerance_classes": (apart(Limits(fault_tolerance=FaultTolerance(regions=1)), classes=2), 24.5),
    "power": (replace(problem((2, 4)), objective="power"), 4400.0),
}


def lp_text(case: FleetProblem, path: Path) -> str:
    build_model(reduce_problem(case, exact_steps=False)).programme.writeLP(str(path))
    return path.read_text()


@pytest.mark.parametrize("name", sorted(CASES))
def test_programme_is_as_written(name: str, tmp_path: Path) -> None:
    assert lp_text(CASES[name][0], tmp_path / "case.lp") == (FOLDER / f"{name}.lp").read_text()


@pytest.mark.parametrize("solver", ["highs", "cbc"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_both_solvers_reach_the_known_optimum(name: str, solver: str) -> None:
    case, optimum = CASES[name]
    for exact_steps in (True, False):
        result = solve_fleet(case, SolveOptions(solver=solver, exact_steps=exact_steps))  # type: ignore[arg-type]
        assert result.outcome == "optimal"
        assert result.objective == pytest.approx(optimum, rel=1e-6)


if __name__ == "__main__":
    for golden, (golden_case, _) in CASES.items():
        lp_text(golden_case, FOLDER / f"{golden}.lp")
