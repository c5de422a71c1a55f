"""Constants that are read off published products and single streams say what their files say."""

import datetime as dt
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.published_rates import read_matrix_rates, read_single_streams
from catalog.read import Catalog, read_catalog
from catalog.rows import ConstantRow, Provenance
from service.recommendations.from_rows import llm_from_row
from tests.bench.matrix_rates import NAME, Errors, Judged, constant
from tests.bench.published_launch import layer_us, shares_and_layers

DAY = dt.date(2026, 11, 25)


@cache
def catalog() -> Catalog:
    return read_catalog()


def row_of(name: str, **of: str) -> ConstantRow:
    found = [
        row for row in catalog().constants if row.name == name and all(getattr(row, k) == v for k, v in of.items())
    ]
    assert len(found) == 1, (name, of)
    return found[0]


def test_rows_of_devices_are_the_products_times_what_an_engine_reaches() -> None:
    stated = {rate.device: rate for rate in read_matrix_rates().rate}
    assert len(stated) == len(read_matrix_rates().rate), "one source a device"
    rows = [row for row in catalog().constants if row.name == NAME and row.device != "*"]
    assert rows
    for row in rows:
        rate = stated[row.device]
        source = read_matrix_rates().sources[rate.source]
        assert row == constant(catalog(), rate, source.text, source.retrieved_on)
        assert row.low < row.value <= row.high <= 1.0


def test_a_device_without_a_16_bit_rate_is_refused() -> None:
    rate = read_matrix_rates().rate[0].model_copy(update={"device": "gtx-580"})
    with pytest.raises(ValueError, match="gtx-580"):
        constant(catalog(), rate, "a source", DAY)


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ({}, {}, True),
        ({(0, "a"): 20.0}, {(0, "a"): 20.4}, True),
        ({(0, "a"): 20.0}, {(0, "a"): 20.6}, False),
        ({(0, "a"): 20.0, (1, "a"): 20.0}, {(0, "a"): 10.0, (1, "a"): 21.0}, False),
        ({(0, "a"): 20.0, (2, "a"): 40.0}, {(0, "a"): 15.0, (2, "a"): 44.0}, True),
        ({(0, "a"): 20.0, (2, "a"): 40.0}, {(0, "a"): 19.0, (2, "a"): 42.0}, False),
        ({(2, "a"): 90.0, (2, "b"): 10.0}, {(2, "a"): 50.0, (2, "b"): 21.0}, False),
    ],
    ids=["no runs", "slack", "per token", "output alone", "together", "together no", "one source"],
)
def test_runs_strike_out_what_they_do_not_bear_out(before: Errors, after: Errors, kept: bool) -> None:
    row = ConstantRow(
        name=NAME, value=0.5, low=0.4, high=0.6, unit="fraction", basis="analytical",
        provenance=Provenance(source="any", retrieved_on=DAY, checked="derived"),
    )  # fmt: skip
    assert Judged(row, before, after).kept is kept


@given(st.floats(1e11, 1e13), st.floats(1e-6, 1e-3), st.floats(1.5, 50.0), st.integers(8, 40), st.integers(41, 120))
def test_two_streams_tell_bandwidth_from_layers(rate: float, layer: float, larger: float, few: int, many: int) -> None:
    read = (1e9, 1e9 * larger * many / few)
    seconds = [size / rate + layers * layer for size, layers in zip(read, (few, many), strict=True)]
    assert shares_and_layers(read, (few, many), seconds) == pytest.approx((rate, layer), rel=1e-6)


def test_launching_a_layer_is_bound_by_the_fastest_stream() -> None:
    shapes = {name: llm_from_row(catalog().llms[name].model_dump(mode="json")) for name in streams_of()}
    most = {(one.engine, one.llm): layer_us(one, shapes[one.llm]) for one in read_single_streams().stream}
    plain, experts = most["llama.cpp", "qwen3-0.6b"], most["llama.cpp", "qwen3-30b-a3b"]
    of_mlx = most["mlx", "qwen3-30b-a3b"]
    assert row_of("eager_layer_us", engine="llama.cpp").value == pytest.approx(plain, abs=0.5)
    assert row_of("eager_expert_layer_us", engine="llama.cpp").value == pytest.approx(experts - plain, abs=0.5)
    assert row_of("eager_layer_us", engine="mlx").value == row_of("eager_layer_us", engine="llama.cpp").value
    assert row_of("eager_expert_layer_us", engine="mlx").value == pytest.approx(of_mlx - plain, abs=0.5)


def streams_of() -> set[str]:
    return {one.llm for one in read_single_streams().stream}
