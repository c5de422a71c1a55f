"""Commands that ask about a stored recommendation: why-not, price-curve, pareto, near-optimal, quote, diff."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, standard_output
from service.cli.plan_lines import steps_text
from service.cli.tables import layout_text
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
    base = Client(settings, arguments.url).get(f"/v1/recommendations/{arguments.recommendation}", {})["plan"]
    for one in answer["answers"]:
        console.print(f"[bold]{escape(one['name'])}[/bold]: {_verdict(one)}")
        forced = (one["forced_in"] or {}).get("plan") or ()
        if not one["in_plan"] and forced and base:
            console.print(f"  for each request a second they can carry: {_each(forced)}; the plan: {_each(base)}")
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
        plan = _machines(solved["plan"])
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
        plan = _machines(solved["plan"])
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
        plan = _machines(one["solved"]["plan"])
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
            then = f": {_bought(line['then'])}" if line["then"] else ""
            beyond = "and further" if line["at_least"] else f"beyond that another plan is cheaper{escape(then)}"
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
    forced, only = one["forced_in"], one["only"]
    if only is None:
        return _with_plan(forced)
    if (forced["says"], forced["plan"]) == (only["says"], only["plan"]):
        return f"{_with_plan(forced)}; with nothing else the same plan"
    return f"{_with_plan(forced)}; on nothing else: {_with_plan(only)}"


def _with_plan(solved: Mapping[str, Any]) -> str:
    """What a plan costs, and which it is."""
    plan = _machines(solved["plan"])
    return escape(f"{solved['says']} ({plan})" if plan else solved["says"])


def _bought(lines: Sequence[Mapping[str, Any]]) -> str:
    """Machines with where they stand, and what all of them cost.

    >>> _bought([{"nodes": 1, "node": "aws-p5.48xlarge", "region": "us-east-1", "usd_per_hour": "55.040000"}])
    '1 × aws-p5.48xlarge in us-east-1, $55.04 an hour in all'
    """
    usd = sum(float(line["usd_per_hour"]) for line in lines)
    return (
        ", ".join(f"{line['nodes']} × {line['node']} in {line['region']}" for line in lines)
        + f", ${usd:,.2f} an hour in all"
    )


def _each(lines: Sequence[Mapping[str, Any]]) -> str:
    """What a plan's machines cost by what they can carry, with how each replica is cut: where the difference comes from.

    >>> line = {"usd_per_hour": "8.00", "serves_requests_per_s": 1.0, "utilisation_fraction": 0.5, "replicas": 2,
    ...         "precision": {"weights": "bf16"}, "device": "h200-sxm",
    ...         "engine": "vllm", "engine_settings": {"max_batched_tokens": 2048},
    ...         "layout": {"tensor_parallel": 2, "pipeline_parallel": 1, "data_parallel": 1, "expert_parallel": 1}}
    >>> _each([line])
    '$4.00 an hour (h200-sxm TP2 bf16, steps ≤ 2,048 carries 1 req/s)'
    """
    carried = [
        line["serves_requests_per_s"] / line["utilisation_fraction"] if line["utilisation_fraction"] else 0.0
        for line in lines
    ]
    usd = sum(float(line["usd_per_hour"]) for line in lines)
    each = ", ".join(
        f"{line['device']} {layout_text(line['layout'])} {line['precision']['weights']}{_steps(line)} carries "
        f"{readable(rate / max(1, line['replicas']))} req/s"
        for line, rate in zip(lines, carried, strict=True)
    )
    return f"${usd / max(sum(carried), 1e-9):,.2f} an hour ({each})"


def _steps(line: Mapping[str, Any]) -> str:
    return steps_text(line["engine"], (line.get("engine_settings") or {}).get("max_batched_tokens"))


def _machines(lines: Sequence[Mapping[str, Any]]) -> str:
    """
    >>> _machines([{"nodes": 2, "node": "aws-p5.48xlarge"}, {"nodes": 1, "node": "l4x1"}])
    '2 × aws-p5.48xlarge, 1 × l4x1'
    """
    return ", ".join(f"{line['nodes']} × {line['node']}" for line in lines)


def _show_base(base: Mapping[str, Any], console: Console) -> None:
    price = "no plan" if base["usd_per_hour"] is None else f"${float(base['usd_per_hour']):,.2f} an hour"
    console.print(f"compared with {base['recommendation']}: {price}")
    if base["changed"]:
        console.print(f"changed since it was stored: {escape(', '.join(base['changed']))}")
