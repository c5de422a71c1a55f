"""What public runs say of constants: the rows of ``catalog/constants`` that cite them. What they say of intervals is printed by
``clusterwright calibrate --intervals``.

    python -m tests.bench.public_fits FILE [--every 3]

FILE is that of ``tests.bench.public_cases``. Constants of TensorRT-LLM and of sparse attention are fitted to its runs towards the
catalog, with each group of a model and a device left out.
"""

import argparse
import csv
import math
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from catalog.read import Catalog, read_catalog
from service.corrections.measurements import catalog_priors
from service.corrections.snapshot import in_force
from service.estimates.predict import as_documented
from service.recommendations.from_rows import (
    device_from_row,
    engine_from_wire,
    layout_from_wire,
    llm_from_row,
    load_from_wire,
    precision_from_wire,
    traffic_from_wire,
)
from service.wire.estimates import EstimateIn
from solver.corrections.evidence import Measurement, misfits
from solver.corrections.fit import fit_constants, without
from solver.deployment.deploy import deploy
from solver.step.constants import ConstantPrior, resolve_constants
from tests.bench.public_cases import asked

TOKEN, FIRST = "time_per_output_token", "time_to_first_token"
FIELDS = {TOKEN: "tpot_ms_mean", FIRST: "ttft_ms_mean"}


class PublicFit(NamedTuple):
    """Which constants are fitted on the runs of an engine, of models whose name begins so, and on which device (any: none).

    carried: devices that they are tried on then, none of whose runs are in the fit.
    far: how many times their values elsewhere the ends of what is expected are, where runs are far from all that is known.
    """

    engine: str
    names: tuple[str, ...]
    llm: str = ""
    device: str = ""
    carried: tuple[str, ...] = ()
    far: float = 1.0

    def holds(self, row: dict[str, str]) -> bool:
        return self.about(row) and self.device in ("", row["device"])

    def about(self, row: dict[str, str]) -> bool:
        return row["engine"] == self.engine and row["llm"].startswith(self.llm)

    @property
    def title(self) -> str:
        return " ".join(part for part in (self.engine, self.llm, self.device) if part)


FITS = (
    PublicFit("tensorrt-llm", ("token_front_end_us", "expert_layer_overhead_us", "kv_read_efficiency_8bit")),
    PublicFit("vllm", ("widened_expert_share", "widened_expert_read_share"), llm="gpt-oss", device="h100-sxm"),
    PublicFit(
        "vllm",
        ("expert_half_width_8bit", "eager_expert_layer_us"),
        llm="minimax",
        device="b200-sxm",
        carried=("b300-sxm",),
    ),
    PublicFit("vllm", ("waited_step_us", "waited_sequence_us"), llm="qwen3-32b", device="h100-sxm", far=10.0),
    PublicFit("sglang", ("index_layer_overhead_us",), llm="glm-5"),
    PublicFit(
        "sglang",
        ("expert_half_width_8bit", "eager_expert_layer_us", "eager_linear_layer_us", "expert_layer_overhead_us"),
        device="b200-sxm",
        carried=("h200-sxm", "b300-sxm"),
    ),
    PublicFit(
        "sglang",
        ("attention_efficiency", "gemm_efficiency_fp8", "gemm_efficiency_fp4", "all_reduce_latency_us"),
        llm="deepseek",
        device="b300-sxm",
        far=10.0,
    ),
)


def measurement(catalog: Catalog, priors: Sequence[ConstantPrior], row: dict[str, str]) -> Measurement:
    one = measurement_of(catalog, priors, EstimateIn.model_validate(asked(row)))
    group = (row["engine"], row["device"], row["llm"], row["weights"], row["engine_version"])
    measured = {metric: float(row[field]) / 1e3 for metric, field in FIELDS.items() if row[field]}
    return replace(one, id=row["case_id"], group="|".join(group), measured=measured)


def measurement_of(catalog: Catalog, priors: Sequence[ConstantPrior], one: EstimateIn) -> Measurement:
    """A case as the solver has it, of which nothing was measured."""
    shape = llm_from_row(catalog.llms[one.llm].model_dump(mode="json"))
    assert one.device is not None
    assert one.layout is not None
    device = device_from_row(catalog.devices[one.device].model_dump(mode="json"))
    constants = resolve_constants(priors, device=device.id, family=device.family, engine=one.engine.name, llm=shape.id)
    traffic = traffic_from_wire(one.traffic)
    load = load_from_wire(one.load)
    engine = replace(
        engine_from_wire(as_documented(one, device).engine),
        max_context_tokens=min(traffic.maximum, shape.max_context_tokens),
    )
    if one.llm.startswith("qwen3.5") and engine.name == "sglang":
        # As the source's script starts it (SemiAnalysisAI/InferenceX, benchmarks/single_node/qwen3.5_fp8_b200.sh), which an estimate
        # cannot know: no documentation of SGLang says so of this model.
        engine = replace(engine, admission_interval_steps=30 if load.concurrency >= 16 else 10)
    layout, precision = layout_from_wire(one.layout), precision_from_wire(one.precision)
    deployed = deploy(shape, device, constants, layout, precision, engine, traffic)
    return Measurement("", "", shape.model_class, deployed.configuration, traffic, load, {})


def without_told(stated: Sequence[ConstantPrior], fit: PublicFit) -> list[ConstantPrior]:
    """The catalog without the rows that these runs gave: towards what everybody else says, and as little for an index as for a latent."""
    latent = next(p for p in stated if p.name == "latent_layer_overhead_us")
    index = replace(latent, name="index_layer_overhead_us", high=10.0 * latent.high)
    kept = [p for p in stated if not (p.name in fit.names and p.engine == fit.engine)]
    return [index if p.name == index.name and p.name in fit.names else p for p in kept]


def model_on_device(run: Measurement) -> str:
    """Models of one family count as one: DeepSeek's R1 and V3 are the same layers."""
    return f"{run.configuration.shape.family} on {run.configuration.device.id}"


def group_of(run: Measurement, alone: bool) -> str:
    """What is left out together: a family on a device, or of one that is alone its release, degree and length of prompts."""
    if not alone:
        return model_on_device(run)
    prompt = f"prompts of {round(run.traffic.prompt.mean, -2):.0f} tokens"
    weights, release = run.group.split("|")[-2:]
    return f"{weights}, {release}, TP {run.configuration.layout.tensor_parallel}, {prompt}"


def off(runs: Iterable[Measurement], values: Mapping[str, float] | None = None) -> str:
    """Mean error of the time per token and median error of the time to the first token, %, with some constants replaced."""
    errors = [
        misfits(
            run, run.configuration.constants.replaced(values, "corrected") if values else run.configuration.constants
        )
        for run in runs
    ]
    tokens, firsts = ([100.0 * abs(math.expm1(one[metric])) for one in errors if metric in one] for metric in FIELDS)
    return f"{statistics.fmean(tokens):.1f}, {statistics.median(firsts):.1f}"


def print_fit(title: str, runs: Sequence[Measurement], names: Sequence[str], far: float = 1.0) -> dict[str, float]:
    prior = runs[0].configuration.constants
    if far > 1.0:
        wide = {n: replace(p, low=p.value / far, high=p.value * far) for n, p in prior.priors.items() if n in names}
        prior = replace(prior, priors={**prior.priors, **wide})
    fit = fit_constants(runs, prior, names, rounds=4 if far == 1.0 else 12)
    found = ", ".join(
        f"{name} {one.prior:.3g} → {one.value:.3g} (± {100 * one.standard_error_fraction:.0f} %)"
        for name, one in fit.fitted.items()
    )
    sys.stdout.write(
        f"\n{title}, {len(runs)} runs: {found}\n\n| left out | TPOT mean, TTFT median %, before | then | constants |\n|---|---|---|---|\n"
    )
    alone = len({model_on_device(run) for run in runs}) == 1
    groups = [group_of(run, alone) for run in runs]
    for group in sorted(set(groups)):
        own = [i for i, one in enumerate(groups) if one == group]
        others = {name: without(fit, own).priors[name].value for name in names}
        told = ", ".join(f"{value:.3g}" for value in others.values())
        members = [runs[i] for i in own]
        sys.stdout.write(f"| {group} | {off(members)} | {off(members, others)} | {told} |\n")
    return {name: one.value for name, one in fit.fitted.items()}


def print_carried(runs: Sequence[Measurement], values: Mapping[str, float]) -> None:
    """What constants fitted on one device do on others."""
    for group in sorted({(model_on_device(run), run.configuration.precision.weights) for run in runs}):
        members = [run for run in runs if (model_on_device(run), run.configuration.precision.weights) == group]
        sys.stdout.write(f"| {', '.join(group)}: never in it | {off(members)} | {off(members, values)} | |\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=3, help="fit constants to every so many runs")
    arguments = parser.parse_args()
    rows = [row for row in csv.DictReader(arguments.file.open(encoding="utf-8")) if row["load"] == "closed"]
    catalog = read_catalog()
    newest = catalog.corrections[-1]
    for fit in FITS:
        plain = in_force(newest, without_told(catalog_priors(catalog), fit))
        chosen = [row for row in rows if fit.holds(row)][:: arguments.every]
        told = print_fit(fit.title, [measurement(catalog, plain, row) for row in chosen], fit.names, fit.far)
        elsewhere = [row for row in rows if fit.about(row) and row["device"] in fit.carried]
        print_carried([measurement(catalog, plain, row) for row in elsewhere], told)


if __name__ == "__main__":
    main()
