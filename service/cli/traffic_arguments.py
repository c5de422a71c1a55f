"""Arguments by which a plan or an estimate states what requests are: their lengths, their replies, and what they bring beside text."""

import argparse
from collections.abc import Mapping
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import LENGTHS_HELP, lengths
from service.cli.numbers import number
from service.cli.served_arguments import add_served_options, media_of
from service.cli.session_arguments import add_session_options, sessions_of

LENGTH_OPTIONS = {"prompt_tokens": "--prompt", "output_tokens": "--output", "thinking_tokens": "--thinking"}


def add_traffic_options(parser: argparse.ArgumentParser) -> None:
    for option, text in (
        ("--prompt", "tokens of a prompt"), ("--output", "tokens of a reply"), ("--thinking", "hidden tokens before a reply"),
    ):  # fmt: skip
        parser.add_argument(option, metavar="LENGTHS", help=f"{text}: {LENGTHS_HELP}")
    parser.add_argument(
        "--structured", type=number, metavar="SHARE", help="of replies held to a schema, a grammar or a tool's call, 0 to 1"
    )  # fmt: skip
    parser.add_argument(
        "--shared-prefix", type=number, metavar="SHARE", help="of every prompt that is in the cache already, 0 to 1"
    )
    add_session_options(parser)
    add_served_options(parser)


def traffic_of(arguments: argparse.Namespace, otherwise: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ``traffic`` that options state, or else ``otherwise``: of a trace, then of a preset.

    Raises CommandError for options that exclude each other or have another form.
    """
    found = {
        field: stated
        for field, option in LENGTH_OPTIONS.items()
        if (stated := lengths(option, getattr(arguments, option.removeprefix("--"))) or otherwise.get(field))
        is not None
    }
    sessions = sessions_of(arguments) or otherwise.get("sessions")
    if sessions is not None:
        found.pop("prompt_tokens", None)
        found["sessions"] = sessions
        if arguments.shared_prefix is not None:
            raise CommandError("--shared-prefix follows from --turns: state one of them", ExitCode.bad_input)
    shares = {"structured_fraction": arguments.structured, "shared_prefix_fraction": arguments.shared_prefix}
    for field, share in shares.items():
        stated = otherwise.get(field) if share is None else share
        if stated and (sessions is None or field == "structured_fraction"):
            found[field] = stated
    return found | media_of(arguments)
