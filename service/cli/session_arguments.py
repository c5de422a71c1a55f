"""Arguments by which a plan or an estimate takes its requests as turns of sessions."""

import argparse
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import LENGTHS_HELP, lengths
from service.cli.numbers import number


def add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--turns", metavar="LENGTHS", help="requests are turns of sessions of so many, instead of --prompt"
    )
    parser.add_argument("--user", metavar="LENGTHS", help=f"tokens a user adds in a turn: {LENGTHS_HELP}")
    parser.add_argument(
        "--think", type=number, metavar="S", help="seconds between a reply and the next turn, on average"
    )
    for option, metavar, text in (
        ("--system-prompt", "TOKENS", "what every session begins with"),
        ("--system-prompts", "N", "how many different ones there are, of tenants, say (1 unless stated)"),
        ("--document", "TOKENS", "a document after it, which each session is about"),
        ("--documents", "N", "how many different ones there are (1 unless stated)"),
    ):
        parser.add_argument(option, type=int, metavar=metavar, help=text)
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
    counts = {
        "system_prompt_tokens": arguments.system_prompt, "system_prompts": arguments.system_prompts,
        "document_tokens": arguments.document, "documents": arguments.documents,
    }  # fmt: skip
    beside = [*counts.values(), arguments.random_over, arguments.routing]
    if all(value is None for value in (*stated.values(), *beside)):
        return None
    missing = [option for option, value in stated.items() if value is None]
    if missing:
        raise CommandError(f"sessions need {', '.join(missing)} too", ExitCode.bad_input)
    if arguments.prompt is not None:
        raise CommandError("--prompt follows from --turns: state one of them", ExitCode.bad_input)
    found: dict[str, Any] = {"turns": turns, "user_tokens": user, "think_time_s": arguments.think}
    found |= {field: count for field, count in counts.items() if count is not None}
    if arguments.random_over is not None:
        found |= {"routing": "random", "replicas": arguments.random_over}
    if arguments.routing is not None:
        found["routing"] = arguments.routing
    return found
