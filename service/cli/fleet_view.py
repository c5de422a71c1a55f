"""A fleet over time as a buyer reads it: what to commit to, what runs when, what it costs and saves, and the proof."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.cli.fleet_schedule import show_operation, show_schedule
from service.cli.plan_lines import steps_text

Answer = Mapping[str, Any]

MOST_REASONS = 6
PERCENT = 100.0
COST_KINDS = (
    ("purchase_usd", "bought"), ("reserved_usd", "reserved"), ("on_demand_part_usd", "on demand"), ("spot_usd", "spot"),
)  # fmt: skip


def show_fleet(answer: Answer, console: Console) -> None:
    """The whole answer, most important first."""
    console.print()
    _show_totals(answer, console)
    if answer["periods"]:
        show_schedule(answer, console)
    for one in answer["commitments"]:
        if one["lines"]:
            console.print(f"{escape(one['offer'])}: {_lines(one['lines'])}")
    if answer["periods"]:
        console.print(deployments_table(answer["deployments"]))
    show_operation(answer, console)
    _show_demand(answer["demand"], console)
    _show_proof(answer["solve"], console)
    _show_rest(answer, console)
    console.print(
        f"stored as [bold]{escape(answer['id'])}[/bold]; GET /v1/fleets/{escape(answer['id'])} has every hour"
    )


def _show_totals(answer: Answer, console: Console) -> None:
    totals, months = answer["totals"], answer["request"]["horizon"]["months"]
    if totals is None:
        console.print("[bold red]infeasible[/bold red]: no allowed fleet serves this demand within its limits")
        return
    console.print(
        f"[bold green]{answer['outcome']}[/bold green]: [bold]{_usd(totals['usd'])}[/bold] for {months} months, "
        f"{_usd(totals['usd_per_month'])} a month"
    )
    rate = (answer["discount"] or {}).get("percent_per_year", 0.0)
    if rate:
        console.print(
            f"in present value at {rate:g} % a year: {_usd(totals['present_usd'])}; that is what was minimised"
        )
    parts = [f"{what} {_usd(totals[name])}" for name, what in COST_KINDS if float(totals[name])]
    console.print(f"of that: {', '.join(parts) or 'nothing'}")
    if totals["saved_fraction"] is not None:
        console.print(
            f"on demand alone: {_usd(totals['on_demand_usd'])}; "
            f"[bold]saved: {_usd(totals['saved_usd'])}, {_percent(totals['saved_fraction'])}[/bold]"
        )
        if rate:
            console.print(
                f"in present value: on demand alone {_usd(totals['on_demand_present_usd'])}, saved "
                f"{_percent(totals['saved_present_fraction'])}"
            )
    if not answer["commitments"]:
        console.print("no commitment pays for itself within this horizon")


def _lines(lines: Mapping[str, str]) -> str:
    """What bought nodes cost, largest first; what they are sold for last."""
    ordered = sorted(lines.items(), key=lambda line: -float(line[1]))
    return ", ".join(f"{'sold for' if float(usd) < 0 else name} {_usd(abs(float(usd)))}" for name, usd in ordered)


def deployments_table(deployments: Iterable[Answer]) -> Table:
    table = Table(title="what runs on them")
    for heading in ("workload", "node", "layout", "weights / KV cache", "engine", "req/s each"):
        table.add_column(heading, overflow="fold")
    for one in deployments:
        layout, precision = one["layout"], one["precision"]
        cut = f"TP{layout['tensor_parallel']}"
        cut += f" PP{layout['pipeline_parallel']}" if layout["pipeline_parallel"] > 1 else ""
        table.add_row(
            escape(one["workload"]), escape(one["node"]), cut, f"{precision['weights']} / {precision['kv_cache']}",
            escape(f"{one['engine']}{steps_text(one['engine'], one.get('max_batched_tokens'))}"), f"{one['requests_per_s']:.3g}",
        )  # fmt: skip
    return table


def _show_demand(demand: Answer, console: Console) -> None:
    text = (
        f"demand: {demand['points']:,} values over {demand['hours']:,} hours, planned in {demand['periods']:,} periods"
    )
    if demand["overstated_fraction"]:
        text += f" that overstate it by {_percent(demand['overstated_fraction'])}"
    console.print(text)


def _show_proof(solve: Answer, console: Console) -> None:
    work = f"{solve['periods_solved']:,} period programmes, {solve['seconds']:.1f} s"
    if solve["bound_usd"] is None:
        console.print(f"{solve['status'].replace('_', ' ')} ({work})")
        return
    gap = solve["gap_fraction"] or 0.0
    proof = "[bold]proof[/bold]" if gap == 0.0 else f"[bold]gap[/bold]: may be {_percent(gap)} above the best"
    console.print(f"{proof}; no plan costs less than {_usd(solve['bound_usd'])} ({work})")


def _show_rest(answer: Answer, console: Console) -> None:
    for reason in answer["reasons"]:
        console.print(f"[red]why[/red]: {escape(reason)}")
    for other in answer["alternatives"]:
        extra = other["extra_usd"]
        console.print(
            f"{escape(other['why'])}: " + ("there is no plan" if extra is None else f"{_usd(extra)} more")
        )  # fmt: skip
    for one in answer["left_out"]:
        console.print(f"left out: {escape(one['commitment'])}, {escape(one['why'])}")
    if answer["totals"] is None:
        for rejected in answer["rejected"][:MOST_REASONS]:
            nearest = f", at best {rejected['nearest']}" if rejected["nearest"] else ""
            reason = rejected["reason"].replace("_", " ")
            console.print(f"  {escape(rejected['device'])}: {reason}{escape(nearest)}")


def _usd(amount: str | float) -> str:
    return f"${float(amount):,.0f}"


def _percent(fraction: float) -> str:
    """
    >>> _percent(0.0043), _percent(0.4567)
    ('0.43 %', '45.7 %')
    """
    value = PERCENT * fraction
    return f"{value:.2g} %" if value < 1.0 else f"{value:.1f} %"
