"""What configurations of a model say about one another."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solver.corrections.applied import Cell, CellEvidence, CorrectionSet, correction_for
from solver.corrections.kin import Relative, kin_of
from solver.layout import Layout
from solver.precision import Precision

FACTORS = st.floats(0.3, 3.0)


def uploaded(*factors: float, weights: str = "fp8") -> list[Relative]:
    return [Relative(weights, ("1",), (f"bench_{i}",), {"power": f}, True) for i, f in enumerate(factors)]


@given(st.lists(FACTORS, min_size=1, max_size=6), st.floats(0.01, 10.0))
def test_the_factor_lies_between_none_and_the_farthest(factors: list[float], shrinkage: float) -> None:
    kin = kin_of(uploaded(*factors), "fp8", None, shrinkage)
    assert kin is not None
    assert min(*factors, 1.0) - 1e-9 <= kin.factors["power"] <= max(*factors, 1.0) + 1e-9


@given(FACTORS, st.integers(1, 5))
def test_more_relatives_that_agree_are_believed_more(factor: float, n: int) -> None:
    few, many = (kin_of(uploaded(*[factor] * count), "fp8", None, 1.0) for count in (n, n + 1))
    assert few is not None
    assert many is not None
    assert abs(math.log(many.factors["power"])) >= abs(math.log(few.factors["power"]))
    assert many.factors["power"] == pytest.approx(factor ** ((n + 1) / (n + 2)))


def test_the_worked_example_of_the_mathematics() -> None:
    kin = kin_of(uploaded(1.2, 1.3), "fp8", None, 0.9)
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(1.17, abs=0.005)


def test_the_same_format_of_weights_goes_before_others() -> None:
    known = uploaded(2.0) + uploaded(1.1, weights="bf16")
    kin = kin_of(known, "bf16", None, 1.0)
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(math.sqrt(1.1))
    assert kin.benchmarks == ("bench_0",)
    both = kin_of(known, "int4", None, 1.0)
    assert both is not None
    assert both.factors["power"] == pytest.approx((2.0 * 1.1) ** (1 / 3))


def test_an_release_alone_has_been_fitted_already() -> None:
    release = Relative("fp8", ("1",), ("own",), {"power": 1.5}, False)
    assert kin_of([release], "fp8", None, 1.0) is None
    kin = kin_of([release, *uploaded(1.5)], "fp8", None, 1.0)
    assert kin is not None
    assert kin.factors["power"] == pytest.approx(1.5 ** (2 / 3))


CELL = Cell("new-device", "vllm", "m", Precision("fp8", "bf16"), Layout(2))


def told(current: CorrectionSet, cell: Cell, version: str | None = None) -> dict[str, float]:
    found = correction_for(
        current, device=cell.device, family="f", engine=cell.engine, version=version, llm=cell.llm, model_class="dense",
        precision=cell.precision, layout=cell.layout, kin_shrinkage=lambda: 1.0,
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
