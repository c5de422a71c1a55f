"""Arguments of ``clusterwright prices``, apart from the command so that every other one starts quickly."""

import argparse


def add_prices_command(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    importing = actions.add_parser("import", help="import a price list and report what changed")
    importing.add_argument("file", nargs="?", help="the list; - reads standard input; left out with --gpuhunt")
    importing.add_argument("--gpuhunt", action="store_true", help="ask the gpuhunt package, where it is installed")
    importing.add_argument(
        "--format", default="auto", choices=("auto", "own", "skypilot", "gpuhunt", "karpenter", "vantage")
    )
    importing.add_argument("--provider", help="whose prices they are, where the list does not say")
    importing.add_argument("--valid-from", required=True, help="the instant the prices hold from: 2026-11-01T00:00:00Z")
    importing.add_argument("--source", required=True, help="where the list comes from")
    importing.add_argument("--confidence", default="medium", choices=("high", "medium", "low"))
    importing.add_argument("--correction", action="store_true", help="correct prices stored for the same instant")
    importing.add_argument("--dry-run", action="store_true", help="report only")
    importing.add_argument("--replan", action="store_true", help="plan the recommendations touched again")
    importing.add_argument("--json", action="store_true", help="print the answer's JSON")
    importing.add_argument("--url", help="the service's address")
