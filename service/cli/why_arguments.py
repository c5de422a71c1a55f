"""Arguments of the commands that ask about a stored recommendation."""

import argparse

from service.cli.numbers import number


def add_why_not_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    for name, text in (
        ("device", "an accelerator"), ("offer", "an offer"), ("provider", "a provider"), ("weights", "a weight format"),
        ("partition", "a profile of split devices"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", action="append", default=[], help=f"{text}; may be repeated")
    parser.add_argument(
        "--tensor-parallel", action="append", default=[], type=int, help="replicas cut so many ways; may be repeated"
    )
    parser.add_argument("--workload", help="whose replicas are meant; without it anybody's")


def add_price_curve_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument(
        "of",
        metavar="OF",
        help="ttft, tpot or e2e (their p95; tpot.p99 for another), context, confidence, spares or rate",
    )
    parser.add_argument(
        "point", metavar="VALUE", nargs="*", type=number, help="without any, some around the stated one"
    )
    parser.add_argument("--workload", help="which one, where there are several")
    parser.add_argument("--traffic-class", help="whose target; without it the workload's own")


def add_pareto_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument(
        "against", metavar="AGAINST", help="ttft or tpot (their p95; tpot.p99 for another), power or carbon"
    )
    parser.add_argument(
        "point", metavar="LIMIT", nargs="*", type=number, help="without any, from the tightest to the cheapest"
    )
    parser.add_argument("--workload", help="whose target, where there are several")
    parser.add_argument("--traffic-class", help="whose target; without it the workload's own")


def add_near_optimal_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")
    parser.add_argument(
        "--within", type=number, default=5.0, metavar="PERCENT", help="how much dearer (default: %(default)s)"
    )
    parser.add_argument("--count", type=int, default=3, help="how many plans (default: %(default)s)")


def add_quote_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recommendation", metavar="RECOMMENDATION")


def add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("against", metavar="BEFORE")
    parser.add_argument("recommendation", metavar="AFTER")
