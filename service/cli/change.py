"""Commands that put things of your own into the catalog: ``llms add``, ``offers add``, ``offers withdraw``."""

import argparse
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from service.cli.ask import read_request
from service.cli.client import Client
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.output import print_json, standard_output
from service.clock import rfc3339, system_clock
from service.settings import Settings

USUAL_DEVICES = 8
BILLION = 1e9
OWN_REGION = "here"
MOST_NAMED = 12


def add_llm_command(arguments: argparse.Namespace, settings: Settings) -> int:
    body = llm_body(read_request(arguments.file), arguments.file, arguments.name)
    if arguments.checkpoint is not None:
        body["hugging_face_id"] = arguments.checkpoint
    stored = Client(settings, arguments.url).post("/v1/llms", body)
    size, context = stored["total_weights"] / BILLION, stored["max_context_tokens"]
    sentence = f"llm {stored['id']} is in the catalog: {size:.3g} B parameters, context of {context:,} tokens"
    return _said(arguments, stored, sentence)


def withdraw_offer_command(arguments: argparse.Namespace, settings: Settings) -> int:
    offer = arguments.offer
    stored = Client(settings, arguments.url).post(f"/v1/offers/{quote(offer)}/prices", withdrawal(system_clock()))
    return _said(
        arguments, stored, f"{offer} is withdrawn from {stored['valid_from']} on; its earlier prices stay stored"
    )


def add_offer_command(arguments: argparse.Namespace, settings: Settings) -> int:
    """An offer from a file or from options; a new price where the offer is known."""
    client = Client(settings, arguments.url)
    if arguments.file is not None:
        stored = client.post("/v1/offers", read_request(arguments.file))
        return _said(arguments, stored, f"offer {stored['id']} is in the catalog")
    missing = [
        option
        for option, value in (
            ("--provider", arguments.provider), ("--node or --device", arguments.node or arguments.device),
            ("--usd-per-hour", arguments.usd_per_hour),
        ) if value is None
    ]  # fmt: skip
    if arguments.usd_per_hour is not None and not _number(arguments.usd_per_hour) and arguments.max_nodes is None:
        missing.append("--max-nodes (how many of them there are)")
    if missing:
        raise CommandError(f"state {', '.join(missing)}, or a FILE with the offer's JSON", ExitCode.bad_input)
    price = {
        "usd_per_hour": arguments.usd_per_hour,
        "valid_from": arguments.valid_from or rfc3339(system_clock()),
        "source": arguments.source or "own figure, stated on the command line",
    }
    provider = arguments.provider.lower()
    sold = _offers_of(client, provider)
    region = region_of(arguments.region, provider, {one["region"] for one in sold})
    node = arguments.node or _machine(client, arguments, {one["node"] for one in sold})
    known = [one for one in sold if one["node"] == node]
    same = [one for one in known if (one["region"], one["commitment"]) == (region, arguments.commitment)]
    if same:
        offer, stocked = same[0]["id"], same[0]["max_nodes"]
        if arguments.max_nodes not in (None, stocked):
            raise CommandError(
                f"{offer} is stored with {'no bound on' if stocked is None else f'at most {stocked}'} machines, which a price does "
                "not change; leave --max-nodes out, or add it under another --region",
                ExitCode.bad_input,
            )
        stored = client.post(f"/v1/offers/{quote(offer)}/prices", price)
        before = (same[0]["price"] or {}).get("usd_per_hour")
        was = f" (it was ${float(before):,.2f})" if before is not None else ""
        return _said(arguments, stored, f"{offer} costs ${_number(arguments.usd_per_hour):,.2f} an hour{was}")
    stored = client.post(
        "/v1/offers",
        {
            "provider": provider, "instance": known[0]["instance"] if known else node, "region": region,
            "commitment": arguments.commitment, "node": node, "max_nodes": arguments.max_nodes, "price": price,
        },
    )  # fmt: skip
    terms = "" if arguments.commitment == "on_demand" else f" --commitment {arguments.commitment}"
    where = f" --region {region}" if known else ""
    alone = f"plan … --provider {provider}{where}{terms}"
    return _said(arguments, stored, f"offer {stored['id']} is in the catalog; plan with it: {alone}")


def _offers_of(client: Client, provider: str) -> list[dict[str, Any]]:
    """Of a provider; none of one that the catalog does not know, which is then the user's own."""
    try:
        return client.pages("/v1/offers", {"provider": provider})
    except CommandError as refused:
        if refused.code == ExitCode.bad_input:
            return []
        raise


def region_of(stated: str | None, provider: str, known: Collection[str]) -> str:
    """The region as the catalog spells it. Raises CommandError where a known provider's is not stated.

    >>> region_of(None, "ours", []), region_of("US-East-1", "aws", {"us-east-1"})
    ('here', 'us-east-1')
    """
    if stated is not None:
        return next((one for one in known if one.lower() == stated.lower()), stated)
    if len(known) <= 1:
        return next(iter(known), OWN_REGION)
    raise CommandError(f"state --region: {provider} is known in {_few(known)}", ExitCode.bad_input)


def _machine(client: Client, arguments: argparse.Namespace, sold: Collection[str]) -> str:
    """The machine with so many of the device: the provider's own, else one named after no seller, else the only one."""
    devices = arguments.devices or USUAL_DEVICES
    alike = client.pages("/v1/nodes", {"device": arguments.device})
    wanted: set[str] = {one["id"] for one in alike if one["devices"] == devices}
    sellers = tuple(f"{one['id']}-" for one in client.pages("/v1/providers", {}))
    plain = {node for node in wanted if not node.startswith(sellers)}
    chosen = sorted(wanted & set(sold) or plain or wanted)
    if len(chosen) == 1:
        return chosen[0]
    if not wanted:
        counts = _few({str(one["devices"]) for one in alike})
        raise CommandError(
            f"no machine with {devices} × {arguments.device} is known; --devices may be {counts}", ExitCode.bad_input
        )
    raise CommandError(f"which machine with {devices} × {arguments.device}? --node {_few(chosen)}", ExitCode.bad_input)


def _number(amount: str) -> float:
    try:
        return float(amount)
    except ValueError:
        raise CommandError(
            f"--usd-per-hour {amount!r}: a number of dollars, such as 18.50", ExitCode.bad_input
        ) from None


def _few(names: Collection[str]) -> str:
    """Some of the names in order, so that a sentence stays one."""
    shown = sorted(names)[:MOST_NAMED]
    return ", ".join(shown) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def _said(arguments: argparse.Namespace, stored: Mapping[str, Any], sentence: str) -> int:
    if arguments.json:
        print_json(stored)
    else:
        standard_output().print(sentence, soft_wrap=True)
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
