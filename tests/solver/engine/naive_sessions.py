"""Sessions on the plain engine, with a cache of single blocks known by all the tokens up to their end.

The judge of ``solver.engine.kernel.prefixes`` and ``turns``, with which it shares no code: there chains are counted, here every
block is kept by itself, forgotten one by one as soon as its room is needed, and given back the last one first.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from solver.engine.simulate import Schedule
from solver.replay.session_draws import SessionDraw
from solver.step.tables import StepTables
from tests.solver.naive_engine import Job, NaiveEngine, NaiveTrace

Block = tuple[object, ...]


@dataclass
class Turn(Job):
    """One turn. names: what its tokens are, whole blocks only; shared: how many of its blocks others begin with too."""

    names: list[Block] = field(default_factory=list)
    shared: int = 0
    next: "Turn | None" = None
    think_s: float = 0.0
    found: int = -1
    loaded: int = 0
    read: int = 0
    """Blocks that its prompt has since a disk was asked for it."""
    from_disk: int = 0
    stage: str = "waiting"
    """waiting, asked (of a disk), answered, loading (from host memory) or loaded."""
    there: float = 0.0


class BlockCache:
    """Blocks that nobody holds, the least recently used first, and how many requests hold each of the others."""

    def __init__(self, *tier_blocks: int) -> None:
        self.held: Counter[Block] = Counter()
        self.free: dict[Block, None] = {}
        self.tiers: list[dict[Block, None]] = [{} for _ in tier_blocks]
        """Blocks kept in host memory and on disk too, the least recently used first."""
        self.tier_blocks = tier_blocks

    def find_anywhere(self, names: list[Block], tiers: int) -> int:
        """In the device or the first so many of the tiers under it."""
        count = 0
        for name in names:
            if name not in self.free and not self.held[name] and not any(name in t for t in self.tiers[:tiers]):
                break
            count += 1
        return count

    def bring(self, names: list[Block], count: int) -> None:
        """The first so many blocks into host memory, used last, what they follow after them."""
        for place in range(len(names) - 1, -1, -1):
            if place < count or names[place] in self.tiers[0]:
                self.tiers[0].pop(names[place], None)
                self.tiers[0][names[place]] = None
        self.shrink_tiers()

    def store(self, names: list[Block], computed: int) -> None:
        for tier in self.tiers:
            for place in range(len(names) - 1, -1, -1):
                if place < computed or names[place] in tier:
                    tier.pop(names[place], None)
                    tier[names[place]] = None
        self.shrink_tiers()

    def shrink_tiers(self) -> None:
        for tier, most in zip(self.tiers, self.tier_blocks, strict=True):
            while len(tier) > most:
                del tier[next(iter(tier))]

    def find(self, names: list[Block]) -> int:
        count = 0
        for name in names:
            if name not in self.free and not self.held[name]:
                break
            count += 1
        return count

    def hold(self, names: list[Block]) -> None:
        for name in names:
            self.free.pop(name, None)
            self.held[name] += 1

    def give_back(self, names: list[Block], computed: int) -> None:
        for place in range(len(names) - 1, -1, -1):
            self.held[names[place]] -= 1
            if not self.held[names[place]] and place < computed:
                self.free[names[place]] = None

    def shrink(self, blocks: float) -> None:
        while len(self.free) > max(blocks, 0):
            del self.free[next(iter(self.free))]


def turns_of(draw: SessionDraw, block: int) -> list[Turn]:
    """Turns with their blocks by name: a chain's parents and place say what tokens a block holds."""
    t, jobs = draw.turns, []
    for i, (prompt, output) in enumerate(zip(draw.prompts.tolist(), draw.outputs.tolist(), strict=True)):
        own, chain, names = int(t.chain[i]), int(t.parent[t.chain[i]]), []
        while chain >= 0:
            names = [("shared", chain, place) for place in range(int(t.blocks[chain]))] + names
            chain = int(t.parent[chain])
        shared = len(names)
        assert shared * block == int(t.aside_tokens[i])
        names += [("session", own, place) for place in range((prompt + output - 1) // block - shared)]
        jobs.append(Turn(i, prompt, output, 0, names=names, shared=shared, think_s=float(t.think_s[i])))
    for i, job in enumerate(jobs):
        job.next = jobs[i + 1] if t.later[i] else None
    return jobs


class NaiveSessions(NaiveEngine):
    """Serves all turns of a draw, then is done."""

    def __init__(
        self, tables: StepTables, schedule: Schedule, draw: SessionDraw, *, concurrency: int = 0, block: int = 16
    ) -> None:
        schedule = replace(schedule, request_overhead_s=schedule.request_overhead_s * schedule.turn_overhead_fraction)
        super().__init__(tables, schedule, [1], [1], arrivals_s=[])
        self.turns, self.block, self.prefix = turns_of(draw, block), block, 0
        self.jobs = list(self.turns)
        self.trace = NaiveTrace(self.jobs)
        sizes = schedule.host_cache_tokens, schedule.disk_cache_tokens
        self.cache = BlockCache(*(int(tokens // block) for tokens in sizes))
        self.bus_free_s = self.disk_free_s = 0.0
        self.intake = (0.0, 0.0)
        """When the front end began with the prompts it took in last, and when it was done with them."""
        self.hashed = self.answered = 0.0
        self.fresh = 0
        """Tokens of prompts admitted since the last step with prompts."""
        for chain, count in zip(draw.turns.held_chains.tolist(), draw.turns.held_blocks.tolist(), strict=True):
            kind = "shared" if draw.turns.parent[chain] < 0 or chain in set(draw.turns.parent.tolist()) else "session"
            for place in range(count - 1, -1, -1):
                self.cache.free[(kind, chain, place)] = None
                for tier in self.cache.tiers:
                    tier[(kind, chain, place)] = None
        self.cache.shrink_tiers()
        self.due: list[tuple[float, int]] = []
        starts = [self.turns[i] for i in draw.turns.starts.tolist()]
        self.sessions_left = starts[concurrency:] if concurrency else []
        for k, job in enumerate(starts[:concurrency] if concurrency else starts):
            self.due.append((0.0 if concurrency else float(draw.arrivals_s[k]), job.number))

    def turns_waiting(self) -> list[Turn]:
        return [job for job in self.line() if isinstance(job, Turn)]

    def holding(self) -> list[Turn]:
        """Those in the line that have been given room to be loaded to."""
        return [job for job in self.turns_waiting() if job.stage in ("loading", "loaded")]

    def known(self, at: float) -> bool:
        return at <= self.now - self.s.lag_fraction * self.previous

    def one_step(self) -> int:
        while True:
            if not (self.running or self.prefilling or self.line()):
                if not self.upcoming:
                    self.send_soonest()
                self.jump(min(job.ready for job in self.upcoming))
            self.send_due()
            self.wait_for_hashes()
            if self.steps_not_asked == 0:
                self.notice()
            if any(self.known(job.ready) for job in self.upcoming) or self.running or self.prefilling or self.line():
                before = self.trace.steps, self.trace.preemptions
                done = super().one_step()
                if (self.trace.steps, self.trace.preemptions) == before:
                    self.wait()
                return done

    def jump(self, to: float) -> None:
        self.now = max(self.now, to)
        self.previous, self.steps_not_asked = 0.0, 0

    def wait(self) -> None:
        """Nobody runs and nobody was admitted."""
        self.closed_to_new = self.no_room = False
        comes = [job.there for job in self.turns_waiting() if job.stage in ("asked", "loading")]
        if comes:
            ready = [job.ready for job in self.upcoming]
            if not ready and self.due:
                ready = [self.soonest_ready()]
            self.jump(min([*comes, *ready]))

    def notice(self) -> None:
        for job in self.turns_waiting():
            if job.stage in ("asked", "loading") and self.known(job.there):
                job.stage = "answered" if job.stage == "asked" else "loaded"
                self.closed_to_new = self.no_room = False

    def asks_disk(self, job: Turn) -> bool:
        """What host memory ends before is asked of the disk once, and read after what was asked before."""
        if job.stage == "answered" or len(self.cache.tiers) < 2 or not all(self.cache.tier_blocks):
            return False
        asked = job.names[: (job.prompt + job.produced - 1) // self.block]
        near, whole = (self.cache.find_anywhere(asked, tiers) for tiers in (1, 2))
        if near == len(asked):
            job.stage = "answered"
            return False
        job.stage, job.read, job.there = "asked", whole, self.now
        if whole > near:
            job.from_disk += (whole - near) * self.block
            self.disk_free_s = max(self.disk_free_s, self.now) + (whole - near) * self.block * self.s.disk_token_s
            job.there = self.disk_free_s
            self.cache.bring(job.names, whole)
        return True

    def send_due(self) -> None:
        while self.due and min(self.due)[0] <= self.now:
            self.send_soonest()

    def hear(self) -> None:
        if self.s.launches_in_line and self.tables.launched_s.any():
            self.send_due()
            self.shrink()

    def lined(self) -> bool:
        return self.cache.tier_blocks[0] > 0

    def left_to_compute(self, job: Job) -> int:
        assert isinstance(job, Turn)
        asked = (job.prompt + job.produced - 1) // self.block
        return job.prompt + job.produced - self.cache.find(job.names[:asked]) * self.block

    def wait_for_hashes(self) -> None:
        if not self.intake[1] <= self.now < self.hashed:
            return
        there = any(job.stage in ("asked", "loading") and self.known(job.there) for job in self.turns_waiting())
        if (self.no_room or self.closed_to_new) and not there:
            return
        waiting = any(job.stage not in ("asked", "loading") for job in self.turns_waiting())
        if there or waiting or self.prefilling or any(self.known(job.ready) for job in self.upcoming):
            self.now, self.previous = self.hashed, 0.0

    def soonest_ready(self) -> float:
        """When the one that is due soonest may be scheduled at the soonest."""
        at, number = min(self.due)
        prompt, s = self.turns[number].prompt, self.s
        begun = max(self.intake[1] if s.prefix_token_s else self.ingest, self.answered, at + s.request_overhead_s / 2)
        taken_in = begun + s.request_ingest_s + s.prompt_token_s * prompt
        return max(self.hashed, taken_in) + s.prefix_token_s * prompt

    def answer(self, jobs: list[Job]) -> None:
        if not self.s.prefix_token_s:
            return
        self.send_due()
        if not jobs:
            return
        begun, done = self.intake
        if begun <= self.now < done:
            self.front = max(self.front, done)
        self.front += self.s.answered_token_s * sum(job.prompt for job in jobs)
        self.answered = self.front

    def send_wave(self) -> None:
        """Whoever comes before all that came before are taken in is one of them."""
        s, half = self.s, self.s.request_overhead_s / 2
        begun = done = max(self.intake[1], self.answered, min(self.due)[0] + half)
        wave: list[Turn] = []
        for at, number in sorted(self.due):
            if at + half > done:
                break
            job = self.turns[number]
            job.sent = at
            done += s.request_ingest_s + s.prompt_token_s * job.prompt
            wave.append(job)
        self.due = sorted(self.due)[len(wave) :]
        self.intake, self.hashed = (begun, done), max(self.hashed, done)
        for job in wave:
            self.hashed += s.prefix_token_s * job.prompt
            job.ready = self.hashed
        self.upcoming += wave

    def send_soonest(self) -> None:
        if self.s.prefix_token_s:
            self.send_wave()
            return
        at, number = min(self.due)
        self.due.remove((at, number))
        self.unsent = [self.turns[number]]
        self.send(at)

    def held(self) -> float:
        own = sum(job.context - job.shared * self.block for job in self.running)
        own += sum(job.cached + job.to_prefill - job.shared * self.block for job in [*self.prefilling, *self.holding()])
        return own + self.pinned() * self.block + self.s.block_slack_tokens * self.seats()

    def seats(self) -> int:
        return len(self.running) + len(self.prefilling) + len(self.holding())

    def pinned(self, more: "Turn | None" = None) -> int:
        """Blocks that sessions share and that a request in progress holds."""
        seated = [*self.running, *self.prefilling, *self.holding(), *([more] if more else [])]
        return len({name for job in seated for name in job.names[: job.shared]})

    def read_tokens(self, decoding: list[Job]) -> float:
        """Blocks that several requests hold are read once, and in part for each further one that decodes."""
        turns = [job for job in decoding if isinstance(job, Turn)]
        own = sum(job.context - job.shared * self.block for job in turns)
        each = sum(job.shared for job in turns) * self.block
        seated = [*self.running, *(job for job in self.prefilling if job.prefilled < job.to_prefill), *self.holding()]
        once = min(len({name for job in seated for name in job.names[: job.shared]}) * self.block, each)
        return own + once + self.tables.shared_read_fraction * (each - once)

    def reserved(self) -> float:
        if not self.s.preempts:
            seated = [*self.running, *self.prefilling, *self.holding()]
            own = sum(job.prompt - job.shared * self.block + job.output for job in seated)
            return own + self.pinned() * self.block
        return self.held() - self.s.block_slack_tokens * self.seats()

    def shrink(self) -> None:
        self.cache.shrink((self.s.kv_cache_tokens - self.held()) // self.block)

    def admit(self, budget: int, *, started: bool) -> bool:
        """Along the line: those that tiers work for are passed over, who finds no room ends the walk."""
        s = self.s
        if self.closed_to_new:
            return False
        if len(self.running) + len(self.prefilling) >= s.max_sequences:
            self.no_room |= bool(self.line()) or (self.cache.tier_blocks[0] > 0 and bool(self.prefilling))
            return False
        for index, job in enumerate(self.turns_waiting()):
            if job.stage in ("asked", "loading"):
                continue
            if job.stage == "loaded":
                if not s.chunked_prefill and started and job.to_prefill > budget:
                    return False
                self.begin(job)
                return True
            self.shrink()
            if self.asks_disk(job):
                self.pass_over(index)
                continue
            asked = (job.prompt + job.produced - 1) // self.block
            on_device = self.cache.find(job.names[:asked])
            found = max(on_device, self.cache.find_anywhere(job.names[:asked], 1), min(job.read, asked))
            if not self.has_room(job):
                if self.running or self.prefilling or not self.cache.tier_blocks[0]:
                    self.no_room = True
                    return False
                continue
            work = job.prompt + job.produced - found * self.block
            if not s.chunked_prefill and started and found == on_device and work > budget:
                return False
            if job.found < 0:
                job.found = found * self.block
                job.loaded = (found - on_device) * self.block
            job.read, job.stage = 0, "waiting"
            job.cached, job.to_prefill, job.prefilled = found * self.block, work, 0
            self.cache.hold(job.names)
            if found == on_device:
                self.begin(job)
                return True
            self.bus_free_s = max(self.bus_free_s, self.now) + (found - on_device) * self.block * s.host_token_s
            job.there, job.stage = self.bus_free_s, "loading"
            self.pass_over(index)
            self.shrink()
        return False

    def has_room(self, job: Turn) -> bool:
        hold = job.prompt - job.shared * self.block + job.produced
        hold += 0 if self.s.preempts else job.output - job.produced
        hold += (self.pinned(job) - self.pinned()) * self.block
        slack = self.s.block_slack_tokens * (self.seats() + 1)
        return not self.seats() or self.reserved() + hold + slack <= self.s.kv_cache_tokens

    def begin(self, job: Turn) -> None:
        self.leave(job)
        job.stage = "waiting"
        self.fresh += job.prompt
        self.prefilling.append(job)
        self.shrink()

    def make_room(self, decoding: int) -> bool:
        computed = {job.number: job.prompt + job.produced - 1 for job in self.running}
        computed |= {job.number: job.cached + job.prefilled for job in self.prefilling}
        many = len(self.preempted)
        evicted = super().make_room(decoding)
        for job in reversed(self.preempted[self.passed : self.passed + len(self.preempted) - many]):
            assert isinstance(job, Turn)
            self.cache.store(job.names, self.lasting(job, computed[job.number]) // self.block)
            self.cache.give_back(job.names, computed[job.number] // self.block)
        return evicted

    def execute(self, decoding: list[Job], chunks: list[tuple[Job, int]]) -> int:
        begun = [job for job, size in chunks if job.prefilled + size >= job.to_prefill]
        for job, size in chunks:
            if job.prefilled + size >= job.to_prefill:
                job.to_prefill, job.prefilled = job.to_prefill + job.cached, job.prefilled + job.cached
                job.cached = 0
        before = sorted(self.running, key=lambda job: job.number)
        filling = 1.0 if begun else 1.0 - (1.0 - 1.0 / self.block) ** len(decoding)
        self.beside_s = self.s.tier_store_s * filling
        if chunks:
            self.beside_s += self.s.admitted_token_s * self.fresh
            self.fresh = 0
        done = super().execute(decoding, chunks)
        for job in [*begun, *before]:
            assert isinstance(job, Turn)
            if job.produced >= job.output:
                self.finished(job)
        self.shrink()
        return done

    def lasting(self, job: Turn, computed: int) -> int:
        """Of so many tokens, those that tiers keep."""
        return computed if self.s.tiers_keep_replies else min(computed, job.prompt)

    def finished(self, job: Turn) -> None:
        self.cache.store(job.names, self.lasting(job, len(job.names) * self.block) // self.block)
        self.cache.give_back(job.names, len(job.names))
        if job.next is not None:
            self.due.append((job.last + job.next.think_s, job.next.number))
        elif self.sessions_left:
            self.due.append((job.last, self.sessions_left.pop(0).number))


def hit_fraction(prompts: np.ndarray, turns: list[Turn]) -> float:
    return sum(turn.found for turn in turns) / float(prompts.sum())
