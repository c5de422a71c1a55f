"""Measured runs that constants say no server could serve, in what a calibration says of its accuracy."""

from dataclasses import replace

import pytest

from service.corrections.calibrate import accuracy, by_group, spreads, told
from solver.corrections.evidence import Measurement, predicted
from solver.errors import SaturatedError
from solver.lengths import Lengths
from solver.step.constants import Constants
from solver.workload import Load, Traffic
from tests.solver.samples import configuration, dense_shape

HERE = configuration(dense_shape(layers=2, hidden=256))
SHORT = Traffic(Lengths((20, 30), (0.5, 0.5)), Lengths((60, 80), (0.5, 0.5)))


def front_end(us: float) -> Constants:
    return HERE.constants.replaced({"token_front_end_us": us}, "measured")


def measured(name: str, group: str, load: Load) -> Measurement:
    run = Measurement(name, group, "dense", HERE, SHORT, load, {})
    return replace(run, measured=predicted(run, front_end(60.0)))


SERVED = measured("served", "b", Load("open", requests_per_s=200.0, requests=500))
RUNS = [measured(f"calm-{n}", group, Load("closed", concurrency=4 * n, requests=40)) for group in "ab" for n in (1, 2)]


def test_each_figure_is_twice_off() -> None:
    with pytest.raises(SaturatedError):
        predicted(SERVED, front_end(90.0))
    found = told(SERVED, front_end(90.0))
    assert found["time_per_output_token"] == pytest.approx(2.0 * SERVED.measured["time_per_output_token"])
    assert found["output_rate"] == pytest.approx(0.5 * SERVED.measured["output_rate"])


def test_what_is_predicted_is_told_as_it_is() -> None:
    assert told(SERVED, front_end(60.0)) == predicted(SERVED, front_end(60.0))


def test_the_accuracy_has_it_as_an_error_outside_its_interval() -> None:
    """Left out, a configuration may be told by constants that refuse one of its runs: that ended the calibration."""
    runs = [replace(run, id=f"{run.id}-{run.group}") for run in RUNS] + [SERVED]
    left_out = {run.id: told(run, front_end(90.0)) for run in runs}
    rows = accuracy(runs, left_out, left_out, front_end(60.0))
    (row,) = (r for r in rows if (r.group, r.metric) == ("load:open", "time_per_output_token"))
    assert row.runs == 1
    assert row.left_out_mape_percent == pytest.approx(100.0)
    assert row.coverage_fraction == 0.0
    assert {r.residuals for r in spreads(runs, left_out)} == {len(runs)}
    assert set(by_group(runs)) == {"a", "b"}
