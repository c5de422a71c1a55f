"""Front-end times of items and images, fitted to what was measured beside H100 SXM of two hosts under vLLM 0.24, and
what runs left out say.

python -m tests.bench.item_constants    prints values of catalog/constants/adapters_images.toml, and errors of runs left out
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from solver.deployment.configuration import Configuration
from tests.bench.adapters_images import MEASURED, OTHER_HOST, deployment_of, in_force, measured, predicted

Run = Mapping[str, Any]
MEASURES = ("ttft_ms", "tpot_ms", "requests_per_s")
OUTLIER = 0.1
"""Errors beyond this share weigh in proportion, not by their square: one load of a server just started is 60 % off."""


@dataclass(frozen=True)
class Fit:
    """Constants fitted together to runs of one kind. start: from where, in the rows' units; measures: to which, requests/s of a closed
    load of replies following from the other two; left_out: groups to predict from the others."""

    kind: str
    belongs: Callable[[Run], bool]
    start: Mapping[str, float]
    measures: tuple[str, ...]
    left_out: Mapping[str, Callable[[Run], bool]]


HOSTS = {"one host": MEASURED, "the other host": OTHER_HOST}


def of_both_hosts() -> list[dict[str, Any]]:
    """All runs, by names that say where."""
    return [{**run, "id": f"{run['id']}, {host}"} for host, file in HOSTS.items() for run in measured(file)]


def on(host: str) -> Callable[[Run], bool]:
    return lambda run: bool(run["id"].endswith(f", {host}"))


def named(*beginnings: str) -> Callable[[Run], bool]:
    return lambda run: bool(run["id"].startswith(beginnings))


FITS = (
    Fit(
        "items",
        lambda run: bool(run["output"] == 1),
        {
            "item_overhead_ms": 8.0,
            "item_ingest_us": 1500.0,
            "item_token_us": 1.0,
            "item_token_id_us": 16.0,
            "item_eager_layer_us": 700.0,
        },
        ("ttft_ms", "requests_per_s"),
        {
            "BERT-large, token ids": named("bert"),
            "Qwen3-Embedding, 128 and 512 token ids": named("qwen06-128", "qwen06-512"),
            "Qwen3-Embedding, 4,000 token ids": named("qwen06-4000"),
            "texts of 128 words": named("qwen06-text-128"),
            "texts of 512 words": named("qwen06-text-512"),
            "texts of 4,000 words": named("qwen06-text-4000"),
            "items, 32 clients and more": lambda run: bool(run["concurrency"] >= 32),
            "items, fewer than 32 clients": lambda run: bool(run["concurrency"] < 32),
            "items, one host": on("one host"),
            "items, the other host": on("the other host"),
        },
    ),
    Fit(
        "images",
        lambda run: bool(run.get("images")),
        {
            "image_overhead_ms": 14.0,
            "image_ingest_ms": 10.0,
            "image_megapixel_ms": 50.0,
            "image_eager_layer_us": 1000.0,
        },
        ("ttft_ms", "tpot_ms"),
        {
            "one image of 448 x 448 pixels": named("vl-448x1"),
            "one image of 1,024 x 1,024 pixels": named("vl-1024x1"),
            "three images of 1,024 x 1,024 pixels": named("vl-1024x3"),
            "images, 1 client": lambda run: bool(run["concurrency"] == 1),
            "images, 8 clients": lambda run: bool(run["concurrency"] == 8),
            "images, 32 clients": lambda run: bool(run["concurrency"] == 32),
            "images, one host": on("one host"),
            "images, the other host": on("the other host"),
        },
    ),
)


def with_values(deployed: Configuration, values: Mapping[str, float]) -> Configuration:
    """The deployment with these constants, in the rows' units."""
    priors = deployed.constants.priors
    moved = {name: replace(priors[name], value=value) for name, value in values.items()}
    return deployed.with_constants(replace(deployed.constants, priors=dict(priors) | moved))


def log_errors(
    served: Mapping[str, Configuration], runs: Sequence[Run], values: Mapping[str, float]
) -> dict[str, list[float]]:
    """ln(predicted/measured) of each measure that a run has, run by run."""
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for run in runs:
        told = predicted(with_values(served[run["id"]], values), run)
        for name in MEASURES:
            if run.get(name):
                found[name].append(float(np.log(told[name] / run[name])))
    return found


def fitted(served: Mapping[str, Configuration], runs: Sequence[Run], fit: Fit) -> dict[str, float]:
    """Least squares over logarithms of the constants, with a soft loss; those that no run tells stay where they start."""
    names = list(fit.start)

    def residuals(x: NDArray[np.float64]) -> list[float]:
        errors = log_errors(served, runs, dict(zip(names, np.exp(x), strict=True)))
        return [one for name in fit.measures for one in errors[name]]

    begin = np.log(list(fit.start.values()))
    found = least_squares(residuals, begin, loss="soft_l1", f_scale=OUTLIER, diff_step=0.02)
    return dict(zip(names, (float(value) for value in np.exp(found.x)), strict=True))


def medians(errors: Mapping[str, Sequence[float]]) -> str:
    """Median absolute errors in per cent."""
    return "   ".join(
        f"{name} {median(100.0 * abs(float(np.expm1(one))) for one in off):5.1f} %"
        for name, off in errors.items()
        if off
    )


def main() -> None:
    known = in_force()
    for fit in FITS:
        runs = [run for run in of_both_hosts() if fit.belongs(run)]
        served = {run["id"]: deployment_of(run, known) for run in runs}
        values = fitted(served, runs, fit)
        for name, value in values.items():
            print(f"{name:24} {value:10.4g}")
        for host in HOSTS:
            own = [run for run in runs if on(host)(run)]
            print(f"{fit.kind + ', fitted, ' + host:50} n={len(own):<3} {medians(log_errors(served, own, values))}")
        for group, belongs in fit.left_out.items():
            out = [run for run in runs if belongs(run)]
            told = fitted(served, [run for run in runs if not belongs(run)], fit)
            print(f"{'left out: ' + group:50} n={len(out):<3} {medians(log_errors(served, out, told))}")


if __name__ == "__main__":
    main()
