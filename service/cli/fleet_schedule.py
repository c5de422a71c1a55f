"""What to buy, what to reserve and what to switch on when, on one screen; and what the rules of operation cost."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Answer = Mapping[str, Any]
HOURS_PER_DAY = 24
WEEKDAY_HOURS, WEEK_HOURS = 120, 168
HOURS_A_COLUMN = 3
PERCENT = 100.0
BY_THE_HOUR = ("on_demand", "spot")
DO = {"purchase": "buy", "on_demand": "switch on", "spot": "switch on"}
RULES = {
    "max_configurations": "any number of configurations",
    "min_up_hours": "nodes that stay for any time",
    "max_change_percent_per_hour": "any change from hour to hour",
}


@dataclass(frozen=True, slots=True)
class Hourly:
    """Nodes of an offer by the hour. by_month: nodes in each hour of the calendar; without one, of each period."""

    offer: str
    commitment: str
    machine: str
    usd: float | None
    by_month: tuple[tuple[int, ...], ...]

    @property
    def most(self) -> int:
        return max(max(month) for month in self.by_month)

    @property
    def fewest(self) -> int:
        return min(min(month) for month in self.by_month)


def show_schedule(answer: Answer, console: Console) -> None:
    """One line for each thing to do, with its offer in full below, and the hours of the busiest month."""
    taken = hourly_nodes(answer)
    table = Table(title="what to buy, what to reserve, what to switch on")
    for heading in ("", "do", "nodes", "machine", "where", "when", "USD"):
        table.add_column(heading, justify="right" if heading in ("", "nodes", "USD") else "left", overflow="fold")
    offers = []
    for one in answer["commitments"]:
        offers.append(one["offer"])
        first, last = one["start_month"], one["start_month"] + one["term_months"] - 1
        table.add_row(
            str(len(offers)), DO.get(one["commitment"], "reserve"), str(one["nodes"]), escape(one["node"]),
            f"{escape(one['provider'])} {escape(one['region'])}", f"months {first}–{last}", f"{float(one['usd']):,.0f}",
        )  # fmt: skip
    where = {n["offer"]: f"{n['provider']} {n['region']}" for period in answer["periods"] for n in period["nodes"]}
    months = answer.get("calendar")
    for source in taken:
        offers.append(source.offer)
        busiest = source.by_month[busiest_month(taken)]
        when = switched_on(busiest) if months else "by the hour"
        table.add_row(
            str(len(offers)), DO[source.commitment], _range(source.fewest, source.most), escape(source.machine),
            escape(where[source.offer]), when, "" if source.usd is None else f"{source.usd:,.0f}",
        )  # fmt: skip
    console.print(table)
    for i, offer in enumerate(offers, start=1):
        console.print(f"{i}: {escape(offer)}", soft_wrap=True)
    if taken and months:
        console.print(hours_table(taken))
        most = [sum(max(source.by_month[m]) for source in taken) for m in range(len(months))]
        console.print(f"most by the hour in month 0, 1, …: {' '.join(str(n) for n in most)}")


def hourly_nodes(answer: Answer) -> list[Hourly]:
    """What is taken by the hour, the dearest over the horizon first."""
    periods = answer["periods"]
    of_month: dict[int, list[int]] = defaultdict(list)
    for t, period in enumerate(periods):
        of_month[period["month"]].append(t)
    order = answer.get("calendar") or [of_month[month] for month in sorted(of_month)]
    stock = {one["offer"]: one for one in (answer.get("operation") or {"stock": []})["stock"]}
    taken = [
        {(n["offer"], n["commitment"]): n["nodes"] for n in p["nodes"] if n["commitment"] in BY_THE_HOUR}
        for p in periods
    ]
    found = []
    for offer, commitment in sorted({name for one in taken for name in one}):
        count = [one.get((offer, commitment), 0) for one in taken]
        hours = sum(n * p["hours"] for n, p in zip(count, periods, strict=True))
        known = stock.get(offer)
        by_month = tuple(tuple(count[t] for t in month) for month in order)
        machine, usd = (known["node"], float(known["usd"])) if known else (offer, None)
        found.append((hours, Hourly(offer, commitment, machine, usd, by_month)))
    return [one for _, one in sorted(found, key=lambda pair: (-pair[0], pair[1].offer))]


def busiest_month(taken: Sequence[Hourly]) -> int:
    """The month with the most nodes by the hour at once."""
    months = range(len(taken[0].by_month))
    return max(months, key=lambda m: (sum(max(one.by_month[m]) for one in taken), m))


def switched_on(hours: Sequence[int]) -> str:
    """When any node is on.

    >>> switched_on([0] * 7 + [2] * 15 + [0] * 2)
    '07–22 h'
    >>> switched_on(([0] * 7 + [2] * 15 + [0] * 2) * 5 + [0] * 48)
    'weekday 07–22 h'
    """
    said = []
    for name, day in days(hours):
        on = [h for h in range(HOURS_PER_DAY) if day[h]]
        if len(on) == HOURS_PER_DAY:
            said.append(f"{name} all day".strip())
        elif on:
            first = next(h for h in on if not day[h - 1])
            length = sum(1 for _ in on)
            runs = sum(1 for h in on if not day[h - 1])
            text = (
                f"{first:02d}–{(first + length) % HOURS_PER_DAY or HOURS_PER_DAY:02d} h"
                if runs == 1
                else f"{length} hours"
            )
            said.append(f"{name} {text}".strip())
    return ", ".join(said) or "–"


def days(hours: Sequence[int]) -> Iterator[tuple[str, list[int]]]:
    """Most nodes by hour of day: of weekdays and weekend days where the hours are those of a week, else of all days."""
    parts = [("", hours)]
    if len(hours) == WEEK_HOURS:
        parts = [("weekday", hours[:WEEKDAY_HOURS]), ("weekend", hours[WEEKDAY_HOURS:])]
    for name, part in parts:
        yield name, [max(part[h::HOURS_PER_DAY], default=0) for h in range(HOURS_PER_DAY)]


def hours_table(taken: Sequence[Hourly]) -> Table:
    """Most nodes by the hour in every three hours of the day, in the busiest month."""
    month = busiest_month(taken)
    table = Table(title=f"nodes to have switched on, from hour to hour, in month {month}")
    table.add_column("machine", overflow="fold")
    table.add_column("day")
    for hour in range(0, HOURS_PER_DAY, HOURS_A_COLUMN):
        table.add_column(f"{hour:02d}", justify="right", no_wrap=True)
    for one in taken:
        for i, (name, day) in enumerate(days(one.by_month[month])):
            counts = [max(day[h : h + HOURS_A_COLUMN]) for h in range(0, HOURS_PER_DAY, HOURS_A_COLUMN)]
            table.add_row(escape(one.machine) if i == 0 else "", name or "all", *(str(n) for n in counts))
    return table


def show_operation(answer: Answer, console: Console) -> None:
    """Configurations, stock, and what each rule costs."""
    operation = answer.get("operation")
    if operation is None:
        return
    counts = ", ".join(f"{escape(name)} {n}" for name, n in operation["configurations_by_workload"].items())
    console.print(f"configurations: [bold]{operation['configurations']}[/bold] ({counts})")
    for one in operation["stock"]:
        console.print(
            f"counts on {one['most_nodes']} × {escape(one['offer'])} at once, {one['most_started']} more within an hour "
            f"({one['assumed_nodes']} assumed to be had, not confirmed by the provider)"
        )
    for one in operation["freedoms"]:
        what = "without rules of operation" if one["rule"] is None else f"with {RULES[one['rule']]}"
        most = "" if one["saves_at_most_usd"] is None else f", at most ${float(one['saves_at_most_usd']):,.0f}"
        if one["saves_usd"] is None:
            console.print(f"{what}: no plan confirmed in the time{most}")
        else:
            share = PERCENT * one["saves_fraction"] if one["saves_fraction"] else 0.0
            console.print(f"{what}: ${float(one['saves_usd']):,.0f} less found ({share:.2g} %){most}")


def _range(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest}–{most}"
