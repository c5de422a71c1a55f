"""Arguments of ``clusterwright trace``, and those by which a plan takes its traffic from one."""

import argparse

from service.cli.numbers import number


def add_trace_command(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    describing = actions.add_parser(
        "describe", help="what recorded requests say: arrivals, lengths, prefixes, traffic to plan"
    )
    describing.add_argument("file", metavar="FILE", help="JSONL or CSV of requests; - reads standard input")
    add_reading_options(describing)
    describing.add_argument(
        "--context-tokens", type=_positive, metavar="N", help="say which requests are longer than this context"
    )
    describing.add_argument("--llm", help="the model whose cache --cache-gib is of")
    return describing


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--block-tokens", type=_positive, metavar="N", help="tokens of a prompt that one of its hash_ids stands for"
    )
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--cache-tokens", type=_positive, metavar="N", help="tokens of context that the cache of prefixes holds"
    )
    sizes.add_argument(
        "--cache-gib", type=number, metavar="GIB", help="its memory instead, for the model's cache format"
    )
    parser.add_argument(
        "--cache-format", default="bf16", metavar="FORMAT", help="of --cache-gib: fp32, bf16, fp16, fp8 or int8 (default: %(default)s)"
    )  # fmt: skip


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
