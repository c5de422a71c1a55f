"""A load of sessions, whose every turn sends all of the session so far.

Closed: each client holds one session at a time. Open: sessions begin as a Poisson process, whether or not earlier ones are over.

    prompt of turn t = system prompt + user₁ + reply₁ + … + user_t

Replies are part of the next prompt as the server generated them, where it says their token ids (``return_token_ids``, vLLM);
else tokens drawn anew take their place, of which a cache finds nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from service.agent.lengths import LengthDistribution
from service.agent.load import (
    ConnectionPool,
    PlannedRequest,
    after_burst,
    arrivals_s,
    sampling_fields,
    send,
    timed_run,
    until,
)
from service.agent.records import LoadRun, RequestRecord
from service.agent.stream import Endpoint

FIRST_TOKEN_ID = 100
"""The lowest ids are often control tokens."""
ROUTINGS = ("sticky", "random")


@dataclass(frozen=True)
class SentSessions:
    """What sessions look like. think_s: mean of the exponential pause between a reply and the next turn."""

    system_prompt_tokens: int
    turns: LengthDistribution
    user_tokens: LengthDistribution
    reply_tokens: LengthDistribution
    think_s: float
    vocabulary_tokens: int

    def __post_init__(self) -> None:
        if self.system_prompt_tokens < 0 or self.think_s < 0.0:
            raise ValueError("a system prompt and think times are not negative")
        if self.vocabulary_tokens <= FIRST_TOKEN_ID:
            raise ValueError("the vocabulary holds no token ids to draw prompts from")

    def as_json(self) -> dict[str, object]:
        return {
            "system_prompt_tokens": self.system_prompt_tokens,
            "turns": self.turns.as_json(),
            "user_tokens": self.user_tokens.as_json(),
            "output_tokens": self.reply_tokens.as_json(),
            "think_time_s": self.think_s,
        }


@dataclass(frozen=True)
class Replicas:
    """Servers of one model and which of them a turn goes to.

    sticky: a session stays where it began, sessions going to each in turn. random: every turn goes to any of them; the same
    seed sends the same turns to the same ones. Raises ValueError for no endpoint and for other routing.
    """

    endpoints: tuple[Endpoint, ...]
    routing: str = "sticky"
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("a load needs an endpoint")
        if self.routing not in ROUTINGS:
            raise ValueError(f"turns are routed {' or '.join(ROUTINGS)}, got {self.routing!r}")
        if any(endpoint.api != "completions" for endpoint in self.endpoints):
            raise ValueError("prompts of token ids go to the completions API")

    def of(self, session: int, turn: int) -> int:
        """Which endpoint a turn goes to, from 0."""
        if self.routing == "sticky":
            return session % len(self.endpoints)
        return random.Random(f"{self.seed}/{session}/{turn}").randrange(len(self.endpoints))


@dataclass(frozen=True)
class PlannedTurn:
    """think_s: from the last reply until it is sent. stand_in: for a reply whose tokens the server does not say."""

    think_s: float
    user: tuple[int, ...] = field(repr=False)
    reply_tokens: int
    stand_in: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True)
class PlannedSession:
    number: int
    system: tuple[int, ...] = field(repr=False)
    turns: tuple[PlannedTurn, ...]


def plan_sessions(traffic: SentSessions, sessions: int, seed: int) -> list[PlannedSession]:
    """Sessions over one system prompt; the same seed gives the same ones. Raises ValueError for less than one."""
    if sessions < 1:
        raise ValueError(f"a load of sessions has at least one, got {sessions}")
    generator = random.Random(seed)

    def drawn(tokens: int) -> tuple[int, ...]:
        return tuple(generator.choices(range(FIRST_TOKEN_ID, traffic.vocabulary_tokens), k=tokens))

    def turn(number: int) -> PlannedTurn:
        think_s = generator.expovariate(1.0 / traffic.think_s) if number and traffic.think_s else 0.0
        reply_tokens = traffic.reply_tokens.draw(generator)
        return PlannedTurn(think_s, drawn(traffic.user_tokens.draw(generator)), reply_tokens, drawn(reply_tokens))

    system = drawn(traffic.system_prompt_tokens)
    return [
        PlannedSession(number, system, tuple(turn(t) for t in range(traffic.turns.draw(generator))))
        for number in range(sessions)
    ]


@dataclass(frozen=True)
class ClosedSessions:
    """`clients` at a time, each starting its next session when its last is over. Raises ValueError for none."""

    clients: int

    def __post_init__(self) -> None:
        if self.clients < 1:
            raise ValueError(f"a closed load needs a client, got {self.clients}")

    @property
    def at_first(self) -> int:
        return self.clients

    @property
    def name(self) -> str:
        return f"{self.clients} clients"

    def as_json(self) -> dict[str, object]:
        return {"kind": "closed", "concurrency": self.clients}


@dataclass(frozen=True)
class OpenSessions:
    """Sessions begin as a Poisson process, its gaps drawn from `seed`, after a burst of `at_once` of them. Raises ValueError for a
    rate that is not positive and for less than no burst."""

    sessions_per_s: float
    at_once: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.sessions_per_s <= 0.0 or self.at_once < 0:
            raise ValueError(f"an open load of sessions needs a positive rate and no negative burst, got {self}")

    @property
    def at_first(self) -> int:
        """Connections opened before the clock starts; the others when they are needed."""
        return max(self.at_once, 1)

    @property
    def name(self) -> str:
        return f"{self.sessions_per_s:g} sessions/s{after_burst(self.at_once)}"

    def as_json(self) -> dict[str, object]:
        return {"kind": "open", "sessions_per_s": self.sessions_per_s, "at_once": self.at_once, "seed": self.seed}


SessionLoad = ClosedSessions | OpenSessions


async def run_sessions(
    replicas: Replicas,
    planned: Sequence[PlannedSession],
    load: SessionLoad,
    timeout_s: float = 600.0,
    on_answer: Callable[[RequestRecord], None] | None = None,
) -> LoadRun:
    """Hold every session as the load says.

    A session ends with its first turn that fails: what would follow cannot be said. Records are in the order they were sent.
    """

    async def drive(pools: Sequence[ConnectionPool], started_at: float) -> list[RequestRecord]:
        def held(session: PlannedSession) -> Awaitable[list[RequestRecord]]:
            return _hold(replicas, pools, session, started_at, timeout_s)

        async def client(sessions: Iterator[PlannedSession]) -> list[RequestRecord]:
            return [record for session in sessions for record in await held(session)]

        async def begin(session: PlannedSession, at_s: float) -> list[RequestRecord]:
            await until(started_at, at_s)
            return await held(session)

        if isinstance(load, ClosedSessions):
            waiting = iter(planned)
            by_one = await asyncio.gather(*(client(waiting) for _ in range(min(load.clients, len(planned)))))
        else:
            begins_s = arrivals_s(load.sessions_per_s, len(planned), load.seed, min(load.at_once, len(planned)))
            by_one = await asyncio.gather(*map(begin, planned, begins_s))
        return sorted((record for records in by_one for record in records), key=lambda record: record.sent_s)

    return await timed_run(replicas.endpoints, min(load.at_first, len(planned)), drive, on_answer)


async def _hold(
    replicas: Replicas, pools: Sequence[ConnectionPool], session: PlannedSession, started_at: float, timeout_s: float
) -> list[RequestRecord]:
    records: list[RequestRecord] = []
    said = list(session.system)
    for number, turn in enumerate(session.turns):
        await asyncio.sleep(turn.think_s)
        said += turn.user
        chosen = replicas.of(session.number, number)
        endpoint = replicas.endpoints[chosen]
        body = {"prompt": said} | sampling_fields(endpoint.served_model, turn.reply_tokens) | {"return_token_ids": True}
        encoded = endpoint.encode(json.dumps(body, separators=(",", ":")).encode())
        record, events = await send(
            pools[chosen], PlannedRequest(encoded, len(said), turn.reply_tokens), started_at, timeout_s, keep_events=True,
            told=partial(
                replace, session=session.number, turn=number, replica=chosen if len(replicas.endpoints) > 1 else None
            ),
        )  # fmt: skip
        records.append(record)
        if not record.succeeded:
            break
        reply = token_ids(events)
        said += reply if len(reply) == record.output_tokens else turn.stand_in
    return records


def token_ids(events: Sequence[bytes]) -> list[int]:
    """The generated tokens that an answer's events name; none where they name none.

    >>> token_ids([b'{"choices":[{"text":"a","token_ids":[7,8]}]}', b" [DONE]"])
    [7, 8]
    """
    found: list[int] = []
    for event in events:
        if b'"token_ids"' in event:
            for choice in json.loads(event)["choices"]:
                found += choice.get("token_ids") or ()
    return found


def found_fraction(run: LoadRun) -> float | None:
    """Share of the prompts' tokens that the server found in its cache; None where it does not say."""
    counted = [(record.cached_tokens, record.prompt_tokens) for record in run.completed]
    if not counted or any(cached is None for cached, _ in counted):
        return None
    return sum(cached or 0 for cached, _ in counted) / sum(prompt for _, prompt in counted)
