"""Published runs of other people predicted: what lies between them and the ranges of constants (``solver.corrections.misses``)."""

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from catalog.read import Catalog
from catalog.read_serving import is_current
from catalog.serving_rows import PublicRunRow
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import correction_set, in_force
from service.estimates.predict import Case, predict
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import device_from_row, llm_from_row, node_from_row
from service.wire.deployment import EngineIn
from service.wire.estimates import EstimatedOut, EstimateIn
from service.wire.quantities import Interval
from solver.corrections.misses import FIRST_TOKEN, MISS_CONSTANTS, TOKEN, PublicMiss
from solver.errors import FigureMissingError, SolverError

LAYOUT = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
THREADS = 2
SLACK_TOKENS = 64
"""Context beyond the longest request: that a run was made says that it fitted."""


def bare_snapshot(catalog: Catalog, *, missed: bool = False) -> CatalogSnapshot:
    """The catalog with its newest corrections, without offers. missed: with misses beyond the ranges of constants."""
    newest = catalog.corrections[-1]
    stated = [
        replace(p, low=1.0, high=1.0) if p.name in MISS_CONSTANTS and not missed else p for p in catalog_priors(catalog)
    ]
    devices = {}
    for name, row in catalog.devices.items():
        try:
            devices[name] = device_from_row(row.model_dump(mode="json"))
        except FigureMissingError:
            continue
    nodes = {
        name: node_from_row(row.model_dump(mode="json"), devices[row.device])
        for name, row in catalog.nodes.items()
        if row.device in devices
    }
    empty: frozenset[str] = frozenset()
    return CatalogSnapshot(
        digest="", seeded_digest="", revision=0, devices=devices, nodes=nodes, offers=(), refused={},
        device_ids=frozenset(devices), offer_ids=empty, providers=empty, regions=empty,
        priors=in_force(newest, stated), corrections=correction_set(newest), release_set=newest.number,
    )  # fmt: skip


def asked(run: PublicRunRow, *, stated: bool = True) -> EstimateIn:
    """The run as a case of ``POST /v1/estimates``. stated: with its engine's release and how its lengths vary; else as somebody asks who
    knows neither, of a release of today and, where its source states no more of lengths than means, of requests that are all as long."""
    alike = run.only_means and not stated
    longest = run.prompt_tokens_high + run.output_tokens_high + SLACK_TOKENS
    load: dict[str, object] = {"kind": run.load, "requests": run.requests}
    load |= {"concurrency": run.concurrency} if run.load == "closed" else {"requests_per_s": run.requests_per_s}
    return EstimateIn.model_validate(
        {
            "llm": run.llm,
            "device": run.device,
            "layout": {name: getattr(run, name) for name in LAYOUT},
            "precision": {"weights": run.weights, "kv_cache": run.kv_cache},
            "engine": {
                "name": run.engine,
                "version": run.engine_version if stated else None,
                "max_context_tokens": longest,
            },
            "traffic": {
                "prompt_tokens": _lengths(run.prompt_tokens_low, run.prompt_tokens_high, alike),
                "output_tokens": _lengths(run.output_tokens_low, run.output_tokens_high, alike),
            },
            "load": load,
        }
    )


def _lengths(low: int, high: int, alike: bool) -> dict[str, object]:
    if low == high or alike:
        return {"distribution": "fixed", "tokens": (low + high) // 2}
    return {"distribution": "uniform", "low": low, "high": high}


def predicted_runs(
    catalog: Catalog, runs: Sequence[PublicRunRow], *, stated: bool = True, missed: bool = False
) -> list[EstimatedOut | None]:
    """In order; None where a run is refused. missed: with intervals as the service gives them, else by the ranges of constants alone."""
    return predicted_by(bare_snapshot(catalog, missed=missed), catalog, runs, stated=stated)


def predicted_by(
    snapshot: CatalogSnapshot, catalog: Catalog, runs: Sequence[PublicRunRow], *, stated: bool = True
) -> list[EstimatedOut | None]:
    """The same by the constants of a snapshot."""
    shapes = {run.llm: llm_from_row(catalog.llms[run.llm].model_dump(mode="json")) for run in runs}

    def told(run: PublicRunRow) -> EstimatedOut | None:
        try:
            return predict(
                Case(
                    asked(run, stated=stated), shapes[run.llm], snapshot.devices[run.device], snapshot, shapes, ran=True
                )
            )
        except SolverError:
            return None

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(told, runs))


def misses(catalog: Catalog, runs: Sequence[PublicRunRow], *, stated: bool = True) -> tuple[PublicMiss, ...]:
    """Of every run that is predicted, with or without its engine's release."""
    return tuple(
        miss
        for run, told in zip(runs, predicted_runs(catalog, runs, stated=stated), strict=True)
        if told is not None
        for miss in _misses_of(run, told, catalog.devices[run.device].family)
    )


def _misses_of(run: PublicRunRow, found: EstimatedOut, family: str) -> Iterable[PublicMiss]:
    """Of the time per token, from the output rate where the source states no other; and of the time to the first token.

    Of more clients than an engine is taken to run at once only the rate is compared: how many it ran, which no source states, moves
    what they wait from tokens to first tokens.
    """

    def miss(metric: str, ratio: float, told: Interval, *, inverse: bool = False) -> PublicMiss:
        low, high = told.low / told.expected, told.high / told.expected
        if inverse:
            ratio, low, high = 1.0 / ratio, 1.0 / high, 1.0 / max(low, 1e-9)
        return PublicMiss(
            metric, run.source, run.device, family, run.engine,
            is_current(run.engine, run.engine_version, run.measured_on),
            (run.llm, run.weights, run.engine_version or ""), tuple(getattr(run, name) for name in LAYOUT), found.basis,
            math.log(ratio), math.log(max(low, 1e-9)), math.log(high),
        )  # fmt: skip

    told_apart = run.load == "open" or (run.concurrency or 0) <= run.data_parallel * EngineIn().max_sequences
    if run.tpot_ms is not None and told_apart:
        yield miss(TOKEN, run.tpot_ms / found.tpot_ms.mean.expected, found.tpot_ms.mean)
    elif run.output_tokens_per_s is not None:
        told = found.output_tokens_per_s
        yield miss(TOKEN, run.output_tokens_per_s / told.expected, told, inverse=True)
    if run.ttft_ms is not None and told_apart:
        yield miss(FIRST_TOKEN, run.ttft_ms / found.ttft_ms.mean.expected, found.ttft_ms.mean)
