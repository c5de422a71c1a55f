"""A line of a plan as it is sent."""

from collections.abc import Callable

from service.recommendations.lasting_queue import present_lasting_queue
from service.recommendations.money import usd
from service.recommendations.partitions import present_partition
from service.recommendations.present import present_interval, present_percentiles, present_power
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.plan_lines import LineSourceOut, PlanLineOut, PredictedOut
from service.wire.roles import DraftingEngineIn, StatedDraftIn
from service.wire.traffic_classes import ClassLineOut, ClassPredictedOut
from solver.hardware import Offer
from solver.planning.types import ClassLoad, PlanEntry
from solver.prediction.estimate import Estimate
from solver.prediction.front_end import front_end_fraction
from solver.units import gbytes_per_s, gib_from_bytes
from solver.workload import SpeculativeDecoding

Ask = Callable[[Offer], LineSourceOut]
"""What the buying policy asks of an offer."""


def present_line(entry: PlanEntry, source: Ask | None = None) -> PlanLineOut:
    """One line of a plan; without a prediction where none was made."""
    layout, precision = entry.configuration.layout, entry.configuration.precision
    settings, drafting = entry.configuration.engine, entry.configuration.speculation
    return PlanLineOut(
        workload=entry.workload,
        role=entry.role,
        offer=entry.offer.id,
        provider=entry.offer.provider,
        region=entry.offer.region,
        commitment=entry.offer.commitment,
        node=entry.offer.node.id,
        device=entry.offer.node.device.id,
        partition=present_partition(entry.configuration.device),
        engine=entry.configuration.engine.name,
        nodes=entry.nodes,
        replicas=entry.replicas,
        layout=LayoutIn(
            tensor_parallel=layout.tensor_parallel,
            pipeline_parallel=layout.pipeline_parallel,
            data_parallel=layout.data_parallel,
            expert_parallel=layout.expert_parallel,
        ),
        precision=PrecisionIn(weights=precision.weights, kv_cache=precision.kv_cache),
        engine_settings=DraftingEngineIn(
            name=settings.name,
            version=settings.version,
            release="planned",
            max_batched_tokens=settings.max_batched_tokens,
            max_sequences=settings.max_sequences,
            memory_fraction=settings.memory_fraction,
            max_context_tokens=settings.max_context_tokens,
            host_cache_gib=gib_from_bytes(settings.host_cache_bytes),
            disk_cache_gib=gib_from_bytes(settings.disk_cache_bytes),
            disk_read_gbytes_per_s=None
            if settings.disk_bytes_per_s is None
            else gbytes_per_s(settings.disk_bytes_per_s),
            admission_interval_steps=settings.admission_interval_steps,
            api_servers=settings.api_servers,
            max_captured_tokens=settings.max_captured_tokens,
            speculative=None if drafting is None else _drafting(drafting.decoding),
        ),
        max_concurrency=entry.max_concurrency,
        serves_requests_per_s=entry.serves_requests_per_s,
        utilisation_fraction=min(1.0, entry.utilisation_fraction),
        network_ms=None if entry.network_s is None else entry.network_s * 1e3,
        predicted=None if entry.estimate is None else _predicted(entry, entry.estimate),
        basis=entry.estimate.basis if entry.estimate else entry.configuration.constants.basis,
        usd_per_hour=usd(entry.usd_per_hour),
        classes=[_class_line(entry, one, one.name) for one in entry.classes if one.name is not None],
        source=None if source is None else source(entry.offer),
    )


def _drafting(decoding: SpeculativeDecoding) -> StatedDraftIn:
    return StatedDraftIn.model_validate(
        {
            "method": decoding.method,
            "draft_tokens": decoding.draft_tokens,
            "acceptance_fraction": decoding.acceptance_fraction,
            "draft_step_fraction": decoding.draft_step_fraction,
            "draft_cost_source": decoding.cost_source,
        }
    )


def _class_line(entry: PlanEntry, one: ClassLoad, name: str) -> ClassLineOut:
    found = one.estimate
    return ClassLineOut(
        traffic_class=name,
        serves_requests_per_s=one.requests_per_s,
        share_fraction=min(1.0, one.share_fraction),
        predicted=None
        if found is None
        else ClassPredictedOut(
            ttft_ms=present_percentiles(found.time_to_first_token_s),
            tpot_ms=present_percentiles(found.time_per_output_token_s),
            e2e_ms=present_percentiles(found.end_to_end_s),
            output_tokens_per_s=present_interval(found.output_tokens_per_s, float(entry.replicas)),
        ),
        basis=found.basis if found is not None else entry.configuration.constants.basis,
    )


def _predicted(entry: PlanEntry, found: Estimate) -> PredictedOut:
    """Latencies of one replica; rate and power of all replicas of the line. Of pools apart it is not said what passes tokens on."""
    replicas, rate = entry.replicas, found.output_tokens_per_s.expected
    return PredictedOut(
        ttft_ms=present_percentiles(found.time_to_first_token_s),
        tpot_ms=present_percentiles(found.time_per_output_token_s),
        e2e_ms=present_percentiles(found.end_to_end_s),
        output_tokens_per_s=present_interval(found.output_tokens_per_s, float(replicas)),
        power_w=present_power(found.power_w, float(replicas)),
        ttfat_ms=None if found.time_to_first_answer_s is None else present_percentiles(found.time_to_first_answer_s),
        prefix_hit_fraction=found.prefix_hit_fraction,
        routed_over=found.routed_over,
        lasting_queue=present_lasting_queue(found.lasting_queue),
        front_end_fraction=front_end_fraction(entry.configuration, rate) if entry.role == "aggregated" else None,
    )
