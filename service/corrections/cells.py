"""A cell as text: what results of one configuration are gathered by in the database."""

from solver.corrections.applied import Cell
from solver.layout import Layout
from solver.precision import Precision

RANDOM = "random"
"""Ends the text of a cell whose experts random weights chose."""


def cell_text(cell: Cell) -> str:
    """
    >>> cell_text(Cell("h200-sxm", "vllm", "llama-3.1-8b", Precision("fp8", "bf16"), Layout(2)))
    'h200-sxm|vllm|llama-3.1-8b|fp8|bf16|2.1.1.1'
    >>> cell_text(Cell("h200-sxm", "vllm", "mixtral-8x7b", Precision("fp8", "bf16"), Layout(2), random_routing=True))
    'h200-sxm|vllm|mixtral-8x7b|fp8|bf16|2.1.1.1|random'
    """
    layout, precision = cell.layout, cell.precision
    degrees = (layout.tensor_parallel, layout.pipeline_parallel, layout.data_parallel, layout.expert_parallel)
    parts = (cell.device, cell.engine, cell.llm, precision.weights, precision.kv_cache, ".".join(map(str, degrees)))
    return "|".join((*parts, RANDOM) if cell.random_routing else parts)


DEVICE_NOTE = "device|"


def device_note(device: str) -> str:
    """A note that a device was probed, kept with the notes of cells.

    >>> device_note("h100-sxm"), device_of_note(device_note("h100-sxm"))
    ('device|h100-sxm', 'h100-sxm')
    """
    return f"{DEVICE_NOTE}{device}"


def device_of_note(text: str) -> str | None:
    """The probed device, None for a cell, which has more parts.

    >>> device_of_note("h200-sxm|vllm|llama-3.1-8b|fp8|bf16|2.1.1.1") is None
    True
    """
    return text.removeprefix(DEVICE_NOTE) if text.startswith(DEVICE_NOTE) and text.count("|") == 1 else None


def cell_from_text(text: str) -> Cell:
    """
    >>> cell_from_text("h200-sxm|vllm|llama-3.1-8b|fp8|bf16|2.1.1.1").layout.tensor_parallel
    2
    """
    device, engine, llm, weights, kv_cache, degrees, *routing = text.split("|")
    layout = Layout(*(int(d) for d in degrees.split(".")))
    return Cell(device, engine, llm, Precision(weights, kv_cache), layout, routing == [RANDOM])
