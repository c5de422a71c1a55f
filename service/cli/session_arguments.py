"""Arguments by which a plan or an estimate takes its requests as turns of sessions."""

import argparse
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import LENGTHS_HELP, lengths
from service.cli.numbers import number


def add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", metavar="MEAN:P95", help="requests are turns of sessions of so many, instead of --prompt"
    )
    parser.add_argument("--user", metavar="MEAN:P95", help=f"tokens a user adds in a turn: {LENGTHS_HELP}")
    parser.add_argument(
        "--think", type=number, metavar="S", help="seconds between a reply and the next turn, on average"
    )
    parser.add_argument("--system-prompt", type=int, metavar="TOKENS", help="what every session begins with")
    parser.add_argument(
        "--routing", choices=("sticky", "random", "least_loaded", "prefix_aware"), help="to which replicas turns go"
    )
    parser.add_argument(
        "--random-over", type=int, metavar="N", help="turns go to any of N replicas; else a session stays with one"
    )
    parser.add_argument(
        "--host-cache", type=number, action="append", default=[], metavar="GIB",
        help="memory of the host that caches may take beside each device; may be repeated for a plan to choose among",
    )  # fmt: skip
    parser.add_argument(
        "--disk-cache",
        type=number,
        metavar="GIB",
        help="local disk that caches may take for each device under that memory",
    )
    parser.add_argument(
        "--disk-rate",
        type=number,
        metavar="GB_PER_S",
        help="at which each device's share of it is read; else as documented",
    )


def sessions_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The sessions that options state; None without any. Raises CommandError naming options that are missing."""
    turns, user = lengths("--turns", arguments.turns), lengths("--user", arguments.user)
    stated = {"--turns": turns, "--user": user, "--think": arguments.think}
    beside = {
        "--system-prompt": arguments.system_prompt, "--random-over": arguments.random_over, "--routing": arguments.routing,
    }  # fmt: skip
    if all(value is None for value in (stated | beside).values()):
        return None
    missing = [option for option, value in stated.items() if value is None]
    if missing:
        raise CommandError(f"sessions need {', '.join(missing)} too", ExitCode.bad_input)
    if arguments.prompt is not None:
        raise CommandError("--prompt follows from --turns: state one of them", ExitCode.bad_input)
    found: dict[str, Any] = {"turns": turns, "user_tokens": user, "think_time_s": arguments.think}
    if arguments.system_prompt is not None:
        found["system_prompt_tokens"] = arguments.system_prompt
    if arguments.random_over is not None:
        found |= {"routing": "random", "replicas": arguments.random_over}
    if arguments.routing is not None:
        found["routing"] = arguments.routing
    return found
