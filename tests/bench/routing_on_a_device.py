"""vLLM with experts drawn in the place of chosen: how long steps take is then a matter of how evenly, not of whose weights.

A plugin of vLLM 0.24 (``vllm.general_plugins``), for a host with a GPU and its engine; it needs nothing of this project. In each layer
of routed experts the router is computed as always, and what it says is replaced by rows of a table made beforehand: logits with
Gumbel noise about the logarithm of each expert's popularity, so that the best k are k different experts, drawn by popularity.
Popularity follows the gamma law that the performance model has for it (``expert_evenness_…``), of the shape that the file named by
``$ROUTING_SHAPE_FILE`` holds (``inf``: all experts alike). Rewriting that file redraws the tables of a running server: the same
kernels, graphs and launches, other experts. Nothing is added to a step.

    mkdir -p site/routing-1.dist-info
    printf 'Metadata-Version: 2.1\\nName: routing\\nVersion: 1\\n' > site/routing-1.dist-info/METADATA
    printf '[vllm.general_plugins]\\nrouting = routing_on_a_device:register\\n' > site/routing-1.dist-info/entry_points.txt
    cp tests/bench/routing_on_a_device.py site/ && export PYTHONPATH=site
    echo inf > shape && ROUTING_SHAPE_FILE=shape vllm serve … --load-format dummy
"""

import math
import os
import threading
import time
from pathlib import Path
from typing import Any

MOST_TOKENS = 8192
"""Of a step."""
SCALE = 0.25
"""Keeps routers that take a sigmoid away from its flat end."""


def popularity_logarithms(experts: int, shape: float, generator: Any) -> Any:
    """ln of a gamma variate for each expert, (experts,); of small shapes through shape + 1, whose values do not vanish."""
    import numpy as np

    if math.isinf(shape):
        return np.zeros(experts)
    return np.log(generator.gamma(shape + 1.0, size=experts)) + np.log(generator.random(experts)) / shape


class Tables:
    """Logits in the place of a router's, by layer."""

    def __init__(self, shape_file: Path) -> None:
        self.shape_file = shape_file
        self.shape = self.asked()
        self.by_layer: dict[int, Any] = {}
        threading.Thread(target=self.follow, daemon=True).start()

    def asked(self) -> float:
        return float(self.shape_file.read_text(encoding="utf-8").strip() or "inf")

    def of(self, layer: object, logits: Any) -> Any:
        import torch

        table = self.by_layer.get(id(layer))
        if table is None or len(table) < len(logits):
            rows = max(MOST_TOKENS, len(logits))
            table = torch.empty((rows, logits.shape[-1]), dtype=logits.dtype, device=logits.device)
            self.by_layer[id(layer)] = table
            self.draw(len(self.by_layer), table)
        return table[: len(logits)]

    def draw(self, number: int, table: Any) -> None:
        import numpy as np
        import torch

        liking = popularity_logarithms(table.shape[-1], self.shape, np.random.default_rng(number))
        with torch.inference_mode():  # as the engine made them, outside which they cannot be written
            about = torch.from_numpy(liking).to(table.device, torch.float32)
            same = torch.Generator(device=table.device).manual_seed(number)  # on all devices of a replica
            chance = torch.rand(table.shape, device=table.device, generator=same).clamp_(1e-7, 1.0 - 1e-7)
            table.copy_((about - torch.log(-torch.log(chance))) * SCALE)

    def follow(self) -> None:
        """Draws all tables anew when another shape is asked for."""
        import torch

        while True:
            time.sleep(0.5)
            asked = self.asked()
            if asked != self.shape:
                self.shape = asked
                for number, table in enumerate(list(self.by_layer.values()), 1):
                    self.draw(number, table)
                torch.cuda.synchronize()
                print(f"routing of shape {asked} drawn in {len(self.by_layer)} layers", flush=True)


def register() -> None:
    """Called by vLLM in each of its processes."""
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

    made: list[Tables] = []
    computed = MoERunner._apply_quant_method

    def drawn(runner: Any, hidden_states: Any, router_logits: Any, *rest: Any, **named: Any) -> Any:
        if not made:
            made.append(Tables(Path(os.environ["ROUTING_SHAPE_FILE"])))
        return computed(runner, hidden_states, made[0].of(runner, router_logits), *rest, **named)

    MoERunner._apply_quant_method = drawn
