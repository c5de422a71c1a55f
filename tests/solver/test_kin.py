"""What configurations of a model say about one another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.corrections.applied import Cell, CellEvidence, CorrectionSet, correction_for
from solver.corrections.kin import MOST_POINTS, MeasuredLoad, Relative, Shrinkage, kin_of
from solver.layout import Layout
from solver.precision import Precision

FACTORS = st.floats(0.3, 3.0)


def little(relatives: float = 1.0) -> Shrinkage:
    return Shrinkage(relatives, 1.0, 0.8)


def uploaded(*factors: float, weights: str = "fp8") -> list[Relative]:
    return [Relative(weights, ("1",), (f"bench_{i}",), {"power": f}, True) for i, f in enumerate(factors)]


@given(st.lists(FACTORS, min_size=1, max_size=6), st.floats(0.01, 10.0))
def test_the_factor_lies_between_none_and_the_farthest(factors: list[float], shrinkage: float) -> None:
    kin = kin_of(uploaded(*factors), "fp8", None, little(shrinkage))
    assert kin is not None
    assert min(*factors, 1.0) - 1e-9 <= kin.factors["power"] <= max(*factors, 1.0) + 1e-9


@given(FACTORS, st.integers(1, 5))
def test_more_relatives_that_agree_are_believed_more(factor: float, n: int) -> None:
    few, many = (kin_of(uploaded(*[factor] * count), "fp8", None, little()) for count in (n, n + 1))
    assert few is not None
    assert many is not None
    assert abs(math.log(many.factors["power"])) >= abs(math.log(few.factors["power"]))
    assert many.factors["power"] == pytest.approx(factor ** ((n + 1) / (n + 2)))


def test_the_worked_example_of_the_mathematics() -> None:
    kin = kin_of(uploaded(1.2, 1.3), "fp8", None, little(0.5))
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(1.19, abs=0.005)


def test_the_same_format_of_weights_goes_before_others() -> None:
    known = uploaded(2.0) + uploaded(1.1, weights="bf16")
    kin = kin_of(known, "bf16", None, little())
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(math.sqrt(1.1))
    assert kin.benchmarks == ("bench_0",)
    both = kin_of(known, "int4", None, little())
    assert both is not None
    assert both.factors["power"] == pytest.approx((2.0 * 1.1) ** (1 / 3))


def test_an_release_alone_has_been_fitted_already() -> None:
    release = Relative("fp8", ("1",), ("own",), {"power": 1.5}, False)
    assert kin_of([release], "fp8", None, little()) is None
    kin = kin_of([release, *uploaded(1.5)], "fp8", None, little())
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(1.5 ** (2 / 3))


CELL = Cell("new-device", "vllm", "m", Precision("fp8", "bf16"), Layout(2))


def told(current: CorrectionSet, cell: Cell, version: str | None = None) -> dict[str, float]:
    found = correction_for(
        current, device=cell.device, family="f", engine=cell.engine, version=version, llm=cell.llm, model_class="dense",
        precision=cell.precision, layout=cell.layout, kin_shrinkage=little,
    )  # fmt: skip
    return {} if found is None else dict(found.factors)


def test_a_device_of_which_nothing_else_is_known_takes_them_too() -> None:
    evidence = CellEvidence(("1",), ("bench_0",), {"power": 1.21})
    current = CorrectionSet(0).with_uploads(1, {CELL: evidence}, ())
    sibling = Cell("new-device", "vllm", "m", Precision("fp8", "bf16"), Layout(4))
    assert told(current, CELL)["power"] == pytest.approx(1.21)
    assert told(current, sibling)["power"] == pytest.approx(1.1)
    assert told(current, sibling, version="2") == {}
    assert told(current, Cell("other-device", "vllm", "m", Precision("fp8", "bf16"), Layout(4))) == {}
    assert told(current, Cell("new-device", "vllm", "n", Precision("fp8", "bf16"), Layout(4))) == {}


def by_load(*points: MeasuredLoad) -> Relative:
    return Relative("fp8", ("1",), ("bench_0",), {"power": 1.0, "output_rate": 0.9}, True, points)


LOADS = st.tuples(st.floats(1.0, 500.0), st.floats(1.0, 1e5), st.floats(1.0, 1e4))


@given(LOADS, LOADS, st.floats(-1.0, 1.0), st.integers(1, 20))
def test_by_load_one_run_moves_others_towards_it_and_no_further(
    asked: tuple[float, float, float], ran: tuple[float, float, float], found: float, runs: int
) -> None:
    kin = kin_of([by_load(MeasuredLoad(*ran, runs, {"power": found}))], "fp8", None, little())
    assert kin is not None
    moved = math.log(kin.at(*asked)["power"])
    assert min(found, 0.0) - 1e-9 <= moved <= max(found, 0.0) + 1e-9
    assert math.log(kin.at(*ran)["power"]) == pytest.approx(found * runs / (runs + 1.0))


@given(st.permutations(range(5)))
def test_the_order_of_relatives_says_nothing(order: list[int]) -> None:
    points = [MeasuredLoad(2.0**i, 100.0 * (1 + i), 50.0, 1 + i, {"power": 0.1 * i}) for i in range(5)]
    kin = kin_of([by_load(points[i]) for i in order], "fp8", None, little())
    assert kin is not None
    known = kin_of([by_load(*points)], "fp8", None, little())
    assert known is not None
    assert kin.at(8.0, 300.0, 50.0)["power"] == pytest.approx(known.at(8.0, 300.0, 50.0)["power"])


def test_a_load_takes_the_error_of_the_loads_beside_it() -> None:
    few, many = (MeasuredLoad(n, 1024.0, 128.0, 9, {"power": r}) for n, r in ((1.0, -0.3), (128.0, 0.3)))
    kin = kin_of([by_load(few, many)], "fp8", None, little())
    assert kin is not None
    assert kin.at(1.0, 1024.0, 128.0)["power"] == pytest.approx(math.exp(-0.3 * 0.9), rel=1e-3)
    assert kin.at(128.0, 1024.0, 128.0)["power"] == pytest.approx(math.exp(0.3 * 0.9), rel=1e-3)
    # Far from all of them nothing is known; what is not stated by load holds at any.
    assert kin.at(128.0, 1e9, 128.0)["power"] == kin.at(128.0, 1024.0, 1e9)["power"] == pytest.approx(1.0, abs=1e-3)
    assert kin.at(1.0, 1024.0, 128.0)["output_rate"] == kin.factors["output_rate"]


def test_a_layout_takes_most_from_the_layout_next_to_it() -> None:
    runs = MeasuredLoad(8.0, 1024.0, 128.0, 9, {"power": 0.3})
    factors = []
    for degree in (1, 2, 4, 8):
        kin = kin_of([by_load(runs)], "fp8", None, little(), Layout(degree))
        assert kin is not None
        factors.append(kin.at(8.0, 1024.0, 128.0)["power"])
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] > 1.0


def test_of_many_loads_those_most_alike_decide() -> None:
    near = [MeasuredLoad(8.0, 1024.0, 128.0, 1, {"power": 0.2}) for _ in range(MOST_POINTS)]
    far = [MeasuredLoad(500.0, 64.0, 4096.0, 1, {"power": -0.9}) for _ in range(500)]
    kin = kin_of([by_load(*far), by_load(*near)], "fp8", None, little())
    assert kin is not None
    assert kin.at(8.0, 1024.0, 128.0)["power"] == pytest.approx(math.exp(0.2), rel=2e-3)
