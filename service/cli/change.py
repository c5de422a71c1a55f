"""Commands that put things of your own into the catalog: ``llms add``, ``offers add``, ``offers withdraw``."""

import argparse
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import standard_output
from service.clock import rfc3339, system_clock
from service.settings import Settings


def change_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """``what`` is the file that is added, or the offer that is withdrawn."""
    from service.cli.ask import read_request
    from service.cli.output import print_json

    noun, verb, what = arguments.command, arguments.id, arguments.what
    if what is None:
        needed = "OFFER" if verb == "withdraw" else "FILE"
        raise CommandError(f"which? clusterwright {noun} {verb} {needed}", ExitCode.bad_input)
    client = Client(settings, arguments.url)
    if verb == "withdraw":
        stored = client.post(f"/v1/offers/{quote(what)}/prices", withdrawal(system_clock()))
        said = f"{what} is withdrawn from {stored['valid_from']} on; its earlier prices stay stored"
    else:
        body = read_request(what)
        stored = client.post(f"/v1/{noun}", llm_body(body, what, arguments.name) if noun == "llms" else body)
        said = f"{noun.removesuffix('s')} {stored['id']} is in the catalog"
    if arguments.json:
        print_json(stored)
    else:
        standard_output().print(said, soft_wrap=True)
    return ExitCode.ok


def llm_body(document: Any, file: str, name: str | None) -> dict[str, Any]:
    """A model's id and ``config.json``: the file may be the config itself, or hold both.

    >>> llm_body({"model_type": "llama"}, "My Model/config.json", None)
    {'id': 'my-model', 'config': {'model_type': 'llama'}}
    """
    if isinstance(document, dict) and document.keys() == {"id", "config"}:
        return document if name is None else document | {"id": name}
    path = Path(file)
    stem = path.parent.name if path.stem == "config" and path.parent.name else path.stem
    return {"id": name or re.sub(r"[^a-z0-9.]+", "-", stem.lower()).strip("-"), "config": document}


def withdrawal(now: datetime) -> dict[str, Any]:
    """A price step without a price."""
    return {"usd_per_hour": None, "valid_from": rfc3339(now), "source": "withdrawn on the command line"}
