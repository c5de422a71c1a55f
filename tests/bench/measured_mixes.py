"""Several kinds of requests on one engine, predicted and measured: ``python -m tests.bench.measured_mixes``.

The runs are in no fit: the newest correction set saw this configuration under requests of one kind only. The recorded
arrivals are not used; the prediction knows the rates and the lengths' distributions, as a plan does.
"""

import gzip
import json
import statistics
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT, read_benchmark_files
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors, measurement
from service.corrections.snapshot import correction_set, in_force
from service.recommendations.from_rows import traffic_from_wire
from service.wire.traffic import TrafficShape
from solver.corrections.applied import configuration_correction
from solver.deployment.configuration import Configuration
from solver.prediction.estimate import Estimate
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream

MIXES = DEFAULT_ROOT / "mixes"
MS_PER_S = 1e3


def main() -> None:
    catalog = read_catalog()
    errors: dict[str, list[float]] = {}
    inside: dict[str, list[bool]] = {}
    table = Table("run", "class", "req/s", "", "TTFT mean", "TTFT p95", "TPOT mean", "TPOT p95")
    for path in sorted(MIXES.glob("*.json.gz")):
        configuration = configuration_of(catalog, path)
        with gzip.open(path, "rt", encoding="utf-8") as file:
            runs: dict[str, Any] = json.load(file)
        correction = configuration_correction(correction_set(catalog.corrections[-1]), configuration)
        for name, run in runs.items():
            streams = [RequestStream(traffic_of(one), one["requests_per_s"]) for one in run["classes"]]
            found = estimate_mixed(configuration, streams, correction)
            for one, predicted in zip(run["classes"], found.streams, strict=True):
                measured, expected = measured_ms(one), predicted_ms(predicted)
                for metric, value in measured.items():
                    errors.setdefault(metric, []).append(abs(expected[metric][0] / value - 1.0))
                    inside.setdefault(metric, []).append(expected[metric][1] <= value <= expected[metric][2])
                rate = f"{one['requests_per_s']:g}"
                table.add_row(name, one["name"], rate, "measured", *(f"{v:.1f}" for v in measured.values()))
                table.add_row("", "", "", "predicted", *(f"{expected[m][0]:.1f}" for m in measured), end_section=True)
    console = Console(width=130)
    console.print(table)
    for metric, values in errors.items():
        share = sum(inside[metric]) / len(values)
        console.print(f"{metric}: {statistics.fmean(values):.1%} off on average, {share:.0%} inside the 90 % interval")


def configuration_of(catalog: Catalog, path: Path) -> Configuration:
    """The configuration of a file of ordinary runs whose name is the same but for the campaign."""
    group = path.name.removesuffix(".json.gz").rsplit("_", 1)[0]
    file = next(file for file in read_benchmark_files() if file.id == group)
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    return measurement(catalog, priors, file, file.runs[0]).configuration


def traffic_of(one: dict[str, Any]) -> Any:
    shape = {name: one[name] for name in ("prompt_tokens", "output_tokens")}
    return traffic_from_wire(TrafficShape.model_validate(shape))


def measured_ms(one: dict[str, Any]) -> dict[str, float]:
    records = one["records"]
    tpot = [
        (e2e - ttft) / (tokens - 1)
        for e2e, ttft, tokens in zip(records["e2e_ms"], records["ttft_ms"], records["output_tokens"], strict=True)
    ]
    ttft = records["ttft_ms"]
    return {
        "TTFT mean": statistics.fmean(ttft), "TTFT p95": statistics.quantiles(ttft, n=20)[-1],
        "TPOT mean": statistics.fmean(tpot), "TPOT p95": statistics.quantiles(tpot, n=20)[-1],
    }  # fmt: skip


def predicted_ms(found: Estimate) -> dict[str, tuple[float, float, float]]:
    """(expected, low, high)."""
    return {
        f"{short} {percentile}": (one.expected * MS_PER_S, one.low * MS_PER_S, one.high * MS_PER_S)
        for short, values in (("TTFT", found.time_to_first_token_s), ("TPOT", found.time_per_output_token_s))
        for percentile, one in values.items()
        if percentile in ("mean", "p95")
    }


if __name__ == "__main__":
    main()
