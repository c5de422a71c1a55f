"""How the plan divides the memory of a device, for engines whose fraction is of something else than all of it."""

from dataclasses import replace

from service.deployments.plan import DeploymentPlan, DeviceMemory, ReplicaKind
from service.recommendations.adapters import adapters_from_wire, with_adapters
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import (
    engine_from_wire,
    layout_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.recommendations.images import image_tokens, images_from_wire, with_images
from solver.deployment.deploy import memory_of_engine
from solver.errors import SolverError
from solver.llm_shape import LlmShape
from solver.memory.fits import memory_plan


def with_memory(plan: DeploymentPlan, snapshot: CatalogSnapshot, shapes: dict[str, LlmShape]) -> DeploymentPlan:
    """The plan with the memory of each kind's devices, reckoned as the prediction did (``solver.memory.fits``)."""
    return replace(plan, kinds=tuple(replace(k, memory=_memory(k, snapshot, shapes[k.model.llm])) for k in plan.kinds))


def _memory(kind: ReplicaKind, snapshot: CatalogSnapshot, shape: LlmShape) -> DeviceMemory | None:
    """None for split devices, and where a figure is missing."""
    line, device = kind.line, snapshot.devices.get(kind.line.device)
    if line.engine_settings is None or line.partition is not None or device is None:
        return None
    try:
        constants = snapshot.constants(device, line.engine, shape.id)
        layout, engine = layout_from_wire(line.layout), engine_from_wire(line.engine_settings)
        taken = memory_of_engine(shape, device, constants, layout, engine)
        precision = precision_from_wire(line.precision)
        found = memory_plan(_served(kind, shape), device.memory_bytes, precision, layout, engine, taken)
    except SolverError:
        return None
    visible = device.memory_bytes - taken.driver_reserve_bytes
    return DeviceMemory(visible, found.weights_bytes, found.kv_cache_bytes, found.kv_cache_tokens)


def _served(kind: ReplicaKind, shape: LlmShape) -> LlmShape:
    """The model with the images and adapters of the workload."""
    asked, traffic = kind.workload.adapters, kind.workload.traffic
    if traffic is not None:
        own = traffic_from_wire(traffic, image_tokens(traffic, shape))
        shape = with_images(shape, images_from_wire(traffic, own, shape))
    return shape if asked is None else with_adapters(shape, adapters_from_wire(asked, (), (kind.line.engine,)))
