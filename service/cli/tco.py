"""``clusterwright tco``: what a stored plan costs over years, rented, committed, bought, or as somebody's API."""

import argparse
from typing import Any

from rich.console import Console
from rich.markup import escape

from service.cli.ask import print_json
from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_rows, standard_output
from service.settings import Settings

errors = Console(stderr=True, highlight=False)


def tco_command(arguments: argparse.Namespace, settings: Settings) -> int:
    answer = Client(settings, arguments.url).post("/v1/tco/comparisons", comparison_of(arguments))
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    rows = [
        [
            one["name"],
            f"{float(one['total_usd']):,.0f}",
            f"{float(one['npv_usd']):,.0f}",
            "–"
            if one["usd_per_million_output_tokens"] is None
            else f"{float(one['usd_per_million_output_tokens']):,.3f}",
        ]
        for one in answer["alternatives"]
    ]
    headings = ("alternative", "USD in all", "net present value", "USD per million output tokens")
    print_rows(f"over {arguments.months} months", headings, rows, console)
    errors.print(f"cheapest by net present value: [bold]{escape(answer['cheapest'])}[/bold]", soft_wrap=True)
    for one in answer["alternatives"]:
        for note in one["notes"]:
            errors.print(f"{escape(one['name'])}: {escape(note)}", soft_wrap=True)
    errors.print(
        f"stored: GET {answer['link']}; --json has cost lines, break-even, sensitivity and sources", soft_wrap=True
    )
    return ExitCode.ok


def comparison_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The body of POST /v1/tco/comparisons."""
    plan = arguments.recommendation
    alternatives: list[dict[str, Any]] = [{"name": "as planned", "recommendation": plan}]
    alternatives += [{"name": one, "recommendation": plan, "acquisition": one} for one in arguments.commit]
    if arguments.buy or arguments.usd_per_node:
        terms = {"purchase": {"usd_per_node": arguments.usd_per_node}} if arguments.usd_per_node else {}
        alternatives.append({"name": "buy", "recommendation": plan, "acquisition": "purchase", **terms})
    if arguments.api:
        into, between, out = arguments.api.partition(":")
        if not between:
            raise CommandError(f"--api {arguments.api!r}: state both prices, such as 0.60:0.80", ExitCode.bad_input)
        prices = {"usd_per_million_input_tokens": into, "usd_per_million_output_tokens": out}
        alternatives.append({"name": "API", "api": prices})
    return {
        "horizon_months": arguments.months,
        "utilisation_fraction": arguments.demand / 100,
        "alternatives": alternatives,
    }
