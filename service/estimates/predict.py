"""One resolved case to the solver, and its prediction back to the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from catalog.engine_recipes import documented_admission_interval
from service.estimates.roofline import present_roofline
from service.recommendations.adapters import adapters_from_wire, present_adapters, with_adapters
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import (
    engine_from_wire,
    layout_from_wire,
    load_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.recommendations.front_end import front_end_doubt
from service.recommendations.images import image_tokens, images_from_wire, present_images, with_images
from service.recommendations.lasting_queue import lasting_queue_doubt, present_lasting_queue
from service.recommendations.present import present_interval, present_percentiles, present_power
from service.wire.deployment import EngineIn
from service.wire.estimates import (
    BottleneckOut,
    BoundOut,
    DisaggregatedOut,
    DoesNotFitOut,
    EstimatedOut,
    EstimateIn,
    MemoryOut,
    RooflineOut,
    SaturatedOut,
    StepTermOut,
    UnsupportedOut,
)
from service.wire.lasting_queue import LastingQueueOut
from service.wire.roles import DraftModelIn, SpeculativeOut
from solver.corrections.applied import configuration_correction
from solver.corrections.random_routing import measured_with_random_weights, random_routing_doubt
from solver.deployment.configuration import Configuration
from solver.deployment.context import extension_doubt, served_context_tokens
from solver.deployment.deploy import Deployed, deploy, seats_doubt, stages_doubt
from solver.deployment.documented import check_draft_model_captured, draft_model_caution
from solver.deployment.kept_tables import TablesOf
from solver.deployment.speculative import DraftModel, deploy_speculative
from solver.engine.speculative import expected_tokens_per_step
from solver.errors import FigureMissingError, UnsupportedError
from solver.hardware import Device, Node
from solver.llm_shape import LlmShape, makes_no_tokens, token_ids_not_items
from solver.memory.fits import context_limit
from solver.prediction.estimate import Estimate, estimate, without_probes
from solver.prediction.front_end import front_end_fraction
from solver.sessions import served_within
from solver.step.constants import Constants
from solver.step.named_terms import Term
from solver.units import gib_from_bytes
from solver.workload import SpeculativeDecoding, Traffic, check_prompts_fit

Outcome = EstimatedOut | DoesNotFitOut | UnsupportedOut | SaturatedOut


@dataclass(frozen=True)
class Case:
    """One deployment whose names are all known."""

    asked: EstimateIn
    shape: LlmShape
    device: Device
    snapshot: CatalogSnapshot
    shapes: Mapping[str, LlmShape]
    """Of every model named, a draft's among them."""
    ran: bool = False
    """It was measured: that it took its requests needs no source."""


def predict(case: Case, tables_of: TablesOf = Configuration.tables) -> EstimatedOut:
    """Runs in a solver thread. tables_of: as of ``estimate``. Raises what the solver raises: ``present.outcome_of`` turns
    that into an outcome."""
    if case.shape.embeds and own_traffic(case.asked, case.shape).output.maximum > 1:
        raise UnsupportedError("makes_no_tokens", makes_no_tokens(case.asked.llm))
    if case.asked.traffic.token_ids_fraction and not case.shape.embeds:
        raise UnsupportedError("not_items", token_ids_not_items(case.asked.llm))
    asked = as_documented(case.asked if case.ran else with_context(case.asked, case.shape), case.device)
    traffic, clipped = served_traffic(asked, case.shape)
    asked, shape = served_shape(asked, case.shape, traffic)
    deployed = deploy(
        shape,
        case.device,
        constants_for(case.snapshot, case.device, asked.engine, case.shape),
        layout_from_wire(asked.layout),
        precision_from_wire(asked.precision),
        engine_from_wire(asked.engine),
        traffic,
    )
    deployed = replace(deployed, configuration=_joined(case, deployed.configuration))
    deployed, speculative = with_drafting(case, deployed, traffic)
    load = load_from_wire(asked.load)
    correction = configuration_correction(case.snapshot.corrections, deployed.configuration, load)
    found = estimate(deployed.configuration, traffic, load, correction, tables_of)
    roofline = present_roofline(without_probes(deployed.configuration, correction), traffic, found)
    said = present_estimate(
        asked, deployed, found, speculative=speculative, roofline=roofline, clipped_fraction=clipped
    )
    if found.basis == "measured" or not measured_with_random_weights(case.snapshot.corrections, deployed.configuration):
        return said
    return said.model_copy(update={"cautions": [*said.cautions, random_routing_doubt(found.basis)]})


def own_traffic(asked: EstimateIn, shape: LlmShape) -> Traffic:
    """The requests, with the tokens that the model makes of their images."""
    return traffic_from_wire(asked.traffic, image_tokens(asked.traffic, shape))


def served_shape(asked: EstimateIn, shape: LlmShape, traffic: Traffic) -> tuple[EstimateIn, LlmShape]:
    """The model with the images and adapters of the case; of an open load, and of sessions, no more requests at once than name
    as many adapters on average as there are slots. Of a closed load who waits for a slot is simulated."""
    shape = with_images(shape, images_from_wire(asked.traffic, traffic, shape))
    shape = replace(
        shape,
        guided_fraction=asked.traffic.structured_fraction,
        token_ids_fraction=asked.traffic.token_ids_fraction,
    )
    if asked.adapters is None:
        return asked, shape
    adapters = adapters_from_wire(asked.adapters, (traffic,), (asked.engine.name,))
    load = asked.load
    most = adapters.most_sequences
    if load.kind == "closed" and asked.traffic.sessions is None:
        most = asked.engine.max_sequences
    elif load.kind == "closed":
        most = adapters.running(-(-load.concurrency // asked.layout.data_parallel))
    engine = asked.engine.model_copy(update={"max_sequences": min(asked.engine.max_sequences, max(1, most))})
    return asked.model_copy(update={"engine": engine}), with_adapters(shape, adapters)


def _with_disk(node: Node, configuration: Configuration) -> Configuration:
    """The deployment with its devices' share of the node's disks. Raises FigureMissingError or UnsupportedError where one is asked
    for that is not known, or not there."""
    asked_bytes = configuration.engine.disk_cache_bytes * node.devices
    if not asked_bytes:
        return configuration
    if not node.local_disk_bytes:
        raise FigureMissingError(node.id, "local_disk_gib")
    rate = configuration.engine.disk_bytes_per_s or node.local_disk_bytes_per_s / node.devices
    if not rate:
        raise FigureMissingError(node.id, "local_disk_read_gbytes_per_s")
    if asked_bytes > node.local_disk_bytes:
        raise UnsupportedError(
            "local_disk_exceeded",
            f"disk_cache_gib for each of {node.devices} devices exceeds the {gib_from_bytes(node.local_disk_bytes):g} GiB of"
            f" {node.id}'s disks",
        )
    return replace(configuration, engine=replace(configuration.engine, disk_bytes_per_s=rate))


def _joined(case: Case, configuration: Configuration) -> Configuration:
    """The deployment on the machine named, or with the links of any machine that holds it.

    Raises UnsupportedError for a replica larger than a machine that joins no others.
    """
    layout = configuration.layout
    size = layout.devices if layout.expert_parallel > layout.tensor_parallel else layout.devices_per_replica
    if case.asked.partition is not None:
        return configuration
    if case.asked.node is None:
        domains = [
            node.link_domain_devices
            for node in case.snapshot.nodes.values()
            if node.device.id == case.device.id and node.devices >= size
        ]
        return replace(configuration, link_domain_devices=min(domains, default=configuration.link_domain_devices))
    node = case.snapshot.nodes[case.asked.node]
    configuration = _with_disk(node, configuration)
    asked_bytes = configuration.engine.host_cache_bytes * node.devices
    if asked_bytes and not node.host_memory_bytes:
        raise FigureMissingError(node.id, "host_memory_gib")
    if asked_bytes > node.host_memory_bytes:
        raise UnsupportedError(
            "host_memory_exceeded",
            f"host_cache_gib beside each of {node.devices} devices exceeds the {gib_from_bytes(node.host_memory_bytes):g} GiB of"
            f" {node.id}'s host",
        )
    if size <= node.devices:
        return replace(configuration, link_domain_devices=node.link_domain_devices)
    if node.network_bytes_per_s <= 0.0:
        raise UnsupportedError(
            "layout_exceeds_node",
            f"a replica of {size} devices does not fit {node.id}, which has {node.devices} and no network to join others",
        )
    return replace(
        configuration,
        link_domain_devices=node.link_domain_devices,
        network_bytes_per_s=node.network_bytes_per_s / node.devices,
    )


def with_context(asked: EstimateIn, shape: LlmShape) -> EstimateIn:
    """The case with the context it is served with stated. Raises what ``served_context_tokens`` raises."""
    context = served_context_tokens(shape, asked.engine.max_context_tokens, own_traffic(asked, shape).maximum)
    return asked.model_copy(update={"engine": asked.engine.model_copy(update={"max_context_tokens": context})})


def as_documented(asked: EstimateIn, device: Device) -> EstimateIn:
    """The case with what it does not say of its server as the engine's documentation starts the model there.

    Of an open load nobody knows beforehand how many requests are in flight: the documentation's first choice, for few.
    """
    if asked.engine.admission_interval_steps is not None:
        return asked
    clients = asked.load.concurrency if asked.load.kind == "closed" else 1
    steps = documented_admission_interval(asked.engine.name, device.id, asked.llm, clients)
    return asked.model_copy(update={"engine": asked.engine.model_copy(update={"admission_interval_steps": steps})})


def served_traffic(asked: EstimateIn, shape: LlmShape) -> tuple[Traffic, float]:
    """The requests as the engine serves them, and the share that it cuts; uncut where the case forbids that."""
    traffic = own_traffic(asked, shape)
    if asked.over_context == "refuse":
        return traffic, 0.0
    context = context_limit(shape, engine_from_wire(asked.engine))
    check_prompts_fit(traffic, context)
    return served_within(traffic, context)


def constants_for(snapshot: CatalogSnapshot, device: Device, engine: EngineIn, shape: LlmShape) -> Constants:
    """The constants of a device under an engine for a model."""
    return snapshot.constants(device, engine.name, shape.id, random_weights=engine.load_format == "dummy")


def with_drafting(case: Case, deployed: Deployed, traffic: Traffic) -> tuple[Deployed, SpeculativeOut | None]:
    """The deployment as it drafts, if it does. Raises what ``deploy_speculative`` raises."""
    asked = case.asked.engine.speculative
    if asked is None:
        return deployed, None
    draft = None
    share = None if isinstance(asked, DraftModelIn) else asked.draft_step_fraction
    if isinstance(asked, DraftModelIn):
        check_draft_model_captured(case.asked.engine.name, case.asked.engine.version)
        shape = case.shapes[asked.draft_llm]
        weights = asked.draft_weights or deployed.configuration.precision.weights
        constants = constants_for(case.snapshot, case.device, case.asked.engine, shape)
        draft = DraftModel(shape, weights, constants)
    decoding = SpeculativeDecoding(asked.draft_tokens, asked.acceptance_fraction, share)
    mean_context = traffic.prompt.mean + traffic.output.mean
    drafting, memory = deploy_speculative(deployed, decoding, draft, traffic.output, mean_context)
    return drafting, SpeculativeOut(
        tokens_per_step=expected_tokens_per_step(decoding.draft_tokens, decoding.acceptance_fraction),
        draft_weights_gib=None if memory is None else round(gib_from_bytes(memory.weights_bytes), 3),
        draft_kv_cache_gib=None if memory is None else round(gib_from_bytes(memory.kv_cache_bytes), 3),
        caution=None if draft is None else draft_model_caution(case.asked.engine.name),
    )


def present_memory(deployed: Deployed) -> MemoryOut:
    memory = deployed.memory
    return MemoryOut(
        weights_gib=round(gib_from_bytes(memory.weights_bytes), 3),
        kv_cache_gib=round(gib_from_bytes(memory.kv_cache_bytes), 3),
        activations_gib=round(gib_from_bytes(memory.activations_bytes), 3),
        reserved_gib=round(gib_from_bytes(memory.reserved_bytes), 3),
        kv_cache_tokens=0 if memory.cache.is_none else memory.kv_cache_tokens,
        max_concurrent_requests=deployed.max_concurrent_requests,
    )


def present_step(terms: tuple[Term, ...]) -> list[StepTermOut]:
    return [StepTermOut(term=t.name, ms=round(t.seconds * 1e3, 5)) for t in terms]


def _cautions(asked: EstimateIn, deployed: Deployed, queue: LastingQueueOut | None, busy: float | None) -> list[str]:
    """What is to be known of a prediction and is not in its figures."""
    doubts = [
        extension_doubt(deployed.configuration.shape, asked.engine.max_context_tokens or 0),
        seats_doubt(deployed),
        stages_doubt(deployed),
    ]
    if queue is not None and asked.load.kind == "open":
        doubts.append(lasting_queue_doubt(queue, asked.load.requests_per_s, asked.engine.max_sequences))
    if busy is not None:
        doubts.append(front_end_doubt(deployed.configuration, busy))
    return [doubt for doubt in doubts if doubt is not None]


def assumed(asked: EstimateIn) -> dict[str, Any]:
    """The deployment as it was understood, defaults filled in."""
    return {
        "partition": asked.partition,
        "node": asked.node,
        "layout": asked.layout if asked.disaggregated is None else None,
        "precision": asked.precision,
        "engine": asked.engine,
        "disaggregated": asked.disaggregated,
    }


def present_estimate(
    asked: EstimateIn,
    deployed: Deployed,
    found: Estimate,
    *,
    speculative: SpeculativeOut | None = None,
    pools: DisaggregatedOut | None = None,
    roofline: RooflineOut | None = None,
    clipped_fraction: float = 0.0,
) -> EstimatedOut:
    """A prediction on the wire: milliseconds, GiB, and every default echoed. deployed: the one that decodes."""
    power = present_power(found.power_w)
    queue = present_lasting_queue(found.lasting_queue)
    rate = found.output_tokens_per_s.expected
    busy = None if pools is not None else front_end_fraction(deployed.configuration, rate)
    return EstimatedOut(
        outcome="estimated",
        basis=found.basis,
        evidence=list(found.evidence),
        ttft_ms=present_percentiles(found.time_to_first_token_s),
        tpot_ms=present_percentiles(found.time_per_output_token_s),
        itl_ms=present_percentiles(found.inter_token_s),
        e2e_ms=present_percentiles(found.end_to_end_s),
        ttfat_ms=None if found.time_to_first_answer_s is None else present_percentiles(found.time_to_first_answer_s),
        prefix_hit_fraction=found.prefix_hit_fraction,
        routed_over=found.routed_over,
        output_tokens_per_s=present_interval(found.output_tokens_per_s),
        requests_per_s=present_interval(found.requests_per_s),
        power_w=power,
        joules_per_output_token=present_interval(found.joules_per_output_token) if power else None,
        memory=present_memory(deployed),
        bottleneck=BottleneckOut(prefill=found.prefill_bottleneck, decode=found.decode_bottleneck),
        step=present_step(found.step),
        bound=BoundOut(
            tpot_ms=found.bound.time_per_output_token_s * 1e3, output_tokens_per_s=found.bound.output_tokens_per_s
        ),
        roofline=roofline,
        clipped_fraction=clipped_fraction,
        cautions=_cautions(asked, deployed, queue, busy),
        speculative=speculative,
        images=present_images(deployed.configuration),
        adapters=present_adapters(deployed.configuration, found.decoding_sequences),
        pools=pools,
        lasting_queue=queue,
        front_end_fraction=busy,
        **assumed(asked),
    )
