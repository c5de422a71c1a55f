"""What a fit minimises: figures averaged over draws, runs that the model refuses counted."""

import itertools
import math
import statistics
from dataclasses import replace

import pytest

from solver.corrections.evidence import WEIGHTS, Measurement, misfits, predicted
from solver.corrections.fit import DRAWS, fit_constants
from solver.errors import SaturatedError
from solver.lengths import Lengths
from solver.workload import Load, Traffic
from tests.solver.samples import configuration, dense_shape

HERE = configuration(dense_shape(layers=2, hidden=256))
SHORT = Traffic(Lengths((20, 30), (0.5, 0.5)), Lengths((60, 80), (0.5, 0.5)))
FRONT_END, TRUE_US = "token_front_end_us", 60.0


def measured(load: Load, front_end_us: float) -> Measurement:
    """A run as it would be with a front end of so many microseconds a token."""
    run = Measurement(f"{load.kind}-{front_end_us:g}", "group", "dense", HERE, SHORT, load, {})
    constants = HERE.constants.replaced({FRONT_END: front_end_us}, "measured")
    return replace(run, measured=predicted(run, constants))


CROWD = measured(Load("closed", concurrency=256, requests=512), TRUE_US)


def test_a_fit_finds_what_the_runs_were_made_with() -> None:
    prior = HERE.constants.replaced({FRONT_END: 45.0}, "analytical")
    assert fit_constants([CROWD], prior, (FRONT_END,)).fitted[FRONT_END].value == pytest.approx(TRUE_US, rel=0.03)


def test_figures_averaged_over_draws_jump_less_where_a_constant_moves_a_little() -> None:
    """Steps are discrete: with one draw a thousandth more may put a prompt into another step."""
    run = replace(CROWD, load=Load("closed", concurrency=16, requests=64))
    metric = "time_to_first_token.p99"

    def jumps(draws: int) -> float:
        near = [HERE.constants.replaced({FRONT_END: TRUE_US * (1.0 + 1e-3 * n)}, "measured") for n in range(12)]
        values = [misfits(run, constants, draws)[metric] for constants in near]
        return statistics.pstdev([after - before for before, after in itertools.pairwise(values)])

    assert jumps(8) < jumps(1)


class TestRefusedRuns:
    """A load that was served, and that a slower front end could not have served."""

    SERVED = measured(Load("open", requests_per_s=200.0, requests=500), TRUE_US)
    SLOW = HERE.constants.replaced({FRONT_END: 90.0}, "measured")

    def test_the_load_is_one_that_a_slower_front_end_refuses(self) -> None:
        with pytest.raises(SaturatedError):
            predicted(self.SERVED, self.SLOW)
        assert misfits(self.SERVED, self.SLOW) == {}

    def test_each_of_its_figures_counts_as_far_off(self) -> None:
        """Else a fit would be the better for constants with which nothing that was measured could have been."""
        fit = fit_constants([self.SERVED], HERE.constants, (FRONT_END,), rounds=0, start={FRONT_END: 90.0})
        assert fit.residuals[fit.owners == 0] == pytest.approx([math.log(2.0) / weight for weight in WEIGHTS.values()])

    def test_what_refuses_says_nothing_of_where_to_go(self) -> None:
        """At the edge a step of the differences refuses the run: that jump is no slope."""
        at_the_edge = 0.99 * next(us for us in range(60, 90) if refused(self.SERVED, float(us)))
        fit = fit_constants([self.SERVED], HERE.constants, (FRONT_END,), rounds=0, start={FRONT_END: at_the_edge})
        assert (fit.jacobian[fit.owners == 0] == 0.0).all()
        assert fit.residuals[fit.owners == 0] != pytest.approx([math.log(2.0) / weight for weight in WEIGHTS.values()])


def refused(run: Measurement, front_end_us: float) -> bool:
    return not misfits(run, HERE.constants.replaced({FRONT_END: front_end_us}, "measured"), DRAWS)
