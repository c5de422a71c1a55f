"""Do intervals hold for steps of other sizes than were measured? ``python -m tests.bench.step_intervals`` (seconds).

Of runs in no fit with predictions made before them (``tests.bench.predicted_before``). Every run of a fit was in steps of 8,192 tokens.
Printed is, first, by what a prediction said of itself how many runs lie inside, in steps of that size and of others. Then the same load
sent to servers that differ by the size alone, most of them on one host: what the errors of both differ by is the size's, for all else is
the same. Last, for the loads of a measured configuration in steps of another size, how many would lie inside intervals
as wide as those of a configuration that was not measured, of a way of serving that is in no fit (``carried_over``), and as what was
measured together with what the size was seen to add.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from catalog.read import read_catalog
from service.corrections.snapshot import correction_set
from solver.corrections.applied import correction_for, found_for
from solver.layout import Layout
from solver.precision import Precision
from tests.bench.predicted_before import OF_COPIES_AND_LATENT_ATTENTION, RUNS, predictions, read

FITTED_STEPS = 8192
FIGURES = {"ttft_ms": "time_to_first_token", "tpot_ms": "time_per_output_token"}
FOUR_SERVERS = "the same answered by four processes, predicted of one"
MATCHED = (("q32-b512", "q32-b2048"), ("q32-b2048", "q32-b8192"), ("l8-b2048", "l8-b16384"))
"""Servers of one visit, by how the names of their runs begin; that of 8,192 tokens was on another host a few minutes later."""
NORMAL_90 = 1.645
"""Standard deviations from the middle to either end of the middle nine tenths of a normal distribution."""
Span = tuple[float, float]


@dataclass(frozen=True)
class Seen:
    """A run beside its prediction. ratios: measured over expected, and the ends of the interval over it, by figure."""

    basis: str
    steps_tokens: int
    ratios: Mapping[str, float]
    spans: Mapping[str, Span]


def seen() -> dict[str, Seen]:
    said = predictions()
    found = {}
    for title, file in RUNS.items():
        if (
            title == FOUR_SERVERS or title in OF_COPIES_AND_LATENT_ATTENTION
        ):  # what these say is of copies and of graphs, not of sizes
            continue
        for name, run in read(file)["runs"].items():
            before: dict[str, Any] = said[run.get("predicted_as", name)]
            means = {figure: before[figure]["mean"] for figure in FIGURES}
            results = run["benchmark"]["results"]
            found[name] = Seen(
                before["basis"],
                run["max_batched_tokens"],
                {figure: results[figure]["mean"] / mean["expected"] for figure, mean in means.items()},
                {
                    figure: (mean["low"] / mean["expected"], mean["high"] / mean["expected"])
                    for figure, mean in means.items()
                },
            )
    return found


def inside(runs: Iterable[Seen], figure: str) -> int:
    return sum(run.spans[figure][0] <= run.ratios[figure] <= run.spans[figure][1] for run in runs)


def by_basis(runs: Mapping[str, Seen]) -> Table:
    table = Table("said", "steps", "runs", "TTFT off, mean %", "inside", "TPOT off, mean %", "inside")
    groups: dict[tuple[str, bool], list[Seen]] = defaultdict(list)
    for run in runs.values():
        groups[run.basis, run.steps_tokens != FITTED_STEPS].append(run)
    for (basis, is_other), group in sorted(groups.items()):
        cells = [basis, "of another size" if is_other else f"of {FITTED_STEPS:,}", str(len(group))]
        for figure in FIGURES:
            off = np.mean([abs(1.0 / run.ratios[figure] - 1.0) for run in group])
            cells += [f"{100.0 * off:.1f}", f"{inside(group, figure)}"]
        table.add_row(*cells)
    return table


def matched(runs: Mapping[str, Seen]) -> tuple[Table, dict[str, list[float]]]:
    """Logarithms of what the errors of a load differ by between two sizes, by figure."""
    table = Table("load", "steps", "TTFT off %", "by the size %", "TPOT off %", "by the size %")
    apart: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for one, other in MATCHED:
        for name in (name for name in runs if name.startswith(f"{one}-")):
            first, second = runs[name], runs[f"{other}{name.removeprefix(one)}"]
            cells = [name.removeprefix(f"{one}-"), f"{first.steps_tokens:,} and {second.steps_tokens:,}"]
            for figure in FIGURES:
                off = [100.0 * (1.0 / run.ratios[figure] - 1.0) for run in (first, second)]
                apart[figure].append(math.log(second.ratios[figure] / first.ratios[figure]))
                cells += [f"{off[0]:+.1f} {off[1]:+.1f}", f"{100.0 * math.expm1(apart[figure][-1]):+.1f}"]
            table.add_row(*cells)
    return table, apart


def root_mean_square(values: Iterable[float]) -> float:
    return float(np.sqrt(np.mean(np.square(list(values)))))


def tried(apart: Mapping[str, list[float]]) -> dict[str, dict[str, Callable[[Span], Span]]]:
    """What would be made of the interval of a measured configuration, by figure: of a dense model in closed loops on an H100 SXM."""
    current = correction_set(read_catalog().corrections[-1])
    home = found_for(current, "h100-sxm", "hopper", "vllm")
    assert home is not None
    spreads = {}
    for llm in ("llama-3.1-8b", "none that was measured"):
        found = correction_for(
            current, device="h100-sxm", family=home.family, engine="vllm", version="0.24.0", llm=llm, model_class="dense",
            precision=Precision("bf16", "bf16"), layout=Layout(1), closed_loop=True,
        )  # fmt: skip
        assert found is not None
        spreads[found.basis] = found.spreads
    carried = home.borrowed_widening * home.unseen_widening
    ways: dict[str, dict[str, Callable[[Span], Span]]] = defaultdict(dict)
    for figure, metric in FIGURES.items():
        unmeasured = [
            math.log(spreads["corrected"][metric][end]) / math.log(spreads["measured"][metric][end]) for end in (0, 1)
        ]
        size = NORMAL_90 * root_mean_square(apart[figure])
        ways["as measured"][figure] = lambda span: span
        ways["as a configuration that was not"][figure] = partial(raised, exponents=(unmeasured[0], unmeasured[1]))
        ways["as a way of serving in no fit"][figure] = partial(raised, exponents=(carried, carried))
        ways["as measured, and what the size adds"][figure] = partial(with_more, logarithm=size)
    return ways


def raised(span: Span, exponents: Span) -> Span:
    return span[0] ** exponents[0], span[1] ** exponents[1]


def with_more(span: Span, logarithm: float) -> Span:
    """With something else that moves what is measured by up to so much, in nine cases of ten, whatever the interval holds already."""
    low, high = (math.hypot(math.log(end), logarithm) for end in span)
    return math.exp(-low), math.exp(high)


def main() -> None:
    runs = seen()
    console = Console(width=150)
    console.print(by_basis(runs))
    table, apart = matched(runs)
    console.print(table)
    for figure, logs in apart.items():
        largest = max(logs, key=abs)
        others = [value for value in logs if value != largest]
        print(
            f"{figure}: errors of the same load differ by {100.0 * root_mean_square(logs):.1f} % (root of mean squares), without the "
            f"largest by {100.0 * root_mean_square(others):.1f} %"
        )
    group = [run for run in runs.values() if run.basis == "measured" and run.steps_tokens != FITTED_STEPS]
    table = Table(
        "intervals of a measured configuration in other steps", "TTFT, narrowest", "inside", "TPOT, narrowest", "inside"
    )
    for name, ways in tried(apart).items():
        cells = [name]
        for figure, way in ways.items():
            spans = [way(run.spans[figure]) for run in group]
            low, high = min(spans, key=lambda span: span[1] / span[0])
            held = sum(span[0] <= run.ratios[figure] <= span[1] for run, span in zip(group, spans, strict=True))
            cells += [f"{low:.3f} to {high:.3f}", f"{held} of {len(group)}"]
        table.add_row(*cells)
    console.print(table)


if __name__ == "__main__":
    main()
