"""What waits while an engine's loop launches steps, measured and said: ``python -m tests.bench.launching`` (two minutes).

Five servers of three models on H200 (nineteenth campaign), their functions wrapped to note times: for how long launching a step
keeps the loop that composes steps, by what is in it; what first tokens waited for; and what is said of the same loads, which are in no
fit, with the constants of the newest correction set and with launching as long as it was in that load.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import DEFAULT_ROOT
from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import in_force
from solver.corrections.evidence import Measurement, predicted
from solver.step import terms
from solver.step.constants import Constants, resolve_constants
from tests.bench.routing_of_random_weights import measured_run

FILE = DEFAULT_ROOT / "steps" / "h200-sxm_vllm-0.24.0_y.json"
BESIDE, ALONE = "prompts beside replies", "prompts alone"
CAPTURED, LAUNCHED = ", captured", ", launched"
EAGER = ("eager_layer_us", "eager_expert_layer_us", "eager_linear_layer_us", "eager_latent_layer_us")
IN_GRAPHS: dict[Literal["mla", "linear"], tuple[str, str]] = {
    "mla": ("captured_latent_layer_us", "captured_latent_replies_us"),
    "linear": ("captured_linear_layer_us", "captured_linear_replies_us"),
}
"""By kind of layers that are launched between captured pieces."""
FIGURES = {"time_to_first_token": "TTFT", "time_per_output_token": "TPOT", "output_rate": "tokens/s"}
DRAWS = 4
MS, US_PER_MS = 1e3, 1e3
Load = tuple[str, dict[str, Any], Measurement]
"""Of a load its name, what its steps were, and the run."""


def loads(catalog: Catalog, server: dict[str, Any]) -> Iterator[Load]:
    file = json.loads((DEFAULT_ROOT / "kept_back" / server["kept_back"]).read_text())
    for name, run in file["runs"].items():
        yield name, server["loads"][name.split("-")[-1].removesuffix("_y")], measured_run(catalog, name, run)


def constants_of(catalog: Catalog, one: Measurement) -> Constants:
    """With what its model's random weights route like."""
    here, priors = one.configuration, in_force(catalog.corrections[-1], catalog_priors(catalog))
    return resolve_constants(
        priors, device=here.device.id, family=here.device.family, engine=here.engine.name, llm=here.shape.id, random_weights=True
    )  # fmt: skip


def launched_layers(one: Measurement) -> tuple[Literal["mla", "linear"], int]:
    """The kind of layers that are launched between captured pieces, and how many."""
    layers = {kind: one.configuration.shape.layers_of(kind) for kind in IN_GRAPHS}
    return next((kind, count) for kind, count in layers.items() if count)


def as_launched(one: Measurement, constants: Constants, steps: dict[str, Any]) -> Constants:
    """With launching as long as it was in this load: of captured steps by layer, of others all layers' in proportion."""
    shape = one.configuration.shape
    if ALONE + CAPTURED in steps:
        kind, layers = launched_layers(one)
        alone, beside = (steps[held + CAPTURED]["launching_ms"] * US_PER_MS / layers for held in (ALONE, BESIDE))
        more = max(beside - alone, 0.0)
        return constants.replaced(dict(zip(IN_GRAPHS[kind], (alone, more), strict=True)), "measured")
    rates = one.configuration.with_constants(constants).rates()
    factor = steps[BESIDE + LAUNCHED]["launching_ms"] / MS / float(np.asarray(terms.eager_floor_s(shape, rates)))
    return constants.replaced({name: constants.priors[name].value * factor for name in EAGER}, "measured")


def show_steps(title: str, server: dict[str, Any]) -> None:
    table = Table("load", "step", "steps", "launching, ms", "on the device, ms", "handed on after, ms", title=title)
    for label, load in server["loads"].items():
        for kind, of in sorted(load["steps"].items()):
            figures = (of[name] for name in ("steps", "launching_ms", "device_ms", "until_handed_on_ms"))
            table.add_row(label, kind, *map(str, figures))
    Console(width=120).print(table)
    for label, load in server["loads"].items():
        print(f"{label}: first token", ", ".join(f"{what} {ms} ms" for what, ms in load["first_token_ms"].items()))


def show_between_pieces(catalog: Catalog, server: dict[str, Any]) -> None:
    """What launching a captured step takes a layer between its pieces: over prompts alone, beside replies, and how much more."""
    each = []
    for _, load, one in loads(catalog, server):
        if ALONE + CAPTURED in load["steps"]:
            layers = launched_layers(one)[1]
            alone, beside = (
                load["steps"][held + CAPTURED]["launching_ms"] * US_PER_MS / layers for held in (ALONE, BESIDE)
            )
            each.append((alone, beside, beside - alone))
    for what, values in zip(("over prompts alone", "beside replies", "more"), zip(*each, strict=True), strict=False):
        shown = ", ".join(f"{us:.0f}" for us in values)
        print(f"us a layer between captured pieces, {what}: {shown}; median {np.median(values):.0f}")


def show_loads(title: str, catalog: Catalog, server: dict[str, Any], off: dict[str, list[list[float]]]) -> None:
    table = Table("load", *(f"{name}: {what}" for name in FIGURES.values() for what in ("measured", "said, %", "as launched, %")),
                  title=title)  # fmt: skip
    for name, load, one in loads(catalog, server):
        constants = constants_of(catalog, one)
        each = [predicted(one, known, DRAWS) for known in (constants, as_launched(one, constants, load["steps"]))]
        cells = [name]
        for figure in FIGURES:
            measured = one.measured[figure]
            errors = [100.0 * (said[figure] / measured - 1.0) for said in each]
            off[figure].append(errors)
            shown = f"{measured:.0f}" if figure == "output_rate" else f"{measured * MS:.4g} ms"
            cells += [shown, *(f"{error:+.1f}" for error in errors)]
        table.add_row(*cells)
    Console(width=130).print(table)


def main() -> None:
    catalog, servers = read_catalog(), json.loads(FILE.read_text())["servers"]
    off: dict[str, list[list[float]]] = {figure: [] for figure in FIGURES}
    for title, server in servers.items():
        show_steps(title, server)
        show_between_pieces(catalog, server)
        show_loads(title, catalog, server, off)
    for figure, errors in off.items():
        said, launched = np.abs(np.array(errors)).mean(axis=0)
        print(
            f"{FIGURES[figure]}: {said:.1f} % off in the mean of {len(errors)} loads, {launched:.1f} with launching as it was"
        )


if __name__ == "__main__":
    main()
