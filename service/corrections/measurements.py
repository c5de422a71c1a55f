"""Measured runs in the catalog's files → what the fit takes."""

from collections.abc import Iterable

from pydantic import TypeAdapter

from catalog.benchmark_rows import BenchmarkFile, BenchmarkRow
from catalog.read import Catalog
from service.benchmarks.engine_arguments import engine_settings
from service.recommendations.from_rows import (
    device_from_row,
    layout_from_wire,
    llm_from_row,
    load_from_wire,
    precision_from_wire,
    prior_from_row,
    traffic_from_wire,
)
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.traffic import Load, TrafficShape
from solver.corrections.evidence import Measurement
from solver.deployment.deploy import deploy
from solver.step.constants import ConstantPrior, Constants, resolve_constants
from solver.workload import EngineSettings

USABLE = "clean"
S_PER_MS = 1e-3
LOAD_FIELDS = frozenset({"kind", "concurrency", "requests", "requests_per_s"})
"""What a replay needs of a load; uploads say more (seed, arrival process)."""
_LOAD: TypeAdapter[Load] = TypeAdapter(Load)


def catalog_priors(catalog: Catalog) -> tuple[ConstantPrior, ...]:
    return tuple(prior_from_row(row.model_dump(mode="json")) for row in catalog.constants)


def constants_of(
    catalog: Catalog, priors: tuple[ConstantPrior, ...], device: str, engine: str, llm: str | None = None
) -> Constants:
    """The catalog's own constants for a device under an engine; with those that are stated for one model, where one is named."""
    return resolve_constants(priors, device=device, family=catalog.devices[device].family, engine=engine, llm=llm)


def measurements(
    catalog: Catalog, files: Iterable[BenchmarkFile], priors: tuple[ConstantPrior, ...]
) -> tuple[Measurement, ...]:
    """Every usable run of every file. Raises what ``solver.deployment.deploy`` raises for a configuration that cannot be."""
    return tuple(
        measurement(catalog, priors, file, run) for file in files for run in file.runs if run.quality == USABLE
    )


def measurement(
    catalog: Catalog, priors: tuple[ConstantPrior, ...], file: BenchmarkFile, run: BenchmarkRow
) -> Measurement:
    """One run. The engine's settings are those it reported when it started."""
    body = run.benchmark
    context, results = body["context"], body["results"]
    shape = llm_from_row(catalog.llms[context["llm"]].model_dump(mode="json"))
    device = device_from_row(catalog.devices[context["device"]].model_dump(mode="json"))
    engine = context["engine"]
    traffic = traffic_from_wire(
        TrafficShape.model_validate({k: v for k, v in body["traffic"].items() if k in TrafficShape.model_fields})
    )
    told = engine_settings(engine["name"], engine["version"], engine["arguments"])
    settings = EngineSettings(
        engine["name"],
        engine["version"],
        max_batched_tokens=file.engine_reported.max_batched_tokens,
        max_sequences=int(argument(engine["arguments"], "--max-num-seqs", "512")),
        memory_fraction=memory_fraction(engine["arguments"]),
        max_context_tokens=int(argument(engine["arguments"], "--max-model-len", str(shape.max_context_tokens))),
        max_captured_tokens=told.max_captured_tokens,
        scan_kernel=told.scan_kernel,
        random_weights=told.random_weights,
    )
    deployed = deploy(
        shape,
        device,
        constants_of(catalog, priors, device.id, settings.name),
        layout_from_wire(LayoutIn.model_validate(context["layout"])),
        precision_from_wire(PrecisionIn.model_validate(context["precision"])),
        settings,
        traffic,
    )
    measured = {
        "time_per_output_token": results["tpot_ms"].get("mean", 0.0) * S_PER_MS,
        "time_per_output_token.p99": results["tpot_ms"].get("p99", 0.0) * S_PER_MS,
        "time_to_first_token": results["ttft_ms"].get("mean", 0.0) * S_PER_MS,
        "time_to_first_token.p99": results["ttft_ms"].get("p99", 0.0) * S_PER_MS,
        "end_to_end": results["e2e_ms"].get("mean", 0.0) * S_PER_MS,
        "output_rate": results["output_tokens_per_s"],
        "power": context.get("power_w_mean") or 0.0,
    }
    return Measurement(
        id=run.id,
        group=file.group,
        model_class=shape.model_class,
        configuration=deployed.configuration,
        traffic=traffic,
        load=load_from_wire(_LOAD.validate_python({k: v for k, v in body["load"].items() if k in LOAD_FIELDS})),
        measured={metric: value for metric, value in measured.items() if value},
        host=host_of(file, run),
    )


def host_of(file: BenchmarkFile, run: BenchmarkRow) -> str:
    """The host of a run: a visit is made to one. Of the first campaign, which numbered no visits, nothing else is known.

    Visits are not known to be of different hosts; one that came twice counts as two.
    """
    return f"visit {run.session}" if run.session is not None else f"campaign {file.campaign}"


def memory_fraction(arguments: list[str]) -> float:
    """Share of a device's memory that the engine may use. Where the cache is stated in bytes vLLM asks nothing of it, and the
    runs kept here had room for all their clients, as they have under the default.

    >>> memory_fraction(["--gpu-memory-utilization", "0.16"]), memory_fraction(["--kv-cache-memory-bytes", "1073741824"])
    (0.16, 0.92)
    """
    stated = arguments if "--kv-cache-memory-bytes" not in arguments else []
    return float(argument(stated, "--gpu-memory-utilization", "0.92"))


def argument(arguments: list[str], name: str, default: str) -> str:
    """The value after an option in an engine's command line.

    >>> argument(["serve", "--max-num-seqs", "64"], "--max-num-seqs", "512")
    '64'
    """
    return arguments[arguments.index(name) + 1] if name in arguments else default
