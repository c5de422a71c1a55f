"""Slots of adapters in the event simulation: who is passed over, against the plain engine."""

import random
from dataclasses import replace

import numpy as np
import pytest

from solver.engine.profiles import engine_profile
from solver.engine.simulate import Schedule, SimulationTrace, simulate
from solver.step.tables import StepTables
from tests.seeds import cases
from tests.solver.engine.test_kernel import MODELS, SEATS, tables_of
from tests.solver.naive_engine import NaiveEngine

CASES = cases(200)
BATCH = 50
Case = tuple[StepTables, Schedule, np.ndarray, np.ndarray, np.ndarray, int, np.ndarray | None]


def random_case(seed: int) -> Case:
    """Requests that name adapters, on any engine, with as many slots as adapters at most."""
    rng = random.Random(seed)
    profile = engine_profile(rng.choice(["vllm", "vllm", "vllm", "sglang", "tensorrt-llm"]))
    tables, schedule = tables_of(rng.choice(MODELS), rng.choice([256, 512, 2048]))
    count, adapters = rng.randint(5, 80), rng.choice([2, 4, 12])
    prompts = np.array([rng.randint(1, 400) for _ in range(count)])
    outputs = np.array([rng.randint(1, rng.choice([3, 120])) for _ in range(count)])
    named = np.array([min(rng.randrange(adapters), rng.randrange(adapters)) for _ in range(count)])
    schedule = replace(
        schedule,
        max_sequences=rng.choice([2, 8, SEATS]),
        kv_cache_tokens=rng.choice([1.2, 3.0, 40.0]) * int((prompts + outputs).max()) + 50,
        block_slack_tokens=7.5,
        mixes=profile.mixes,
        chunked_prefill=profile.chunked_prefill,
        preempts=profile.preempts,
        adapter_slots=rng.randint(1, adapters),
    )
    clients = rng.choice([0, 1, 5, 30])
    arrivals = None if clients else np.cumsum([rng.expovariate(rng.choice([5.0, 60.0])) for _ in range(count)])
    return tables, schedule, prompts, outputs, named, clients, arrivals


def both(seed: int) -> tuple[SimulationTrace, NaiveEngine]:
    tables, schedule, prompts, outputs, named, clients, arrivals = random_case(seed)
    fast = simulate(tables, schedule, prompts, outputs, concurrency=clients, arrivals_s=arrivals, adapters=named)
    naive = NaiveEngine(
        tables, schedule, prompts.tolist(), outputs.tolist(),
        concurrency=clients, arrivals_s=None if arrivals is None else arrivals.tolist(),
    )  # fmt: skip
    for job, adapter in zip(naive.jobs, named.tolist(), strict=True):
        job.adapter = adapter
    naive.run()
    return fast, naive


@pytest.mark.parametrize("start", range(0, CASES, BATCH))
def test_as_on_the_plain_engine(start: int) -> None:
    for seed in range(start, min(start + BATCH, CASES)):
        fast, naive = both(seed)
        assert fast.time_to_first_token_s == pytest.approx(naive.trace.time_to_first_token_s, rel=2e-3), seed
        assert fast.end_to_end_s == pytest.approx([j.last - j.sent for j in naive.jobs], rel=2e-3), seed
        assert fast.preemptions == naive.trace.preemptions, seed


def test_cases_are_worth_it() -> None:
    """Of many cases somebody is passed over and others run: first admissions out of the order of sending; and evictions."""
    found = [both(seed)[1].trace for seed in range(CASES)]
    assert sum(trace.admitted != sorted(trace.admitted) for trace in found) >= 0.15 * len(found)
    assert sum(trace.preemptions > 0 for trace in found) >= 0.05 * len(found)


@pytest.mark.parametrize("seed", range(12))
def test_slots_for_all_change_nothing(seed: int) -> None:
    tables, schedule, prompts, outputs, named, clients, arrivals = random_case(seed)
    all_held = replace(schedule, adapter_slots=int(named.max()) + 1)
    with_slots, without = (
        simulate(tables, all_held, prompts, outputs, concurrency=clients, arrivals_s=arrivals, adapters=each)
        for each in (named, None)
    )
    if not without.preemptions:
        assert np.array_equal(with_slots.end_to_end_s, without.end_to_end_s)


def test_one_that_is_named_by_nobody_else_waits_while_others_pass() -> None:
    tables, schedule = tables_of(MODELS[0], 512)
    named = np.array([0, 1, 0, 0, 0])
    run = simulate(
        tables, replace(schedule, adapter_slots=1), np.full(5, 100), np.full(5, 40),
        arrivals_s=np.zeros(5), adapters=named,
    )  # fmt: skip
    first = run.time_to_first_token_s
    assert first[1] > max(run.end_to_end_s[[0, 2, 3, 4]]) > first[2]
