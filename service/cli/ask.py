"""Commands that ask the API: plan, recommend, fleet and the lists."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.fleet_view import show_fleet
from service.cli.jobs import is_job, progress_line, result_of
from service.cli.main import LISTS
from service.cli.output import print_json, print_rows, standard_output
from service.cli.plan_arguments import request_of
from service.cli.plan_view import show_recommendation
from service.cli.tables import COLUMNS, list_rows
from service.settings import Settings

errors = Console(stderr=True)


def recommend_command(arguments: argparse.Namespace, settings: Settings) -> int:
    return _recommend(arguments, settings, read_request(arguments.file))


def plan_command(arguments: argparse.Namespace, settings: Settings) -> int:
    body = request_of(arguments, _traced(arguments, settings))
    if arguments.show_request:
        print_json(body)
        return ExitCode.ok
    return _recommend(arguments, settings, body)


def _traced(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any] | None:
    if arguments.trace is None:
        if arguments.block_tokens or arguments.cache_tokens or arguments.cache_gib is not None:
            raise CommandError("--block-tokens, --cache-tokens and --cache-gib belong to --trace", ExitCode.bad_input)
        return None
    from service.cli.trace import traced_traffic

    return traced_traffic(arguments, settings)


def _recommend(arguments: argparse.Namespace, settings: Settings, body: Any) -> int:
    client = Client(settings, arguments.url)

    def show(answer: dict[str, Any]) -> None:
        console = standard_output()
        show_recommendation(answer, console, lambda offer_id: offer_of_plan(client, answer, offer_id))
        if client.url:
            console.print(f"on the page: {client.url}/#/plan/{answer['id']}", soft_wrap=True)

    return _plan(arguments, client, "/v1/recommendations", body, show)


def fleet_command(arguments: argparse.Namespace, settings: Settings) -> int:
    client = Client(settings, arguments.url)
    body = read_request(arguments.file)
    return _plan(arguments, client, "/v1/fleets", body, lambda answer: show_fleet(answer, standard_output()))


def _plan(
    arguments: argparse.Namespace, client: Client, path: str, body: Any, show: Callable[[dict[str, Any]], None]
) -> ExitCode:
    """Post the request, wait for the job that a long one becomes, show the answer."""
    if arguments.later:
        job = client.post(path, body, prefer="respond-async")
        print_json(job) if arguments.json else sys.stdout.write(f"{job['id']}\n")
        return ExitCode.ok
    with errors.status("searching for the cheapest plan") as status:
        answer = client.post(path, body)
        if is_job(answer):
            answer = result_of(client, answer, lambda job: status.update(progress_line(job)))
    if arguments.json:
        print_json(answer)
    else:
        show(answer)
    return ExitCode.infeasible if answer["outcome"] == "infeasible" else ExitCode.ok


def offer_of_plan(client: Client, answer: dict[str, Any], offer_id: str) -> dict[str, Any] | None:
    """The offer with the price the plan was made with."""
    try:
        return client.get(f"/v1/offers/{offer_id}", {"price_as_of": answer["inputs"]["price_as_of"]})
    except CommandError:
        return None  # the plan stands without it


def list_command(arguments: argparse.Namespace, settings: Settings) -> int:
    client = Client(settings, arguments.url)
    noun = arguments.command
    if arguments.id:
        print_json(client.get(f"/v1/{noun}/{arguments.id}"))
        return ExitCode.ok
    filters = {name: getattr(arguments, name) for name in LISTS[noun]}
    with errors.status(f"reading {noun}"):
        items = client.pages(f"/v1/{noun}", filters)
    if arguments.json:
        print_json(items)
    else:
        headings = [heading for _, heading in COLUMNS[noun]]
        print_rows(f"{len(items)} {noun}", headings, list_rows(noun, items), standard_output())
    return ExitCode.ok


def read_request(name: str) -> Any:
    """The JSON of a file, or of standard input for ``-``."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return json.loads(text)
    except OSError as error:
        raise CommandError(f"cannot read {name}: {error.strerror}", ExitCode.bad_input) from None
    except RecursionError:
        raise CommandError(f"{name} is not JSON: nested too deeply", ExitCode.bad_input) from None
    except ValueError as error:
        raise CommandError(f"{name} is not JSON: {error}", ExitCode.bad_input) from None
