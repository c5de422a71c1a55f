"""What was fitted on measured models is handed on: engine and device constants to all, routing to those models alone."""

import pytest

from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import ROUTING, corrected_priors
from solver.step.constants import Constants, owned, resolve_constants
from tests.solver.samples import catalog

CATALOG = catalog()
SET = max(CATALOG.corrections, key=lambda row: row.number)
UNMEASURED = "mixtral-8x22b"


def resolved(llm: str | None) -> Constants:
    rows = (*catalog_priors(CATALOG), *corrected_priors(SET))
    return resolve_constants(rows, device="h200-sxm", family="hopper", engine="vllm", llm=llm)


@pytest.mark.parametrize("name", ROUTING)
def test_routing_of_an_unmeasured_mixture_is_the_catalogs(name: str) -> None:
    """Random weights route unevenly; a trained router that nobody measured is not taken for one of them."""
    default = next(r.value for r in CATALOG.constants if (r.name, r.device, r.family) == (name, "*", "*"))
    assert resolved(UNMEASURED).priors[name].value == default


def fitted_routing(llm: str) -> float:
    return {c.device: c.constants for c in SET.corrections}["h200-sxm"][owned("expert_evenness_8bit", llm)].value


def test_routing_of_a_measured_mixture_is_the_fitted_one() -> None:
    fitted = fitted_routing("qwen3-30b-a3b")
    assert resolved("qwen3-30b-a3b").priors["expert_evenness_8bit"].value == fitted
    assert fitted < resolved(UNMEASURED).priors["expert_evenness_8bit"].value


def test_routing_is_each_measured_models_own() -> None:
    name = "expert_evenness_16bit"
    fitted = {
        resolved(llm).priors[name].value for llm in ("deepseek-v2-lite", "nemotron-3-nano-30b-a3b", "qwen3-30b-a3b")
    }
    assert len(fitted) == 3


def test_constants_of_the_engine_are_the_same_for_every_model() -> None:
    measured, other = resolved("qwen3-30b-a3b"), resolved(UNMEASURED)
    assert {n for n in measured.priors if measured.priors[n].value != other.priors[n].value} == set(ROUTING)
    assert other.priors["step_overhead_us"].basis == "corrected"
