"""Arguments of the command ``tco``."""

import argparse


def add_tco_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument("--months", type=int, default=36, help="horizon (default: %(default)s)")
    parser.add_argument(
        "--demand", type=float, default=60.0, metavar="PERCENT",
        help="average demand in per cent of the peak that the plan is made for (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--commit",
        action="append",
        default=[],
        metavar="COMMITMENT",
        help="also reserved_1y, reserved_3y, …; may be repeated",
    )
    parser.add_argument("--buy", action="store_true", help="also buying the same machines")
    parser.add_argument(
        "--usd-per-node", metavar="USD", help="what a bought node costs; without it the catalog's price"
    )
    parser.add_argument(
        "--api", metavar="IN:OUT", help="also an API at so many USD per million input and output tokens"
    )
