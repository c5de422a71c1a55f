"""The page of figures: every bar, what it is here and now, and of each that is missed where the time goes. ``make bench``.

Some ten minutes on an idle machine. ``--markdown FILE`` puts the tables into a page, between the two lines that say so
(docs/performance.md); ``--only`` measures some rows. ``make test`` is not run: its row is what the last whole run recorded.
"""

import argparse
import datetime as dt
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from tests.bench import bars
from tests.bench.bars import ClassFleet, Row
from tests.bench.planner import measured_start, peak_mib, seeded_database
from tests.bench.profiles import profile, service
from tests.bench.server_process import ServerProcess

BEGIN, END = "<!-- figures: python -m tests.bench -->", "<!-- end of figures -->"
ROWS = ("one", "five", "rag", "why", "estimates", "light", "memory", "start", "classes", "simulation", "tests")
Lines = list[tuple[str, ...]]
errors = Console(stderr=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--requests", type=int, default=40, help="recommendations of one workload (default 40)")
    parser.add_argument("--shared", type=int, default=8, help="recommendations of five workloads (default 8)")
    parser.add_argument(
        "--class-seed", type=int, default=None, help="first seed of 5 × 10 classes; unless stated a fresh one"
    )
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="rows to measure")
    parser.add_argument("--markdown", type=Path, help="a page to put the tables into")
    options = parser.parse_args()
    if options.markdown is not None and not _is_marked(options.markdown):
        parser.error(f"{options.markdown} has no lines {BEGIN} and {END}")
    began = os.times().elapsed
    with tempfile.TemporaryDirectory() as folder:
        url = seeded_database(Path(folder) / "bench.sqlite")
        rows, slow = measured(url, Path(folder) / "log", options)
        profiles = profiled(url, rows, slow)
    machine = (
        f"{processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}, "
        f"{dt.date.today().isoformat()}, load average {os.getloadavg()[0]:.1f} at the end, {os.times().elapsed - began:.0f} s in all"
    )
    show(rows, profiles, machine)
    if options.markdown is not None:
        write(options.markdown, rows, profiles, machine)
    return 0


def measured(url: str, log: Path, options: argparse.Namespace) -> tuple[list[Row], list[ClassFleet]]:
    """Rows in the order of the page, and class fleets that were late."""
    found: dict[str, Row] = {}
    wanted = set(options.only)
    slow: list[ClassFleet] = []
    after: list[tuple[str, float]] = []
    server = ServerProcess(url, log)
    ready_s = measured_start(server)
    found["start"] = bars.start(ready_s)
    after.append(("when ready", peak_mib(server.pid) * bars.MIB_IN_MB))
    over_http: tuple[tuple[str, str, Callable[[], Row]], ...] = (
        ("one", "one workload", lambda: bars.one_workload(server, options.requests)),
        ("five", "five workloads", lambda: bars.five_workloads(server, options.shared)),
        ("rag", "traffic classes", lambda: bars.traffic_classes(server)),
        ("why", "why-answers", lambda: bars.why_answers(server)),
        ("estimates", "estimates", lambda: bars.estimates(server)),
        ("light", "light requests", lambda: bars.light_requests(server)),
    )
    try:
        for key, what, measure in over_http:
            if key in wanted:
                with errors.status(what):
                    found[key] = measured_or_refused(key, what, measure)
                after.append((f"after {what}", peak_mib(server.pid) * bars.MIB_IN_MB))
        found["memory"] = bars.memory(server, after)
    finally:
        server.stop()
    if "classes" in wanted:
        with errors.status("5 × 10 traffic classes"):
            first = bars.fresh_seed() if options.class_seed is None else options.class_seed
            found["classes"], slow = bars.class_fleets(url, first)
    if "simulation" in wanted:
        with errors.status("simulation"):
            found["simulation"] = bars.simulation()
    found["tests"] = bars.tests_took()
    order = ("one", "five", "rag", "why", "classes", "estimates", "simulation", "start", "memory", "light", "tests")
    return [found[key] for key in order if key in found and key in wanted], slow


def measured_or_refused(key: str, what: str, measure: Callable[[], Row]) -> Row:
    """The row; missed where the service refused what was asked, as it does when there was no plan in time."""
    try:
        return measure()
    except httpx.HTTPStatusError as error:
        error.response.read()
        return Row(what, "answered", f"{error.response.status_code}: {error.response.json().get('detail')}", False, key)


def profiled(url: str, rows: list[Row], slow: list[ClassFleet]) -> list[tuple[str, Lines]]:
    """Of every row that is missed: a title, and where its time goes."""
    missed = [row for row in rows if row.met is False]
    found: list[tuple[str, Lines]] = []
    with_stages = [row for row in missed if row.key]
    if with_stages:
        with errors.status("profiles of what is missed"), service(url) as client:
            for row in with_stages:
                title, stages = profile(client, row.key, slow)
                found.append((f"{row.what}: {title}, {stages.whole_s:.2f} processor s", list(stages.lines())))
    return found + [(row.what, [(row.note, "", "", "")]) for row in missed if row.note]


def verdict(row: Row) -> str:
    return "not measured" if row.met is None else "met" if row.met else "missed"


HEADINGS = ("what", "bar", "figure", "")
STAGE_HEADINGS = ("stage", "times", "processor s", "share")


def show(rows: list[Row], profiles: list[tuple[str, Lines]], machine: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160)
    table = Table(*HEADINGS, title="clusterwright, measured on this machine")
    for row in rows:
        table.add_row(row.what, row.bar, row.figure, verdict(row))
    console.print(table)
    for title, lines in profiles:
        if len(lines) == 1:
            console.print(f"{title}: {lines[0][0]}")
            continue
        shares = Table(*STAGE_HEADINGS, title=title)
        for line in lines:
            shares.add_row(*line)
        console.print(shares)
    console.print(machine)


def write(page: Path, rows: list[Row], profiles: list[tuple[str, Lines]], machine: str) -> None:
    """Put the tables between the page's two lines."""
    lines = [
        f"`python -m tests.bench`: {machine}.",
        "",
        *markdown_table(HEADINGS, [(r.what, r.bar, r.figure, verdict(r)) for r in rows]),
    ]
    for title, found in profiles:
        lines += ["", f"{title}: {found[0][0]}." if len(found) == 1 else f"{title}:"]
        lines += ["", *markdown_table(STAGE_HEADINGS, found)] if len(found) > 1 else []
    text = page.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    page.write_text("\n".join([before, "", *lines, "", after]), encoding="utf-8")


def markdown_table(headings: tuple[str, ...], rows: Lines) -> list[str]:
    """Lines of a table.

    >>> markdown_table(("a", "b"), [("1", "2 | 3")])
    ['| a | b |', '|---|---|', '| 1 | 2 \\\\| 3 |']
    """
    texts = [headings, *rows]
    made = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in texts]
    return [made[0], "|" + "---|" * len(headings), *made[1:]]


def processor() -> str:
    """The processor's name, where Linux states it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


def _is_marked(page: Path) -> bool:
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return BEGIN in text and END in text.partition(BEGIN)[2]


if __name__ == "__main__":
    raise SystemExit(main())
