"""Arguments of the command tco."""

import argparse

from service.cli.numbers import number

BUSY_PERCENT = 60.0
MONTHS = 36


def add_tco_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recommendation",
        metavar="RECOMMENDATION",
        help="whose machines are rented, as it planned; of training: the plan's id",
    )
    parser.add_argument("--buy", action="store_true", help="beside it, the same machines bought")
    parser.add_argument(
        "--api", metavar="MODEL", action="append", default=[], help="beside it, a model's API by its list price"
    )
    parser.add_argument(
        "--commit",
        action="append",
        default=[],
        metavar="COMMITMENT",
        help="beside it, reserved_1y_no_upfront, reserved_3y, …",
    )
    parser.add_argument(
        "--lease", type=int, metavar="MONTHS",
        help="beside it, the same machines leased for so long and returned; --usd-per-node-month states the rate",
    )  # fmt: skip
    parser.add_argument(
        "--usd-per-node-month", metavar="USD", help="rate of the lease (default: a lessor's on the price)"
    )
    parser.add_argument("--months", type=int, default=MONTHS, help="horizon (default: %(default)s)")
    parser.add_argument(
        "--busy", type=number, default=BUSY_PERCENT, metavar="PERCENT",
        help="mean demand over that of the peak hour (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--runs-per-month", type=number, metavar="RUNS",
        help="of a training plan, in place of --busy: how often all of its jobs are done",
    )  # fmt: skip
    parser.add_argument(
        "--growth", type=number, default=0.0, metavar="PERCENT", help="of demand, a month (default: %(default)s)"
    )
    for option, what in (("rent", "rents by the hour"), ("api", "prices of tokens"), ("hardware", "machines to buy")):
        parser.add_argument(
            f"--{option}-change", type=number, metavar="PERCENT",
            help=f"what {what} change by in a year, such as -10; the catalog's measured trend unless stated",
        )  # fmt: skip
    parser.add_argument("--usd-per-node", metavar="USD", help="price of a machine that the catalog has none of")
    parser.add_argument(
        "--peak-kw", type=number, metavar="KW", help="peak draw of a machine that the catalog has none of"
    )
    parser.add_argument("--out", metavar="FILE", help="write the comparison there too: .xlsx or .csv")
