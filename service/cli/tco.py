"""The command tco: a stored plan rented, bought, committed to, or done without by calling an API."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, print_rows, standard_output
from service.settings import Settings

errors = Console(stderr=True, highlight=False)
URL = "/v1/tco/comparisons"
PERCENT = 100.0
TOKENS_PER_MILLION = 1e6
HEADINGS = (
    "alternative",
    "total",
    "present value",
    "per M tokens",
    "cheapest in",
    "pays back after",
    "half of the draws",
)
TRENDS = {"rent": "rents", "api": "prices of APIs", "hardware": "machines to buy"}
FORMATS = {".xlsx": "xlsx", ".csv": "csv"}


def tco_command(arguments: argparse.Namespace, settings: Settings) -> int:
    file_format = FORMATS.get(Path(arguments.out).suffix) if arguments.out else None
    if arguments.out and file_format is None:
        raise CommandError(f"{arguments.out}: ends in neither .xlsx nor .csv", ExitCode.bad_input)
    client = Client(settings, arguments.url)
    try:
        answer = client.post(URL, request_of(arguments))
    except CommandError as refused:
        if not (arguments.buy or arguments.lease) or "figure_missing" not in str(refused):
            raise
        hint = "  state it with --usd-per-node and --peak-kw, or leave --buy and --lease out"
        raise CommandError(f"{refused}\n{hint}", refused.code) from None
    if arguments.out:
        write_file(Path(arguments.out), client.file(answer["link"], {"format": file_format}))
    if arguments.json:
        print_json(answer)
    else:
        show_comparison(answer, standard_output())
    return ExitCode.ok


def write_file(path: Path, content: bytes) -> None:
    """Write it and say so where answers are not read from. Raises CommandError for what cannot be written."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}", ExitCode.bad_input) from None
    errors.print(f"wrote {path}", markup=False, soft_wrap=True)


def request_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The comparison that the flags ask for."""
    kind = "training_plan" if arguments.recommendation.startswith("train_") else "recommendation"
    plan = {kind: arguments.recommendation}
    alternatives: list[dict[str, Any]] = [{"name": "rent", **plan}]
    alternatives += [{"name": commitment, **plan, "acquisition": commitment} for commitment in arguments.commit]
    stated = {"usd_per_node": arguments.usd_per_node, "peak_kw_per_node": arguments.peak_kw}
    owned = {**plan, "purchase": {name: value for name, value in stated.items() if value is not None}}
    if arguments.buy:
        alternatives.append({"name": "buy", **owned, "acquisition": "purchase"})
    if arguments.lease is not None:
        lease = {"term_months": arguments.lease, "usd_per_node_month": arguments.usd_per_node_month}
        alternatives.append({"name": "lease", **owned, "acquisition": "lease", "lease": lease})
    alternatives += [{"name": f"API {model}"[:120], "api": {"model": model}} for model in arguments.api]
    return {
        "horizon_months": arguments.months,
        **(
            {"utilisation_fraction": arguments.busy / PERCENT}
            if arguments.runs_per_month is None
            else {"training_runs_per_month": arguments.runs_per_month}
        ),
        "growth_percent_per_month": arguments.growth,
        "market": {
            f"{option}_percent_per_year": getattr(arguments, f"{option}_change")
            for option in TRENDS
            if getattr(arguments, f"{option}_change") is not None
        },
        "alternatives": alternatives,
    }


def show_comparison(answer: Mapping[str, Any], console: Console) -> None:
    """The sentences, one line an alternative, and what is not the same or not known."""
    months = answer["request"]["horizon_months"]

    def say(text: str) -> None:  # a pipe gets whole lines, a terminal whole words
        console.print(text, soft_wrap=not console.is_terminal)

    for warning in answer["warnings"]:
        say(f"[bold]warning:[/bold] {escape(warning)}")
    say(escape(answer["summary"]))
    first = answer["alternatives"][0]["name"]
    rows = [_row(one, first) for one in answer["alternatives"]]
    busy = f"{answer['demand']['utilisation_fraction']:.0%}"
    trained = answer["demand"]["trained"]
    print_rows(
        f"USD over {months} months, busy {busy} of {'the peak' if trained is None else 'all hours'}",
        HEADINGS,
        rows,
        console,
    )
    say(
        f"pays back against {escape(first)}, discounted, machines counted at what they fetch; cheaper at once: there is nothing"
        " to pay back first"
    )
    taken = (
        f"mean demand is {busy} of the peak (--busy); rented and owned machines are there for the peak"
        if trained is None
        else escape(runs_in(trained))
    )
    say(f"taken: {taken}{trends(answer)}")
    for one in answer["alternatives"]:
        say(f"{escape(one['name'])}: {made_of(one)}")
    if answer["cheapest"]["why_not"] is not None:
        say(escape(answer["cheapest"]["why_not"]))
    for one in answer["alternatives"]:
        for note in one["notes"]:
            say(f"{escape(one['name'])}: {escape(note)}")
    for wanted in answer["wanted"]:
        where = "" if wanted["state"] is None else f" ({wanted['state']})"
        say(f"state {escape(wanted['input'] + where)}: worth up to {_usd(wanted['effect_usd'])} USD of the lead")
    say(f"{answer['link']}?format=xlsx is the workbook, ?format=csv every line by month")


def runs_in(trained: Mapping[str, Any]) -> str:
    """What training plans do over the horizon.

    >>> runs_in({"jobs": ["tune"], "runs": 36.0, "tokens_per_run": 5e7, "hours_per_run": 5.0})
    'tune done 36 times (--runs-per-month), 1,800 million tokens, 5 hours each time; by the hour machines are there only then'
    """
    tokens = trained["runs"] * trained["tokens_per_run"] / TOKENS_PER_MILLION
    return (
        f"{', '.join(trained['jobs'])} done {trained['runs']:,.6g} times (--runs-per-month), {tokens:,.0f} million tokens, "
        f"{trained['hours_per_run']:g} hours each time; by the hour machines are there only then"
    )


def trends(answer: Mapping[str, Any]) -> str:
    """What prices are taken to change by in a year, and how to state otherwise."""
    typical = {one["input"]: one["typical"] for one in answer["defaults"]}
    said = []
    for option, what in TRENDS.items():
        stated = answer["request"]["market"].get(f"{option}_percent_per_year")
        taken = typical.get(f"{option}_change_fraction_per_year")
        percent = stated if stated is not None else None if taken is None else PERCENT * taken
        if percent is not None:
            said.append(f"{what} {percent:+.3g} % a year (--{option}-change)")
    return "; " + ", ".join(said) if said else ""


def made_of(one: Mapping[str, Any]) -> str:
    """What an alternative's total is the sum of, and how its first month differs from its last.

    >>> rent = {"line": "rent", "total_usd": "2990.00", "usd_by_month": ["0.0", "1000.0", "995.0", "995.0"]}
    >>> made_of({"lines": [rent], "usd_by_month": rent["usd_by_month"]})
    'rent 2,990; 1,000 in month 1, 995 in month 3'
    """
    lines = [line for line in one["lines"] if float(line["total_usd"])]
    parts = ", ".join(f"{line['line'].replace('_', ' ')} {_usd(line['total_usd'])}" for line in lines)
    start, *months = (_usd(amount) for amount in one["usd_by_month"])
    if not months:
        return parts
    first = "" if start == "0" else f"{start} at the start, "
    last = f", {months[-1]} in month {len(months)}" if months[-1] != months[0] else ""
    return f"{parts}; {first}{months[0]} in month 1{last}"


def _row(one: Mapping[str, Any], first: str) -> list[str]:
    drawn, per_million = one["uncertainty"], one["usd_per_million_tokens"]
    return [
        one["name"],
        _usd(one["total_usd"]),
        _usd(one["npv_usd"]),
        "–" if per_million is None else f"{float(per_million):,.3f}",
        "–" if drawn is None else f"{drawn['cheapest_fraction']:.0%}",
        _payback(one, first),
        "–" if drawn is None else f"{_thousands(drawn['npv_usd']['p25'])}–{_thousands(drawn['npv_usd']['p75'])}",
    ]


def _payback(one: Mapping[str, Any], first: str) -> str:
    pair = next((pair for pair in one["break_even"] if pair["against"] == first), None)
    if pair is None:
        return ""
    crossing = pair["discounted"]
    if crossing["month"] is None:
        return "cheaper at once" if crossing["cheaper_at_start"] == one["name"] else "never"
    return (
        f"{crossing['month']:.1f} months" if crossing["cheaper_at_start"] == first else f"until {crossing['month']:.1f}"
    )


def _usd(amount: str) -> str:
    return f"{float(amount):,.0f}"


def _thousands(amount: str) -> str:
    return f"{float(amount) / 1000:,.0f}k"
