"""``clusterwright trace describe``, and the traffic of a trace for ``clusterwright plan --trace``."""

import argparse
import math
import sys
from typing import Any

from rich.console import Console

from service.cli.ask import errors
from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, print_rows, standard_output
from service.settings import Settings
from service.traces.present import describe
from service.traces.reading import RecordedTrace, read_trace
from service.traces.trace_error import TraceError
from service.wire.traces import TraceDescription, TraceLengths

GIB = 2**30
SHOWN_SIZES = 12


def trace_command(arguments: argparse.Namespace, settings: Settings) -> int:
    recorded = read_file(arguments.file, arguments.block_tokens)
    described = describe(recorded, cache_tokens_of(arguments, settings))
    if arguments.json:
        print_json(described.model_dump(mode="json"))
    else:
        show_trace(described, standard_output())
    if arguments.context_tokens is not None:
        _say_longer(recorded, arguments.context_tokens)
    return ExitCode.ok


def traced_traffic(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """The traffic of ``--trace``: of a file read here, or of a stored trace by its id. What was fitted goes to standard error."""
    cache_tokens = cache_tokens_of(arguments, settings)
    if arguments.trace.startswith("trace_"):
        answer = Client(settings, arguments.url).get(f"/v1/traces/{arguments.trace}", {"cache_tokens": cache_tokens})
    else:
        answer = describe(read_file(arguments.trace, arguments.block_tokens), cache_tokens).model_dump(mode="json")
    for line in answer["fitted"]:
        errors.print(line, highlight=False, soft_wrap=True, markup=False)
    traffic: dict[str, Any] = answer["traffic"]
    if arguments.trace_sessions:
        if answer.get("session_traffic") is None:
            raise CommandError(
                f"{arguments.trace}: --trace-sessions needs arrivals, and prompts that continue others by session ids or hashes",
                ExitCode.bad_input,
            )
        traffic = answer["session_traffic"]
    return traffic


def read_file(name: str, block_tokens: int | None) -> RecordedTrace:
    try:
        if name == "-":
            return read_trace(sys.stdin.buffer, block_tokens)
        with open(name, "rb") as file:
            return read_trace(file, block_tokens)
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}", ExitCode.bad_input) from None
    except TraceError as error:
        raise CommandError(f"{name}: {error}", ExitCode.bad_input) from None


def cache_tokens_of(arguments: argparse.Namespace, settings: Settings) -> int | None:
    """--cache-gib by what a token of context takes in the model: as many whole tokens as fit."""
    if arguments.cache_gib is None:
        stated: int | None = arguments.cache_tokens
        return stated
    if not (math.isfinite(arguments.cache_gib) and 0 < arguments.cache_gib <= 1e6):
        raise CommandError("--cache-gib goes from above 0 to 1,000,000", ExitCode.bad_input)
    if not arguments.llm:
        raise CommandError(
            "--cache-gib needs the model whose cache it is; state it, or --cache-tokens instead", ExitCode.bad_input
        )
    sizes = Client(settings, arguments.url).get(f"/v1/llms/{arguments.llm}")["kv_cache_bytes_per_token"]
    if arguments.cache_format not in sizes:
        raise CommandError(
            f"--cache-format {arguments.cache_format!r}: known are {', '.join(sizes)}", ExitCode.bad_input
        )
    if not sizes[arguments.cache_format]:
        raise CommandError(
            f"the context of {arguments.llm} takes no memory by the token; state --cache-tokens", ExitCode.bad_input
        )
    return int(arguments.cache_gib * GIB / sizes[arguments.cache_format])


def show_trace(described: TraceDescription, console: Console) -> None:
    console.print(f"{described.requests:,} requests, shape {described.shape}")
    for left in described.left_out:
        console.print(f"left out: {left.lines:,} lines from line {left.first_line} on, {left.reason}")
    rows = [_row(name, of) for name, of in (("prompts", described.prompt_tokens), ("replies", described.output_tokens))]
    print_rows(
        "tokens", ["of", "mean", "p50", "p90", "p95", "p99", "longest", "lognormal mean:p95", "distance"], rows, console
    )
    console.print(
        f"longest request: {described.longest_request_tokens:,} tokens, line {described.longest_request_line}"
    )
    arrivals = described.arrivals
    if arrivals is not None:
        console.print(
            f"longest time without an arrival: {arrivals.longest_gap_s:,.1f} s, after line {arrivals.longest_gap_after_line}"
        )
        for title, shape in (("hour of the day", arrivals.by_hour), ("day of the week", arrivals.by_weekday)):
            if shape is not None:
                console.print(
                    f"rate over the mean by {title}: {' '.join(f'{part:.2f}' for part in shape)}", soft_wrap=True
                )
    sessions = described.sessions
    if sessions is not None:
        console.print(
            f"{sessions.sessions:,} sessions of {sessions.turns_mean:.1f} turns (95th percentile {sessions.turns_p95:g},"
            f" at most {sessions.turns_most:,})"
        )
    if described.prefixes is not None:
        sizes = described.prefixes.cache_sizes
        shown = sizes[:: -max(1, len(sizes) // SHOWN_SIZES)][::-1]
        print_rows(
            f"prefixes found, blocks of {described.prefixes.block_tokens} tokens",
            ["cache tokens", "blocks found", "by Che", "of prompts"],
            [
                [
                    f"{s.tokens:,}",
                    f"{s.block_hit_share:.4f}",
                    f"{s.che_block_hit_share:.4f}",
                    f"{s.shared_prefix_fraction:.4f}",
                ]
                for s in shown
            ],
            console,
        )
    console.print("taken for a plan")
    for line in described.fitted:
        console.print(f"  {line}", soft_wrap=True, markup=False)


def _row(name: str, of: TraceLengths) -> list[str]:
    fit = of.lognormal
    figures = [f"{value:,.0f}" for value in (of.mean, of.p50, of.p90, of.p95, of.p99, of.most)]
    return [name, *figures, f"{fit.mean:.0f}:{fit.p95:.0f}" if fit else "none", f"{fit.distance:.3f}" if fit else ""]


def _say_longer(recorded: RecordedTrace, context_tokens: int) -> None:
    longer = recorded.trace.prompt_tokens + recorded.trace.output_tokens > context_tokens
    if longer.any():
        errors.print(
            f"{int(longer.sum()):,} requests are longer than {context_tokens:,} tokens, the first in line"
            f" {int(recorded.lines[longer.argmax()])}",
            highlight=False,
        )
