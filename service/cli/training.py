"""``clusterwright training estimate``: one training run stated in options; ``train``: one job."""

import argparse
import datetime as dt
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from service.cli.client import Client
from service.cli.exit_codes import ExitCode
from service.cli.output import print_json, standard_output
from service.cli.training_arguments import layout_of, run_of, site_of
from service.cli.training_text import (
    beside_text,
    commitment_text,
    cost_text,
    days_text,
    layout_text,
    money,
    serving_text,
)
from service.settings import Settings

ABOUT = ("why-not", "deploy", "upload")


def training_command(arguments: argparse.Namespace, settings: Settings) -> int:
    if arguments.action == "fit":
        from service.cli.training_fit import training_fit_command

        return training_fit_command(arguments, settings)
    if arguments.action in ABOUT:
        from service.cli.training_stored import stored_command

        return stored_command(arguments, settings)
    return _estimate(arguments, settings)


def train_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """One job stated in options, to POST /v1/training/recommendations."""
    job: dict[str, Any] = {"name": "job", "llm": arguments.llm, "tokens": arguments.tokens} | run_of(arguments)
    if arguments.days is not None:
        job["deadline"] = (dt.datetime.now(dt.UTC) + dt.timedelta(days=arguments.days)).isoformat()
    elif arguments.by is not None:
        job["deadline"] = arguments.by
    for name in ("max_usd", "max_devices"):
        if getattr(arguments, name) is not None:
            job[name] = getattr(arguments, name)
    limits = {f"{name}s": getattr(arguments, name) for name in ("device", "provider") if getattr(arguments, name)}
    body: dict[str, Any] = {"jobs": [job], "limits": limits}
    if arguments.beside_fleet is not None:
        body["beside_fleet"] = arguments.beside_fleet
    if arguments.serving is not None:
        body["serving"] = arguments.serving
    if arguments.serving_hourly_profile is not None:
        body["serving_hourly_profile"] = arguments.serving_hourly_profile
    if arguments.commitment:
        limits["commitments"] = arguments.commitment
    if arguments.buy:
        body["own"] = [site_of(arguments.buy)]
    if arguments.own_months is not None:
        body["own_months"] = arguments.own_months
    answer = Client(settings, arguments.url).post("/v1/training/recommendations", body)
    if arguments.json:
        print_json(answer)
    else:
        show_training_plan(answer, standard_output())
    return ExitCode.infeasible if answer["outcome"] == "infeasible" else ExitCode.ok


def show_training_plan(answer: Mapping[str, Any], console: Console) -> None:
    """What to rent, its proof, its doubts, and what other ends cost."""

    def say(text: str) -> None:
        console.print(text, soft_wrap=True, highlight=False)

    solve = answer["solve"]
    for line in answer["plan"]:
        days, rate = line["duration_days"], line["tokens_per_s_per_device"]
        say(
            f"{answer['outcome']}: {line['nodes']} × {line['offer']} ({line['devices']} × {line['device']}), {cost_text(line, answer)}"
        )
        ends = f"; ${money(line['usd_low'])}–${money(line['usd_high'])}" if float(line["usd"]) > 0.0 else ""
        span = f"{days_text(days['expected'])} ({days_text(days['low'])}–{days_text(days['high'])})"
        say(f"{span}, done by {line['finishes_at'][:16]} UTC{ends}")
        if line["stated_on"] is not None:
            old = f" ({line['price_age_days']} days old: ask for a quote)" if line["ask_for_quote"] else ""
            say(f"${money(line['usd_per_node_hour'])} a node-hour, stated {line['stated_on']}{old}")
        memory = line["memory"]
        say(f"layout: {layout_text(line['layout'])}")
        say(f"{memory['peak_gib']:.0f} of {memory['available_gib']:.0f} GiB a device: {memory['verdict']}")
        say(
            f"{rate['expected']:,.0f} tokens/s a device, MFU {100 * line['mfu_fraction']['expected']:.0f} %,"
            f" {100 * line['goodput_fraction']:.1f} % of the time counts ({line['stack']}, {line['basis']})"
        )
    for one in answer["commitments"]:
        say(commitment_text(one))
    if answer["beside"] is not None:
        say(beside_text(answer["beside"]))
    if answer["serving"] is not None:
        say(serving_text(answer["serving"], float(solve["usd"])))
    if answer["plan"] and (len(answer["plan"]) > 1 or answer["serving"] or answer["commitments"]):
        say(f"in all: ${money(solve['undiscounted_usd'] or solve['usd'])}")
    say(f"plan {answer['id']}")
    if answer["plan"]:
        rate = answer["discount"]["percent_per_year"]
        present = f" in present value at {rate:g} % a year" if rate else ""
        say(
            f"proof: none of {solve['candidates']} ways costs less than ${money(solve['bound_usd'])}{present} ({solve['status']})"
        )
    for conflict in answer["conflicts"]:
        say(f"infeasible: {conflict}")
    for change in answer["relaxations"]:
        say(f"{change['limit']} {change['relaxing_to']} would do, for ${money(change['usd'])}")
    for caution in answer["cautions"]:
        say(f"mind: {caution}")
    for front in answer["fronts"]:
        for point in front["points"]:
            say(f"in {days_text(point['duration_days'])}: ${money(point['usd'])} ({point['nodes']} × {point['offer']})")


def _estimate(arguments: argparse.Namespace, settings: Settings) -> int:
    case: dict[str, Any] = {"llm": arguments.llm, "device": arguments.device, "devices": arguments.devices}
    case |= run_of(arguments) | layout_of(arguments)
    answer = Client(settings, arguments.url).post("/v1/training/estimates", {"estimates": [case]})
    found = answer["estimates"][0]
    if arguments.json:
        print_json(answer)
    else:
        show_training_estimate(case, found, standard_output())
    return ExitCode.ok if found["outcome"] == "estimated" else ExitCode.infeasible


def show_training_estimate(case: Mapping[str, Any], found: Mapping[str, Any], console: Console) -> None:
    """Rate, step, memory and layout, then where the time goes."""
    if found["outcome"] == "unsupported":
        console.print(f"unsupported: {found['detail']}", soft_wrap=True)
        return
    rate, step, mfu = (found[name] for name in ("tokens_per_s_per_device", "step_s", "mfu_fraction"))
    memory = found["memory"]
    console.print(
        f"{case['method']} of {case['llm']} on {case['devices']} × {case['device']} ({found['stack']}): {found['outcome']}"
    )
    if found["detail"]:
        console.print(found["detail"], soft_wrap=True)
    console.print(
        f"{rate['expected']:,.0f} ({rate['low']:,.0f}–{rate['high']:,.0f}) tokens/s a device,"
        f" a step of {found['global_batch_sequences']} sequences in {step['expected']:.3g} ({step['low']:.3g}–{step['high']:.3g}) s,"
        f" MFU {100 * mfu['expected']:.0f} %, {found['basis']}", soft_wrap=True,
    )  # fmt: skip
    console.print(f"{memory['peak_gib']:.1f} of {memory['available_gib']:.1f} GiB a device: {memory['verdict']}")
    console.print(f"layout: {layout_text(found['layout'])} (of {found['considered']} compared)")
    for caution in found["cautions"]:
        console.print(f"mind: {caution}", soft_wrap=True)
    table = Table(title="a step")
    for heading in ("term", "s", "%"):
        table.add_column(heading, justify="left" if heading == "term" else "right")
    for term in sorted(found["terms"], key=lambda one: -one["time_s"]):
        table.add_row(term["term"], f"{term['time_s']:.4g}", f"{100 * term['time_fraction']:.1f}")
    console.print(table)
