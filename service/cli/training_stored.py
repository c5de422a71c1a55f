"""``clusterwright training why-not``, ``deploy`` and ``upload``: what is asked of a stored plan, and a log that is brought back."""

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from service.cli.client import Client
from service.cli.exit_codes import ExitCode
from service.cli.output import print_json, standard_output
from service.cli.training_arguments import layout_of, run_of
from service.cli.training_text import cost_text
from service.settings import Settings

PLANS = "/v1/training/recommendations"


def stored_command(arguments: argparse.Namespace, settings: Settings) -> int:
    client = Client(settings, arguments.url)
    if arguments.action == "why-not":
        answer = client.post(f"{PLANS}/{arguments.id}/why-not", {"device": arguments.device})
        return _shown(arguments, answer, _why_not)
    if arguments.action == "deploy":
        answer = client.get(f"{PLANS}/{arguments.id}/deployments", {"target": arguments.target})
        return _shown(arguments, answer, _files)
    try:
        content = Path(arguments.log).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        sys.stderr.write(f"{arguments.log}: {error.strerror}\n")
        return ExitCode.bad_input
    run: dict[str, Any] = {"llm": arguments.llm, "device": arguments.device, "devices": arguments.devices}
    run |= run_of(arguments) | layout_of(arguments) | {"log": {"tool": arguments.tool, "content": content}}
    return _shown(arguments, client.post("/v1/benchmarks/training-runs", run), _run)


def _shown(arguments: argparse.Namespace, answer: Any, show: Any) -> int:
    if arguments.json:
        print_json(answer)
    else:
        show(answer, standard_output())
    return ExitCode.infeasible if answer.get("outcome") == "infeasible" else ExitCode.ok


def _why_not(answer: dict[str, Any], console: Console) -> None:
    if answer["in_plan"]:
        console.print(f"{answer['name']} is in the plan", highlight=False)
    if answer["excluded_by"]:
        console.print(f"left out by {', '.join(answer['excluded_by'])}; priced as if it were not", highlight=False)
    for line in answer["plan"]:
        days = line["duration_days"]["expected"]
        console.print(
            f"{line['nodes']} × {line['offer']}: {days:.3g} days, {cost_text(line, answer)}",
            soft_wrap=True,
            highlight=False,
        )
    if answer["extra_usd"] is not None:
        console.print(f"${float(answer['extra_usd']):,.2f} more than the plan", highlight=False)
    for reason in answer["reasons"]:
        console.print(reason, soft_wrap=True, highlight=False)


def _files(answer: dict[str, Any], console: Console) -> None:
    for file in answer["files"]:
        console.print(f"# --- {file['path']}", highlight=False)
        console.print(file["content"], soft_wrap=True, highlight=False, markup=False)
    for note in answer["notes"]:
        console.print(f"# {note['about']}: {note['text']}", soft_wrap=True, highlight=False, markup=False)


def _run(answer: dict[str, Any], console: Console) -> None:
    rate, error = answer["tokens_per_s_per_device"], 100.0 * answer["error_fraction"]
    console.print(f"{answer['id']}: {rate:,.0f} tokens/s a device; predicted {error:+.1f} %", highlight=False)
