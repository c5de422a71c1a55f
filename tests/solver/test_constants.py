"""The model's constants: in their physical ranges, documented, and found by the most specific row."""

from dataclasses import replace
from pathlib import Path

import pytest

from catalog.rows import ConstantRow
from solver.step.constants import CONSTANTS, ConstantPrior, Constants, owned, resolve_constants
from tests.solver.samples import catalog, constants, device

ROWS = catalog().constants
MATHEMATICS = Path(__file__).parent.parent.parent / "docs" / "mathematics.md"


def named(row: ConstantRow) -> str:
    return f"{row.name}-{row.device}-{row.family}-{row.engine}"


OF_SOME_ENGINES = {"front_end_busy_fraction"}
"""Limits on plans that engines without a row do not have."""


class TestCatalogRows:
    @pytest.mark.parametrize("row", ROWS, ids=named)
    def test_value_lies_in_its_range_and_both_in_the_physical_one(self, row: ConstantRow) -> None:
        law = CONSTANTS[row.name]
        assert row.low <= row.value <= row.high
        assert law.low <= row.low
        assert row.high <= law.high

    @pytest.mark.parametrize("row", [r for r in ROWS if "efficiency" in r.name], ids=named)
    def test_no_efficiency_above_one(self, row: ConstantRow) -> None:
        assert CONSTANTS[row.name].high == 1.0
        assert 0 < row.value <= row.high <= 1.0

    @pytest.mark.parametrize("name", [name for name in CONSTANTS if name not in OF_SOME_ENGINES])
    def test_everything_has_a_default_and_a_basis(self, name: str) -> None:
        """A device nobody has measured is still planned, and says on what basis."""
        default = [r for r in ROWS if (r.name, r.device, r.family, r.engine) == (name, "*", "*", "*")]
        assert len(default) == 1
        assert default[0].basis in ("borrowed", "analytical")

    @pytest.mark.parametrize("name", sorted(OF_SOME_ENGINES))
    def test_a_limit_that_only_some_engines_have_is_measured_of_each(self, name: str) -> None:
        rows = [r for r in ROWS if r.name == name]
        assert rows
        assert all(r.engine != "*" and r.basis == "measured" for r in rows)

    def test_units_are_the_ones_the_solver_converts_from(self) -> None:
        alike = {"token": "tokens", "vector": "ratio", "row": "ratio"}
        wrong = {r.name: r.unit for r in ROWS if alike.get(r.unit, r.unit) != CONSTANTS[r.name].unit}
        assert not wrong


class TestResolution:
    def test_the_most_specific_row_wins_whatever_the_order(self) -> None:
        def row(value: float, *, device_id: str = "*", family: str = "*", engine: str = "*") -> ConstantPrior:
            return ConstantPrior("link_efficiency", family, device_id, engine, value, 0.1, 1.0, "analytical")

        rows = [
            row(0.1),
            row(0.2, engine="vllm"),
            row(0.3, family="hopper"),
            row(0.4, family="hopper", engine="vllm"),
            row(0.5, device_id="h200-sxm"),
            row(0.9, device_id="h100-sxm", engine="vllm"),
        ]
        for known in range(1, 6):
            for ordered in (rows[:known], rows[:known][::-1]):
                found = resolve_constants([*ordered, rows[5]], device="h200-sxm", family="hopper", engine="vllm")
                assert found.si("link_efficiency") == rows[known - 1].value

    def test_what_random_weights_told_is_true_of_random_weights_alone(self) -> None:
        stated = ConstantPrior("expert_evenness_8bit", "*", "*", "*", 20.0, 0.5, 200.0, "analytical")
        drawn = replace(stated, device="h200-sxm", engine="vllm", value=0.2, llms=("a",), random_weights=True)

        def found(llm: str, *, random_weights: bool) -> float:
            asked = {"device": "h200-sxm", "family": "hopper", "engine": "vllm", "llm": llm}
            known = resolve_constants([stated, drawn], **asked, random_weights=random_weights)
            return known.priors["expert_evenness_8bit"].value

        assert found("a", random_weights=True) == 0.2
        assert found("a", random_weights=False) == found("b", random_weights=True) == 20.0

    def test_the_basis_is_the_weakest(self) -> None:
        assert constants("l40s").basis == "analytical"

    def test_conversion_to_si(self) -> None:
        h200 = constants("h200-sxm")
        assert h200.si("step_overhead_us") == h200.priors["step_overhead_us"].value * 1e-6
        assert h200.values_si()["request_overhead_ms"] == h200.priors["request_overhead_ms"].value * 1e-3
        assert device("h200-sxm").family == "hopper"


class TestDocumentation:
    @pytest.mark.parametrize("name", CONSTANTS)
    def test_every_constant_is_in_the_mathematics(self, name: str) -> None:
        line = next((x for x in MATHEMATICS.read_text().splitlines() if x.startswith(f"| `{name}`")), "")
        assert line, f"docs/mathematics.md has no row for {name}"
        assert f"| {CONSTANTS[name].unit} |" in line


def test_what_is_stated_for_a_model_is_its_own_beside_what_is_fitted() -> None:
    """Fits hold constants of several models beside one another: those that rows state, and those that random weights told."""
    stated, fitted = owned("expert_tile_rows", "a"), owned("expert_evenness_16bit", "a")
    base = constants("h200-sxm", "vllm").with_owners(["expert_evenness_16bit"], ["a"])
    row = replace(base.priors["expert_tile_rows"], value=64.0, llms=("a",))
    whole = Constants(base.subject, {**base.priors, "expert_tile_rows": row})
    several = base.with_stated("a", whole).replaced({fitted: 0.04}, "corrected")
    assert set(several.priors) == {*base.priors, stated}
    both, rows_alone, other = several.owned_by("a"), several.owned_by("a", stated=True), several.owned_by("b")
    assert [one.priors["expert_tile_rows"].value for one in (both, rows_alone)] == [64.0, 64.0]
    assert both.priors["expert_evenness_16bit"].value == 0.04
    assert rows_alone.priors["expert_evenness_16bit"] == base.priors["expert_evenness_16bit"]
    assert other is several
