"""``agent bench --sessions``: a load of sessions against an engine, printed and recorded."""

from __future__ import annotations

import argparse
import asyncio
import random
from dataclasses import dataclass
from typing import Any

from service.agent.bench import WARM_UP_OPEN_CLIENTS, NothingMeasuredError, Prompts
from service.agent.lengths import FixedTokens
from service.agent.progress import AgentProgress
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


def check_session_options(options: argparse.Namespace) -> None:
    """Raises ValueError for options that do not go with sessions, and for those that are missing."""
    if options.sessions < 1:
        raise ValueError(f"a load of sessions has at least one, got {options.sessions}")
    needed = {"--turns": options.turns, "--user-tokens": options.user_tokens, "--output-tokens": options.output_tokens}
    if missing := [name for name, value in needed.items() if value is None]:
        raise ValueError(f"sessions need {', '.join(missing)} too")
    beside = {
        "--prompt-tokens": options.prompt_tokens, "--prompts": options.prompts, "--sweep": options.sweep,
        "--requests": options.requests, "--recommendation": options.recommendation, "--gpu": options.gpu,
    }  # fmt: skip
    if given := [name for name, value in beside.items() if value]:
        raise ValueError(
            f"{', '.join(given)} does not go with --sessions: prompts and their number follow from turns, and power is not sampled"
        )
    if not options.no_upload:
        raise ValueError(
            "the service takes no runs of sessions as benchmarks: give --no-upload, and --records FILE to keep the turns"
        )


def session_prompts(options: argparse.Namespace, vocabulary_tokens: int | None) -> tuple[SentSessions, Prompts]:
    """The sessions to send, and prompts as long as their first turns for the warm-up, with which they share nothing."""
    if vocabulary_tokens is None:
        raise ValueError("sessions of token ids need --vocabulary-tokens, or --llm to ask the service")
    sent = SentSessions(
        options.system_prompt_tokens, options.turns, options.user_tokens, options.output_tokens, options.think_s,
        vocabulary_tokens,
    )  # fmt: skip
    first_tokens = sent.system_prompt_tokens + sent.user_tokens.draw(random.Random(options.seed))
    return sent, Prompts(FixedTokens(first_tokens), options.output_tokens, vocabulary_tokens)


def check_replica_options(options: argparse.Namespace) -> None:
    """Raises ValueError for routing among replicas where there is one, or where turns of no session are sent."""
    if options.replica and options.sessions is None:
        raise ValueError("--replica goes with --sessions: other loads measure one replica")
    if options.replica and options.launch:
        raise ValueError("--launch starts one engine: give --endpoint and --replica of engines that run")
    if options.routing and not options.replica:
        raise ValueError("--routing is among replicas: give the others with --replica URL")


@dataclass(frozen=True)
class SessionPoint:
    """One load of so many sessions to measure."""

    load: SessionLoad
    sessions: int
    seed: int

    @property
    def warm_up_clients(self) -> int:
        return self.load.clients if isinstance(self.load, ClosedSessions) else WARM_UP_OPEN_CLIENTS


def session_points(options: argparse.Namespace) -> list[SessionPoint]:
    """A load for each number of clients and each rate; without either, all sessions at once."""
    loads: list[SessionLoad] = [ClosedSessions(min(one, options.sessions)) for one in options.concurrency]
    loads += [OpenSessions(rate, min(options.at_once, options.sessions), options.seed) for rate in options.rate]
    return [
        SessionPoint(load, options.sessions, options.seed + number)
        for number, load in enumerate(loads or [ClosedSessions(options.sessions)])
    ]


def measure_sessions(
    replicas: Replicas, sent: SentSessions, point: SessionPoint, context: dict[str, Any], timeout_s: float
) -> tuple[dict[str, Any], LoadRun]:
    """Hold the sessions of one load. What is printed, and the turns. Raises NothingMeasuredError where none was answered."""
    planned = plan_sessions(sent, point.sessions, point.seed)
    with AgentProgress(point.load.name, sum(len(session.turns) for session in planned)) as bar:
        run = asyncio.run(
            run_sessions(
                replicas,
                planned,
                point.load,
                timeout_s,
                lambda record: bar.step(failed=not record.succeeded),
            )
        )
    if not run.completed:
        raise NothingMeasuredError(f"{point.load.name}: no turn was answered: {next(iter(run.failures()), '')}")
    said = {
        "context": context,
        "load": point.load.as_json() | {"sessions": point.sessions},
        "traffic": {"sessions": sent.as_json()},
        "results": run.results() | {"prefix_hit_fraction": found_fraction(run)},
    }
    if len(replicas.endpoints) > 1:
        said["routing"] = {"kind": replicas.routing, "replicas": len(replicas.endpoints), "seed": replicas.seed}
    return said, run
