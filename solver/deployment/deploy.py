"""One deployment as asked → a configuration that can run, with its memory, or the reason why it cannot."""

from dataclasses import dataclass, replace

from solver.deployment.configuration import Configuration
from solver.deployment.documented import (
    check_adapters_served,
    check_disk_cache,
    check_embedding_served,
    check_engine_available,
    check_formats_documented,
    check_host_cache,
    check_layout_documented,
    check_options,
)
from solver.deployment.layout_rules import LayoutProblem, layout_problem
from solver.engine.pipelining import stages_work_from
from solver.engine.profiles import engine_profile
from solver.errors import UnsupportedError
from solver.hardware import Device
from solver.layout import Layout
from solver.llm_shape import LlmShape
from solver.memory.fits import (
    EngineMemory,
    MemoryPlan,
    context_limit,
    engine_memory,
    max_concurrent_requests,
    memory_plan,
)
from solver.precision import Precision
from solver.step.constants import Constants
from solver.step.rates import compute_dtype
from solver.workload import EngineSettings, Traffic


def instances_problem(device: Device, layout: Layout) -> LayoutProblem | None:
    """A model copy on an instance of a split device has that one only: instances do not reach each other."""
    if device.partition is None or (layout.devices_per_replica == 1 and layout.expert_parallel == 1):
        return None
    return LayoutProblem(
        "instances_not_joined",
        f"instances of a split device are not joined: a copy of the model runs on one {device.partition.profile}, with"
        " tensor, pipeline and expert parallelism of 1",
    )


@dataclass(frozen=True, slots=True)
class Deployed:
    """A configuration that fits. max_concurrent_requests: of the traffic's mean length, per replica."""

    configuration: Configuration
    memory: MemoryPlan
    max_concurrent_requests: int


def memory_of_engine(
    shape: LlmShape, device: Device, constants: Constants, layout: Layout, engine: EngineSettings
) -> EngineMemory:
    """What an engine with these settings takes on a device beside weights and cache, graphs of all that it captures included.

    Raises FigureMissingError and UnsupportedError.
    """
    graphs = engine_profile(engine.name).graphs_of(shape.family, device.memory_bytes, layout.tensor_parallel, engine)
    return engine_memory(constants.subject, constants.values_si(), graphs.sizes)


def with_seats_for_states(configuration: Configuration) -> Configuration:
    """The deployment with no more seats than an engine with one pool of blocks has recurrent states for: it does not start otherwise.

    Seats are halved until there are few enough, since a cache may be a little smaller than is said. More are no use: a request has a block
    for each group of recurrent layers, and at least one for its tokens.
    """
    here = configuration
    memory = memory_of_engine(here.shape, here.device, here.constants, here.layout, here.engine)
    plan = memory_plan(here.shape, here.device.memory_bytes, here.precision, here.layout, here.engine, memory)
    seats = here.engine.max_sequences
    while seats > max(plan.most_states, 1):
        seats //= 2
    return (
        here if seats == here.engine.max_sequences else replace(here, engine=replace(here.engine, max_sequences=seats))
    )


def seats_doubt(deployed: Deployed) -> str | None:
    """That its engine does not start with so many seats, and with how many it does."""
    most, seats = deployed.memory.most_states, deployed.configuration.engine.max_sequences
    if most >= seats:
        return None
    return (
        f"{deployed.configuration.engine.name} may refuse to start with {seats} seats: its cache has blocks for the recurrent states of"
        f" {most:,} requests (engine.max_sequences)"
    )


def stages_doubt(deployed: Deployed) -> str | None:
    """That its pipeline stages work one after another."""
    configuration, stages = deployed.configuration, deployed.configuration.layout.pipeline_parallel
    if stages == configuration.batches:
        return None
    engine, llm = configuration.engine.name, configuration.shape.id
    since = stages_work_from(engine, configuration.shape)
    return (
        f"{engine} passes one batch at a time through the {stages} stages with {llm}: they do not work at once, so that a replica is "
        f"hardly faster than one stage would be with all layers (layout.pipeline_parallel); from {since} on they do"
    )


def deploy(
    shape: LlmShape,
    device: Device,
    constants: Constants,
    layout: Layout,
    precision: Precision,
    engine: EngineSettings,
    traffic: Traffic,
) -> Deployed:
    """Check and plan one deployment inside one node of the device's own scale-up domain.

    Raises UnsupportedError (engine, precision, layout, context), DoesNotFitError and FigureMissingError.
    """
    check_options(engine)
    check_engine_available(device, engine.name)
    check_formats_documented(device, engine.name, precision)
    check_layout_documented(device, engine.name, layout)
    check_embedding_served(shape, device, engine.name)
    check_adapters_served(shape, device, engine.name, constants)
    compute_dtype(device, precision.weights)
    problem = layout_problem(shape, layout, weights=precision.weights) or instances_problem(device, layout)
    if problem is not None:
        raise UnsupportedError(problem.reason, problem.message)
    longest = traffic.maximum
    limit = context_limit(shape, engine)
    if longest > limit:
        raise UnsupportedError(
            "context_too_long", f"requests of up to {longest} tokens exceed the {limit} tokens this deployment takes"
        )
    memory = memory_of_engine(shape, device, constants, layout, engine)
    plan = memory_plan(shape, device.memory_bytes, precision, layout, engine, memory)
    check_host_cache(engine.name, engine.host_cache_bytes, plan.kv_cache_bytes)
    check_disk_cache(engine.name, engine.version, engine.disk_cache_bytes)
    configuration = Configuration(
        shape=shape,
        device=device,
        constants=constants,
        layout=layout,
        precision=precision,
        engine=engine,
        link_domain_devices=device.link_domain_devices,
        network_bytes_per_s=0.0,
        kv_cache_tokens=float(plan.kv_cache_tokens),
    )
    seats = max_concurrent_requests(plan, traffic.prompt.mean + traffic.output.mean)
    return Deployed(configuration, plan, min(seats * layout.data_parallel, engine.max_sequences * layout.data_parallel))
