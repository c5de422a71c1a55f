"""Sessions in the event simulation: what the cache of prefixes finds, and when turns are sent."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from solver.engine.kernel import stepping
from solver.engine.profiles import engine_profile
from solver.engine.replayable import SessionTurns
from solver.engine.simulate import Schedule, SessionTrace, simulate, simulate_sessions
from solver.lengths import fixed_lengths, lognormal_lengths, uniform_lengths
from solver.replay.session_draws import SessionDraw, closed_draw, open_draw
from solver.sessions import session_traffic
from solver.step.tables import StepTables
from solver.workload import Sessions, Traffic
from tests.seeds import cases
from tests.solver.engine.naive_sessions import NaiveSessions
from tests.solver.engine.test_kernel import MODELS, SEATS, run_python, tables_of

CASES = cases(320)
BATCH = 40
SETTLED = Sessions(uniform_lengths(3, 9), lognormal_lengths(200, 600), 30.0, system_tokens=1500)


@dataclass(frozen=True)
class Case:
    tables: StepTables
    schedule: Schedule
    draw: SessionDraw
    clients: int

    def fast(self) -> SessionTrace:
        arrivals_s = None if self.clients else self.draw.arrivals_s
        return simulate_sessions(
            self.tables, self.schedule, self.draw.prompts, self.draw.outputs, self.draw.turns,
            concurrency=self.clients, arrivals_s=arrivals_s,
        )  # fmt: skip


def random_case(seed: int) -> Case:
    """Sessions of any kind on any engine, mostly with a cache that does not hold all of them."""
    rng = random.Random(seed)
    profile = engine_profile(rng.choice(["vllm", "vllm", "vllm", "sglang", "tensorrt-llm"]))
    tables, schedule = tables_of(rng.choice(MODELS), rng.choice([256, 512, 2048]))
    block = rng.choice([1, 16, 16, 32])
    clients = rng.choice([0, 0, 1, 6])
    sessions = Sessions(
        turns=uniform_lengths(1, rng.choice([1, 3, 6])),
        user=uniform_lengths(1, rng.choice([5, 80, 300])),
        think_s=rng.choice([0.0, 0.2, 2.0]),
        system_tokens=rng.choice([0, 7, 100, 400]),
        system_prompts=rng.choice([1, 1, 3]),
        document_tokens=rng.choice([0, 0, 250]),
        documents=rng.choice([1, 4]),
        spread_over=1 if clients else rng.choice([1, 1, 3]),
    )
    output = uniform_lengths(1, rng.choice([1, 40, 120]))
    traffic, _ = session_traffic(sessions, output, rng.choice([None, None, sessions.opening_tokens + 500]))
    cache_tokens = rng.choice([1.3, 2.5, 6.0, 30.0]) * traffic.maximum + 3 * block
    schedule = replace(
        schedule,
        max_sequences=rng.choice([2, 8, SEATS]),
        kv_cache_tokens=cache_tokens,
        block_slack_tokens=(block - 1) / 2.0,
        mixes=profile.mixes,
        chunked_prefill=profile.chunked_prefill,
        preempts=profile.preempts,
    )
    in_host = random.Random(seed + CASES).choice([0.0, 2.0, 6.0, 40.0])
    on_disk = random.Random(seed + 2 * CASES).choice([0.0, 3.0, 12.0, 60.0]) if in_host else 0.0
    in_host = min(in_host, on_disk / 3.0) if on_disk else in_host
    schedule = replace(
        schedule,
        host_cache_tokens=in_host * traffic.maximum, host_token_s=2e-5,
        disk_cache_tokens=on_disk * traffic.maximum, disk_token_s=random.Random(seed + 3 * CASES).choice([1e-6, 1e-4, 1e-3]),
        tiers_keep_replies=seed % 3 != 0, tier_store_s=random.Random(seed + 5 * CASES).choice([0.0, 0.0, 1e-3]) if on_disk else 0.0,
        **front_end(random.Random(seed + 7 * CASES)),
    )  # fmt: skip
    count = rng.randint(5, 70)
    if clients:
        return Case(tables, schedule, closed_draw(traffic, count, seed, block_tokens=block), clients)
    draw = open_draw(traffic, rng.choice([2.0, 20.0]), 0.5, count, seed, block_tokens=block, cache_tokens=cache_tokens)
    return Case(tables, schedule, draw, 0)


def front_end(rng: random.Random) -> dict[str, float]:
    """None that hashes, one as measured, or one that prompts crowd at."""
    slowness, of_turns = rng.choice([0.0, 1e-6, 1e-4]), rng.choice([0.4, 1.0])
    if not slowness:
        return {
            "prefix_token_s": 0.0, "admitted_token_s": 0.0, "answered_token_s": 0.0, "turn_overhead_fraction": of_turns,
        }  # fmt: skip
    return {
        "turn_overhead_fraction": of_turns,
        "prefix_token_s": slowness * rng.uniform(0.1, 0.4), "admitted_token_s": slowness * rng.uniform(0.0, 0.4),
        "answered_token_s": slowness * rng.choice([0.0, 0.5]), "prompt_token_s": slowness * rng.choice([0.1, 0.5]),
    }  # fmt: skip


def over_a_disk(seed: int) -> Case:
    """The same with so small a cache and so little host memory that most of what returns is on a disk."""
    case, rng = random_case(seed), random.Random(seed + 4 * CASES)
    longest = int((case.draw.prompts + case.draw.outputs).max())
    tiers = replace(
        case.schedule,
        kv_cache_tokens=min(case.schedule.kv_cache_tokens, 2.0 * longest + 100),
        host_cache_tokens=rng.choice([0.3, 1.0]) * longest, host_token_s=2e-5,
        disk_cache_tokens=rng.choice([2.0, 8.0, 60.0]) * longest, disk_token_s=rng.choice([1e-6, 1e-4, 1e-3]),
    )  # fmt: skip
    return replace(case, schedule=tiers)


def over_long_openings(seed: int) -> Case:
    """Few tokens a step and a cache of one or two requests: whoever begins an opening is evicted before it has computed all of that."""
    rng = random.Random(seed)
    tables, schedule = tables_of(MODELS[0], 256)
    sessions = Sessions(uniform_lengths(1, 3), uniform_lengths(1, 40), 0.2, system_tokens=600, system_prompts=6)
    traffic, _ = session_traffic(sessions, uniform_lengths(60, 200), None)
    cache_tokens = rng.choice([1.15, 1.4, 1.7]) * traffic.maximum + 24
    in_host = rng.choice([0.0, 3.0]) * traffic.maximum
    schedule = replace(
        schedule, max_batched_tokens=rng.choice([24, 64]), kv_cache_tokens=cache_tokens,
        host_cache_tokens=in_host, host_token_s=2e-5, disk_cache_tokens=rng.choice([0.0, 4.0]) * in_host, disk_token_s=1e-4,
    )  # fmt: skip
    return Case(tables, schedule, open_draw(traffic, 8.0, 0.5, 12, seed, block_tokens=16, cache_tokens=cache_tokens), 0)


@cache
def runs(seed: int, of: Callable[[int], Case] = random_case) -> tuple[Case, SessionTrace, NaiveSessions]:
    case = of(seed)
    block = round(2 * case.schedule.block_slack_tokens) + 1
    naive = NaiveSessions(case.tables, case.schedule, case.draw, concurrency=case.clients, block=block)
    naive.run()
    return case, case.fast(), naive


def test_tiers_that_keep_prompts_alone_load_less() -> None:
    """A reply that the device has forgotten is computed again where tiers never had it."""
    chats = Sessions(uniform_lengths(4, 6), uniform_lengths(100, 200), 2.0, system_tokens=400)
    traffic, _ = session_traffic(chats, uniform_lengths(200, 300), None)
    tables, schedule = tables_of(MODELS[0], 512)
    schedule = replace(
        schedule, kv_cache_tokens=3.0 * traffic.maximum, block_slack_tokens=7.5,
        host_cache_tokens=100.0 * traffic.maximum, host_token_s=2e-5,
    )  # fmt: skip
    draw = closed_draw(traffic, 200, 1, block_tokens=16)
    both, prompts = (
        Case(tables, replace(schedule, tiers_keep_replies=kept), draw, 12).fast() for kept in (True, False)
    )
    assert 0 < prompts.loaded_tokens.sum() < both.loaded_tokens.sum()
    turns = len(draw.prompts)
    lost = (both.cached_tokens.sum() - prompts.cached_tokens.sum()) / turns
    assert 0 < lost < 300


class TestAgainstSingleBlocks:
    @pytest.mark.parametrize("start", range(0, CASES, BATCH))
    def test_every_prompt_finds_as_much(self, start: int) -> None:
        for seed in range(start, min(start + BATCH, CASES)):
            _, fast, naive = runs(seed)
            found = [naive.turns[request].found for request in fast.order]
            assert fast.cached_tokens.tolist() == found, seed
            assert fast.loaded_tokens.tolist() == [naive.turns[request].loaded for request in fast.order], seed
            assert fast.disk_tokens.tolist() == [naive.turns[request].from_disk for request in fast.order], seed

    @pytest.mark.parametrize("start", range(0, CASES, BATCH))
    def test_and_takes_as_long(self, start: int) -> None:
        for seed in range(start, min(start + BATCH, CASES)):
            _, fast, naive = runs(seed)
            turns = [naive.turns[request] for request in fast.order]
            assert fast.trace.time_to_first_token_s == pytest.approx([t.first - t.sent for t in turns], rel=2e-3), seed
            assert fast.trace.end_to_end_s == pytest.approx([t.last - t.sent for t in turns], rel=2e-3), seed

    @pytest.mark.parametrize("start", range(0, CASES, BATCH))
    def test_over_a_disk_too(self, start: int) -> None:
        """What each prompt finds, loads and reads, in 320 cases more; and how long that takes."""
        for seed in range(start, min(start + BATCH, CASES)):
            _, fast, naive = runs(seed, over_a_disk)
            turns = [naive.turns[request] for request in fast.order]
            assert fast.cached_tokens.tolist() == [t.found for t in turns], seed
            assert fast.loaded_tokens.tolist() == [t.loaded for t in turns], seed
            assert fast.disk_tokens.tolist() == [t.from_disk for t in turns], seed
            assert fast.trace.time_to_first_token_s == pytest.approx([t.first - t.sent for t in turns], rel=2e-3), seed

    def test_an_opening_that_was_computed_in_part_is_found_in_part(self) -> None:
        """Of whoever is evicted amid what it shares with nobody in progress, only what it has computed is there for it or for others."""
        for seed in range(24):
            _, fast, naive = runs(seed, over_long_openings)
            turns = [naive.turns[request] for request in fast.order]
            assert fast.cached_tokens.tolist() == [t.found for t in turns], seed
            assert fast.loaded_tokens.tolist() == [t.loaded for t in turns], seed
            assert fast.trace.time_to_first_token_s == pytest.approx([t.first - t.sent for t in turns], rel=2e-3), seed
            assert fast.trace.end_to_end_s == pytest.approx([t.last - t.sent for t in turns], rel=2e-3), seed

    def test_cases_over_a_disk_are_worth_it(self) -> None:
        found = [runs(seed, over_a_disk)[1] for seed in range(CASES)]
        assert sum(fast.disk_fraction() > 0.02 for fast in found) >= 0.3 * CASES

    def test_cases_are_worth_it(self) -> None:
        """Caches that forget, evictions, shared beginnings, and hits of every size."""
        found = [runs(seed) for seed in range(CASES)]
        fractions = [fast.found_fraction() for _, fast, _ in found]
        assert sum(0.05 < share < 0.95 for share in fractions) >= 0.45 * CASES
        assert sum(fast.trace.preemptions > 0 for _, fast, _ in found) >= 0.04 * CASES
        assert sum(len(case.draw.turns.held_chains) > 0 for case, _, _ in found) >= 0.25 * CASES
        assert sum(fast.loaded_fraction() > 0.02 for _, fast, _ in found) >= 0.06 * CASES
        assert sum(fast.disk_fraction() > 0.02 for _, fast, _ in found) >= 0.06 * CASES


def digest_over_disks(seeds: range) -> str:
    """Of all that the simulation says of these cases, to the last bit."""
    told = hashlib.sha256()
    for seed in seeds:
        run = over_a_disk(seed).fast()
        for each in (
            run.sent_s,
            run.cached_tokens,
            run.loaded_tokens,
            run.disk_tokens,
            run.trace.end_to_end_s,
            run.trace.gaps,
        ):
            told.update(np.ascontiguousarray(each).tobytes())
    return told.hexdigest()


def test_the_same_source_as_python_gives_the_same_to_the_bit() -> None:
    seeds = range(0, 40, 2)
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "from tests.solver.engine.test_sessions import digest_over_disks\n"
        f"print(digest_over_disks({seeds!r}))"
    )
    assert run_python(code) == digest_over_disks(seeds)


def traffic_of(sessions: Sessions) -> Traffic:
    return session_traffic(sessions, lognormal_lengths(300, 900))[0]


def found(sessions: Sessions, cache_tokens: float, seed: int = 1, count: int = 6000) -> SessionTrace:
    tables, schedule = tables_of(MODELS[0], 2048)
    schedule = replace(schedule, kv_cache_tokens=cache_tokens)
    draw = open_draw(traffic_of(sessions), 4.0, 2.0, count, seed, block_tokens=16, cache_tokens=cache_tokens)
    return simulate_sessions(
        tables, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=draw.arrivals_s, notes_gaps=False
    )


class TestLaws:
    def test_sessions_of_one_turn_are_plain_requests(self) -> None:
        tables, schedule = tables_of(MODELS[0], 2048)
        schedule = replace(
            schedule, prefix_token_s=0.0, admitted_token_s=0.0, answered_token_s=0.0, turn_overhead_fraction=1.0
        )
        traffic = traffic_of(Sessions(fixed_lengths(1), lognormal_lengths(1000, 2500), 5.0))
        draw = open_draw(traffic, 8.0, 2.0, 2000, 3, block_tokens=16, cache_tokens=schedule.kv_cache_tokens)
        turns = simulate_sessions(tables, schedule, draw.prompts, draw.outputs, draw.turns, arrivals_s=draw.arrivals_s)
        order = draw.turns.starts
        plain = simulate(tables, schedule, draw.prompts[order], draw.outputs[order], arrivals_s=draw.arrivals_s)
        assert turns.found_fraction() == 0.0
        assert np.array_equal(turns.trace.time_to_first_token_s, plain.time_to_first_token_s)
        assert np.array_equal(turns.trace.end_to_end_s, plain.end_to_end_s)
        assert np.array_equal(turns.trace.gaps, plain.gaps)

    def test_a_larger_cache_finds_more_and_none_more_than_all_that_was_sent(self) -> None:
        shares = [found(SETTLED, size).found_fraction() for size in (30_000, 60_000, 120_000, 240_000, 1_000_000)]
        assert shares == sorted(shares)
        assert shares[0] < 0.6 < 0.9 < shares[-1] <= traffic_of(SETTLED).shared_prefix_fraction

    def test_the_first_requests_of_a_draw_find_what_the_last_do(self) -> None:
        for size in (60_000, 150_000, 300_000):
            draws = [found(SETTLED, size, seed) for seed in range(1, 7)]
            early = np.mean([one.cached_tokens[:1500].sum() / one.prompts[:1500].sum() for one in draws])
            late = np.mean([one.found_fraction(3000) for one in draws])
            assert early == pytest.approx(late, abs=0.02), size

    def test_turns_come_at_the_rate_asked(self) -> None:
        spans = [found(SETTLED, 400_000, seed).sent_s for seed in range(1, 9)]
        rates = [(len(sent) - 1) / (sent[-1] - sent[0]) for sent in spans]
        assert np.mean(rates) == pytest.approx(4.0, rel=0.04)

    def test_spreading_turns_over_replicas_finds_less(self) -> None:
        shares = [found(replace(SETTLED, spread_over=n), 120_000).found_fraction() for n in (1, 2, 4, 16)]
        assert shares == sorted(shares, reverse=True)
        assert shares[-1] > 0.4  # the system prompt is everywhere

    def test_one_kind_of_arguments_is_compiled(self) -> None:
        found(SETTLED, 100_000, count=50)
        assert len(getattr(stepping.run, "signatures", [()])) == 1


class TestFrontEnd:
    """Prompts of one opening under an engine that hashes prompts: what their first tokens wait for."""

    def wave(self, arrivals_s: list[float], **changes: float) -> tuple[SessionTrace, Schedule]:
        """An opening of 8,000 tokens with one prompt, then prompts of 100 tokens beyond it at ``arrivals_s`` later."""
        tables, schedule = tables_of(MODELS[0], 8192)
        found = {
            "prefix_token_s": 1e-7,
            "admitted_token_s": 2e-7,
            "answered_token_s": 5e-7,
            "prompt_token_s": 4e-7,
            "turn_overhead_fraction": 1.0,
            **changes,
        }
        schedule = replace(schedule, kv_cache_tokens=1e6, block_slack_tokens=7.5, **found)
        count = 1 + len(arrivals_s)
        none = np.zeros(count, dtype=np.int64)
        turns = SessionTurns(
            think_s=np.zeros(count), later=none, aside_tokens=none + 8000, kept_tokens=none + 8119, chain=np.arange(count),
            starts=np.arange(count), parent=np.array([*(none + count), -1]), blocks=np.array([*none, 500]),
            held_chains=none[:0], held_blocks=none[:0],
        )  # fmt: skip
        sent_s = np.array([0.0, *(10.0 + at for at in arrivals_s)])
        run = simulate_sessions(tables, schedule, none + 8100, none + 20, turns, arrivals_s=sent_s)
        return run, schedule

    @pytest.mark.parametrize("clients", [2, 8, 40])
    def test_a_wave_is_answered_at_once_after_four_passes_over_its_prompts(self, clients: int) -> None:
        run, s = self.wave([0.0] * clients)
        idle, _ = self.wave(
            [0.0] * clients, prefix_token_s=1e-15, admitted_token_s=0.0, answered_token_s=0.0, prompt_token_s=0.0
        )
        first = run.trace.time_to_first_token_s[1:]
        assert first == pytest.approx(first[0], rel=1e-12)
        passes = s.prompt_token_s + s.prefix_token_s + s.admitted_token_s + s.answered_token_s
        step = float(idle.trace.time_to_first_token_s[1:].max())
        assert first[0] == pytest.approx(step + clients * 8100 * passes, rel=0.02)

    def test_who_comes_before_those_there_are_taken_in_is_taken_in_with_them(self) -> None:
        """One prompt takes 3.3 ms to be taken in: the second comes in that time, the third in that of both."""
        together, s = self.wave([0.0, 0.003, 0.006])
        each_s = s.request_ingest_s + 8100 * s.prompt_token_s
        assert 0.003 < each_s < 0.0035
        answered_s = together.sent_s + together.trace.time_to_first_token_s
        assert answered_s[1:] == pytest.approx(answered_s[1], rel=1e-12)
        apart, _ = self.wave([0.0, 0.05])
        assert np.diff(apart.sent_s + apart.trace.time_to_first_token_s)[-1] > 0.04

    def test_answers_delay_what_comes_meanwhile(self) -> None:
        """A prompt that comes while many are answered waits for them."""
        many = [0.0] * 40
        alone, s = self.wave(many)
        answering_s = 40 * 8100 * s.answered_token_s
        begins_s = float(alone.trace.time_to_first_token_s[1]) - answering_s - s.request_overhead_s / 2.0
        late, _ = self.wave([*many, begins_s + answering_s / 2.0])
        single, _ = self.wave([0.0])
        longer = late.trace.time_to_first_token_s[-1] - single.trace.time_to_first_token_s[-1]
        assert longer == pytest.approx(answering_s / 2.0 - s.request_overhead_s / 2.0, abs=0.03)
        assert longer > 0.03

    def test_a_turn_alone_waits_its_share_of_the_overhead(self) -> None:
        whole, s = self.wave([0.0])
        half, _ = self.wave([0.0], turn_overhead_fraction=0.5)
        sooner = whole.trace.time_to_first_token_s - half.trace.time_to_first_token_s
        assert s.request_overhead_s > 0.0
        assert sooner == pytest.approx(0.5 * s.request_overhead_s)

    def test_decoding_goes_on_while_prompts_are_answered(self) -> None:
        """Only first tokens are later: the last ones are not, where replies are long enough."""
        slow, _ = self.wave([0.0] * 8, answered_token_s=1e-6)
        fast, _ = self.wave([0.0] * 8, answered_token_s=0.0)
        assert slow.trace.time_to_first_token_s[1:].min() > fast.trace.time_to_first_token_s[1:].max() + 0.06
        assert slow.trace.end_to_end_s[1:].max() == pytest.approx(fast.trace.end_to_end_s[1:].max(), rel=0.05)
