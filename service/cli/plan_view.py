"""A recommendation as a buyer reads it: what to rent, what it costs, how fast it is, and why nothing cheaper works."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from service.cli.plan_lines import device_text, plan_table, rented
from service.cli.published_view import published_table
from service.deployments.targets import DEPLOYMENT_TARGETS, ENGINE_TARGETS, TARGET_OF_ENGINE
from service.figures import rounded_down
from service.recommendations.asked import asked_in_full

Answer = Mapping[str, Any]
FetchOffer = Callable[[str], Answer | None]
"""An offer by its id, with its price at the plan's instant; None where it cannot be read."""

MOST_REJECTIONS = 6
LATENCIES = {"ttft", "ttfat", "tpot", "e2e", "itl"}
SOLVERS = {"highs": " of HiGHS", "cbc": " of CBC"}
"""Where arithmetic alone proved the last round, none is named."""
BASIS = {
    "measured": "this configuration was measured",
    "corrected": "physics, corrected by measurements of this device and engine",
    "borrowed": "physics, corrected by measurements of a sibling",
    "analytical": "physics, nothing measured on this device",
}


def show_recommendation(answer: Answer, console: Console, fetch_offer: FetchOffer) -> None:
    """The whole answer, most important first."""
    console.print()
    for workload in answer["request"]["workloads"]:
        named = f"{workload['name']}: " if len(answer["request"]["workloads"]) > 1 else ""
        console.print(f"for {escape(named + asked_in_full(workload))}", soft_wrap=True)
    console.print(_headline(answer))
    if answer.get("published_lines"):
        console.print(published_table(answer["published_lines"]))
    if answer["plan"]:
        console.print(plan_table(answer["plan"], answer["request"]["workloads"]))
        _show_splits(answer, console)
        _show_basis(answer, console)
        _show_untargeted(answer, console)
        _show_prices(answer, console, fetch_offer)
        _show_served(answer, console)
        _show_losses(answer, console)
    _show_cautions(answer, console)
    _show_proof(answer, console)
    _show_ways_out(answer, console)
    _show_alternatives(answer, console)
    _show_choices(answer, console)
    _show_unsettled(answer, console)
    _show_rejected(answer, console)
    console.print(f"stored as [bold]{answer['id']}[/bold]; GET /v1/recommendations/{answer['id']} has it in full")
    if answer["plan"]:
        _show_start(answer, console)


def _show_start(answer: Answer, console: Console) -> None:
    """The command for the engine that was planned, and what else there is."""
    engine = TARGET_OF_ENGINE.get(answer["plan"][0]["engine"], answer["plan"][0]["engine"])
    if engine not in DEPLOYMENT_TARGETS:
        console.print(f"start it as {engine} is started: no files are written for that engine", soft_wrap=True)
        return
    others = [name for name in DEPLOYMENT_TARGETS if name not in ENGINE_TARGETS]
    console.print(f"start it: clusterwright deploy {answer['id']} --target {engine} --out servers", soft_wrap=True)
    console.print(f"other targets: {', '.join(others)}", soft_wrap=True)


def _headline(answer: Answer) -> str:
    totals = answer["totals"]
    if totals is None:
        return "[bold red]infeasible[/bold red]: no allowed cluster serves this within its limits"
    power = f", {totals['power_kw']:.1f} kW" if totals["power_kw"] is not None else ""
    return (
        f"[bold green]{answer['outcome']}[/bold green]: {_count(totals['nodes'], 'node')}, "
        f"{_count(totals['devices'], 'accelerator')} in all{power}\n"
        f"[bold]{_usd(totals['usd_per_hour'])} an hour[/bold], {_usd(totals['usd_per_month'], 0)} a month, "
        f"{_usd(totals['usd_per_million_output_tokens'], 3)} per million output tokens "
        f"({_usd(totals['usd_per_million_tokens'], 3)} counting prompts)"
    )


def _show_splits(answer: Answer, console: Console) -> None:
    """Which devices are split into instances, and with which commands."""
    for nodes in answer["fleet"]:
        for split in nodes.get("splits", ()):
            console.print(
                f"split {_count(split['devices'], 'device')} of each of {split['nodes']} × {escape(nodes['node'])} into "
                f"{split['instances_per_device']} × {escape(split['profile'])}"
            )
    launched = {
        line["partition"]["profile"]: line["partition"]["launch"] for line in answer["plan"] if line.get("partition")
    }
    for commands in launched.values():
        console.print(escape("; ".join(commands)), soft_wrap=True)


def _show_basis(answer: Answer, console: Console) -> None:
    known = sorted({line["basis"] for line in answer["plan"]}, key=list(BASIS).index)
    for basis in known:
        devices = sorted({line["device"] for line in answer["plan"] if line["basis"] == basis})
        console.print(f"prediction for {', '.join(devices)}: [bold]{basis}[/bold] ({BASIS[basis]})")


def _show_untargeted(answer: Answer, console: Console) -> None:
    """Who stated no target may not know that it makes the plan as slow as can be."""
    for workload in answer["request"]["workloads"]:
        stated = any(workload["targets"][name] for name in ("ttft_ms", "tpot_ms", "e2e_ms", "ttfat_ms"))
        if not stated and not workload["traffic_classes"]:
            console.print(f"no target was stated for {escape(workload['name'])}: any latency will do")


def _show_served(answer: Answer, console: Console) -> None:
    """Whose traffic was shed, most important workload first; nothing where everyone is served."""
    if all(one["served_fraction"] == 1.0 for one in answer["served"]):
        return
    for one in sorted(answer["served"], key=lambda one: -one["priority"]):
        console.print(
            f"{escape(one['workload'])} (priority {one['priority']}) is served "
            f"{100 * one['served_fraction']:.1f} % of its traffic"
        )


def _show_losses(answer: Answer, console: Console) -> None:
    """What the worst losses leave: the plan was made to outlive them."""
    for loss in answer["worst_losses"]:
        console.print(
            f"without the {escape(loss['kind'])} {escape(', '.join(loss['lost']))} the other replicas serve all of "
            f"{escape(loss['workload'])}, {100 * loss['utilisation_fraction']:.0f} % of their capacity used"
        )


def _show_prices(answer: Answer, console: Console, fetch_offer: FetchOffer) -> None:
    for offer_id in dict.fromkeys(line["offer"] for line in answer["plan"]):
        offer = fetch_offer(offer_id)
        price = offer and offer["price"]
        if offer is not None and offer["origin"] == "user" and offer["provider_class"] is None:
            continue
        if offer is None or not price:
            console.print(f"rented at {escape(offer_id)}", soft_wrap=True)
            continue
        age = "today" if price["age_days"] == 0 else f"{_count(price['age_days'], 'day')} old"
        console.print(
            f"price of {escape(offer_id)}: {_usd(price['usd_per_hour'])} a node-hour, stated "
            f"{price['valid_from'][:10]} ({age}), {price['confidence']} confidence; {escape(price['source'])}",
            soft_wrap=True,
        )


PROOF_OVER = {
    "each_class_alone": "whatever mixes replicas sustain, ",
    "simulated_mixes": "as far as mixes like those simulated go, ",
    "simulated_pools": "as far as pools like those simulated go, ",
}


def _show_proof(answer: Answer, console: Console) -> None:
    solve = answer["solve"]
    work = (
        f"{solve['candidates']:,} candidates, {_count(solve['simulations'], 'simulation')}, confirmed in "
        f"{_count(solve['confirmation_rounds'], 'round')}{SOLVERS.get(solve['solver'], '')}, {solve['seconds']:.2f} s"
    )
    if solve["bound_usd_per_hour"] is not None:
        gap = solve["gap_fraction"] or 0.0
        proof = "[bold]proof[/bold]" if gap == 0.0 else f"not proven: may be {100 * gap:.2g} % above the best"
        over = PROOF_OVER.get(solve["proof_over"], "")
        free = answer["request"]["limits"].get("sourcing", "any") == "any"
        within = "the limits" if free else "the limits and the buying policy"
        bound = _usd(solve["bound_usd_per_hour"])
        console.print(f"{proof}: {over}no plan within {within} costs less than {bound} an hour ({work})")
    else:
        console.print(f"{solve['status'].replace('_', ' ')} ({work})")


def _show_ways_out(answer: Answer, console: Console) -> None:
    for missing in answer.get("left_out", []):
        if missing["reason"] == "price_missing":
            console.print(
                f"no {missing['what']} price known for {_count(missing['count'], 'machine')}: the proof leaves them out"
            )
    for context in answer.get("contexts", []):
        if context["clipped_fraction"] > 0.0:
            share = f"{100 * context['clipped_fraction']:.2g} %"
            console.print(
                f"{escape(context['workload'])}: {share} of requests end at {context['context_tokens']:,} tokens"
            )
    for conflict in answer["conflicts"]:
        console.print(f"[red]in conflict[/red]: {escape(', '.join(conflict['limits']))}: {escape(conflict['detail'])}")
    share = answer["largest_servable_fraction"]
    if share is not None and share < 1.0:
        console.print(f"at most {rounded_down(100 * share)} % of the stated traffic can be served within the limits")
    lower = answer.get("lower_precision")
    if lower and lower["plan"] and not answer["plan"]:
        price = _usd(lower["usd_per_hour"])
        console.print(
            f"a plan exists with 8-bit weights and cache, for {price} an hour ({escape(rented(lower['plan']))})"
        )
    for relaxation in answer["relaxations"]:
        price = relaxation["usd_per_hour"]
        cost = f", then {_usd(price)} an hour" if price is not None else ""
        console.print(f"a plan exists with {_limit(relaxation)} at {_value(relaxation['relaxing_to'])}{cost}")
    for binding in answer["binding"]:
        console.print(f"[bold]what limits it[/bold]: {_limit(binding)}: {_gain(binding)}", soft_wrap=True)


def _show_alternatives(answer: Answer, console: Console) -> None:
    for other in answer["alternatives"]:
        if other["extra_usd_per_hour"] is None:
            console.print(f"{escape(other['why'])}: there is no plan")
            continue
        what = rented(other["plan"])
        console.print(f"{escape(other['why'])}: {_extra(other)} ({escape(what)})")


def _show_cautions(answer: Answer, console: Console) -> None:
    for caution in answer.get("cautions", []):
        of = f" of {caution['workload']}" if len({line["workload"] for line in answer["plan"]}) > 1 else ""
        said = f"[yellow]before you sign[/yellow]{escape(of)}: {escape(caution['detail'])}"
        console.print(said, soft_wrap=True)


def _show_choices(answer: Answer, console: Console) -> None:
    """What the buying policy and the checkpoint's own precision cost."""
    for change in answer.get("sourcing", []):
        if not change["plan"]:
            continue
        what = rented(change["plan"])
        rule = "without the buying policy" if change["rule"] is None else f"without {change['rule']}"
        if change["rule"] == "limits.commitments":
            rule = "with machines on demand too"
        console.print(f"{escape(rule)}: {_saved(change)} ({escape(what)})")
    lower = answer.get("lower_precision")
    if lower and lower["plan"] and answer["plan"]:
        what = rented(lower["plan"])
        console.print(f"with 8-bit weights and cache allowed: {_saved(lower)} ({escape(what)})")


UNSETTLED = {
    "predictions": "what some lines are predicted to do",
    "alternatives": "what doing without a device costs", "binding": "what each requirement costs",
    "sourcing": "what the buying policy costs", "lower_precision": "what 8-bit weights and cache would save",
    "confidence": "what the confidence asked for costs", "relaxations": "which change of the request would admit a plan",
}  # fmt: skip


def _show_unsettled(answer: Answer, console: Console) -> None:
    names = [UNSETTLED.get(name, name) for name in answer.get("unsettled", [])]
    if names:
        limit = f"{answer['request']['time_limit_s']:g} s"
        console.print(
            f"not all was settled within {limit}: {'; '.join(names)} (--time-limit gives it longer)", soft_wrap=True
        )


def _saved(change: Answer) -> str:
    if change.get("serves_more_requests_per_s") is not None:
        return f"{change['serves_more_requests_per_s']:.3g} requests a second more"
    if change.get("saves_power_kw") is not None:
        return f"{change['saves_power_kw']:.3g} kW less"
    return f"{_usd(change['saves_usd_per_hour'])} an hour less"


def _gain(binding: Answer) -> str:
    """What one step of a limit is worth, in the unit of the objective."""
    to = _value(binding["relaxing_to"])
    if binding.get("serves_more_requests_per_s") is not None:
        return f"{to} would serve {binding['serves_more_requests_per_s']:.3g} requests a second more"
    if binding.get("saves_power_kw") is not None:
        return f"{to} would save {binding['saves_power_kw']:.3g} kW"
    return f"{to} would save {_usd(binding['saves_usd_per_hour'])} an hour"


def _extra(other: Answer) -> str:
    if other.get("less_served_requests_per_s") is not None:
        return f"{other['less_served_requests_per_s']:.3g} requests a second less"
    if other.get("extra_power_kw") is not None:
        return f"{other['extra_power_kw']:.3g} kW more"
    return f"{_usd(other['extra_usd_per_hour'])} an hour more"


def _show_rejected(answer: Answer, console: Console) -> None:
    """What came nearest and still fails, in the service's order."""
    planned = {line["device"] for line in answer["plan"]}
    failed = [r for r in answer["rejected"] if r["device"] not in planned]
    if not failed:
        return
    console.print("what does not work, nearest first:")
    for rejected in failed[:MOST_REJECTIONS]:
        tried = _count(rejected["count"], "candidate")
        nearest = f", at best {rejected['nearest']}" if rejected["nearest"] else ""
        of = f" for {rejected['traffic_class']}" if rejected.get("traffic_class") else ""
        reason = f"{reason_words(rejected['reason'])}{of}"
        console.print(f"  {device_text(rejected)}: {escape(reason)} ({tried}{escape(nearest)})")
    if len(failed) > MOST_REJECTIONS:
        console.print(f"  and {len(failed) - MOST_REJECTIONS} more reasons; --json lists all")


def reason_words(reason: str) -> str:
    """
    >>> reason_words("ttft_above_target")
    'TTFT above target'
    """
    return " ".join(word.upper() if word in LATENCIES else word for word in reason.split("_"))


def _limit(change: Answer) -> str:
    of = f" of {change['workload']}" if change["workload"] else ""
    return escape(f"{change['limit']}{of}")


def _value(value: float | str | None) -> str:
    return f"{value:,.6g}" if isinstance(value, float | int) else str(value)


def _usd(amount: str | float, digits: int = 2) -> str:
    return f"${float(amount):,.{digits}f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
