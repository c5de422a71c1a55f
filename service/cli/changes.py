"""Commands of two words that change what the lists show, and their options."""

import argparse

CHANGES = ("llms add", "offers add", "offers withdraw")


def joined(given: list[str]) -> list[str]:
    """The words of a command, those of two in one.

    >>> joined(["offers", "add", "--region", "us"]), joined(["offers", "--region", "us"])
    (['offers add', '--region', 'us'], ['offers', '--region', 'us'])
    """
    both = " ".join(given[:2])
    return [both, *given[2:]] if both in CHANGES else given


def add_llm_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a model's config.json, or a JSON body with id and config")
    parser.add_argument(
        "--checkpoint", metavar="ORG/NAME", help="repository on Hugging Face that holds its weights, for deploy"
    )
    parser.add_argument("--as", dest="name", metavar="ID", help="id of the model; without it from the file's name")


def add_offer_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a JSON body instead of the options")
    parser.add_argument("--provider", help="whose it is: your own name, or that of a provider whose contract you have")
    parser.add_argument("--region", help="where the machine stands; needed with a provider the catalog knows")
    parser.add_argument("--node", metavar="NODE", help="the machine: one of the list `nodes`")
    parser.add_argument("--device", help="or its accelerator, with --devices")
    parser.add_argument("--devices", type=int, metavar="N", help="accelerators of one machine (8 unless stated)")
    parser.add_argument(
        "--usd-per-hour", metavar="USD", help="what an hour of one machine costs you; 0: it is paid for"
    )
    parser.add_argument("--commitment", default="on_demand", help="on_demand unless stated; spot, reserved_1y, …")
    parser.add_argument("--max-nodes", type=int, metavar="N", help="so many machines and no more")
    parser.add_argument("--source", help="where the price comes from, such as a contract's number")
    parser.add_argument("--valid-from", metavar="INSTANT", help="since when it holds; now unless stated")


def add_withdraw_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("offer", metavar="OFFER", help="id of the offer nobody sells any more")
