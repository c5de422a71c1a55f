"""What was measured with experts that random weights chose reaches such servers alone."""

from dataclasses import replace

import pytest

from service.corrections.cells import cell_from_text, cell_text
from solver.corrections.applied import (
    Cell,
    CellEvidence,
    CorrectionSet,
    EngineCorrection,
    Evidence,
    correction_for,
)
from solver.corrections.kin import Shrinkage
from solver.corrections.random_routing import measured_with_random_weights
from solver.deployment.configuration import Configuration
from solver.layout import Layout
from solver.precision import Precision
from solver.prediction.estimate import Correction
from tests.llm_shapes import shape
from tests.solver.samples import configuration

PRECISION = Precision("fp8", "fp16")
MIXTURE, DENSE = "qwen3-30b-a3b", "llama-3.1-8b"
TRAINED = Cell("h200-sxm", "vllm", MIXTURE, PRECISION, Layout())
DRAWN = replace(TRAINED, random_routing=True)


def catalog_of(*evidence: Evidence) -> CorrectionSet:
    spreads = {("moe", "time_per_output_token"): (0.9, 1.1)}
    known = EngineCorrection(
        device="h200-sxm", family="hopper", engine="vllm", versions=("0.24.0",), constants={}, evidence=evidence, spreads=spreads,
        own_spreads=spreads, precisions=frozenset({("fp8", "fp16", "moe")}), borrowed_widening=2.0, unseen_widening=2.0,
    )  # fmt: skip
    return CorrectionSet(1, (known,), {})


def measured(*, random_routing: bool) -> CorrectionSet:
    factors = {"time_per_output_token": 1.2}
    return catalog_of(Evidence(MIXTURE, PRECISION, Layout(), ("run",), factors, random_routing))


def uploaded(current: CorrectionSet, cell: Cell) -> CorrectionSet:
    return current.with_uploads(2, {cell: CellEvidence(("0.24.0",), ("upload",), {"power": 1.3})}, ())


def asked(current: CorrectionSet, cell: Cell, *, kin: bool = False) -> Correction:
    found = correction_for(
        current, device=cell.device, family="hopper", engine=cell.engine, version=None, llm=cell.llm, model_class="moe",
        precision=cell.precision, layout=cell.layout, random_routing=cell.random_routing,
        kin_shrinkage=(lambda: Shrinkage(1.0, 1.0, 0.8)) if kin else None,
    )  # fmt: skip
    assert found is not None
    return found


def served(llm: str = MIXTURE, *, random_weights: bool = False) -> Configuration:
    one = configuration(shape(llm), "h200-sxm", precision=PRECISION)
    return replace(one, engine=replace(one.engine, random_weights=random_weights))


class TestTheCatalogsRuns:
    def test_with_uneven_routing_are_measured_for_random_weights_and_correct_trained_ones(self) -> None:
        current = measured(random_routing=True)
        assert asked(current, DRAWN).basis == "measured"
        trained = asked(current, TRAINED)
        assert (trained.basis, trained.factors) == ("corrected", {})

    def test_with_routing_as_even_as_trained_are_measured_for_both(self) -> None:
        current = measured(random_routing=False)
        assert asked(current, DRAWN) == asked(current, TRAINED)
        assert asked(current, TRAINED).basis == "measured"


class TestUploads:
    @pytest.mark.parametrize(("one", "other"), [(DRAWN, TRAINED), (TRAINED, DRAWN)])
    def test_teach_the_weights_they_had(self, one: Cell, other: Cell) -> None:
        bare = catalog_of()
        current = uploaded(bare, one)
        assert asked(current, one).evidence == ("upload",)
        assert asked(current, other, kin=True) == asked(bare, other)

    @pytest.mark.parametrize("cell", [DRAWN, TRAINED])
    def test_reach_other_layouts_of_the_same_weights(self, cell: Cell) -> None:
        current = uploaded(catalog_of(), cell)
        beside = replace(cell, layout=Layout(2))
        assert asked(current, beside, kin=True).factors
        assert not asked(current, replace(beside, random_routing=not cell.random_routing), kin=True).factors


@pytest.mark.parametrize("cell", [DRAWN, TRAINED])
def test_a_cell_is_read_back_from_its_text(cell: Cell) -> None:
    assert cell_from_text(cell_text(cell)) == cell
    assert cell_text(DRAWN) != cell_text(TRAINED)


class TestDoubt:
    """That runs exist which say nothing of what is asked."""

    def test_of_trained_weights_where_runs_had_random_ones(self) -> None:
        for current in (measured(random_routing=True), uploaded(catalog_of(), DRAWN)):
            assert measured_with_random_weights(current, served())
            assert not measured_with_random_weights(current, served(random_weights=True))

    def test_none_where_runs_hold_or_there_are_none(self) -> None:
        for current in (measured(random_routing=False), catalog_of(), uploaded(catalog_of(), TRAINED), None):
            assert not measured_with_random_weights(current, served())

    def test_none_of_models_without_experts(self) -> None:
        """Random weights of a dense model do the work of trained ones."""
        assert not served(DENSE, random_weights=True).random_routing
        assert not measured_with_random_weights(measured(random_routing=True), served(DENSE))
