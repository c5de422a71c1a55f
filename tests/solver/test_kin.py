"""What configurations of a model say about one another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.corrections.applied import Cell, CellEvidence, CorrectionSet, correction_for
from solver.corrections.kin import MeasuredLoad, Relative, Shrinkage, kin_of
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


@given(st.floats(1.0, 500.0), st.floats(1.0, 1e5), st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=5))
def test_by_load_the_factor_lies_between_none_and_the_farthest(
    clients: float, prompt: float, found: list[float]
) -> None:
    points = (MeasuredLoad(2.0**i, 10.0 ** (1 + i), 1 + i, {"power": r}) for i, r in enumerate(found))
    kin = kin_of([by_load(*points)], "fp8", None, little())
    assert kin is not None
    assert min(*found, 0.0) - 1e-9 <= math.log(kin.at(clients, prompt)["power"]) <= max(*found, 0.0) + 1e-9


def test_a_load_takes_the_error_of_the_loads_beside_it() -> None:
    few, many = MeasuredLoad(1.0, 1024.0, 9, {"power": -0.3}), MeasuredLoad(128.0, 1024.0, 9, {"power": 0.3})
    kin = kin_of([by_load(few, many)], "fp8", None, little())
    assert kin is not None
    assert kin.at(1.0, 1024.0)["power"] == pytest.approx(math.exp(-0.3 * 0.9 / 2), rel=1e-3)
    assert kin.at(128.0, 1024.0)["power"] == pytest.approx(math.exp(0.3 * 0.9 / 2), rel=1e-3)
    # Far from all of them nothing is known; what is not stated by load holds at any.
    assert kin.at(128.0, 1e9)["power"] == pytest.approx(1.0, abs=1e-3)
    assert kin.at(1.0, 1024.0)["output_rate"] == kin.factors["output_rate"]
