"""Layouts worth considering for a replica on a platform."""

from solver.deployment.layout_rules import layout_problem
from solver.deployment.platforms import Platform
from solver.layout import Layout
from solver.llm_shape import LlmShape

TENSOR_PARALLEL_DEGREES = (1, 2, 4, 8, 16, 32, 64)
PIPELINE_DEGREES_IN_NODE = (1, 2, 4, 8)
MOST_NODES_PER_REPLICA = 64
"""How far a model that fits no single node is spread. Degrees are powers of two: replicas then pack nodes exactly."""


def replica_layouts(shape: LlmShape, platform: Platform, weights: str) -> list[tuple[Layout, int]]:
    """(layout, nodes per replica) to consider on a platform.

    Inside a node: powers of two of tensor and pipeline parallelism; experts cut or spread; for mixtures of experts also
    data-parallel attention with experts spread over the whole node. Over nodes: tensor parallelism inside a node,
    pipeline stages across.
    """
    found: list[tuple[Layout, int]] = []
    most = platform.devices

    def add(layout: Layout, nodes: int) -> None:
        if layout_problem(shape, layout, weights=weights) is None:
            found.append((layout, nodes))

    tensors = [t for t in TENSOR_PARALLEL_DEGREES if t <= most]
    for tensor in tensors:
        for stages in PIPELINE_DEGREES_IN_NODE:
            if tensor * stages > most:
                break
            add(Layout(tensor, stages, 1, 1), 1)
            if shape.is_moe and tensor > 1:
                add(Layout(tensor, stages, 1, tensor), 1)
    if shape.is_moe and most > 1 and most & (most - 1) == 0:
        add(Layout(1, 1, most, most), 1)
    if platform.network_bytes_per_s > 0:
        inside = [layout.tensor_parallel for layout, _ in found if layout.pipeline_parallel == 1]
        widest = max(inside, default=1)
        nodes = 2
        while nodes <= MOST_NODES_PER_REPLICA:
            add(Layout(widest, nodes * max(1, most // widest), 1, 1), nodes)
            nodes *= 2
    return found
