"""The fast simulation against a plain one, and laws that hold for every run."""

import random
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solver.engine.profiles import PROFILES, engine_profile
from solver.engine.simulate import Schedule, SimulationTrace, simulate
from solver.errors import InvalidInputError
from solver.replay.one_stream import poisson_arrivals_s
from solver.step.tables import StepTables
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.naive_engine import NaiveEngine, NaiveTrace
from tests.solver.samples import configuration

MODELS = (
    ("llama-3.1-8b", "h100-sxm"),
    ("qwen3-30b-a3b", "h100-sxm"),
    ("gpt-oss-20b", "h200-sxm"),  # sliding layers: context time is not linear
    ("gemma-3-27b", "b200-sxm"),
)
CASES = 180


@dataclass(frozen=True)
class Case:
    engine: str
    tables: StepTables
    schedule: Schedule
    prompts: list[int]
    outputs: list[int]
    load: dict[str, Any]

    def fast(self) -> SimulationTrace:
        return simulate(self.tables, self.schedule, self.prompts, self.outputs, **self.load)

    def plain(self) -> NaiveTrace:
        return NaiveEngine(self.tables, self.schedule, self.prompts, self.outputs, **self.load).run()


@cache
def tables_of(model: tuple[str, str], budget: int, seats: int) -> tuple[StepTables, Schedule]:
    found = configuration(
        shape(model[0]), model[1], engine=EngineSettings(max_batched_tokens=budget, max_sequences=seats)
    )
    return found.tables(), found.schedule()


def random_case(seed: int) -> Case:
    """Few to some dozens of requests on any engine, often with a cache too small for all of them."""
    rng = random.Random(seed)
    engine = rng.choice(["vllm", "vllm", "vllm", "vllm", "sglang", "tensorrt-llm", "tgi", "static"])
    profile = engine_profile(engine)
    tables, schedule = tables_of(rng.choice(MODELS), rng.choice([256, 512, 2048, 8192]), rng.choice([4, 16, 64, 256]))
    count = rng.randint(5, 60)
    prompt, output = rng.choice([20, 200, 1500]), rng.choice([5, 60, 250])
    prompts = [max(1, int(rng.uniform(0.2, 1.8) * prompt)) for _ in range(count)]
    outputs = [max(1, int(rng.uniform(0.1, 1.9) * output)) for _ in range(count)]
    longest = max(p + o for p, o in zip(prompts, outputs, strict=True))
    schedule = replace(
        schedule,
        cached_prefix_fraction=rng.choice([0.0, 0.0, 0.4]),
        kv_cache_tokens=rng.choice([1.5, 3.0, 8.0, 1000.0]) * longest + 50,
        contending_lanes=rng.choice([0, 0, 0, 3]),
        lane_step_s=rng.choice([0.0, 1e-3]),
        lane_slowed_fraction=0.15 * (seed % 2),
        lockstep_copies=rng.choice([0, 0, 0, 1, 7]),
        mixes=profile.mixes,
        chunked_prefill=profile.chunked_prefill,
        static_batching=profile.static_batching,
        preempts=profile.preempts,
        admission_interval_steps=rng.choice([1, 4, 30]) if profile.admits_in_intervals else 1,
    )
    # When a batch is closed for good at one instant, who makes it is decided by rounding: all clients start at once.
    if engine == "static" or rng.random() < 0.5:
        load: dict[str, Any] = {"concurrency": rng.choice([1, 2, 8, 32])}
    else:
        load = {"arrivals_s": poisson_arrivals_s(rng.choice([1.0, 10.0, 50.0]), count, np.random.default_rng(seed))}
    return Case(engine, tables, schedule, prompts, outputs, load)


def one_copy(case: Case) -> Case:
    """The same, in step with none. What replies wait for other copies and stages is reckoned by this one's prompts and waited for while
    there are replies: of a handful of short ones the whole may end sooner or later than the next case."""
    return replace(case, schedule=replace(case.schedule, lockstep_copies=0, contending_lanes=0))


@cache
def both(seed: int) -> tuple[Case, SimulationTrace, NaiveTrace]:
    case = random_case(seed)
    return case, case.fast(), case.plain()


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


class TestFastEqualsPlain:
    @pytest.mark.parametrize("start", range(0, CASES, 20))
    def test_times(self, start: int) -> None:
        for seed in range(start, start + 20):
            _, fast, plain = both(seed)
            assert mean(fast.time_to_first_token_s) == pytest.approx(mean(plain.time_to_first_token_s), rel=0.015), seed
            assert mean(fast.time_per_output_token_s) == pytest.approx(
                mean(plain.time_per_output_token_s), rel=0.005
            ), seed
            assert fast.duration_s == pytest.approx(plain.duration_s, rel=0.005), seed

    def test_nearly_all_agree_step_for_step(self) -> None:
        same = sum(fast.steps == plain.steps for _, fast, plain in map(both, range(CASES)))
        assert same >= 0.98 * CASES

    def test_evictions_are_the_same_and_many_cases_have_some(self) -> None:
        counts = [(fast.preemptions, plain.preemptions) for _, fast, plain in map(both, range(CASES))]
        assert sum(a == b for a, b in counts) >= 0.98 * CASES
        assert sum(b > 0 for _, b in counts) >= 15

    def test_decoding_is_skipped_over(self) -> None:
        """The cost of a run grows with requests, not tokens: ten times the steps, but a few events a request."""
        tables, schedule = tables_of(MODELS[0], 2048, 64)
        short, long = (simulate(tables, schedule, [100] * 50, [n] * 50, concurrency=5) for n in (100, 1000))
        assert long.steps > 9 * short.steps
        assert short.events <= 3 * 50
        assert long.events <= 3 * 50


class TestEveryRun:
    @pytest.mark.parametrize("start", range(0, CASES, 20))
    def test_limits_hold(self, start: int) -> None:
        """On the plain engine, which the fast one follows: cache and seats are never exceeded."""
        for seed in range(start, start + 20):
            case, _, plain = both(seed)
            # Room is looked up before a step; the step then adds at most one token a seat.
            over = plain.most_seats if case.schedule.preempts else 0
            assert plain.most_held_tokens <= case.schedule.kv_cache_tokens + over, (seed, case.engine)
            assert plain.most_seats <= case.schedule.max_sequences, seed

    def test_first_come_first_served(self) -> None:
        for case, _, plain in map(both, range(CASES)):
            ready = [plain.jobs[n].ready for n in plain.admitted]
            assert ready == sorted(ready), case.engine
            assert len(plain.admitted) == len(case.prompts)

    def test_requests_and_tokens_are_counted_once(self) -> None:
        for case, fast, _ in map(both, range(CASES)):
            assert len(fast.time_to_first_token_s) == len(fast.end_to_end_s) == len(case.prompts)
            assert fast.output_tokens == sum(case.outputs)
            assert fast.prompt_tokens == sum(case.prompts)
            decoded = sum(tokens for _, tokens in fast.gaps)
            # every token but the first of a request follows a gap; an evicted request gets one more from each prefill
            assert sum(case.outputs) - len(case.outputs) - fast.preemptions <= decoded + 1e-6
            if fast.preemptions == 0 and engine_profile(case.engine).mixes:
                assert decoded == pytest.approx(sum(case.outputs) - len(case.outputs))

    def test_latencies_add_up(self) -> None:
        for case, fast, _ in map(both, range(CASES)):
            rows = zip(
                fast.time_to_first_token_s, fast.time_per_output_token_s, fast.end_to_end_s, case.outputs, strict=True
            )
            for first, each, whole, tokens in rows:
                assert 0 < first <= whole
                assert first + each * (tokens - 1) == pytest.approx(whole, rel=1e-9)

    def test_the_device_is_never_busy_for_longer_than_the_run(self) -> None:
        for _, fast, _ in map(both, range(CASES)):
            assert fast.busy_s <= fast.duration_s * (1 + 1e-9)
            assert fast.flops / fast.busy_s <= both(0)[0].tables.peak_flop_per_s * 10

    def test_the_same_again(self) -> None:
        for seed in range(20):
            again, fast = random_case(seed).fast(), both(seed)[1]
            for field in fields(SimulationTrace):
                assert np.array_equal(getattr(again, field.name), getattr(fast, field.name)), (seed, field.name)


class TestMoreIsNeverSlower:
    """Speeding every step up by one factor cannot lengthen a run; single requests may trade places."""

    @settings(deadline=None, max_examples=40)
    @given(st.integers(0, CASES - 1), st.floats(1.1, 4.0))
    def test_a_faster_device(self, seed: int, factor: float) -> None:
        case, slow, _ = both(seed)
        if "arrivals_s" in case.load:  # one burst, so that speed decides the end
            case = replace(case, load={"concurrency": 8})
            slow = case.fast()
        t = case.tables
        quick = replace(
            t,
            decode_s=[x / factor for x in t.decode_s],
            mixed_s=[x / factor for x in t.mixed_s],
            head_s=[x / factor for x in t.head_s],
            sequence_s=t.sequence_s / factor,
            context=tuple((a, b / factor, c) for a, b, c in t.context),
            pairs=tuple((a, b / factor, c) for a, b, c in t.pairs),
        )
        fast = replace(case, tables=quick).fast()
        assert fast.duration_s <= slow.duration_s * 1.03
        assert mean(fast.end_to_end_s) <= mean(slow.end_to_end_s) * 1.05

    @settings(deadline=None, max_examples=40)
    @given(st.integers(0, CASES - 1), st.floats(0.1, 0.9))
    def test_shorter_prompts(self, seed: int, share: float) -> None:
        case = replace(one_copy(random_case(seed)), load={"concurrency": 8})
        short = replace(case, prompts=[max(1, int(p * share)) for p in case.prompts])
        assert short.fast().duration_s <= case.fast().duration_s * 1.03

    def test_a_larger_cache(self) -> None:
        for seed in range(0, CASES, 3):
            case = replace(one_copy(random_case(seed)), load={"concurrency": 32})
            large = replace(case, schedule=replace(case.schedule, kv_cache_tokens=1e9))
            assert large.fast().duration_s <= case.fast().duration_s * 1.03, seed
            assert large.fast().preemptions == 0


class TestEngines:
    """What each profile says its engine does."""

    def run(
        self, engine: str, *, prompt: int = 1000, longer: int = 1, **changes: Any
    ) -> tuple[SimulationTrace, NaiveTrace]:
        tables, schedule = tables_of(MODELS[0], 2048, 64)
        profile = PROFILES[engine]
        schedule = replace(
            schedule, mixes=profile.mixes, chunked_prefill=profile.chunked_prefill, lag_fraction=0.0,
            static_batching=profile.static_batching, preempts=profile.preempts, request_ingest_s=0.0, **changes,
        )  # fmt: skip
        prompts, outputs = [prompt] * 24, [n * longer for n in (50, 100, 150, 200)] * 6
        arrivals = [0.04 * i for i in range(24)]
        return (
            simulate(tables, schedule, prompts, outputs, arrivals_s=arrivals),
            NaiveEngine(tables, schedule, prompts, outputs, arrivals_s=arrivals).run(),
        )

    def test_prompts_that_run_alone_start_sooner_and_hold_up_the_others(self) -> None:
        """SGLang gives prefill batches precedence, vLLM runs decodes beside them."""
        mixing, alone = self.run("vllm")[0], self.run("sglang")[0]
        # A step of decodes and a prompt is longer than the prompt's alone, but shorter than one of each.
        assert mean(alone.time_to_first_token_s) < mean(mixing.time_to_first_token_s)
        assert mean(alone.time_per_output_token_s) > mean(mixing.time_per_output_token_s)

    def test_static_batches_wait_for_the_longest(self) -> None:
        static = self.run("static")[1]
        starts = sorted({job.admissions[0] for job in static.jobs})
        for job in static.jobs:
            later = [s for s in starts if s > job.admissions[0]]
            same = [j for j in static.jobs if j.admissions[0] == job.admissions[0]]
            if later:
                assert later[0] >= max(j.last for j in same) - 0.05
        assert mean(static.time_to_first_token_s) > 5 * mean(self.run("vllm")[1].time_to_first_token_s)

    def test_engines_that_never_evict_admit_fewer(self) -> None:
        evicting, keeping = (
            self.run(engine, prompt=100, longer=10, kv_cache_tokens=8_000.0) for engine in ("vllm", "tensorrt-llm")
        )
        assert evicting[0].preemptions > 0
        assert keeping[0].preemptions == keeping[1].preemptions == 0
        assert keeping[1].most_seats < evicting[1].most_seats

    def test_a_prompt_that_is_not_cut_runs_whole(self) -> None:
        """TGI pauses decoding for whole prompts, even above the token budget; vLLM cuts them."""
        tables, schedule = tables_of(MODELS[0], 256, 16)
        whole, cut = (
            simulate(tables, replace(schedule, chunked_prefill=c), [1000], [2], concurrency=1) for c in (False, True)
        )
        assert (whole.steps, cut.steps) == (2, 5)


class TestRefused:
    def one(self, **changes: Any) -> None:
        tables, schedule = tables_of(MODELS[0], 2048, 16)
        asked: dict[str, Any] = {"prompts": [10], "outputs": [10], "concurrency": 1}
        load = asked | {k: v for k, v in changes.items() if k not in ("cache", "prefix")}
        schedule = replace(
            schedule,
            kv_cache_tokens=changes.get("cache", 1e5),
            cached_prefix_fraction=changes.get("prefix", 0.0),
        )
        prompts, outputs = load.pop("prompts"), load.pop("outputs")
        simulate(tables, schedule, prompts, outputs, **load)

    @pytest.mark.parametrize(
        "changes",
        [
            {"prompts": []},
            {"prompts": [0]},
            {"outputs": [0]},
            {"outputs": [1, 1]},
            {"concurrency": 0},
            {"arrivals_s": [0.0]},
            {"concurrency": 0, "arrivals_s": [0.0, 1.0]},
            {"cache": 20.0},
            {"prompts": [1000, 10], "outputs": [10, 900], "cache": 1100.0, "prefix": 0.5},
            {"prompts": [1] * 200_001, "outputs": [1] * 200_001},
        ],
    )
    def test_what_cannot_be_replayed(self, changes: dict[str, Any]) -> None:
        self.one()
        with pytest.raises(InvalidInputError):
            self.one(**changes)


class TestComposition:
    """Steps are composed early, beside the one before, as long as there is somebody to compose them with."""

    def served(self, *, cache_tokens: float, longer: int, before_end_s: float) -> list[list[float]]:
        """First tokens of two requests after two that fill the cache: one waits all along, one comes shortly before the first two end,
        or the first of them does. By the fast engine and by the plain one."""
        tables, schedule = tables_of(MODELS[0], 2048, 64)
        schedule = replace(
            schedule, kv_cache_tokens=cache_tokens, lag_fraction=0.9, request_overhead_s=0.0, prompt_token_s=0.0,
            request_ingest_s=0.0, token_front_end_s=0.0,
        )  # fmt: skip
        prompts, outputs = [100] * 4, [100, 100 + longer, 5, 5]
        alone = simulate(tables, schedule, prompts[:2], outputs[:2], arrivals_s=[0.0, 0.0])
        ends_s = float(alone.end_to_end_s[0])
        arrivals_s = [0.0, 0.0, ends_s - 0.04, ends_s - before_end_s]
        fast = simulate(tables, schedule, prompts, outputs, arrivals_s=arrivals_s)
        plain = NaiveEngine(tables, schedule, prompts, outputs, arrivals_s=arrivals_s).run()
        later = [run.time_to_first_token_s[2:] for run in (fast, plain)]
        return [[at + wait for at, wait in zip(arrivals_s[2:], waits, strict=True)] for waits in later]

    def test_whoever_comes_before_the_last_ends_joins_those_that_had_no_room(self) -> None:
        """Nobody goes on, and nobody could be let in before: there was no step to compose early."""
        for first in self.served(cache_tokens=430.0, longer=0, before_end_s=1e-3):
            assert first[0] == first[1]

    def test_not_while_somebody_goes_on(self) -> None:
        """The step after the end was composed before the last came."""
        for first in self.served(cache_tokens=480.0, longer=50, before_end_s=1e-3):
            assert first[0] < first[1]

    def test_who_comes_before_that_step_was_composed_joins_it(self) -> None:
        for first in self.served(cache_tokens=480.0, longer=50, before_end_s=0.02):
            assert first[0] == first[1]


class TestAdmissionInterval:
    """New requests taken in once in so many decode steps, as SGLang's --scheduler-recv-interval makes it."""

    def times(self, steps: int, clients: int) -> SimulationTrace:
        tables, schedule = tables_of(MODELS[0], 8192, 64)
        rng = np.random.default_rng(5)
        prompts, outputs = rng.integers(700, 1000, 160), rng.integers(150, 250, 160)
        schedule = replace(schedule, mixes=False, admission_interval_steps=steps)
        return simulate(tables, schedule, prompts, outputs, concurrency=clients)

    def test_a_request_waits_half_an_interval_more_on_average(self) -> None:
        at_once, waiting = self.times(1, 4), self.times(30, 4)
        later_s = float(np.mean(waiting.time_to_first_token_s) - np.mean(at_once.time_to_first_token_s))
        step_s = float(np.mean(at_once.time_per_output_token_s))
        assert 8.0 * step_s < later_s < 22.0 * step_s

    def test_one_client_does_not_wait(self) -> None:
        assert self.times(30, 1).time_to_first_token_s == pytest.approx(self.times(1, 1).time_to_first_token_s)
