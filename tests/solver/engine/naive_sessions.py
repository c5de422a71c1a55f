"""Sessions on the plain engine, with a cache of single blocks known by all the tokens up to their end.

The judge of ``solver.engine.kernel.prefixes`` and ``turns``, with which it shares no code: there chains are counted, here every
block is kept by itself, forgotten one by one as soon as its room is needed, and given back the last one first.
"""

from collections import Counter
from dataclasses import dataclass, field

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
    read: int = -1
    """Blocks that its prompt has once a disk has read what only that had; -1: not looked for yet."""
    from_disk: int = 0


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

    def store(self, names: list[Block], computed: int, shared: int) -> None:
        for tier in self.tiers:
            for place in range(len(names) - 1, -1, -1):
                if place < max(computed, shared) or names[place] in tier:
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
        super().__init__(tables, schedule, [1], [1], arrivals_s=[])
        self.turns, self.block, self.prefix = turns_of(draw, block), block, 0
        self.jobs = list(self.turns)
        self.trace = NaiveTrace(self.jobs)
        sizes = schedule.host_cache_tokens, schedule.disk_cache_tokens
        self.cache = BlockCache(*(int(tokens // block) for tokens in sizes))
        self.loading_s = self.disk_free_s = 0.0
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

    def one_step(self) -> int:
        while True:
            if not (self.running or self.prefilling or self.preempted or self.waiting):
                while not self.upcoming or (self.due and min(self.due)[0] <= min(job.ready for job in self.upcoming)):
                    self.send_soonest()
                self.now = max(self.now, min(job.ready for job in self.upcoming))
                self.previous, self.steps_not_asked = 0.0, 0
            while self.due and min(self.due)[0] <= self.now:
                self.send_soonest()
            if self.steps_not_asked == 0:
                self.look_on_disk()
            known = [job for job in self.upcoming if job.ready <= self.now - self.s.lag_fraction * self.previous]
            if known or self.running or self.prefilling or self.preempted or self.waiting:
                return super().one_step()

    def look_on_disk(self) -> None:
        """Those whose prompts go on on the disk come to the queue when it has read them, one after the other."""
        for job in sorted(self.upcoming, key=lambda j: (j.ready, j.number)):
            assert isinstance(job, Turn)
            if job.read < 0 and job.ready <= self.now - self.s.lag_fraction * self.previous:
                self.shrink()
                asked = job.names[: (job.prompt - 1) // self.block]
                near, whole = (self.cache.find_anywhere(asked, tiers) for tiers in (1, 2))
                job.read = whole if whole > near else 0
                if job.read:
                    job.from_disk = (whole - near) * self.block
                    self.disk_free_s = max(self.disk_free_s, self.now) + job.from_disk * self.s.disk_token_s
                    job.ready = self.disk_free_s

    def send_soonest(self) -> None:
        at, number = min(self.due)
        self.due.remove((at, number))
        self.unsent = [self.turns[number]]
        self.send(at)

    def held(self) -> float:
        own = sum(job.context - job.shared * self.block for job in self.running)
        own += sum(job.cached + job.to_prefill - job.shared * self.block for job in self.prefilling)
        slack = self.s.block_slack_tokens * (len(self.running) + len(self.prefilling))
        return own + self.pinned() * self.block + slack

    def pinned(self, more: "Turn | None" = None) -> int:
        """Blocks that sessions share and that a request in progress holds."""
        seated = [*self.running, *self.prefilling, *([more] if more else [])]
        return len({name for job in seated for name in job.names[: job.shared]})

    def read_tokens(self, decoding: list[Job]) -> float:
        """Blocks that several requests hold are read once, and in part for each further one that decodes."""
        turns = [job for job in decoding if isinstance(job, Turn)]
        own = sum(job.context - job.shared * self.block for job in turns)
        each = sum(job.shared for job in turns) * self.block
        seated = [*self.running, *(job for job in self.prefilling if job.prefilled < job.to_prefill)]
        once = min(len({name for job in seated for name in job.names[: job.shared]}) * self.block, each)
        return own + once + self.tables.shared_read_fraction * (each - once)

    def reserved(self) -> float:
        seated = [*self.running, *self.prefilling]
        if not self.s.preempts:
            own = sum(job.prompt - job.shared * self.block + job.output for job in seated)
            return own + self.pinned() * self.block
        return self.held() - self.s.block_slack_tokens * len(seated)

    def shrink(self) -> None:
        self.cache.shrink((self.s.kv_cache_tokens - self.held()) // self.block)

    def admit(self, budget: int, *, started: bool) -> bool:
        s = self.s
        queue = self.preempted or self.waiting
        if not queue or self.closed_to_new:
            return False
        job = queue[0]
        assert isinstance(job, Turn)
        seated = len(self.running) + len(self.prefilling)
        if seated >= s.max_sequences:
            return False
        hold = job.prompt - job.shared * self.block + job.produced + (0 if s.preempts else job.output - job.produced)
        hold += (self.pinned(job) - self.pinned()) * self.block
        if seated and self.reserved() + hold + s.block_slack_tokens * (seated + 1) > s.kv_cache_tokens:
            return False
        self.shrink()
        asked = (job.prompt + job.produced - 1) // self.block
        on_device = self.cache.find(job.names[:asked])
        found = max(on_device, self.cache.find_anywhere(job.names[:asked], 1), min(job.read, asked))
        work = job.prompt + job.produced - found * self.block
        if not s.chunked_prefill and started and work > budget:
            return False
        queue.pop(0)
        self.loading_s += (found - on_device) * s.host_token_s * self.block
        if job.found < 0:
            job.found = found * self.block
            job.loaded = (found - on_device) * self.block
        job.read = 0
        job.cached, job.to_prefill, job.prefilled = found * self.block, work, 0
        self.cache.hold(job.names)
        self.prefilling.append(job)
        self.shrink()
        return True

    def make_room(self, decoding: int) -> bool:
        computed = {job.number: job.prompt + job.produced - 1 for job in self.running}
        computed |= {job.number: job.cached + job.prefilled for job in self.prefilling}
        many = len(self.preempted)
        evicted = super().make_room(decoding)
        for job in reversed(self.preempted[: len(self.preempted) - many]):
            assert isinstance(job, Turn)
            self.cache.store(job.names, self.lasting(job, computed[job.number]) // self.block, job.shared)
            self.cache.give_back(job.names, computed[job.number] // self.block)
        return evicted

    def execute(self, decoding: list[Job], chunks: list[tuple[Job, int]]) -> int:
        begun = [job for job, size in chunks if job.prefilled + size >= job.to_prefill]
        for job, size in chunks:
            if job.prefilled + size >= job.to_prefill:
                job.to_prefill, job.prefilled = job.to_prefill + job.cached, job.prefilled + job.cached
                job.cached = 0
        before = sorted(self.running, key=lambda job: job.number)
        self.beside_s, self.loading_s = self.loading_s if chunks else 0.0, 0.0 if chunks else self.loading_s
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
        self.cache.store(job.names, self.lasting(job, len(job.names) * self.block) // self.block, job.shared)
        self.cache.give_back(job.names, len(job.names))
        if job.next is not None:
            self.due.append((job.last + job.next.think_s, job.next.number))
        elif self.sessions_left:
            self.due.append((job.last, self.sessions_left.pop(0).number))


def hit_fraction(prompts: np.ndarray, turns: list[Turn]) -> float:
    return sum(turn.found for turn in turns) / float(prompts.sum())
