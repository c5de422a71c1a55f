"""Arguments of the command ``clusterwright``."""

import argparse
import sys
from collections.abc import Callable, Sequence

from service import VERSION
from service.cli.changes import CHANGES, add_llm_arguments, add_offer_arguments, add_withdraw_arguments, joined
from service.cli.deploy_arguments import add_deploy_arguments
from service.cli.estimate_arguments import add_estimate_arguments
from service.cli.exit_codes import EXIT_CODES_HELP, CommandError, ExitCode
from service.cli.plan_arguments import add_plan_arguments
from service.cli.prices_arguments import add_prices_command
from service.cli.tco_arguments import add_tco_arguments
from service.cli.trace_arguments import add_trace_command
from service.cli.training_arguments import add_train_arguments, add_training_command
from service.cli.why_arguments import (
    add_diff_arguments,
    add_near_optimal_arguments,
    add_pareto_arguments,
    add_price_curve_arguments,
    add_quote_arguments,
    add_why_not_arguments,
)
from service.settings import Settings, SettingsError, read_settings

Command = Callable[[argparse.Namespace, Settings], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["agent"]:  # a command of its own, which runs without the service's dependencies
        from service.agent.cli import main as agent_main

        return agent_main(given[1:])
    parsed = build_parser().parse_args(joined(given))
    try:
        settings = read_settings()
        return int(_command(parsed.command)(parsed, settings))
    except SettingsError as bad:
        sys.stderr.write(f"clusterwright: {bad}\n")
        return ExitCode.bad_input
    except CommandError as failed:
        sys.stderr.write(f"clusterwright: {failed}\n")
        return failed.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read the lines has seen enough
        sys.stdout = None
        return ExitCode.ok


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clusterwright",
        description="Plan the cheapest accelerator cluster that serves your language models at your latency.",
        epilog=EXIT_CODES_HELP + "\nSettings come from the environment (CLUSTERWRIGHT_…); see docs/settings.md.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"clusterwright {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = _add(commands, "serve", "serve the API")
    up = _add(commands, "up", "migrate, seed, serve, and show the plan of an example")
    for server in (serve, up):
        server.add_argument("--host", default="127.0.0.1")
        server.add_argument("--port", type=_port, default=8000)
    up.add_argument("--example", default="examples/chat-70b.json", help="request to post (default: %(default)s)")
    worker = _add(commands, "worker", "compute the jobs of a service on PostgreSQL; run as many as you like")
    worker.add_argument("--jobs", type=_jobs, default=1, help="jobs at the same time (default: %(default)s)")
    _add(commands, "agent", "measure engines where they run and upload the results; see agent --help")
    _add(commands, "migrate", "bring the database's schema to this version")
    _add(commands, "seed", "bring the database's catalog to the catalog in the files")

    planning = _add(commands, "plan", "the cheapest cluster for one workload, stated in options or by a preset")
    add_plan_arguments(planning)
    _add_client_options(planning)

    for name, text in (
        ("recommend", "the cheapest cluster for the workloads in FILE"),
        ("fleet", "what to reserve and what to rent for the demand over time in FILE"),
    ):
        asking = _add(commands, name, text)
        asking.add_argument("file", metavar="FILE", help="the request's JSON body; - reads standard input")
        asking.add_argument("--async", dest="later", action="store_true", help="print the job's id; do not wait")
        _add_client_options(asking)
    predicting = _add(commands, "estimate", "predict a deployment stated in options, or those in a file")
    add_estimate_arguments(predicting)
    _add_client_options(predicting)

    for name, text, add_arguments in (
        ("why-not", "what things a stored plan does without would cost", add_why_not_arguments),
        ("price-curve", "what a requirement of a stored plan costs at several values", add_price_curve_arguments),
        (
            "pareto",
            "cost against a target or power: plans none of which is both cheaper and better",
            add_pareto_arguments,
        ),
        ("near-optimal", "other plans nearly as cheap, and what none can do without", add_near_optimal_arguments),
        (
            "quote",
            "what to confirm with each seller before signing, and how far its price may rise",
            add_quote_arguments,
        ),
        ("diff", "what must change to go from one stored plan to another", add_diff_arguments),
        ("tco", "rent the machines of a stored plan, buy them, or call an API: what each costs", add_tco_arguments),
        ("deploy", "write files that start the servers of a stored plan", add_deploy_arguments),
    ):
        asking = _add(commands, name, text)
        add_arguments(asking)
        _add_client_options(asking)

    for name, filters in LISTS.items():
        listing = _add(commands, name, f"list {name}")
        for option in filters:
            listing.add_argument(f"--{option.replace('_', '-')}", dest=option)
        listing.add_argument("id", nargs="?", help="show one of them in full")
        if name == "jobs":
            listing.add_argument("--cancel", action="store_true", help="cancel the job ID")
        _add_client_options(listing)

    for name, text, add_arguments in (
        ("llms add", "put a model of your own into the catalog", add_llm_arguments),
        (
            "offers add",
            "put an own machine, an own contract or its new price into the catalog",
            add_offer_arguments,
        ),
        ("offers withdraw", "an offer has no price any more", add_withdraw_arguments),
    ):
        changing = _add(commands, name, text)
        add_arguments(changing)
        _add_client_options(changing)

    train = _add(commands, "train", "the cheapest machines for one training job, with layout, dates and cost")
    add_train_arguments(train)
    _add_client_options(train)

    add_training_command(_add(commands, "training", "predict training runs, fit the model of them"))

    add_prices_command(_add(commands, "prices", "import price lists"))

    _add_client_options(add_trace_command(_add(commands, "trace", "what recorded requests say of a workload")))

    calibrate = _add(commands, "calibrate", "fit the performance model to the measured runs, print how accurate it is")
    calibrate.add_argument("--write", action="store_true", help="keep the result as the catalog's next correction set")
    calibrate.add_argument(
        "--intervals", action="store_true", help="what intervals hold beyond constants, from published runs, instead"
    )
    calibrate.add_argument(
        "--rounds", type=int, default=7,
        help="most rounds of the fit (default: %(default)s); 0: constants stay those of the newest set, intervals are made anew",
    )  # fmt: skip
    accuracy = _add(
        commands, "accuracy", "predicted against measured, of the correction set that ships with this version"
    )
    accuracy.add_argument("--markdown", action="store_true", help="print tables for docs/accuracy.md")
    accuracy.add_argument("--constants", action="store_true", help="print the fitted constants too")

    token = _add(commands, "token", "make, list and revoke bearer tokens")
    actions = token.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="make a token; it is shown once")
    create.add_argument("name", help="who or what it is for")
    create.add_argument("--role", choices=("reader", "agent", "editor"), required=True)
    create.add_argument("--if-none", action="store_true", help="do nothing when there is a token already")
    actions.add_parser("list", help="list tokens")
    revoke = actions.add_parser("revoke", help="refuse a token from now on")
    revoke.add_argument("id")
    return parser


LISTS: dict[str, tuple[str, ...]] = {
    "devices": ("vendor", "category", "status", "family", "device_class"),
    "nodes": ("device", "kind"),
    "llms": ("family", "origin"),
    "jobs": ("state", "kind"),
    "offers": (
        "provider", "region", "commitment", "node", "device", "provider_class", "device_class", "named_place", "price_as_of",
    ),
    "providers": ("provider_class",),
    "api-prices": ("provider", "model"),
}  # fmt: skip


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=text, description=text, epilog=EXIT_CODES_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip


def _add_client_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the answer's JSON")
    parser.add_argument("--url", help="the service's address; without it, one on port 8000 or this machine's database")


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise ValueError(text)
    return port


def _jobs(text: str) -> int:
    jobs = int(text)
    if not 1 <= jobs <= 64:
        raise ValueError(text)
    return jobs


def _command(name: str) -> Command:
    """Imported when chosen, so that every command starts quickly."""
    if name in ("migrate", "seed", "serve", "token"):
        from service.cli import local

        return {
            "migrate": local.migrate_command,
            "seed": local.seed_command,
            "serve": local.serve_command,
            "token": local.token_command,
        }[name]
    if name == "worker":
        from service.cli.worker import worker_command

        return worker_command
    if name == "up":
        from service.cli.up import up_command

        return up_command
    if name in ("calibrate", "accuracy"):
        from service.cli import calibrate

        return {"calibrate": calibrate.calibrate_command, "accuracy": calibrate.accuracy_command}[name]
    if name == "prices":
        from service.cli.prices import prices_command

        return prices_command
    if name in ("training", "train"):
        from service.cli import training

        return training.train_command if name == "train" else training.training_command
    if name == "trace":
        from service.cli.trace import trace_command

        return trace_command
    if name in CHANGES:
        from service.cli import change

        return {
            "llms add": change.add_llm_command, "offers add": change.add_offer_command,
            "offers withdraw": change.withdraw_offer_command,
        }[name]  # fmt: skip
    if name == "jobs":
        from service.cli.jobs import jobs_command

        return jobs_command
    if name == "deploy":
        from service.cli.deploy import deploy_command

        return deploy_command
    if name == "tco":
        from service.cli.tco import tco_command

        return tco_command
    if name in ("why-not", "price-curve", "pareto", "near-optimal", "quote", "diff"):
        from service.cli import why

        return {
            "why-not": why.why_not_command, "price-curve": why.price_curve_command, "pareto": why.pareto_command,
            "near-optimal": why.near_optimal_command, "quote": why.quote_command, "diff": why.diff_command,
        }[name]  # fmt: skip
    if name == "estimate":
        from service.cli.estimate import estimate_command

        return estimate_command
    from service.cli import ask

    if name in LISTS:
        return ask.list_command
    return {
        "plan": ask.plan_command, "recommend": ask.recommend_command, "fleet": ask.fleet_command,
    }[name]  # fmt: skip
