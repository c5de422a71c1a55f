"""How far hosts differ, and whether a fit that tells them apart says more of others: ``python -m tests.bench.host_constants`` (minutes).

Of each device under vLLM the constants are those of the newest correction set; with ``--kept-back`` those of a fit that has the runs of
27 November 2026 too, which are in none. Printed is, first, how much the sum that a fit minimises changes where all constants move by a
thousandth at random, with one draw of each run's requests and with as many as fits take. Then constants of a host's processor, or board,
are let lie apart on each host, by every spread of a ladder, and configurations, and hosts, that are left out are predicted with the
constants of any host: what is left of misfits, as the fit counts them (less is better), and mean errors in per cent of dense models and
of mixtures of experts. A run that is refused counts in the first, as fits count it, and in no error.
"""

import argparse
import gzip
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT, BenchmarkFile, BenchmarkRow
from catalog.correction_rows import EngineCorrectionRow
from catalog.read import Catalog, read_catalog
from service.corrections.calibrate import fitted
from service.corrections.measurements import catalog_priors, measurements
from solver.corrections.evidence import WEIGHTS, Measurement, misfits
from solver.corrections.fit import DRAWS, HUBER, LARGEST_STEP, REFUSED, Fit, moved
from solver.step.constants import ConstantPrior, Constants
from tests.bench.routing_of_random_weights import RANDOM_WEIGHTS

LAUNCHING = ("eager_layer_us", "eager_expert_layer_us", "eager_linear_layer_us", "eager_latent_layer_us")
BOARD = (
    "idle_power_fraction", "memory_power_fraction", "compute_power_fraction_16bit", "compute_power_fraction_8bit",
)  # fmt: skip
APART: tuple[tuple[str, ...], ...] = (
    ("token_front_end_us",), ("request_ingest_us",), ("prompt_token_us",), ("request_overhead_ms",), ("step_overhead_us",),
    ("eager_expert_layer_us",), LAUNCHING, BOARD,
)  # fmt: skip
"""Constants that one factor moves on each host."""
LADDER = (0.1, 0.2, 0.3)
"""Standard deviations over hosts of its logarithm."""
MOVES, MOVED_BY = 12, 1e-3
TOKEN, FIRST_TOKEN = "time_per_output_token", "time_to_first_token"


@dataclass(frozen=True)
class Linearised:
    """A device's runs at some constants."""

    runs: tuple[Measurement, ...]
    base: Constants
    fit: Fit


def kept_back(catalog: Catalog) -> list[BenchmarkFile]:
    """The runs of 27 November 2026 that a fit could take: ten of a dense model, two of a mixture of experts; visits 13 and 14."""
    files = {file.group: file for file in catalog.benchmarks if file.campaign == "2026-11-24-g"}
    read: dict[str, Any] = json.loads(
        (DEFAULT_ROOT / "kept_back/h100-sxm_vllm-0.24.0_llama-3.1-8b_bf16_tp1_p.json").read_text()
    )
    dense = files["h100-l8b-bf16-tp1"]
    of_dense = [
        as_file_of(dense, name, run["max_batched_tokens"], run["max_context_tokens"], 14, run["benchmark"])
        for name, run in read["runs"].items()
    ]
    path = DEFAULT_ROOT / "bursts/h100-sxm_vllm-0.24.0_qwen3-30b-a3b_fp8_tp1_op.json.gz"
    mixture, bursts = files["h100-q30ba3b-fp8-tp1"], json.loads(gzip.decompress(path.read_bytes()))
    named = {name: run for name, run in bursts.items() if "at_once" not in run["load"]}
    context = mixture.runs[0].benchmark["context"]
    return of_dense + [
        as_file_of(
            mixture, name, 8192, 16_384, 13,
            {**run, "context": {**context, "power_w_mean": run["power_w_mean"]}},
        )
        for name, run in named.items()
    ]  # fmt: skip


def as_file_of(
    like: BenchmarkFile, name: str, budget: int, context: int, visit: int, benchmark: Mapping[str, Any]
) -> BenchmarkFile:
    """One run as a file of its own, of a configuration that other runs are of."""
    row: BenchmarkRow = like.runs[0]
    known = row.benchmark["context"]
    sizes = ("--max-num-seqs", "512", "--max-model-len", str(context))
    engine = {**known["engine"], "arguments": [*RANDOM_WEIGHTS, *sizes]}
    body = {
        **{key: benchmark[key] for key in ("load", "traffic", "results")},
        "context": {**known, "engine": engine, "power_w_mean": benchmark["context"]["power_w_mean"]},
    }
    reported = like.engine_reported.model_copy(update={"max_batched_tokens": budget})
    run = row.model_copy(update={"id": name, "session": visit, "benchmark": body})
    return like.model_copy(update={"runs": (run,), "engine_reported": reported})


def told_apart(one: Linearised, spreads: Mapping[tuple[str, ...], float]) -> Fit:
    """The same linearisation with these constants apart on each host, drawn towards those of any."""
    fit = one.fit
    of_host = np.array([one.runs[i].host if i >= 0 else "" for i in fit.owners])
    own = [(host, names) for host in sorted({run.host for run in one.runs}) for names in spreads]
    slopes = {names: sum(fit.jacobian[:, fit.names.index(n)] for n in names if n in fit.names) for names in spreads}
    columns = [np.where(of_host == host, slopes[names], 0.0) for host, names in own]
    rows = np.hstack([np.zeros((len(own), len(fit.names))), np.diag([1.0 / spreads[names] for _, names in own])])
    return replace(
        fit,
        jacobian=np.vstack([np.hstack([fit.jacobian, np.array(columns).T]), rows]),
        residuals=np.concatenate([fit.residuals, np.zeros(len(own))]),
        weights=np.concatenate([fit.weights, np.ones(len(own))]),
        owners=np.concatenate([fit.owners, np.full(len(own), -1)]),
    )


def constants_without(fit: Fit, members: Sequence[int]) -> Constants:
    """As ``solver.corrections.fit.without``, where further columns stand behind those of the constants."""
    keep = ~np.isin(fit.owners, np.asarray(members, dtype=np.int64))
    rows, weights = fit.jacobian[keep], fit.weights[keep]
    square = rows.T @ (rows * weights[:, None]) + 1e-9 * np.eye(rows.shape[1])
    step = -np.linalg.solve(square, rows.T @ (weights * fit.residuals[keep]))[: len(fit.names)]
    return moved(fit.constants, fit.names, np.clip(step, -LARGEST_STEP, LARGEST_STEP))


def loss(run: Measurement, off: Mapping[str, float]) -> float:
    sizes = [abs(off.get(metric, REFUSED)) / WEIGHTS[metric] for metric in WEIGHTS if run.measured.get(metric)]
    return sum(0.5 * size * size if size <= HUBER else HUBER * (size - 0.5 * HUBER) for size in sizes)


def left_out(one: Linearised, fit: Fit, of: Callable[[Measurement], str]) -> list[str]:
    """Misfits of each group predicted without it, and mean errors."""
    off: dict[str, Mapping[str, float]] = {}
    for group in sorted({of(run) for run in one.runs}):
        members = [i for i, run in enumerate(one.runs) if of(run) == group]
        constants = constants_without(fit, members)
        off |= {one.runs[i].id: misfits(one.runs[i], constants, DRAWS) for i in members}
    cells = [f"{sum(loss(run, off[run.id]) for run in one.runs):.0f}"]
    for model_class in ("dense", "moe"):
        members_of = [run for run in one.runs if run.model_class == model_class]
        for metric in (TOKEN, FIRST_TOKEN):
            errors = [abs(np.expm1(off[run.id][metric])) for run in members_of if metric in off[run.id]]
            cells.append(f"{100.0 * statistics.fmean(errors):.1f}")
    return cells


def sums_nearby(one: Linearised, draws: int) -> list[float]:
    """What a fit minimises, of the runs alone, where all constants are moved at random by a thousandth."""
    random = np.random.default_rng(1)
    return [
        sum(loss(run, misfits(run, constants, draws)) for run in one.runs)
        for constants in (
            moved(one.fit.constants, one.fit.names, random.normal(0.0, MOVED_BY, len(one.fit.names)))
            for _ in range(MOVES)
        )
    ]


def linearised(
    catalog: Catalog, priors: tuple[ConstantPrior, ...], files: Sequence[BenchmarkFile], rounds: int
) -> dict[str, Linearised]:
    corrections = {c.device: c for c in catalog.corrections[-1].corrections if c.engine == "vllm"}
    elder = max(corrections.values(), key=lambda c: sum(len(e.benchmarks) for e in c.evidence))
    runs = measurements(catalog, (*catalog.benchmarks, *files), priors)
    found = {}
    for device, correction in sorted(corrections.items()):
        here = tuple(r for r in runs if (r.configuration.device.id, r.configuration.engine.name) == (device, "vllm"))
        seen = {name for evidence in correction.evidence for name in evidence.benchmarks}
        if rounds and seen == {run.id for run in here}:
            continue
        above: EngineCorrectionRow | None = None if correction is elder else elder
        found[device] = Linearised(here, *fitted(catalog, priors, device, "vllm", here, rounds, correction, above))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kept-back", action="store_true", help="fit with the runs that are in no fit, and say what it finds"
    )
    asked = parser.parse_args()
    catalog = read_catalog()
    files, rounds = (kept_back(catalog), 8) if asked.kept_back else ([], 0)
    console = Console(width=170)
    for device, one in linearised(catalog, catalog_priors(catalog), files, rounds).items():
        hosts = len({run.host for run in one.runs})
        print(f"{device}: {len(one.runs)} runs of {hosts} visits")
        for draws in (1, DRAWS):
            sums = sums_nearby(one, draws)
            spread = f"{min(sums):.0f} to {max(sums):.0f}, standard deviation {statistics.stdev(sums):.1f}"
            print(f"{draws} draw(s) of each run: {statistics.fmean(sums):.0f}, {spread}")
        for name in dict.fromkeys(names[0] for names in APART):
            constant = one.fit.fitted[name]
            print(f"{name}: {constant.value:.4g} ({100 * constant.standard_error_fraction:.0f} %)")
        errors = ("dense TPOT", "TTFT", "mixtures TPOT", "TTFT")
        table = Table("apart on each host", "by", "configurations left out", *errors, "hosts left out", *errors)
        for spreads in ({}, *({names: spread} for names in APART for spread in LADDER)):
            fit = told_apart(one, spreads) if spreads else one.fit
            cells = left_out(one, fit, lambda run: run.group) + left_out(one, fit, lambda run: run.host)
            titles = [" ".join(names) if len(names) == 1 else f"{names[0]} and alike" for names in spreads]
            table.add_row(", ".join(titles) or "nothing", ", ".join(f"{s:g}" for s in spreads.values()), *cells)
        console.print(table)


if __name__ == "__main__":
    main()
