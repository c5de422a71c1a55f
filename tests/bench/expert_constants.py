"""Which constants of experts correction set 10 has, told from set 9's: ``python -m tests.bench.expert_constants`` (a minute).

By runs of mixtures under vLLM alone; all other constants, and how unevenly random weights route, stay as set 9 has them. H200 first.
H100 is pulled towards what H200 told, and then told once more with H200's widths, which is the same chip: its own are printed and not
in the set. ``clusterwright calibrate --rounds 0 --write`` made factors, errors and spreads from these.
"""

from collections.abc import Mapping, Sequence

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

ENGINE, FROM, TO = "vllm", 9, 10
WIDTHS = ("expert_half_width_16bit", "expert_half_width_8bit")
NAMES = (
    *WIDTHS, "expert_read_efficiency", "expert_layer_overhead_us", "eager_expert_layer_us", "latent_layer_overhead_us",
    "linear_layer_overhead_us",
)  # fmt: skip
AGAIN = ("expert_read_efficiency", "expert_layer_overhead_us", "eager_expert_layer_us", "latent_layer_overhead_us")
"""Of H100, with H200's widths."""
BEGUN_AT = {"expert_layer_overhead_us": 20.5, "expert_read_efficiency": 0.9926}
"""H200's overhead and H100's reading, rounded, as set 10 was made: where it begins moves what is told by up to 3 per cent."""
ROUNDS = 5
Values = dict[str, float]


def row_of(number: int, device: str) -> EngineCorrectionRow:
    (found,) = (row for row in read_catalog().corrections if row.number == number)
    return next(row for row in found.corrections if (row.device, row.engine) == (device, ENGINE))


def mixtures(device: str) -> list[Measurement]:
    """Those that the set was made of: later ones told none of it."""
    catalog = read_catalog()
    known = {name for one in row_of(TO, device).evidence for name in one.benchmarks}
    return [
        run
        for run in measurements(catalog, read_benchmark_files(), catalog_priors(catalog))
        if run.id in known and any(group.experts for group in run.configuration.shape.feed_forward)
    ]


def base_of(
    device: str, runs: Sequence[Measurement], names: Sequence[str], fixed: Values, towards: Mapping[str, float]
) -> Constants:
    """What a fit of these names is pulled towards: the catalog or a sibling; all else as set 9 has it, or fixed."""
    catalog = read_catalog()
    owners = sorted({llm for _, llm in routed_models(runs)})
    base = constants_of(catalog, catalog_priors(catalog), device, ENGINE).with_owners(ROUTING, owners)
    known = {name: one.value for name, one in row_of(FROM, device).constants.items() if one.taken} | fixed
    base = base.replaced(
        {name: value for name, value in known.items() if name in base.priors and name not in names}, "corrected"
    )
    return base.recentred({name: value for name, value in towards.items() if name in names})


def told(device: str, names: Sequence[str], fixed: Values, start: Values, towards: Mapping[str, float]) -> Values:
    runs = mixtures(device)
    before = {name: one.value for name, one in row_of(FROM, device).constants.items() if name in names}
    fit = fit_constants(runs, base_of(device, runs, names, fixed, towards), names, ROUNDS, before | start)
    return {name: one.value for name, one in fit.fitted.items()}


def main() -> None:
    elder = told("h200-sxm", NAMES, {}, {}, {})
    own = told("h100-sxm", NAMES, {}, {}, elder)
    elder, own = ({name: round(value, 6) for name, value in found.items()} for found in (elder, own))
    fixed = {name: elder[name] for name in WIDTHS} | {"linear_layer_overhead_us": own["linear_layer_overhead_us"]}
    taken = {name: one.value for name, one in row_of(FROM, "h200-sxm").constants.items() if one.taken} | elder
    start = {name: own[name] for name in ("eager_expert_layer_us", "latent_layer_overhead_us")}
    start |= BEGUN_AT
    again = fixed | told("h100-sxm", AGAIN, fixed, start, taken)
    table = Table(
        "constant", "H200: set 9", "told", "set 10", "H100: set 9", "told by its own", "with H200's widths", "set 10"
    )
    for name in NAMES:
        sets = [
            row_of(number, device).constants[name].value for device in ("h200-sxm", "h100-sxm") for number in (FROM, TO)
        ]
        values = (sets[0], elder[name], sets[1], sets[2], own[name], again[name], sets[3])
        table.add_row(name, *(f"{value:.6g}" for value in values))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
