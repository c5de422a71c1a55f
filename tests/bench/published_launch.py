"""What launching a layer takes on engines nobody here ran, and what AWS's compiler reaches, from single streams that others timed.

    python -m tests.bench.published_launch

The streams are those of ``catalog/published/single_streams.toml``. First, time per token over layers: what launching one takes at most.
Of a mixture, less what a layer without experts takes: what its experts add at most. Then, of devices on which two models were timed, the
share η of the memory bandwidth and the time o of a layer beside reading its weights that solve tᵢ = wᵢ/(η·B) + Lᵢ·o for both, with wᵢ
the bytes a token reads, B the bandwidth of all devices and Lᵢ the layers; and the shares of the datasheet rate at which prompts are read,
2·N·tokens over the time to the first token: collectives and attention are among it, so products reach at least that.
"""

import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from catalog.published_rates import StreamRow, read_single_streams
from catalog.read import Catalog, read_catalog
from service.recommendations.from_rows import llm_from_row
from solver.llm_shape import LlmShape
from solver.precision import WEIGHT_FORMATS

S_PER_MS = 1e-3


def layer_us(stream: StreamRow, shape: LlmShape) -> float:
    return 1e3 * stream.tpot_ms / shape.layers


def shares_and_layers(
    bytes_read: Sequence[float], layers: Sequence[int], seconds: Sequence[float]
) -> tuple[float, float]:
    """(bytes/s reached, seconds a layer beside reading) that explain two times per token.

    >>> rate, layer = shares_and_layers((2e9, 1e9), (10, 20), (0.21, 0.12))
    >>> round(rate / 1e9, 6), round(layer, 6)
    (10.0, 0.001)
    """
    slowness, layer = np.linalg.solve(np.column_stack((bytes_read, layers)), np.asarray(seconds))
    return 1.0 / float(slowness), float(layer)


def prompt_shares(streams: Iterable[StreamRow], catalog: Catalog, shapes: dict[str, LlmShape]) -> Iterator[float]:
    """Of the dense 16-bit rate of all devices."""
    for stream in streams:
        peak = 1e12 * (catalog.devices[stream.device].dense_bf16_tflop_per_s or 0.0) * stream.devices
        for prompt in stream.prompts:
            yield 2.0 * shapes[stream.llm].active_weights * prompt.tokens / peak / (S_PER_MS * prompt.ttft_ms)


def main() -> None:
    catalog, streams = read_catalog(), read_single_streams().stream
    shapes = {stream.llm: llm_from_row(catalog.llms[stream.llm].model_dump(mode="json")) for stream in streams}
    sys.stdout.write("| engine | device | model | a layer at most, us |\n|---|---|---|---|\n")
    for stream in streams:
        most = layer_us(stream, shapes[stream.llm])
        sys.stdout.write(f"| {stream.engine} | {stream.device} | {stream.llm} | {most:.1f} |\n")
    by_device: dict[str, list[StreamRow]] = defaultdict(list)
    for stream in streams:
        if stream.prompts:
            by_device[stream.device].append(stream)
    sys.stdout.write(
        "\n| device | share of bandwidth | a layer, us | shares of the matrix rate | median |\n|---|---|---|---|---|\n"
    )
    for device, own in by_device.items():
        read = [shapes[one.llm].active_weights * WEIGHT_FORMATS[one.weights].bytes_per_weight for one in own]
        layers = [shapes[one.llm].layers for one in own]
        rate, layer = shares_and_layers(read, layers, [S_PER_MS * one.tpot_ms for one in own])
        bandwidth = 1e9 * (catalog.devices[device].memory_bandwidth_gb_per_s or 0.0) * own[0].devices
        found = sorted(prompt_shares(own, catalog, shapes))
        told = ", ".join(f"{share:.3f}" for share in found)
        sys.stdout.write(
            f"| {device} | {rate / bandwidth:.3f} | {1e6 * layer:.0f} | {told} | {statistics.median(found):.3f} |\n"
        )


if __name__ == "__main__":
    main()
