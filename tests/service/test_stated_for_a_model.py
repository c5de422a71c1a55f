"""What rows of the catalog state for one model holds in its runs, when a correction set is made and when it is asked for."""

from catalog.benchmark_rows import read_benchmark_files
from catalog.read import read_catalog
from service.corrections.measurements import catalog_priors, constants_of, measurements
from solver.corrections.evidence import predicted

LLM, DEVICE, ENGINE = "gpt-oss-20b", "h200-sxm", "vllm"
RUNS = "h200-sxm_vllm-0.24.0_gpt-oss-20b_mxfp4_tp1_even"
TPOT = "time_per_output_token"


def test_runs_are_told_with_what_is_stated_for_their_model() -> None:
    """4-bit experts of gpt-oss 20B are read at half of the rate on H200: its loads ask for it, and the 120B's told it."""
    catalog = read_catalog()
    priors = catalog_priors(catalog)
    runs = measurements(catalog, [file for file in read_benchmark_files() if file.id == RUNS], priors)
    assert len(runs) == 4
    whole = constants_of(catalog, priors, DEVICE, ENGINE)
    known = {c.device: c for c in catalog.corrections[-1].corrections if c.engine == ENGINE}[DEVICE].constants
    whole = whole.replaced(
        {name: one.value for name, one in known.items() if one.taken and name in whole.priors}, "corrected"
    )
    own = whole.with_stated(LLM, constants_of(catalog, priors, DEVICE, ENGINE, LLM))
    for run in runs:
        untold, said = (predicted(run, one)[TPOT] / run.measured[TPOT] for one in (whole, own))
        assert untold < 0.9 < 0.92 < said < 1.1


def test_the_newest_set_finds_little_left_of_them() -> None:
    (row,) = (c for c in read_catalog().corrections[-1].corrections if (c.device, c.engine) == (DEVICE, ENGINE))
    (evidence,) = (e for e in row.evidence if e.llm == LLM)
    assert {run for run in evidence.benchmarks if "-even-" in run} == {
        f"gptoss20b-mxfp4-tp1-even-{load}_zb" for load in ("c1", "c8", "c32", "o16")
    }
    assert 0.9 < evidence.factors[TPOT] < 1.1
