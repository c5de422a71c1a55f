"""``make up``: from an empty folder to a served API and one real plan."""

import argparse
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from service.cli.client import DEFAULT_URL
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.local import migrate_command, seed_command, serve_command
from service.cli.output import standard_output
from service.cli.plan_view import show_recommendation
from service.settings import Settings

errors = Console(stderr=True)
READY_WITHIN_S = 30.0
ANSWER_WITHIN_S = 60.0


def up_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """Migrate, seed, serve, post the example, print its plan, keep serving until Ctrl-C."""
    example = Path(arguments.example)
    if not example.is_file():
        raise CommandError(f"no example at {example}", ExitCode.bad_input)
    migrate_command(arguments, settings)
    seed_command(arguments, settings)
    from solver.engine.compile import compile_simulation

    with errors.status("compiling the simulation (once, some ten seconds)"):
        compile_simulation()
    url = f"http://{arguments.host}:{arguments.port}"
    if "log_level" not in settings.model_fields_set:  # a line for every request would stand between those of the plan
        settings = settings.model_copy(update={"log_level": "warning"})
    visitor = threading.Thread(target=_visit, args=(url, example, settings), daemon=True)
    visitor.start()
    return serve_command(arguments, settings)


def _visit(url: str, example: Path, settings: Settings) -> None:
    """Waits until the service is ready, then asks it as any client would."""
    token = settings.token.get_secret_value() if settings.token else None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(base_url=url, timeout=ANSWER_WITHIN_S, headers=headers) as client:
        if (missing := _what_is_missing(client)) is not None:
            errors.print(f"the service was not ready within {READY_WITHIN_S:.0f} s: {missing}")
            return
        try:
            with errors.status(f"posting {example} to /v1/recommendations"):
                response = client.post("/v1/recommendations", json=json.loads(example.read_text(encoding="utf-8")))
        except httpx.HTTPError as error:
            errors.print(f"no answer: {error}")
            return
        answer = response.json()
        if response.is_success:
            show_recommendation(answer, standard_output(), lambda offer_id: _offer(client, answer, offer_id))
        else:
            errors.print(f"{answer.get('title')}: {answer.get('detail')}")
    errors.print(f"\nthe page: [bold]{url}/[/bold]   the API: {url}/docs", highlight=False)
    if url != DEFAULT_URL:
        errors.print(f"for commands in other terminals: export CLUSTERWRIGHT_URL={url}", highlight=False)
    errors.print("serving until Ctrl-C")


def _offer(client: httpx.Client, answer: dict[str, Any], offer_id: str) -> dict[str, Any] | None:
    response = client.get(f"/v1/offers/{offer_id}", params={"price_as_of": answer["inputs"]["price_as_of"]})
    offer: dict[str, Any] | None = response.json() if response.is_success else None
    return offer


def _what_is_missing(client: httpx.Client) -> str | None:
    """None as soon as the service is ready; at last, what it says it lacks."""
    deadline, missing = time.monotonic() + READY_WITHIN_S, "no answer"
    while time.monotonic() < deadline:
        try:
            answer = client.get("/readyz")
            if answer.is_success:
                return None
            missing = str(answer.json().get("detail"))
        except (httpx.HTTPError, ValueError):
            pass
        time.sleep(0.1)
    return missing
