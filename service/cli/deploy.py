"""The command deploy: files that start the servers of a stored plan."""

import argparse
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console
from rich.markup import escape

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json
from service.settings import Settings


def deploy_command(arguments: argparse.Namespace, settings: Settings) -> int:
    path = f"/v1/recommendations/{arguments.recommendation}/deployments"
    parameters = {"target": arguments.target, "engine_version": arguments.engine_version, "ramp": arguments.ramp}
    answer = Client(settings, arguments.url).get(path, parameters)
    if arguments.json:
        print_json(answer)
        return ExitCode.ok
    written = write_files(answer["files"], Path(arguments.out))
    console = Console(soft_wrap=True)
    for file in written:
        sys.stdout.write(f"{file}\n")
    for note in answer["notes"]:
        console.print(f"[bold]{escape(note['about'])}[/bold]: {escape(note['text'])}")
    for one in answer["readiness"]:
        console.print(readiness_line(one))
    console.print(f"does it run as planned? {escape(answer['check'])}")
    return ExitCode.ok


def readiness_line(one: dict[str, Any]) -> str:
    """How long a further replica takes, in words."""
    parts = ", ".join(f"{part['part']} {part['fast_s']:.0f}–{part['slow_s']:.0f}" for part in one["parts"])
    whole = f"{one['fast_s']:.0f} s and more" if one["slow_s"] is None else f"{one['fast_s']:.0f}–{one['slow_s']:.0f} s"
    unknown = f"; not known: {', '.join(one['unknown'])}" if one["unknown"] else ""
    zero = "; may be scaled to zero" if one["scale_to_zero"] else ""
    spares = one["spares"]
    standing_by = (
        "" if spares is None else f"; {spares['replicas']} stand by for ${float(spares['usd_per_hour']):,.2f}/h"
    )
    return f"[bold]{escape(one['replicas'])}[/bold]: a further replica answers after {whole} ({parts}){unknown}{zero}{standing_by}"


def write_files(files: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Write them below the folder, which is made; scripts can be run. Raises CommandError for what cannot be written."""
    written = []
    for file in files:
        name = PurePosixPath(file["path"])
        if name.is_absolute() or ".." in name.parts:
            raise CommandError(f"the service answered a file outside of the folder: {name}")
        path = folder.joinpath(*name.parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file["content"], encoding="utf-8", newline="\n")
            if path.suffix == ".sh":
                path.chmod(path.stat().st_mode | 0o111)
        except OSError as error:
            raise CommandError(f"cannot write {path}: {error.strerror}", ExitCode.bad_input) from None
        written.append(path)
    return written
