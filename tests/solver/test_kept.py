"""Results that are kept: the same ones, and no more memory than stated."""

from dataclasses import replace

import numpy as np
import pytest

from solver.deployment.kept_tables import KeptTables
from solver.layout import Layout
from solver.precision import Precision
from solver.prediction.moved_constants import moved_constants
from solver.replay import kept as module
from solver.replay.kept import kept
from tests.solver.samples import configuration, dense_shape


def test_the_least_recently_used_goes_when_all_take_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 250)
    made: list[int] = []

    @kept
    def zeros(count: int) -> np.typing.NDArray[np.float64]:
        made.append(count)
        return np.zeros(count)

    first = zeros(10)
    assert zeros(10) is first
    zeros(12)
    zeros(10)
    zeros(15)  # 80 + 96 + 120 bytes: the twelve go, which were met before the ten
    zeros(10)
    zeros(12)
    assert made == [10, 12, 15, 12]


def test_the_newest_stays_whatever_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 8)

    @kept
    def zeros(count: int) -> np.typing.NDArray[np.float64]:
        return np.zeros(count)

    assert zeros(1_000) is zeros(1_000)
    assert zeros(count=2) is not zeros(count=3)


class TestTables:
    def test_are_those_of_the_configuration_and_made_once(self) -> None:
        tables_of, found = KeptTables(), configuration(dense_shape(), "h100-sxm", Layout(), Precision())
        made = tables_of(found)
        assert np.array_equal(made.mixed_s, found.tables().mixed_s)
        longer = replace(found, kv_cache_tokens=2.0 * found.kv_cache_tokens)
        assert tables_of(longer) is made, "the cache's size is in no step time"

    def test_differ_where_anything_that_steps_depend_on_does(self) -> None:
        tables_of, found = KeptTables(), configuration(dense_shape(), "h100-sxm", Layout(), Precision())
        others = [
            configuration(dense_shape(), "h200-sxm", Layout(), Precision()),
            configuration(dense_shape(), "h100-sxm", Layout(tensor_parallel=2), Precision()),
            configuration(dense_shape(), "h100-sxm", Layout(), Precision(weights="fp8")),
            replace(found, shape=replace(found.shape, guided_fraction=0.5)),
            replace(found, engine=replace(found.engine, max_sequences=7)),
            found.with_constants(moved_constants(found.constants, towards_slow=True)),
        ]
        tables = [tables_of(one) for one in (found, *others)]
        assert len({id(one) for one in tables}) == len(tables)
        for one, own in zip((found, *others), tables, strict=True):
            assert np.array_equal(own.decode_s, one.tables().decode_s)

    def test_keep_to_their_memory(self) -> None:
        tables_of, found = KeptTables(most_bytes=1), configuration(dense_shape(), "h100-sxm", Layout(), Precision())
        first = tables_of(found)
        assert tables_of(found) is first, "the newest stays"
        tables_of(replace(found, engine=replace(found.engine, max_sequences=7)))
        assert tables_of(found) is not first
