"""One resolved case to the solver, and its prediction back to the wire."""

from dataclasses import dataclass

from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.present import present_interval, present_percentiles, present_power
from service.recommendations.snapshot import (
    engine_from_wire,
    layout_from_wire,
    load_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.wire.estimates import (
    BottleneckOut,
    BoundOut,
    DoesNotFitOut,
    EstimatedOut,
    EstimateIn,
    MemoryOut,
    SaturatedOut,
    StepTermOut,
    UnsupportedOut,
)
from solver.corrections.sets import configuration_correction
from solver.deploy import Deployed, deploy
from solver.estimate import Estimate, estimate
from solver.hardware import Device
from solver.llm_shape import LlmShape
from solver.step.constants import resolve_constants
from solver.units import gib_from_bytes

Outcome = EstimatedOut | DoesNotFitOut | UnsupportedOut | SaturatedOut


@dataclass(frozen=True)
class Case:
    """One deployment whose names are all known."""

    asked: EstimateIn
    shape: LlmShape
    device: Device
    snapshot: CatalogSnapshot


def predict(case: Case) -> EstimatedOut:
    """Runs in a solver thread. Raises what the solver raises: ``present.outcome_of`` turns that into an outcome."""
    asked = case.asked
    traffic = traffic_from_wire(asked.traffic)
    constants = resolve_constants(
        case.snapshot.priors,
        device=case.device.id,
        family=case.device.family,
        engine=asked.engine.name,
        llm=case.shape.id,
    )
    deployed = deploy(
        case.shape,
        case.device,
        constants,
        layout_from_wire(asked.layout),
        precision_from_wire(asked.precision),
        engine_from_wire(asked.engine),
        traffic,
    )
    correction = configuration_correction(case.snapshot.corrections, deployed.configuration)
    found = estimate(deployed.configuration, traffic, load_from_wire(asked.load), correction)
    return present_estimate(asked, deployed, found)


def present_estimate(asked: EstimateIn, deployed: Deployed, found: Estimate) -> EstimatedOut:
    """A prediction on the wire: milliseconds, GiB, and every default echoed."""
    memory = deployed.memory
    power = present_power(found.power_w)
    return EstimatedOut(
        outcome="estimated",
        basis=found.basis,
        evidence=list(found.evidence),
        ttft_ms=present_percentiles(found.time_to_first_token_s),
        tpot_ms=present_percentiles(found.time_per_output_token_s),
        itl_ms=present_percentiles(found.inter_token_s),
        e2e_ms=present_percentiles(found.end_to_end_s),
        output_tokens_per_s=present_interval(found.output_tokens_per_s),
        requests_per_s=present_interval(found.requests_per_s),
        power_w=power,
        joules_per_output_token=present_interval(found.joules_per_output_token) if power else None,
        memory=MemoryOut(
            weights_gib=round(gib_from_bytes(memory.weights_bytes), 3),
            kv_cache_gib=round(gib_from_bytes(memory.kv_cache_bytes), 3),
            activations_gib=round(gib_from_bytes(memory.activations_bytes), 3),
            reserved_gib=round(gib_from_bytes(memory.reserved_bytes), 3),
            kv_cache_tokens=memory.kv_cache_tokens,
            max_concurrent_requests=deployed.max_concurrent_requests,
        ),
        bottleneck=BottleneckOut(prefill=found.prefill_bottleneck, decode=found.decode_bottleneck),
        step=[StepTermOut(term=t.name, ms=round(t.seconds * 1e3, 5)) for t in found.step],
        bound=BoundOut(
            tpot_ms=found.bound.time_per_output_token_s * 1e3, output_tokens_per_s=found.bound.output_tokens_per_s
        ),
        layout=asked.layout,
        precision=asked.precision,
        engine=asked.engine,
    )
