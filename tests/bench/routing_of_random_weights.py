"""What routing of random weights explains of Gemma 4 26B-A4B's times: ``python -m tests.bench.routing_of_random_weights``.

Its prediction took routing to be as even as trained weights' is taken to be, and its servers had random ones. One load (eight
clients) says how uneven that routing is; the other five are then predicted with it, and are its test.
"""

import json
from typing import Any

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table
from scipy.optimize import brentq

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import LOAD_FIELDS, catalog_priors
from service.corrections.snapshot import in_force
from service.recommendations.from_rows import (
    device_from_row,
    layout_from_wire,
    llm_from_row,
    load_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.wire.deployment import LayoutIn, PrecisionIn
from service.wire.traffic import Load, TrafficShape
from solver.corrections.evidence import Measurement, predicted
from solver.deployment.deploy import deploy
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings

FILE = DEFAULT_ROOT / "kept_back" / "h100-sxm_vllm-0.24.0_gemma-4-26b-a4b_bf16_tp1_r.json"
TOLD_BY = "g26-c8"
ROUTING = "expert_evenness_16bit"
RANGE = (0.02, 20.0)
S_PER_MS = 1e-3
ANY_LOAD: TypeAdapter[Load] = TypeAdapter(Load)


def measured_run(catalog: Catalog, run: dict[str, Any]) -> Measurement:
    """A run of the file as fits take runs, under the newest correction set."""
    body = run["benchmark"]
    context = body["context"]
    shape = llm_from_row(catalog.llms[context["llm"]].model_dump(mode="json"))
    device = device_from_row(catalog.devices[context["device"]].model_dump(mode="json"))
    settings = EngineSettings(
        context["engine"]["name"], context["engine"]["version"], max_batched_tokens=run["max_batched_tokens"],
        max_sequences=run["max_sequences"], max_context_tokens=run["max_context_tokens"],
    )  # fmt: skip
    traffic = traffic_from_wire(
        TrafficShape.model_validate({k: v for k, v in body["traffic"].items() if k in TrafficShape.model_fields})
    )
    priors = in_force(catalog.corrections[-1], catalog_priors(catalog))
    constants = resolve_constants(priors, device=device.id, family=device.family, engine=settings.name, llm=shape.id)
    configuration = deploy(
        shape, device, constants, layout_from_wire(LayoutIn.model_validate(context["layout"])),
        precision_from_wire(PrecisionIn.model_validate(context["precision"])), settings, traffic,
    ).configuration  # fmt: skip
    results = body["results"]
    times = {
        "time_per_output_token": results["tpot_ms"]["mean"] * S_PER_MS,
        "time_to_first_token": results["ttft_ms"]["mean"] * S_PER_MS,
    }
    load = load_from_wire(ANY_LOAD.validate_python({k: v for k, v in body["load"].items() if k in LOAD_FIELDS}))
    return Measurement("", "", shape.model_class, configuration, traffic, load, times)


def at(run: Measurement, evenness: float) -> dict[str, float]:
    return predicted(run, run.configuration.constants.replaced({ROUTING: evenness}, "measured"))


def main() -> None:
    catalog = read_catalog()
    runs = {name: measured_run(catalog, run) for name, run in json.loads(FILE.read_text())["runs"].items()}
    one, metric = runs[TOLD_BY], "time_per_output_token"
    evenness = brentq(lambda s: at(one, s)[metric] - one.measured[metric], *RANGE, xtol=1e-3)
    table = Table("run", "TPOT ms: even", "uneven", "measured", "off %", "TTFT ms: even", "uneven", "measured", "off %")
    for name, run in runs.items():
        even, uneven = predicted(run, run.configuration.constants), at(run, evenness)
        row = [name]
        for figure in (metric, "time_to_first_token"):
            measured = run.measured[figure]
            row += [f"{value[figure] / S_PER_MS:.4g}" for value in (even, uneven)]
            row += [f"{measured / S_PER_MS:.4g}", f"{100.0 * (uneven[figure] / measured - 1.0):+.1f}"]
        table.add_row(*row)
    Console(width=130).print(table)
    print(f"{TOLD_BY} is as measured at {ROUTING} = {evenness:.3g}")


if __name__ == "__main__":
    main()
