"""Which constants of experts correction sets 10 and 12 have, told from the sets before: ``python -m tests.bench.expert_constants`` (a
minute or two).

By runs of mixtures under vLLM alone; all other constants, and how unevenly random weights route, stay as the set before has them. H200
first. H100 is pulled towards what H200 told, and then told once more with H200's widths, which is the same chip: its own are printed and
not in the set. ``clusterwright calibrate --rounds 0 --write`` made factors, errors and spreads from these. When set 10 was made, products
of the widest experts were taken to be as fast as dense ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table

from catalog.benchmark_rows import read_benchmark_files
from catalog.correction_rows import EngineCorrectionRow
from catalog.read import read_catalog
from service.corrections.calibrate import routed_models
from service.corrections.measurements import catalog_priors, constants_of, measurements
from service.corrections.snapshot import ROUTING
from solver.corrections.evidence import Measurement
from solver.corrections.fit import fit_constants
from solver.step.constants import Constants

ENGINE = "vllm"
WIDTHS = ("expert_half_width_16bit", "expert_half_width_8bit")
NAMES = (
    *WIDTHS, "expert_read_efficiency", "expert_layer_overhead_us", "eager_expert_layer_us", "latent_layer_overhead_us",
    "linear_layer_overhead_us",
)  # fmt: skip
AGAIN = ("expert_read_efficiency", "expert_layer_overhead_us", "eager_expert_layer_us", "latent_layer_overhead_us")
"""Of H100, with H200's widths."""
ROUNDS = 5
Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class Telling:
    """One set told from another. fixed: constants as they were then. begun_at: where H100's second search begins, which moves what is told
    by up to 3 per cent: of set 10 H200's overhead and H100's reading, rounded, as it was made."""

    before: int
    number: int
    fixed: Values = field(default_factory=dict)
    begun_at: Values = field(default_factory=dict)


TELLINGS = (
    Telling(
        9,
        10,
        {"expert_widest_share_16bit": 1.0, "expert_widest_share_8bit": 1.0},
        {"expert_layer_overhead_us": 20.5, "expert_read_efficiency": 0.9926},
    ),
    Telling(11, 12),
)


def row_of(number: int, device: str) -> EngineCorrectionRow:
    (found,) = (row for row in read_catalog().corrections if row.number == number)
    return next(row for row in found.corrections if (row.device, row.engine) == (device, ENGINE))


def mixtures(telling: Telling, device: str) -> list[Measurement]:
    """Those that the set was made of: later ones told none of it."""
    catalog = read_catalog()
    newest = max(row.number for row in catalog.corrections)
    known = {name for one in row_of(min(telling.number, newest), device).evidence for name in one.benchmarks}
    return [
        run
        for run in measurements(catalog, read_benchmark_files(), catalog_priors(catalog))
        if run.id in known and any(group.experts for group in run.configuration.shape.feed_forward)
    ]


def base_of(
    telling: Telling, device: str, runs: Sequence[Measurement], names: Sequence[str], fixed: Values,
    towards: Mapping[str, float],
) -> Constants:  # fmt: skip
    """What a fit of these names is pulled towards: the catalog or a sibling; all else as the set before has it, or fixed."""
    catalog = read_catalog()
    owners = sorted({llm for _, llm in routed_models(runs)})
    base = constants_of(catalog, catalog_priors(catalog), device, ENGINE).with_owners(ROUTING, owners)
    known = {name: one.value for name, one in row_of(telling.before, device).constants.items() if one.taken}
    known |= telling.fixed | fixed
    base = base.replaced(
        {name: value for name, value in known.items() if name in base.priors and name not in names}, "corrected"
    )
    return base.recentred({name: value for name, value in towards.items() if name in names})


def told(
    telling: Telling, device: str, names: Sequence[str], fixed: Values, start: Values, towards: Mapping[str, float]
) -> Values:
    runs = mixtures(telling, device)
    before = {name: one.value for name, one in row_of(telling.before, device).constants.items() if name in names}
    fit = fit_constants(runs, base_of(telling, device, runs, names, fixed, towards), names, ROUNDS, before | start)
    return {name: round(one.value, 6) for name, one in fit.fitted.items()}


def told_of(telling: Telling) -> tuple[Values, Values, Values]:
    """Of H200; of H100 by its own runs; of H100 with H200's widths."""
    elder = told(telling, "h200-sxm", NAMES, {}, {}, {})
    own = told(telling, "h100-sxm", NAMES, {}, {}, elder)
    fixed = {name: elder[name] for name in WIDTHS} | {"linear_layer_overhead_us": own["linear_layer_overhead_us"]}
    taken = {name: one.value for name, one in row_of(telling.before, "h200-sxm").constants.items() if one.taken} | elder
    start = {name: own[name] for name in ("eager_expert_layer_us", "latent_layer_overhead_us")} | telling.begun_at
    return elder, own, fixed | told(telling, "h100-sxm", AGAIN, fixed, start, taken)


def show(telling: Telling) -> None:
    elder, own, again = told_of(telling)
    before, after = f"set {telling.before}", f"set {telling.number}"
    table = Table(
        "constant", f"H200: {before}", "told", after, f"H100: {before}", "told by its own", "with H200's widths", after
    )
    for name in NAMES:
        sets = [
            row_of(number, device).constants[name].value
            for device in ("h200-sxm", "h100-sxm")
            for number in (telling.before, telling.number)
        ]
        values = (sets[0], elder[name], sets[1], sets[2], own[name], again[name], sets[3])
        table.add_row(name, *(f"{value:.6g}" for value in values))
    Console(width=140).print(table)


def main() -> None:
    for telling in TELLINGS:
        show(telling)


if __name__ == "__main__":
    main()
