"""``clusterwright prices import``: send a price list to the service and show what it changed."""

import argparse
import csv
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

from service.cli.ask import errors
from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, standard_output
from service.settings import Settings

MOST_SHOWN = 20


def prices_command(arguments: argparse.Namespace, settings: Settings) -> int:
    if arguments.gpuhunt == (arguments.file is not None):
        raise CommandError("give either a FILE or --gpuhunt", ExitCode.bad_input)
    body = {
        "format": "gpuhunt" if arguments.gpuhunt else arguments.format,
        "payload": gpuhunt_list(_gpuhunt_items()) if arguments.gpuhunt else _text(arguments.file),
        "valid_from": arguments.valid_from,
        "source": arguments.source,
        "confidence": arguments.confidence,
        "correction": arguments.correction,
        "dry_run": arguments.dry_run,
        "replan": arguments.replan,
    } | ({"provider": arguments.provider} if arguments.provider else {})
    client = Client(settings, arguments.url)
    with errors.status("importing prices"):
        answer = client.post("/v1/offers/import", body)
    if arguments.json:
        print_json(answer)
    else:
        show_import(answer, standard_output())
    is_nothing = not (answer["changes"] or answer["appended"] or answer["unchanged"])
    if is_nothing:
        errors.print("no price was taken; one of your own: clusterwright offers add --help", soft_wrap=True)
    return ExitCode.infeasible if is_nothing else ExitCode.ok


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"cannot read {name}: {error}", ExitCode.bad_input) from None


class GpuhuntItem(Protocol):
    """What is read of an item of the package's catalog."""

    provider: str
    instance_name: str
    location: str
    price: float
    spot: bool


def _gpuhunt_items() -> Iterable[GpuhuntItem]:
    """The whole catalog; the package downloads it."""
    try:
        import gpuhunt
    except ImportError:
        detail = "the package gpuhunt is not installed: pip install gpuhunt, or give a catalog file of it"
        raise CommandError(detail, ExitCode.bad_input) from None
    items: Iterable[GpuhuntItem] = gpuhunt.query()
    return items


def gpuhunt_list(items: Iterable[GpuhuntItem]) -> str:
    """Items as a list with a provider column."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["provider", "instance_name", "location", "price", "spot"])
    for item in items:
        writer.writerow([item.provider, item.instance_name, item.location, item.price, item.spot])
    return text.getvalue()


def show_import(answer: dict[str, Any], console: Console) -> None:
    """Counts, the largest changes, what was left out, and the plans touched."""
    done = "would be appended (dry run)" if answer["dry_run"] else "appended"
    count = len(answer["changes"]) if answer["dry_run"] else answer["appended"]
    console.print(
        f"{answer['quotes']} prices read as {answer['format']}: {count} {done}, {answer['new_offers']} of them of new "
        f"offers; {answer['unchanged']} unchanged, {len(answer['conflicts'])} in conflict"
    )
    for skipped in answer["skipped"]:
        console.print(f"left out {skipped['count']}: {skipped['reason']}, such as {', '.join(skipped['examples'])}")
    if answer["changes"]:
        table = Table(title=f"Largest changes ({min(MOST_SHOWN, len(answer['changes']))} of {len(answer['changes'])})")
        for heading in ("offer", "before", "after", "change"):
            table.add_column(heading, justify="left" if heading == "offer" else "right")
        for change in answer["changes"][:MOST_SHOWN]:
            percent = change["change_percent"]
            table.add_row(
                change["offer"],
                change["usd_per_hour_before"] or "new",
                change["usd_per_hour_after"],
                "" if percent is None else f"{percent:+.1f} %",
            )
        console.print(table)
    for touched in answer["recommendations"]:
        different = {True: "answered differently now", False: "same answer", None: "may be answered differently"}
        price = touched["replanned_usd_per_hour"] or touched["plan_usd_per_hour_now"]
        console.print(
            f"{touched['recommendation']}: {different[touched['answered_differently']]} "
            f"({touched['effect']}; {touched['usd_per_hour_stored']} → {price or '?'} USD/h)"
        )
