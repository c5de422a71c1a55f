"""The command ``clusterwright agent …``; on a GPU host also ``python -m service.agent …``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from service.agent import VERSION, commands
from service.agent.bench import NothingMeasuredError, parse_lengths
from service.agent.client import AccessRefusedError, RequestRefusedError, ServiceUnreachableError
from service.agent.deployment import add_deployment_options
from service.agent.launch import LaunchError
from service.agent.session_load import ROUTINGS
from service.agent.spool import default_folder

EXIT_CODES = """exit codes:
  0  done; everything measured is uploaded
  1  measured, but something failed, is quarantined, or was refused
  2  wrong arguments, or the engine cannot be started or measured
  3  the service is out of reach or refuses access; results wait in the spool
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        return int(getattr(commands, options.command)(options))
    except (NothingMeasuredError, LaunchError, ValueError) as error:
        sys.stderr.write(f"clusterwright agent: {error}\n")
        return 2
    except httpx.HTTPError as error:
        sys.stderr.write(f"clusterwright agent: the engine does not answer: {type(error).__name__}: {error}\n")
        return 2
    except RequestRefusedError as error:
        sys.stderr.write(f"clusterwright agent: {error}\n")
        return 2
    except (AccessRefusedError, ServiceUnreachableError) as error:
        sys.stderr.write(f"clusterwright agent: {error}\n")
        return 3
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clusterwright agent",
        description="Measure accelerators and serving engines where they run, and upload what was seen.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"clusterwright agent {VERSION}")
    actions = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _probe(_action(actions, "probe", "show the accelerators of this host"))
    _bench(_action(actions, "bench", "drive an OpenAI-compatible engine and measure it"))
    _upload(_action(actions, "upload", "send what waits in the spool"))
    _import(_action(actions, "import", "upload other benchmark tools' output files"))
    _work(_action(actions, "work", "take wanted measurements from the service, until stopped"))
    return parser


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    action: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=text, epilog=EXIT_CODES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action.set_defaults(command="import_files" if name == "import" else name)
    group = action.add_argument_group("service")
    group.add_argument("--url", default=os.environ.get("CLUSTERWRIGHT_URL") or "http://127.0.0.1:8000")
    group.add_argument("--token", default=os.environ.get("CLUSTERWRIGHT_TOKEN") or None, help="or $CLUSTERWRIGHT_TOKEN")
    group.add_argument("--spool", type=Path, default=default_folder(), help="folder results wait in (%(default)s)")
    group.add_argument("--agent-id", default=platform.node() or "agent", help="name of this agent (%(default)s)")
    group.add_argument(
        "--within-s", type=float, default=120.0, help="how long to try to reach the service (%(default)s s)"
    )
    return action


def _probe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the whole probe")
    parser.add_argument("--measure", action="store_true", help="with PyTorch: bandwidth, matrix rates, all-reduce")
    parser.add_argument("--upload", action="store_true", help="send the measurements to the service")
    parser.add_argument("--offline", action="store_true", help="do not ask the service for the catalog's names")


def _bench(parser: argparse.ArgumentParser) -> None:
    engine = parser.add_argument_group("engine")
    engine.add_argument("--endpoint", help="address of a running engine, such as http://127.0.0.1:8000")
    engine.add_argument("--model", help="name it serves, or what to serve with --launch; asked of it when left out")
    engine.add_argument("--api", choices=("completions", "chat"), default="completions")
    engine.add_argument("--api-key", default=os.environ.get("OPENAI_API_KEY"))
    engine.add_argument("--launch", action="store_true", help="start the engine, measure it, stop it")
    engine.add_argument("--launch-argument", action="append", default=[], metavar="ARGUMENT", help="passed on to it")
    engine.add_argument("--port", type=int, default=8300, help="port of the engine started (%(default)s)")
    engine.add_argument("--ready-within-s", type=float, default=1_800.0)
    engine.add_argument("--recommendation", metavar="REC_ID", help="measure one replica of this recommendation's plan")
    engine.add_argument("--workload", help="which workload of the recommendation")
    load = parser.add_argument_group("load")
    load.add_argument(
        "--prompt-tokens", type=parse_lengths, metavar="LENGTHS", help="1024, 819:1024, lognormal:1200:4000"
    )
    load.add_argument("--output-tokens", type=parse_lengths, metavar="LENGTHS", help="the same")
    load.add_argument(
        "--concurrency", type=_integers, default=[], metavar="N[,N…]", help="closed loop; several: a sweep"
    )
    load.add_argument(
        "--rate",
        type=_numbers,
        default=[],
        metavar="R[,R…]",
        help="open loop, requests per second; with --sessions, sessions begun per second",
    )
    load.add_argument(
        "--at-once",
        type=int,
        default=0,
        metavar="N",
        help="an open load begins with a burst of N of its requests or sessions (%(default)s)",
    )
    load.add_argument(
        "--sessions",
        type=int,
        metavar="N",
        help="a load of N sessions in all, --concurrency of them at once (all), or --rate of them begun per second",
    )
    load.add_argument(
        "--turns", type=parse_lengths, metavar="LENGTHS", help="turns of a session, each sends all of it so far"
    )
    load.add_argument("--user-tokens", type=parse_lengths, metavar="LENGTHS", help="what a user adds in a turn")
    load.add_argument(
        "--system-prompt-tokens", type=int, default=0, help="what every session begins with (%(default)s)"
    )
    load.add_argument(
        "--think-s", type=float, default=0.0, help="mean seconds between a reply and the next turn (%(default)s)"
    )
    load.add_argument(
        "--replica",
        action="append",
        default=[],
        metavar="URL",
        help="another engine of the same model, beside --endpoint",
    )
    load.add_argument(
        "--routing", choices=ROUTINGS, help="turns among replicas: a session stays (sticky), or each to any (random)"
    )
    load.add_argument("--sweep", action="store_true", help="concurrencies 1, 4, 16, 64, 256")
    load.add_argument("--requests", type=int, help="requests a point (3 a client; 200 in open loop)")
    load.add_argument("--warm-up", type=int, default=24, help="requests before the clock starts (%(default)s)")
    load.add_argument("--seed", type=int, default=1)
    load.add_argument("--timeout-s", type=float, default=600.0, help="for one request")
    load.add_argument("--vocabulary-tokens", type=int, help="token ids are drawn below; asked of the service by --llm")
    load.add_argument("--prompts", type=Path, help="file of text prompts, one a line, instead of token ids")
    load.add_argument(
        "--gpu", type=_integers, metavar="I[,I…]", help="boards whose power is sampled; all when left out"
    )
    add_deployment_options(parser, needed=False)
    result = parser.add_argument_group("result")
    result.add_argument("--records", type=Path, help="keep every request in this gzip file of JSON lines")
    result.add_argument("--no-upload", action="store_true", help="print the results instead of uploading them")


def _upload(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--most", type=int, help="send at most this many")


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--tool", default="auto", help="which tool wrote the files; found out when left out")
    parser.add_argument("--context", type=Path, help="JSON file with the context of an upload; options override it")
    add_deployment_options(parser, needed=False)


def _work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help="catalog id; probed when left out")
    parser.add_argument("--devices", type=int, help="how many; probed when left out")
    parser.add_argument("--endpoint", help="measure this running engine instead of starting engines")
    parser.add_argument("--model", help="path or id to serve instead of the catalog's")
    parser.add_argument("--launch-argument", action="append", default=[], metavar="ARGUMENT")
    parser.add_argument(
        "--allow-argument", action="append", default=[], metavar="OPTION",
        help="engine option the service may set to any value, besides those that only change speed",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=8300)
    parser.add_argument("--lease-s", type=float, default=600.0)
    parser.add_argument("--poll-s", type=float, default=15.0, help="pause when there is nothing to do (%(default)s s)")
    parser.add_argument("--once", action="store_true", help="stop when the queue has nothing for this host")


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]
