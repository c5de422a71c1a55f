"""Where the loop that composes steps launches them too."""

from solver.engine.profiles import engine_profile
from solver.engine.releases import waits_for_steps
from solver.layout import Layout


def launches_in_line(engine: str, version: str | None, layout: Layout) -> bool:
    """Whether one loop composes steps and launches them, and composes the next before it hands on what one gave: where it does not
    wait for steps, and no other process launches for it, as one of each device does where a copy has several.

    >>> [launches_in_line(name, None, Layout(tensor_parallel=tp)) for name, tp in (("vllm", 1), ("vllm", 2), ("sglang", 1))]
    [True, False, False]
    """
    alone = layout.tensor_parallel * layout.pipeline_parallel == 1
    return engine_profile(engine).launches_in_line and alone and not waits_for_steps(engine, version)
