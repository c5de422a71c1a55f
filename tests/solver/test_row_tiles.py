"""Products in 8 bits against what the kernel itself was measured to take (catalog/benchmarks/devices)."""

import json
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from solver.layout import Layout
from solver.precision import Precision
from solver.step.gemm import mean_tiled_rows, tiled_rows
from solver.step.terms import dense_product
from tests.llm_shapes import shape
from tests.solver.samples import configuration

MEASURED = json.loads(
    Path(__file__, "../../../catalog/benchmarks/devices/h200-sxm_vllm-0.24.0_products.json").resolve().read_text()
)
US_PER_S = 1e6


def products() -> dict[tuple[int, int], dict[int, tuple[float, float]]]:
    """(columns, inner) → rows → (fp8 µs, bf16 µs)."""
    found: dict[tuple[int, int], dict[int, tuple[float, float]]] = defaultdict(dict)
    for columns, inner, rows, fp8_us, bf16_us in MEASURED["products"]:
        found[columns, inner][rows] = fp8_us, bf16_us
    return found


def predicted_us(weights: str, rows: int, columns: int, inner: int) -> float:
    rates = configuration(shape("llama-3.1-8b"), "h200-sxm", Layout(1), Precision(weights, "bf16")).rates()
    product = dense_product(rates, float(rows), float(tiled_rows(float(rows))), float(columns), float(inner))
    return float(product.seconds) * US_PER_S


class TestAgainstTheKernel:
    def test_large_products_within_a_quarter_and_rightly_ordered(self) -> None:
        """Weights of 50 MB and more: the median error over rows 16 to 4,096 is below a tenth, and few miss by a third."""
        errors = []
        for (columns, inner), rows in products().items():
            if columns * inner < 5e7:
                continue
            for count, (fp8_us, _) in rows.items():
                if 16 <= count <= 4096:
                    errors.append(abs(predicted_us("fp8", count, columns, inner) / fp8_us - 1))
        assert len(errors) > 100
        assert statistics.median(errors) < 0.10
        assert statistics.quantiles(errors, n=20)[-1] < 0.34

    @pytest.mark.parametrize(("few", "many"), [(24, 64), (72, 128), (320, 512)])
    def test_a_partly_empty_tile_costs_more_than_a_full_one(self, few: int, many: int) -> None:
        columns, inner = 57_344, 8_192
        measured = products()[columns, inner]
        assert measured[few][0] > measured[many][0]
        assert predicted_us("fp8", few, columns, inner) > predicted_us("fp8", many, columns, inner)

    def test_16_bit_products_know_no_tiles(self) -> None:
        counts = (24, 64, 72, 128, 320, 512)
        times = [predicted_us("bf16", count, 57_344, 8_192) for count in counts]
        assert times == sorted(times)


class TestRows:
    def test_the_mean_lies_between_the_rows_and_the_next_whole_tile(self) -> None:
        for rows in (20.0, 100.0, 300.0, 900.0, 5_000.0):
            mean = float(mean_tiled_rows(rows))
            assert rows <= mean <= float(tiled_rows(rows * 7 / 6))
