"""Commands that ask about a stored recommendation: why-not, price-curve, pareto, near-optimal, quote, diff."""

import argparse
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, standard_output
from service.figures import readable
from service.settings import Settings

errors = Console(stderr=True)
MOST_REASONS = 3
NAMED = ("device", "offer", "provider", "weights", "tensor_parallel", "partition")
"""Options of why-not that name a thing."""


def why_not_command(arguments: argparse.Namespace, settings: Settings) -> int:
    if not any(getattr(arguments, name) for name in NAMED):
        options = ", ".join("--" + name.replace("_", "-") for name in NAMED)
        raise CommandError(f"name what the plan does without: {options}; each may be repeated", ExitCode.bad_input)
    body = {
        "devices": arguments.device, "offers": arguments.offer, "providers": arguments.provider,
        "precisions": [{"weights": name.lower()} for name in arguments.weights],
        "layouts": [{"tensor_parallel": degree} for degree in arguments.tensor_parallel],
        "partitions": arguments.partition,
        "workload": arguments.workload,
    }  # fmt: skip
    answer = _ask(arguments, settings, "why-not", body)
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    _show_base(answer["base"], console)
    for one in answer["answers"]:
        console.print(f"[bold]{escape(one['name'])}[/bold]: {_verdict(one)}")
        for excluded in one["excluded_by"]:
            console.print(f"  your {escape(excluded)} leaves it out; priced as if it did not")
        for reason in one["reasons"][:MOST_REASONS]:
            console.print(f"  {reason['reason'].replace('_', ' ')}: {escape(reason['detail'])}")
        if one["limits"]:
            console.print(f"  no room within {escape(', '.join(one['limits']))}")
    return ExitCode.ok


def price_curve_command(arguments: argparse.Namespace, settings: Settings) -> int:
    body = {
        "of": arguments.of,
        "workload": arguments.workload,
        "traffic_class": arguments.traffic_class,
        "points": arguments.point or None,
    }
    answer = _ask(arguments, settings, "price-curve", body)
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    _show_base(answer["base"], console)
    console.print(escape(answer["says"]), soft_wrap=not console.is_terminal)
    table = Table(answer["of"], "USD/h", "", "plan")
    for point in answer["points"]:
        solved = point["solved"]
        mark = " (as asked)" if point["is_requested"] else ""
        price = "–" if solved["usd_per_hour"] is None else f"{float(solved['usd_per_hour']):,.2f}"
        plan = ", ".join(f"{line['nodes']} × {line['node']}" for line in solved["plan"])
        why = "; ".join(r["detail"] for r in point["reasons"][:1])
        is_same = bool(solved["plan"]) and not solved["measurable"] and answer["base"]["usd_per_hour"] is not None
        says = "the same" if is_same else escape(solved["says"])
        table.add_row(f"{point['value']:,.6g}{mark}", price, says, escape(plan or why))
    console.print(table)
    return ExitCode.ok


def pareto_command(arguments: argparse.Namespace, settings: Settings) -> int:
    body = {"against": arguments.against, **_whose(arguments), "points": arguments.point or None}
    answer = _ask(arguments, settings, "pareto", body)
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    _show_base(answer["base"], console)
    table = Table(answer["against"], "predicted", "USD/h", "", "plan")
    for point in answer["points"]:
        solved = point["solved"]
        predicted = "–" if point["predicted"] is None else readable(point["predicted"])
        plan = ", ".join(f"{line['nodes']} × {line['node']}" for line in solved["plan"])
        price = f"{float(solved['usd_per_hour']):,.2f}"
        table.add_row(f"{point['value']:,.6g}", predicted, price, escape(solved["says"]), escape(plan))
    console.print(table)
    if answer["none_below"] is not None:
        console.print(f"no plan below {readable(answer['none_below'])}")
    console.print(
        "nothing else belongs on the front" if answer["complete"] else "sampled: more plans may lie in between"
    )
    left_out = sum(one["offers"] for one in answer["left_out"])
    if left_out:
        what = "power" if answer["against"] == "power_kw" else "power or grid"
        console.print(f"left out: {left_out} offers whose {what} nobody publishes")
    for grid in answer["grids"]:
        console.print(
            f"{grid['provider']} {grid['region']}: {grid['grid'] or 'as stated'}, {grid['grid_kg_co2e_per_kwh']:g} kg CO2e"
            f" a kWh, {grid['power_usage_effectiveness']:g} kWh for each kWh of the nodes",
            soft_wrap=True,
        )
    return ExitCode.ok


def near_optimal_command(arguments: argparse.Namespace, settings: Settings) -> int:
    body = {"within_percent": arguments.within, "count": arguments.count}
    answer = _ask(arguments, settings, "near-optimal", body)
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    _show_base(answer["base"], console)
    for one in answer["plans"]:
        plan = ", ".join(f"{line['nodes']} × {line['node']}" for line in one["solved"]["plan"])
        without = f"without {', '.join(one['without'])}: " if one["without"] else ""
        console.print(f"{escape(without)}{escape(one['solved']['says'])} ({escape(plan)})", soft_wrap=True)
    for one in answer["without"]:
        if one["indispensable"]:
            console.print(f"no plan within {arguments.within:g} % does without {escape(one['name'])}", soft_wrap=True)
    return ExitCode.ok


def quote_command(arguments: argparse.Namespace, settings: Settings) -> int:
    client = Client(settings, arguments.url)
    with errors.status("solving at higher prices"):
        answer = client.get(f"/v1/recommendations/{arguments.recommendation}/quote", {})
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    console = standard_output()
    for line in answer["lines"]:
        head = f"{line['nodes']} × {line['instance']} of {line['provider']} in {line['region']}, {line['commitment'].replace('_', ' ')}"
        console.print(f"{escape(head)}: ${float(line['usd_per_hour']):,.2f} a node-hour", soft_wrap=True)
        for what in line["confirm"]:
            console.print(f"  confirm: {escape(what)}", soft_wrap=True)
        for quota in line["quotas"]:
            needs = "how much of it is not known" if quota["needs"] is None else f"{quota['needs']:g} {quota['unit']}"
            console.print(f"  quota: {escape(quota['name'])}, {escape(needs)}", soft_wrap=True)
        if line["may_rise_to_usd_per_hour"] is not None:
            beyond = "and further" if line["at_least"] else "beyond that another plan is cheaper"
            price = f"${float(line['may_rise_to_usd_per_hour']):,.2f}"
            console.print(
                f"  its price may rise to {price} ({line['may_rise_percent']:+.1f} %); {beyond}", soft_wrap=True
            )
    return ExitCode.ok


def diff_command(arguments: argparse.Namespace, settings: Settings) -> int:
    path = f"/v1/recommendations/{arguments.recommendation}/diff"
    answer = Client(settings, arguments.url).get(path, {"against": arguments.against})
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    for words in answer["words"]:
        standard_output().print(escape(words), soft_wrap=True)
    return ExitCode.ok


def _whose(arguments: argparse.Namespace) -> dict[str, str | None]:
    return {"workload": arguments.workload, "traffic_class": arguments.traffic_class}


def _ask(arguments: argparse.Namespace, settings: Settings, question: str, body: Mapping[str, Any]) -> dict[str, Any]:
    client = Client(settings, arguments.url)
    with errors.status("solving changed requests"):
        return client.post(f"/v1/recommendations/{arguments.recommendation}/{question}", body)


def _verdict(one: Mapping[str, Any]) -> str:
    if one["in_plan"]:
        return "it is in the plan"
    text = escape(one["forced_in"]["says"])
    only = one["only"]
    return text if only is None else f"{text}; on nothing else: {escape(only['says'])}"


def _show_base(base: Mapping[str, Any], console: Console) -> None:
    price = "no plan" if base["usd_per_hour"] is None else f"${float(base['usd_per_hour']):,.2f} an hour"
    console.print(f"compared with {base['recommendation']}: {price}")
    if base["changed"]:
        console.print(f"changed since it was stored: {escape(', '.join(base['changed']))}")
