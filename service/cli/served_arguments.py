"""Arguments by which a plan or an estimate serves adapters over its model."""

import argparse
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode

ADAPTERS_HELP = (
    "low-rank adapters over the model: how many, of which rank (16 unless stated), and how many a device holds (all)"
)


def add_served_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--adapters", metavar="COUNT[:RANK[:SLOTS]]", help=ADAPTERS_HELP)
    parser.add_argument(
        "--adapter-zipf",
        type=float,
        metavar="S",
        help="the i-th adapter is named in proportion to i^-S (all alike unless stated)",
    )


def adapters_of(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """What the options state; None without any. Raises CommandError for what is no number."""
    if arguments.adapters is None:
        if arguments.adapter_zipf is not None:
            raise CommandError("--adapter-zipf is of --adapters: state both", ExitCode.bad_input)
        return None
    try:
        numbers = [int(part) for part in arguments.adapters.split(":")]
    except ValueError:
        raise CommandError(f"--adapters {arguments.adapters!r}: {ADAPTERS_HELP}", ExitCode.bad_input) from None
    if not 1 <= len(numbers) <= 3:
        raise CommandError(f"--adapters {arguments.adapters!r}: {ADAPTERS_HELP}", ExitCode.bad_input)
    found: dict[str, Any] = dict(zip(("count", "rank", "slots"), numbers, strict=False))
    if arguments.adapter_zipf is not None:
        found["zipf_exponent"] = arguments.adapter_zipf
    return found
