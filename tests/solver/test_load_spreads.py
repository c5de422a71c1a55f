"""Spreads of closed loops apart from those of all loads."""

import math
from dataclasses import replace

import pytest

from catalog.correction_rows import read_correction_sets
from service.corrections.snapshot import correction_set
from solver.corrections.applied import CorrectionSet, EngineCorrection, configuration_correction
from solver.corrections.load_spreads import RunMiss, of_closed_loops, spreads_by_load
from solver.workload import Load
from tests.solver.test_partitions import configured, splittable

TOKEN, FIRST_TOKEN = "time_per_output_token", "time_to_first_token"
CLOSED = Load("closed", concurrency=4, requests=40)
OPEN = Load("open", requests_per_s=1.0)


def loops(groups: str, size: float) -> list[RunMiss]:
    return [RunMiss(group, "closed", sign * size) for group in groups for sign in (-1.0, 1.0)]


def arrivals(groups: str, size: float) -> list[RunMiss]:
    return [RunMiss(group, "open", size) for group in groups]


class TestWhichLoadsAreToldApart:
    def test_closed_loops_that_are_off_by_less_have_a_spread_of_their_own(self) -> None:
        found = spreads_by_load(loops("abcdefgh", 0.05) + arrivals("abcd", 0.5))
        assert math.log(found["*"][1]) == pytest.approx(0.5)
        # Eight groups say 0.05, and as much as two groups say what all loads do.
        assert math.log(found["closed"][1]) == pytest.approx((8 * 0.05 + 2 * 0.5) / 10)

    def test_closed_loops_that_are_off_by_as_much_share_that_of_all(self) -> None:
        assert list(spreads_by_load(loops("abcdefgh", 0.05) + arrivals("abcd", 0.05))) == ["*"]

    def test_two_groups_leave_too_few_to_judge_by(self) -> None:
        assert list(spreads_by_load(loops("ab", 0.05) + arrivals("ab", 0.5))) == ["*"]

    def test_a_spread_that_misses_the_groups_left_out_is_not_taken(self) -> None:
        """One group in twelve is far off, as its open loads are: the others' closed loops alone would not hold it."""
        found = loops("abcdefghijk", 0.01) + [RunMiss("z", "closed", 0.5)] * 3 + arrivals("abcdef", 0.45)
        assert list(spreads_by_load(found)) == ["*"]

    def test_the_fewer_groups_the_nearer_to_all_loads(self) -> None:
        few, many = (of_closed_loops(loops(groups, 0.05) + arrivals("abc", 0.5))[1] for groups in ("abc", "abcdefghij"))
        assert many < few < math.exp(0.5)


class TestWhoTakesThem:
    @pytest.fixture
    def current(self) -> CorrectionSet:
        device = splittable()
        pairs = {("dense", TOKEN): (0.8, 1.25)}
        closed = {("dense", TOKEN): (0.9, 1.1)}
        known = EngineCorrection(
            device=device.id, family=device.family, engine="vllm", versions=(), constants={},
            precisions=frozenset({("bf16", "bf16", "dense")}), evidence=(), spreads=pairs, own_spreads=pairs,
            borrowed_widening=2.0, unseen_widening=3.0, closed_spreads=closed, closed_own_spreads=closed,
        )  # fmt: skip
        return CorrectionSet(1, (known,))

    @pytest.mark.parametrize(("load", "spread"), [(CLOSED, (0.9, 1.1)), (OPEN, (0.8, 1.25)), (None, (0.8, 1.25))])
    def test_estimates_of_closed_loops_do(
        self, current: CorrectionSet, load: Load | None, spread: tuple[float, float]
    ) -> None:
        found = configuration_correction(current, configured(splittable()).configuration, load)
        assert found is not None
        assert found.spreads[TOKEN] == pytest.approx(spread)

    @pytest.mark.parametrize(("load", "first"), [(CLOSED, (0.7, 1.4)), (OPEN, (0.5, 2.0)), (None, (0.5, 2.0))])
    def test_a_sibling_borrows_those_of_mean_first_tokens_alone(
        self, current: CorrectionSet, load: Load | None, first: tuple[float, float]
    ) -> None:
        names = (FIRST_TOKEN, f"{FIRST_TOKEN}.p99", TOKEN)
        all_loads = {("dense", name): (0.5, 2.0) for name in names}
        closed = {("dense", name): (0.7, 1.4) for name in names}
        lent = tuple(
            replace(c, device="another", spreads=all_loads, closed_spreads=closed, borrowed_widening=1.0)
            for c in current.corrections
        )
        found = configuration_correction(
            replace(current, corrections=lent), configured(splittable()).configuration, load
        )
        assert found is not None
        assert found.basis == "borrowed"
        assert found.spreads[FIRST_TOKEN] == pytest.approx(first)
        # Percentiles between hold both that of the mean and that of the 99th, which stays what it is of all loads.
        for name in (f"{FIRST_TOKEN}.p99", f"{FIRST_TOKEN}.p95", TOKEN):
            assert found.spreads[name] == pytest.approx((0.5, 2.0))

    def test_where_a_class_has_none_all_loads_hold(self, current: CorrectionSet) -> None:
        plain = replace(
            current,
            corrections=tuple(replace(c, closed_spreads={}, closed_own_spreads={}) for c in current.corrections),
        )
        found = configuration_correction(plain, configured(splittable()).configuration, CLOSED)
        assert found is not None
        assert found.spreads[TOKEN] == pytest.approx((0.8, 1.25))


def test_set_7_is_set_6_with_spreads_of_closed_loops() -> None:
    before, after = (row for row in read_correction_sets() if row.number in (6, 7))
    for old, new in zip(before.corrections, after.corrections, strict=True):
        assert {n: (c.value, c.taken) for n, c in old.constants.items()} == {
            n: (c.value, c.taken) for n, c in new.constants.items()
        }
    found = correction_set(after)
    (h200,) = (c for c in found.corrections if c.device == "h200-sxm")
    assert h200.closed_own_spreads["dense", TOKEN][1] < h200.own_spreads["dense", TOKEN][1]
    assert {load for c in before.corrections for s in c.spreads for load in (s.load,)} == {"*"}
