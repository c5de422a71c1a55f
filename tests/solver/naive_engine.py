"""The scheduler of docs/mathematics.md once more, one step and one token at a time: slow, plain, and the judge of the
fast one. It shares no code with ``solver.engine.simulate`` but the step tables both read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from solver.engine.simulate import Schedule
from solver.step.blocks import attention_pairs
from solver.step.tables import StepTables


@dataclass
class Job:
    """One request. context: its tokens in the cache beyond the shared prefix. to_prefill: prompt tokens still to do."""

    number: int
    prompt: int
    output: int
    cached: int
    ready: float = 0.0
    sent: float = 0.0
    produced: int = 0
    context: int = 0
    to_prefill: int = 0
    prefilled: int = 0
    first: float = 0.0
    last: float = 0.0
    adapter: int = -1
    admissions: list[float] = field(default_factory=list)


@dataclass
class NaiveTrace:
    jobs: list[Job]
    most_held_tokens: float = 0.0
    most_seats: int = 0
    preemptions: int = 0
    steps: int = 0
    admitted: list[int] = field(default_factory=list)
    """Requests in the order of their first admission."""

    @property
    def time_to_first_token_s(self) -> list[float]:
        return [j.first - j.sent for j in self.jobs]

    @property
    def time_per_output_token_s(self) -> list[float]:
        return [(j.last - j.first) / (j.output - 1) if j.output > 1 else 0.0 for j in self.jobs]

    @property
    def duration_s(self) -> float:
        return max(j.last for j in self.jobs) - min(j.sent for j in self.jobs)


class NaiveEngine:
    """Serves all requests, then is done."""

    def __init__(
        self, tables: StepTables, schedule: Schedule, prompts: Sequence[int], outputs: Sequence[int], *,
        concurrency: int = 0, arrivals_s: Sequence[float] | None = None,
    ) -> None:  # fmt: skip
        self.tables, self.s = tables, schedule
        share = schedule.cached_prefix_fraction
        self.jobs = [Job(i, p, o, int(p * share)) for i, (p, o) in enumerate(zip(prompts, outputs, strict=True))]
        self.prefix = max(job.cached for job in self.jobs)
        self.unsent = list(self.jobs)
        self.closed = arrivals_s is None
        self.beside_s = 0.0
        """What a step waits for beside its work."""
        self.ingest = self.now = self.front = self.previous = self.heat = self.crowded = 0.0
        self.owed = self.longer = 0.0
        self.upcoming: list[Job] = []
        self.waiting: list[Job] = []
        self.preempted: list[Job] = []
        self.prefilling: list[Job] = []
        self.running: list[Job] = []
        self.closed_to_new = False
        self.no_room = False
        """The next one has found none, and nobody has ended since."""
        self.passed = 0
        """So many of those that wait are passed over: somebody behind them was looked at after them."""
        self.steps_not_asked = 0
        """Decode steps since requests were last taken in."""
        self.trace = NaiveTrace(self.jobs)
        if arrivals_s is None:
            for _ in range(min(concurrency, len(self.jobs))):
                self.send(0.0)
        else:
            for at in arrivals_s:
                self.send(at)

    def send(self, at: float) -> None:
        job = self.unsent.pop(0)
        job.sent = at
        self.ingest = max(self.ingest, at + self.s.request_overhead_s / 2)
        self.ingest += self.s.request_ingest_s + self.s.prompt_token_s * job.prompt
        job.ready = self.ingest
        self.upcoming.append(job)

    def hear(self) -> None:
        """Whoever is due is sent."""

    def answer(self, jobs: list[Job]) -> None:
        """The front end has their first tokens."""

    def run(self) -> NaiveTrace:
        left = len(self.jobs)
        while left:
            left -= self.one_step()
        return self.trace

    def held(self) -> float:
        """Cache in use: sequences' tokens, whole prompts in prefill, the shared prefix once, unused block tails."""
        own = sum(job.context for job in self.running) + sum(job.to_prefill for job in self.prefilling)
        return own + self.prefix + self.s.block_slack_tokens * (len(self.running) + len(self.prefilling))

    def line(self) -> list[Job]:
        """Those passed over, then those evicted since, then those who came since."""
        return [*self.preempted, *self.waiting]

    def pass_over(self, index: int) -> None:
        self.passed = max(self.passed, index + 1)
        while len(self.preempted) < self.passed:
            self.preempted.append(self.waiting.pop(0))

    def leave(self, job: Job) -> None:
        self.passed -= self.line().index(job) < self.passed
        (self.preempted if job in self.preempted else self.waiting).remove(job)

    def seats(self) -> int:
        """Requests that hold room."""
        return len(self.running) + len(self.prefilling)

    def one_step(self) -> int:
        """Advance by one step (or to the next arrival when idle); how many requests it completed."""
        s = self.s
        if not (self.running or self.prefilling or self.preempted or self.waiting):
            self.now = max(self.now, min(job.ready for job in self.upcoming))
            self.previous = 0.0
            self.steps_not_asked = 0
        asks = self.steps_not_asked == 0
        for job in sorted(self.upcoming, key=lambda j: (j.ready, j.number)) if asks else ():
            if job.ready <= self.now - s.lag_fraction * self.previous:
                self.upcoming.remove(job)
                self.waiting.append(job)
        decoding = list(self.running) if s.mixes else []
        if decoding and s.preempts:
            self.make_room(len(decoding))
            decoding = list(self.running)
        chunks = self.compose(len(decoding))
        if not chunks and not decoding:
            if s.preempts and self.make_room(len(self.running)):
                return 0
            decoding = list(self.running)
        if not chunks and not decoding:
            return 0
        self.trace.most_seats = max(self.trace.most_seats, len(self.running) + len(self.prefilling))
        return self.execute(decoding, chunks)

    def make_room(self, decoding: int) -> bool:
        """Evict the latest admitted while the next token of every running sequence does not fit."""
        evicted = False
        while self.held() + decoding > self.s.kv_cache_tokens and self.seats() > 1:
            if not (self.running or self.prefilling):
                break
            job = self.prefilling.pop() if self.prefilling else self.running.pop()
            if job.produced:
                decoding -= 1
            job.context = job.to_prefill = job.prefilled = 0
            self.preempted.insert(self.passed, job)
            self.trace.preemptions += 1
            self.closed_to_new = evicted = True
        return evicted

    def compose(self, decoding: int) -> list[tuple[Job, int]]:
        """(request, prompt tokens) of this step: started prompts first, then evicted requests, then the queue."""
        s = self.s
        budget = s.max_batched_tokens - decoding
        chunks: list[tuple[Job, int]] = []
        position = 0
        while budget > 0:
            if position == len(self.prefilling) and not self.admit(budget, started=bool(chunks)):
                break
            job = self.prefilling[position]
            left = job.to_prefill - job.prefilled
            size = min(left, budget) if s.chunked_prefill else left
            chunks.append((job, size))
            budget -= size
            position += 1
        return chunks

    def admit(self, budget: int, *, started: bool) -> bool:
        s = self.s
        if self.closed_to_new or (s.static_batching and self.running):
            return False
        seated = len(self.running) + len(self.prefilling)
        if seated >= s.max_sequences:
            self.no_room |= bool(self.line())
            return False  # before anybody is looked at, so nobody is passed over
        for index, job in enumerate(self.line()):
            if self.lacks(job):
                self.pass_over(index)
                continue
            need = job.prompt - job.cached + job.produced
            hold = need if s.preempts else need + job.output
            if seated and self.reserved() + hold + s.block_slack_tokens * (seated + 1) > s.kv_cache_tokens:
                self.no_room = True
                return False
            if not s.chunked_prefill and started and need > budget:
                return False
            self.leave(job)
            if not job.admissions:
                self.trace.admitted.append(job.number)
            job.admissions.append(self.now)
            job.to_prefill, job.prefilled = need, 0
            self.prefilling.append(job)
            return True
        return False

    def lacks(self, job: Job) -> bool:
        """Whether all slots are taken by adapters that others name."""
        slots, taken = self.s.adapter_slots, {other.adapter for other in [*self.running, *self.prefilling]}
        return 0 < slots <= len(taken) and job.adapter >= 0 and job.adapter not in taken

    def reserved(self) -> float:
        """What seated requests hold, or may come to hold where nothing is ever evicted; without block tails."""
        seated = [*self.running, *self.prefilling]
        if not self.s.preempts:
            return self.prefix + sum(job.prompt - job.cached + job.output for job in seated)
        return self.held() - self.s.block_slack_tokens * len(seated)

    def read_tokens(self, decoding: list[Job]) -> float:
        """Tokens of the cache that a step reads for those that decode: the shared prefix once, and in part for each further one."""
        each = sum(job.cached for job in decoding)
        once = min(self.prefix, each)
        return sum(job.context for job in decoding) + once + self.tables.shared_read_fraction * (each - once)

    def launching(self, tokens: int, decoding: int) -> tuple[float, float]:
        """Seconds that launching a step with prompts takes, and by which that outlasts the device's work."""
        t, place = self.tables, min(tokens, len(self.tables.mixed_s) - 1)
        beside = t.launched_beside_s if decoding and tokens <= t.captured_prompt_tokens else 0.0
        return float(t.launched_s[place] + beside), float(t.outlasting_s[place] + beside)

    def next_prompts(self, finished: list[Job]) -> int:
        """Prompt tokens of the step after this one, by what is known when it is composed and with nobody gone who ends now."""
        tokens = sum(job.to_prefill - job.prefilled for job in self.prefilling if job not in finished)
        composed = self.now - self.s.lag_fraction * self.previous
        free = self.s.max_sequences - self.seats()
        there = [job for job in sorted(self.upcoming, key=lambda j: (j.ready, j.number)) if job.ready <= composed]
        waiting = [] if self.lined() else self.line()
        for job in [*waiting, *there] if not (self.no_room or self.closed_to_new) else ():
            if free > 0 and tokens < self.s.max_batched_tokens:
                tokens += self.left_to_compute(job)
                free -= 1
        return tokens

    def lined(self) -> bool:
        """Whether requests wait for more than room."""
        return self.s.adapter_slots > 0

    def left_to_compute(self, job: Job) -> int:
        return job.prompt - job.cached + job.produced

    def handed_on(self, finished: list[Job], decoding: int) -> float:
        """When what this step gave is handed on: where one loop composes and launches, once it has launched the next step."""
        prompts = self.next_prompts(finished) if self.s.launches_in_line and self.tables.launched_s.any() else 0
        if not prompts:
            return self.now
        running = decoding + len(finished)
        launching, _ = self.launching(min(prompts + running, self.s.max_batched_tokens), running)
        return max(self.now, self.now - self.s.lag_fraction * self.previous + launching)

    def execute(self, decoding: list[Job], chunks: list[tuple[Job, int]]) -> int:
        s, t = self.s, self.tables
        refused = self.no_room or self.closed_to_new or s.static_batching
        self.steps_not_asked = 0 if chunks else (self.steps_not_asked + 1) % s.admission_interval_steps
        work = sum(size for _, size in chunks)
        finished = [job for job, size in chunks if job.prefilled + size >= job.to_prefill]
        rows = len(decoding) + len(finished)
        context = self.read_tokens(decoding)
        if chunks:
            tokens, longest = work + len(decoding), len(t.mixed_s) - 1
            seconds = t.mixed_s[tokens] if tokens <= longest else t.mixed_s[longest] * tokens / longest
            for job, size in chunks:
                seconds += sum(
                    slope * attention_pairs(size, job.cached + job.prefilled, limit) for limit, slope, _ in t.pairs
                )
        else:
            seconds = t.decode_s[len(decoding)]
        if chunks and s.launches_in_line and t.launched_s.any():
            outlasting, alone = (self.launching(work + len(decoding), n)[1] for n in (len(decoding), 0))
            seconds += max(outlasting, 0.0) - max(alone, 0.0)
        attention = t.context_s(len(decoding), context)[0]
        seconds += t.head_s[rows] + len(decoding) * t.sequence_s + attention
        if s.contending_lanes:
            seconds += s.lane_step_s
        others = s.contending_lanes + s.lockstep_copies
        apart = 0.0
        if others:
            if chunks:
                longer = max(0.0, seconds - t.decode_s[max(len(decoding), 1)] - attention)
                if s.contending_lanes:
                    seconds += s.lane_slowed_fraction * longer
                    longer *= 1 + s.lane_slowed_fraction
                alone = (1 - self.crowded) ** others
                beside = (1 - self.crowded) * (1 - alone) / self.crowded if self.crowded > 1e-9 else others
                self.longer = longer or self.longer
                self.owed += longer * beside
            else:
                paid = min(self.owed, self.longer)
                self.owed -= paid
                seconds += paid
                apart = paid if s.contending_lanes else 0.0
        seconds += self.beside_s
        if chunks:
            cooling = math.exp(-seconds / s.clock_settling_s)
            flops = t.flops_per_token * (work + len(decoding)) + t.head_flops * rows
            target = min(1.0, flops / (t.sustained_flop_per_s * seconds))
            seconds -= s.clock_headroom_fraction * (1 - self.heat) * (1 - cooling) * s.clock_settling_s
            self.heat = target + (self.heat - target) * cooling
            self.crowded = 1 - (1 - self.crowded) * cooling
        else:
            flops = (t.flops_per_token + t.head_flops) * len(decoding)
            target = min(1.0, flops / (t.sustained_flop_per_s * seconds))
            cooling = math.exp(-seconds / s.clock_settling_s)
            warm = target + (self.heat - target) * (1 - cooling) * s.clock_settling_s / seconds
            self.heat = target + (self.heat - target) * cooling
            self.crowded *= math.exp((apart - seconds) / s.clock_settling_s)
            seconds *= 1 + s.clock_sag_fraction * warm
        self.now += seconds
        launched = 0.0
        if chunks and s.launches_in_line and t.launched_s.any():
            launched, outlasting = self.launching(work + len(decoding), len(decoding))
            if outlasting <= 0.0:
                launched = max(0.0, launched - s.lag_fraction * self.previous)
        self.previous = max(seconds - launched, 0.0)
        for job, size in chunks:
            job.prefilled += size
        self.front = max(self.front, self.now) + rows * s.token_front_end_s
        self.hear()
        handed = self.handed_on(finished, len(self.running))
        if handed > self.now:
            self.front = max(self.front, handed + rows * s.token_front_end_s)
        self.answer([job for job in finished if not job.produced])
        self.trace.steps += 1
        for job in decoding:
            job.context += 1
            job.produced += 1
        done = 0
        for job in finished:
            self.prefilling.remove(job)
            job.context = job.to_prefill + 1
            job.to_prefill = 0
            job.produced += 1
            if job.produced == 1:
                job.first = self.front + s.request_overhead_s / 2
            self.running.append(job)
        self.trace.most_held_tokens = max(self.trace.most_held_tokens, self.held())
        for job in [j for j in self.running if j.produced >= j.output]:
            self.running.remove(job)
            self.closed_to_new = False
            job.last = self.front + s.request_overhead_s / 2
            done += 1
            if self.closed and self.unsent:
                self.send(job.last)
        if not self.running:
            self.closed_to_new = False
        if done or (finished and not self.running):
            self.no_room = False
        if refused and not (self.running or self.prefilling):
            self.previous = 0.0  # nobody was there to compose the next step with before this one ended
        return done
