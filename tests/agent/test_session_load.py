"""Loads of sessions against a small local engine."""

import asyncio
import contextlib
import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from service.agent.cli import main
from service.agent.lengths import FixedTokens, UniformTokens
from service.agent.load import arrivals_s
from service.agent.records import LoadRun
from service.agent.session_load import (
    ClosedSessions,
    OpenSessions,
    Replicas,
    SentSessions,
    SessionLoad,
    found_fraction,
    plan_sessions,
    run_sessions,
)
from service.agent.stream import Endpoint
from tests.agent.streaming_server import REPLY_TOKEN, StreamingServer

SENT = SentSessions(30, UniformTokens(2, 5), UniformTokens(4, 9), UniformTokens(3, 6), 0.02, vocabulary_tokens=1_000)


def hold(
    engine: StreamingServer, sessions: int, clients: int, sent: SentSessions = SENT, load: SessionLoad | None = None
) -> LoadRun:
    async def both() -> LoadRun:
        server, port = await engine.start()
        steps = asyncio.create_task(engine.tick())
        try:
            planned = plan_sessions(sent, sessions, seed=5)
            replicas = Replicas((Endpoint(f"http://127.0.0.1:{port}", "m"),))
            return await run_sessions(replicas, planned, load or ClosedSessions(clients), 10.0)
        finally:
            steps.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await steps
            server.close()

    return asyncio.run(both())


def by_session(run: LoadRun) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for record in run.records:
        found.setdefault(record.session if record.session is not None else -1, []).append(record)
    return found


def test_every_turn_sends_the_session_so_far_with_the_replies_as_they_were() -> None:
    engine = StreamingServer(interval_s=0.002, with_token_ids=True)
    run = hold(engine, sessions=1, clients=1)
    (session,) = plan_sessions(SENT, 1, seed=5)
    said: list[int] = list(session.system)
    for prompt, turn in zip(engine.prompts, session.turns, strict=True):
        said += turn.user
        assert prompt == said
        said += [REPLY_TOKEN] * turn.reply_tokens
    assert [record.turn for record in run.records] == list(range(len(session.turns)))
    assert [record.prompt_tokens for record in run.records] == [len(prompt) for prompt in engine.prompts]


def test_a_server_that_names_no_tokens_gets_others_of_as_many() -> None:
    engine = StreamingServer(interval_s=0.002)
    hold(engine, sessions=1, clients=1)
    for one, following in itertools.pairwise(engine.prompts):
        assert following[: len(one)] == one
        assert len(following) > len(one)
        assert REPLY_TOKEN not in following


def test_clients_hold_one_session_each_and_turns_wait_for_replies() -> None:
    engine = StreamingServer(interval_s=0.002)
    run = hold(engine, sessions=9, clients=3)
    assert engine.most_in_flight <= 3
    held = by_session(run)
    assert sorted(held) == list(range(9))
    planned = {session.number: session for session in plan_sessions(SENT, 9, seed=5)}
    spans = []
    for number, turns in held.items():
        for (one, following), plan in zip(itertools.pairwise(turns), planned[number].turns[1:], strict=True):
            assert following.sent_s >= one.chunk_s[-1] + plan.think_s - 1e-3
        spans.append((turns[0].sent_s, turns[-1].chunk_s[-1]))
    assert all(sum(began <= at < ended for began, ended in spans) <= 3 for at, _ in spans)


def test_what_the_server_found_is_recorded() -> None:
    engine = StreamingServer(interval_s=0.002, with_token_ids=True)
    run = hold(engine, sessions=4, clients=1)
    found, prompts = (
        sum(values) for values in zip(*((r.cached_tokens, r.prompt_tokens) for r in run.records), strict=True)
    )
    assert found_fraction(run) == pytest.approx(found / prompts)
    assert all(record.cached_tokens >= SENT.system_prompt_tokens for record in run.records[1:])
    assert run.records[0].as_json()["cached_tokens"] == 0
    assert found_fraction(hold(StreamingServer(interval_s=0.002), sessions=1, clients=1)) is None


def test_a_failed_turn_ends_its_session_and_no_other() -> None:
    engine = StreamingServer(interval_s=0.002, refuse_every=4)
    run = hold(engine, sessions=6, clients=1)
    assert run.failed
    for turns in by_session(run).values():
        assert all(record.succeeded for record in turns[:-1])
    assert sorted(by_session(run)) == list(range(6))


def test_sessions_of_an_open_load_begin_when_they_would_whatever_is_under_way() -> None:
    """Eight begin at once, the others as a Poisson process; each waits for its own replies only."""
    slow = StreamingServer(interval_s=0.02)
    run = hold(slow, sessions=14, clients=0, load=OpenSessions(40.0, at_once=8, seed=2))
    held = by_session(run)
    assert sorted(held) == list(range(14))
    assert slow.most_in_flight >= 8
    begun_s = [held[number][0].sent_s for number in range(14)]
    planned_s = arrivals_s(40.0, 14, seed=2, at_once=8)
    assert planned_s[:8] == [0.0] * 8
    assert begun_s == pytest.approx(planned_s, abs=0.1)
    assert begun_s[-1] < max(turns[-1].sent_s for turns in held.values())


def hold_between(engines: list[StreamingServer], routing: str) -> LoadRun:
    async def all_of_it() -> LoadRun:
        started = [await engine.start() for engine in engines]
        steps = [asyncio.create_task(engine.tick()) for engine in engines]
        try:
            endpoints = tuple(Endpoint(f"http://127.0.0.1:{port}", "m") for _, port in started)
            return await run_sessions(
                Replicas(endpoints, routing, 3), plan_sessions(SENT, 24, seed=5), ClosedSessions(6), 10.0
            )
        finally:
            for step in steps:
                step.cancel()
            await asyncio.gather(*steps, return_exceptions=True)
            for server, _ in started:
                server.close()

    return asyncio.run(all_of_it())


@pytest.mark.parametrize("routing", ["sticky", "random"])
def test_turns_go_to_replicas_as_routed_and_carry_their_replies_along(routing: str) -> None:
    engines = [StreamingServer(interval_s=0.002, with_token_ids=True) for _ in range(2)]
    run = hold_between(engines, routing)
    held = by_session(run)
    assert sorted(held) == list(range(24))
    by_replica = [[turn for turns in held.values() for turn in turns if turn.replica == one] for one in (0, 1)]
    assert [len(engine.prompts) for engine in engines] == [len(turns) for turns in by_replica]
    for engine, turns in zip(engines, by_replica, strict=True):
        assert sorted(len(prompt) for prompt in engine.prompts) == sorted(turn.prompt_tokens for turn in turns)
    moved = [turns for turns in held.values() if len({turn.replica for turn in turns}) > 1]
    assert not moved if routing == "sticky" else len(moved) > 12
    for number, turns in held.items():
        planned = plan_sessions(SENT, 24, seed=5)[number]
        assert turns[-1].prompt_tokens == len(planned.system) + sum(
            len(turn.user) for turn in planned.turns
        ) + sum(turn.reply_tokens for turn in planned.turns[:-1])  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: plan_sessions(SENT, 0, seed=1),
        lambda: SentSessions(-1, FixedTokens(1), FixedTokens(1), FixedTokens(1), 0.0, 1_000),
        lambda: SentSessions(0, FixedTokens(1), FixedTokens(1), FixedTokens(1), -1.0, 1_000),
        lambda: SentSessions(0, FixedTokens(1), FixedTokens(1), FixedTokens(1), 0.0, 50),
        lambda: Replicas((Endpoint("http://127.0.0.1:1", "m", api="chat"),)),
        lambda: Replicas(()),
        lambda: Replicas((Endpoint("http://127.0.0.1:1", "m"),), routing="least_loaded"),
        lambda: ClosedSessions(0),
        lambda: OpenSessions(0.0),
        lambda: OpenSessions(1.0, at_once=-1),
    ],
)
def test_nonsense_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        wrong()


class TestCommand:
    BENCH = ("bench", "--model", "m", "--vocabulary-tokens", "1000", "--warm-up", "2", "--device", "h200-sxm", "--llm",
             "llama-3.1-8b", "--tensor-parallel", "1", "--weights", "bf16", "--engine", "vllm", "--devices", "1")  # fmt: skip
    SESSIONS = ("--sessions", "4", "--turns", "2:3", "--user-tokens", "5", "--output-tokens", "4", "--think-s", "0.01")

    def run(self, engine: str, spool: Path, *more: str) -> int:
        return main([*self.BENCH, "--endpoint", engine, "--spool", str(spool), *more])

    def test_sessions_are_printed_and_recorded(
        self, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        records = tmp_path / "turns.jsonl.gz"
        code = self.run(
            engine, tmp_path, *self.SESSIONS, "--system-prompt-tokens", "16", "--concurrency", "2", "--no-upload",
            "--records", str(records),
        )  # fmt: skip
        assert code == 0
        said = json.loads(capsys.readouterr().out)
        assert said["load"] == {"kind": "closed", "concurrency": 2, "sessions": 4}
        assert said["traffic"]["sessions"]["system_prompt_tokens"] == 16
        with gzip.open(records, "rt") as lines:
            turns = [json.loads(line) for line in lines]
        assert said["results"]["completed"] == len(turns)
        assert {turn["session"] for turn in turns} == {0, 1, 2, 3}
        assert all(turn["prompt_tokens"] == 16 + 5 + 9 * turn["turn"] for turn in turns)

    def test_sessions_begin_at_a_rate_after_a_burst(
        self, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        code = self.run(engine, tmp_path, *self.SESSIONS, "--rate", "50", "--at-once", "3", "--no-upload")
        assert code == 0
        said = json.loads(capsys.readouterr().out)
        assert said["load"] == {"kind": "open", "sessions_per_s": 50.0, "at_once": 3, "seed": 1, "sessions": 4}
        assert said["results"]["completed"] >= 8

    def test_routing_among_replicas_is_said_and_recorded(
        self, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        records = tmp_path / "turns.jsonl.gz"
        code = self.run(
            engine, tmp_path, *self.SESSIONS, "--replica", engine, "--routing", "random", "--no-upload", "--records",
            str(records),
        )  # fmt: skip
        assert code == 0
        assert json.loads(capsys.readouterr().out)["routing"] == {"kind": "random", "replicas": 2, "seed": 1}
        with gzip.open(records, "rt") as lines:
            assert {json.loads(line)["replica"] for line in lines} == {0, 1}

    @pytest.mark.parametrize(
        ("more", "says"),
        [
            (SESSIONS, "--no-upload"),
            ((*SESSIONS, "--at-once", "2", "--no-upload"), "--rate"),
            (("--prompt-tokens", "9", "--output-tokens", "3", "--rate", "9", "--at-once", "2"), "--no-upload"),
            ((*SESSIONS, "--prompt-tokens", "10", "--no-upload"), "--prompt-tokens"),
            (("--sessions", "2", "--turns", "2", "--no-upload"), "--user-tokens"),
            ((*SESSIONS[2:], "--sessions", "0", "--no-upload"), "at least one"),
            ((*SESSIONS, "--routing", "random", "--no-upload"), "--replica"),
            (
                ("--prompt-tokens", "9", "--output-tokens", "3", "--concurrency", "1", "--replica", "http://a"),
                "--sessions",
            ),
            ((*SESSIONS, "--replica", "http://127.0.0.1:1", "--launch", "--no-upload"), "--launch"),
        ],
    )
    def test_what_does_not_go_together_is_refused(
        self, engine: str, tmp_path: Path, more: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert self.run(engine, tmp_path, *more) == 2
        assert says in capsys.readouterr().err
