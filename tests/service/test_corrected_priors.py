"""What was fitted on measured models is handed on: engine and device constants to all, routing to those models alone, and that of random
weights to random weights alone."""

import pytest

from catalog.borrowings import read_borrowings, read_kept, read_strangers
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import ROUTING, correction_set, in_force, routing_constant
from solver.corrections.applied import found_for
from solver.step.constants import Constants, owned, resolve_constants
from tests.solver.samples import catalog

CATALOG = catalog()
SET = max(CATALOG.corrections, key=lambda row: row.number)
UNMEASURED = "mixtral-8x22b"


def resolved(llm: str | None, *, random_weights: bool = False) -> Constants:
    rows = in_force(SET, catalog_priors(CATALOG))
    return resolve_constants(
        rows, device="h200-sxm", family="hopper", engine="vllm", llm=llm, random_weights=random_weights
    )


def stated(name: str) -> float:
    return next(r.value for r in CATALOG.constants if (r.name, r.device, r.family) == (name, "*", "*"))


@pytest.mark.parametrize("name", ROUTING)
@pytest.mark.parametrize("random_weights", [False, True])
def test_routing_of_an_unmeasured_mixture_is_the_catalogs(name: str, random_weights: bool) -> None:
    """Random weights of other models say nothing of it, and nobody knows how its own would route."""
    assert resolved(UNMEASURED, random_weights=random_weights).priors[name].value == stated(name)


def fitted_routing(llm: str) -> float:
    return {c.device: c.constants for c in SET.corrections}["h200-sxm"][owned("expert_evenness_8bit", llm)].value


def test_random_weights_of_a_measured_mixture_route_as_fitted_and_trained_ones_as_the_catalog_says() -> None:
    name = "expert_evenness_8bit"
    fitted = fitted_routing("qwen3-30b-a3b")
    assert resolved("qwen3-30b-a3b", random_weights=True).priors[name].value == fitted
    assert resolved("qwen3-30b-a3b").priors[name].value == stated(name) > fitted


def test_routing_is_each_measured_models_own() -> None:
    name = "expert_evenness_16bit"
    fitted = {
        resolved(llm, random_weights=True).priors[name].value
        for llm in ("deepseek-v2-lite", "nemotron-3-nano-30b-a3b", "qwen3-30b-a3b")
    }
    assert len(fitted) == 3


def test_constants_of_the_engine_are_the_same_for_every_model() -> None:
    measured, other = resolved("qwen3-30b-a3b", random_weights=True), resolved(UNMEASURED)
    assert {n for n in measured.priors if measured.priors[n].value != other.priors[n].value} == set(ROUTING)
    assert other.priors["step_overhead_us"].basis == "corrected"


def shares(device_id: str, engine: str) -> Constants:
    rows = in_force(SET, catalog_priors(CATALOG))
    return resolve_constants(rows, device=device_id, family=CATALOG.devices[device_id].family, engine=engine)


def test_others_borrow_what_belongs_to_devices_and_kernels_and_only_where_that_was_found_better() -> None:
    for row in read_borrowings():
        home = max(
            (c for c in SET.corrections if (c.family, c.engine) == (row.from_family, row.from_engine)),
            key=lambda c: sum(len(e.benchmarks) for e in c.evidence),
        )
        fitted = home.constants["weight_read_efficiency"].value
        device = next(d.id for d in CATALOG.devices.values() if d.family == row.family and d.id != home.device)
        taken = shares(device, row.engine).priors["weight_read_efficiency"]
        assert (taken.value, taken.basis) == (fitted, "borrowed")
        assert taken.low <= row.low_fraction * fitted * 1.001
        assert taken.high <= 1.0
    fitted = resolved(None).priors["weight_read_efficiency"].value
    assert shares("h200-sxm", "sglang").priors["weight_read_efficiency"].value != fitted
    assert shares("mi300x", "vllm").priors["weight_read_efficiency"].value != fitted


def test_what_is_kept_speaks_for_its_device_alone() -> None:
    known = correction_set(SET)
    for row in read_kept():
        own = [c for c in SET.corrections if (c.family, c.engine) == (row.family, row.engine)]
        assert own
        sibling = next(
            d for d in CATALOG.devices.values() if d.family == row.family and d.id not in {c.device for c in own}
        )
        assert shares(own[0].device, row.engine).priors["weight_read_efficiency"].basis == "corrected"
        assert shares(sibling.id, row.engine).priors["weight_read_efficiency"].basis == "analytical"
        assert found_for(known, own[0].device, row.family, row.engine) is not None
        assert found_for(known, sibling.id, row.family, row.engine) is None


def test_strangers_take_the_constants_of_their_family_and_not_its_intervals() -> None:
    known = correction_set(SET)
    for row in read_strangers():
        for device in row.devices:
            family = CATALOG.devices[device].family
            assert any(c.family == family for c in SET.corrections)
            assert found_for(known, device, family, row.engine) is None
            assert shares(device, row.engine).priors["weight_read_efficiency"].basis == "borrowed"
    assert found_for(known, "gh200-144", "hopper", "vllm") is not None


def test_an_engines_host_is_not_borrowed() -> None:
    measured, other = resolved(None), shares("h200-sxm", "tensorrt-llm")
    for name in ("step_overhead_us", "eager_layer_us", "request_overhead_ms"):
        assert other.priors[name].value != measured.priors[name].value


def test_random_routing_is_what_lies_below_what_trained_routers_are_expected_to_do() -> None:
    """And only of runs whose weights were random: configurations whose experts were drawn evenly have no routing of their own."""
    least = {p.name: p.low for p in catalog_priors(CATALOG) if p.name in ROUTING and (p.device, p.family) == ("*", "*")}
    of_random, of_trained = set(), set()
    for correction in SET.corrections:
        for row in correction.evidence:
            name = routing_constant(row.weights)
            fitted = correction.constants.get(owned(name, row.llm))
            if row.random_routing:
                assert fitted is not None
                assert fitted.value < least[name]
                of_random.add((row.llm, row.weights))
            else:
                of_trained.add((row.llm, row.weights))
    assert ("qwen3-30b-a3b", "fp8") in of_random & of_trained
    assert ("qwen3-30b-a3b", "bf16") in of_trained - of_random
