"""The compiled scheduling loop against the one in plain Python that it replaced, to the last bit."""

import random
import subprocess
import sys
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solver.engine.kernel import columns, records, stepping
from solver.engine.profiles import engine_profile
from solver.engine.replayable import MOST_REQUESTS, MOST_TOKENS, Prefixes, one_prefix
from solver.engine.simulate import Schedule, SimulationTrace, simulate
from solver.errors import InvalidInputError
from solver.step.tables import StepTables
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.engine import oracle_simulate
from tests.solver.samples import configuration

ROOT = Path(__file__).resolve().parents[3]
MODELS = (
    ("llama-3.1-8b", "h100-sxm"),
    ("qwen3-30b-a3b", "h100-sxm"),
    ("gpt-oss-20b", "h200-sxm"),  # sliding layers: context time is not linear
    ("gemma-3-27b", "b200-sxm"),
)
ENGINES = ("vllm", "vllm", "vllm", "vllm", "sglang", "tensorrt-llm", "tgi", "static")
CASES = 600
SEATS = 64
TIMES = ("time_to_first_token_s", "time_per_output_token_s", "end_to_end_s", "completed_s")
TOTALS = (
    "clients", "duration_s", "output_tokens", "prompt_tokens", "busy_s", "bytes", "flops", "preemptions", "events", "steps",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    tables: StepTables
    schedule: Schedule
    prompts: list[int]
    outputs: list[int]
    load: dict[str, Any]

    def oracle(self) -> oracle_simulate.Trace:
        return oracle_simulate.simulate(self.tables, self.schedule, self.prompts, self.outputs, **self.load)

    def fast(self) -> SimulationTrace:
        return simulate(self.tables, self.schedule, self.prompts, self.outputs, **self.load)


@cache
def tables_of(model: tuple[str, str], budget: int) -> tuple[StepTables, Schedule]:
    settings = EngineSettings(max_batched_tokens=budget, max_sequences=SEATS * 3, max_captured_tokens=512)
    found = configuration(shape(model[0]), model[1], engine=settings)
    return found.tables(), found.schedule()


def random_case(seed: int) -> Case:
    """Any engine, any rule of the schedule, often with a cache too small for all that came."""
    rng = random.Random(seed)
    profile = engine_profile(rng.choice(ENGINES))
    tables, schedule = tables_of(rng.choice(MODELS), rng.choice([256, 512, 2048, 8192]))
    count = rng.choice([1, 7, 30, 60, 150])
    prompt, output = rng.choice([20, 200, 1500, 9000]), rng.choice([1, 5, 60, 250])
    prompts = [max(1, int(rng.uniform(0.2, 1.8) * prompt)) for _ in range(count)]
    outputs = [max(1, int(rng.uniform(0.1, 1.9) * output)) for _ in range(count)]
    longest = max(p + o for p, o in zip(prompts, outputs, strict=True))
    width = rng.choice([1, 1, 1, 3])
    schedule = replace(
        schedule,
        max_sequences=rng.choice([1, 4, 16, SEATS]),
        cached_prefix_fraction=rng.choice([0.0, 0.0, 0.4]),
        kv_cache_tokens=rng.choice([1.5, 2.5, 3.0, 8.0, 1000.0]) * longest + 50,
        contending_lanes=rng.choice([0, 0, 0, 3]),
        lane_step_s=rng.choice([0.0, 1e-3]),
        lane_slowed_fraction=0.15 * (seed % 2),
        lockstep_copies=rng.choice([0, 0, 0, 1, 7]),
        mixes=rng.choice([profile.mixes, True, False]),
        chunked_prefill=rng.choice([profile.chunked_prefill, True, False]),
        static_batching=profile.static_batching,
        preempts=rng.choice([profile.preempts, True]),
        request_overhead_s=rng.choice([0.0, 0.01]),
        request_ingest_s=rng.choice([0.0, 1e-4]),
        prompt_token_s=rng.choice([0.0, 1e-6]),
        token_front_end_s=rng.choice([0.0, 6e-5, 1e-3]),
        clock_headroom_fraction=rng.choice([0.0, 0.06]),
        clock_sag_fraction=rng.choice([0.0, 0.05]),
        clock_settling_s=rng.choice([0.2, 1.0]),
        tokens_per_step=1.0 if width == 1 else rng.choice([1.0, 1.7, 2.9]),
        query_tokens=width,
        prefilled=rng.random() < 0.15,
        launches_in_line=False,  # which the plain loop does not know: ``naive_engine`` judges it
    )
    if width > 1 and rng.random() < 0.5:
        tables = replace(tables, draft_s=1e-4 * np.arange(SEATS * 3 + 1))
    load: dict[str, Any] = {"concurrency": rng.choice([1, 2, 8, 32, 200])}
    if rng.random() < 0.5:
        gap = rng.choice([0.0, 0.01, 0.1, 1.0, 30.0])
        arrivals = np.cumsum([gap * rng.expovariate(1.0) for _ in prompts]).tolist()
        load = {"arrivals_s": arrivals if rng.random() < 0.9 else arrivals[::-1]}
    if rng.random() < 0.2:
        cached = [int(p * rng.choice([0.0, 0.3, 0.9])) for p in prompts]
        schedule = replace(schedule, kv_cache_tokens=schedule.kv_cache_tokens + 2 * max(cached))
        load["prefixes"] = Prefixes(cached, max(cached) + rng.randint(0, max(cached)))
    return Case(tables, schedule, prompts, outputs, load)


def assert_same(fast: SimulationTrace, oracle: oracle_simulate.Trace, seed: int) -> None:
    for name in TIMES:
        assert getattr(fast, name).tolist() == getattr(oracle, name), (seed, name)
    for name in TOTALS:
        assert getattr(fast, name) == getattr(oracle, name), (seed, name)
    assert fast.gaps.tolist() == [list(gap) for gap in oracle.gaps], seed


class TestKernelEqualsPlainPython:
    @pytest.mark.parametrize("start", range(0, CASES, 50))
    def test_to_the_last_bit(self, start: int) -> None:
        for seed in range(start, start + 50):
            case = random_case(seed)
            assert_same(case.fast(), case.oracle(), seed)

    def test_cases_meet_every_rule(self) -> None:
        """What the comparison is worth: the rules of the schedule that can go wrong are met by many cases."""
        cases = [random_case(seed) for seed in range(CASES)]
        evicted = [case.fast().preemptions > 0 for case in cases]
        assert sum(evicted) >= 40
        assert sum(case.tables.windowed for case in cases) >= 100
        assert sum(e and case.tables.windowed for e, case in zip(evicted, cases, strict=True)) >= 5
        assert sum(e and case.schedule.prefilled for e, case in zip(evicted, cases, strict=True)) >= 3
        for rule in (
            "static_batching",
            "prefilled",
            "contending_lanes",
            "lockstep_copies",
            "token_front_end_s",
            "clock_sag_fraction",
        ):
            assert sum(bool(getattr(case.schedule, rule)) for case in cases) >= 40, rule
        for rule in ("mixes", "chunked_prefill", "preempts"):
            assert sum(not getattr(case.schedule, rule) for case in cases) >= 40, rule
        assert sum(case.schedule.query_tokens > 1 for case in cases) >= 40
        assert sum("prefixes" in case.load for case in cases) >= 40

    @pytest.mark.parametrize("gaps", [1, 7])
    def test_a_run_goes_on_where_a_full_column_of_gaps_stopped_it(self, gaps: int) -> None:
        case = next(
            case for case in map(random_case, range(CASES)) if len(case.prompts) >= 60 and min(case.outputs) > 10
        )
        on = columns.engine(case.tables, case.schedule, closed=False)
        prompts, outputs = np.array(case.prompts), np.array(case.outputs)
        arrivals = np.zeros(len(prompts))
        prefixes = one_prefix(prompts, 0.0)
        whole = columns.replayed(on, prompts, outputs, 0, arrivals, prefixes)
        parts = columns.replayed(on, prompts, outputs, 0, arrivals, prefixes, room=gaps)
        assert len(whole.gaps) > 2 * gaps
        assert parts.gaps.tolist() == whole.gaps.tolist()
        assert parts.last_s.tolist() == whole.last_s.tolist()
        assert parts.end.events == whole.end.events

    def test_many_evictions(self) -> None:
        """Each leaves a key in the heap of completions, which has room for twice as many as can be right."""
        tables, schedule = tables_of(MODELS[0], 2048)
        schedule = replace(schedule, max_sequences=SEATS, kv_cache_tokens=40_000.0, launches_in_line=False)
        rng = random.Random(5)
        prompts, outputs = ([rng.randint(*span) for _ in range(400)] for span in ((20, 300), (2_000, 6_000)))
        case = Case(tables, schedule, prompts, outputs, {"concurrency": 200})
        fast = case.fast()
        assert fast.preemptions > 4 * SEATS
        assert_same(fast, case.oracle(), 5)


class TestWithoutNumba:
    def test_the_same_source_as_python_gives_the_same(self) -> None:
        code = (
            "import sys; sys.modules['numba'] = None\n"
            "from solver.engine.kernel.compiled import COMPILED\n"
            "from tests.solver.engine.test_kernel import CASES, assert_same, random_case\n"
            "seeds = range(0, CASES, 5)\n"
            "for seed in seeds: assert_same(random_case(seed).fast(), random_case(seed).oracle(), seed)\n"
            "print(COMPILED, len(seeds))"
        )
        assert run_python(code) == f"False {CASES // 5}"

    def test_it_is_not_loaded_before_a_simulation_runs(self) -> None:
        code = (
            "import sys, service.main, solver.confirmation.confirmations, solver.prediction.estimate, solver.recommend.recommend\n"
            "print('numba' in sys.modules)\n"
            "from solver.engine.compile import compile_simulation\n"
            "print('numba' in sys.modules, compile_simulation(), 'numba' in sys.modules)"
        )
        assert run_python(code).split("\n") == ["False", "False True True"]


class TestMachineCode:
    def test_one_kind_of_arguments_is_compiled(self) -> None:
        """Whatever arrays come, read-only or with gaps: each new type would be ten seconds of a request."""
        tables, schedule = tables_of(MODELS[0], 512)
        numbers = np.arange(2, 22)
        numbers.flags.writeable = False
        simulate(tables, schedule, numbers, numbers, arrivals_s=numbers.astype(float))
        simulate(tables, schedule, numbers[::2], numbers[::2], arrivals_s=np.arange(20.0)[::2])
        simulate(tables, schedule, numbers[::2], numbers[::2].tolist(), concurrency=3)
        simulate(replace(tables, draft_s=np.zeros(400)[::2]), schedule, [5, 5], (3, 3), concurrency=3)
        signatures = getattr(stepping.run, "signatures", [()])
        assert len(signatures) == 1

    def test_another_source_is_another_type(self) -> None:
        """numba would otherwise go on with the machine code of functions that have changed since."""
        assert columns.RULES_TYPE.names is not None
        assert columns.RULES_TYPE.names[-1] == f"made_from_{columns.source_digest()}"

    def test_what_would_read_past_a_table_is_refused(self) -> None:
        tables, schedule = tables_of(MODELS[0], 512)
        seats = len(tables.decode_s)
        with pytest.raises(InvalidInputError, match="not tabulated"):
            simulate(tables, replace(schedule, max_sequences=seats), [5] * seats, [5] * seats, concurrency=seats)
        with pytest.raises(InvalidInputError, match="at least one"):
            simulate(tables, replace(schedule, max_sequences=0), [5], [5], concurrency=1)

    def test_all_requests_accepted_have_a_key(self) -> None:
        assert MOST_REQUESTS <= records.MOST_KERNEL_REQUESTS
        assert MOST_TOKENS < 1 << (62 - records.REQUEST_BITS)


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
