"""Front-end times of models that embed, fitted to the items measured on one H100 SXM under vLLM 0.24, and what runs left out say.

python -m tests.bench.item_constants    prints the values of catalog/constants/adapters_images.toml, and errors of runs left out
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from solver.deployment.configuration import Configuration
from tests.bench.adapters_images import deployment_of, in_force, measured, predicted

Run = Mapping[str, Any]
START = {
    "item_overhead_ms": 8.0,
    "item_ingest_us": 1500.0,
    "item_token_us": 1.0,
    "item_token_id_us": 16.0,
    "item_eager_layer_us": 700.0,
}
"""From where the fit begins."""
OUTLIER = 0.1
"""Errors beyond this share weigh in proportion, not by their square: one load of a server just started is 60 % off."""


def are_items(run: Run) -> bool:
    return bool(run["output"] == 1)


def with_values(deployed: Configuration, values: Mapping[str, float]) -> Configuration:
    """The deployment with these constants, in the rows' units."""
    priors = deployed.constants.priors
    moved = {name: replace(priors[name], value=value) for name, value in values.items()}
    return replace(deployed, constants=replace(deployed.constants, priors=dict(priors) | moved))


def log_errors(served: Mapping[str, Configuration], runs: Sequence[Run], values: Mapping[str, float]) -> list[float]:
    """ln(predicted/measured) of the time to the first token and of requests a second, run by run."""
    found = []
    for run in runs:
        told = predicted(with_values(served[run["id"]], values), run)
        found += [float(np.log(told[name] / run[name])) for name in ("ttft_ms", "requests_per_s")]
    return found


def fitted(served: Mapping[str, Configuration], runs: Sequence[Run], start: Mapping[str, float]) -> dict[str, float]:
    """Least squares over logarithms of the constants, with a soft loss."""
    names = list(start)

    def residuals(x: NDArray[np.float64]) -> list[float]:
        return log_errors(served, runs, dict(zip(names, np.exp(x), strict=True)))

    found = least_squares(residuals, np.log(list(start.values())), loss="soft_l1", f_scale=OUTLIER, diff_step=0.02)
    return dict(zip(names, (float(value) for value in np.exp(found.x)), strict=True))


def medians(errors: Sequence[float]) -> tuple[float, float]:
    """Median absolute errors in per cent, of the two measures that ``log_errors`` alternates."""
    off = [100.0 * abs(float(np.expm1(one))) for one in errors]
    return median(off[0::2]), median(off[1::2])


def left_out(
    served: Mapping[str, Configuration],
    runs: Sequence[Run],
    start: Mapping[str, float],
    groups: Mapping[str, Callable[[Run], bool]],
) -> None:
    """Each group predicted by what was fitted to the others."""
    for name, belongs in groups.items():
        out = [run for run in runs if belongs(run)]
        values = fitted(served, [run for run in runs if not belongs(run)], start)
        first, rate = medians(log_errors(served, out, values))
        print(f"left out: {name:42} n={len(out):<3} TTFT {first:5.1f} %  requests/s {rate:5.1f} %")


def main() -> None:
    known = in_force()
    runs = [run for run in measured() if are_items(run)]
    served = {run["id"]: deployment_of(run, known) for run in runs}
    values = fitted(served, runs, START)
    for name, value in values.items():
        print(f"{name:24} {value:10.4g}")
    for name, texts in (("texts", True), ("token ids", False)):
        first, rate = medians(log_errors(served, [run for run in runs if ("text" in run["id"]) == texts], values))
        print(f"fitted:   {name:42} TTFT {first:5.1f} %  requests/s {rate:5.1f} %")
    left_out(
        served,
        runs,
        START,
        {
            "BERT-large, token ids": lambda run: run["llm"].startswith("bge"),
            "Qwen3-Embedding, token ids of 128 and 512": lambda run: run["id"].startswith(("qwen06-128", "qwen06-512")),
            "Qwen3-Embedding, 4,000 token ids": lambda run: run["id"].startswith("qwen06-4000"),
            "texts of 128 words": lambda run: run["id"].startswith("qwen06-text-128"),
            "texts of 512 words": lambda run: run["id"].startswith("qwen06-text-512"),
            "texts of 4,000 words": lambda run: run["id"].startswith("qwen06-text-4000"),
            "32 clients and more": lambda run: run["concurrency"] >= 32,
            "fewer than 32 clients": lambda run: run["concurrency"] < 32,
        },
    )


if __name__ == "__main__":
    main()
