"""The commands ``training``: what they take."""

import argparse

from service.cli.numbers import number

TARGETS = ("torchrun", "torchtitan", "megatron", "slurm", "skypilot")
METHODS = ("pretrain", "full", "lora", "qlora", "dpo")


def add_training_command(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    asking = actions.add_parser("estimate", help="how fast a run trains and what memory it needs")
    asking.add_argument("llm", metavar="LLM", help="language model, such as llama-3.1-8b")
    asking.add_argument("--device", required=True, help="accelerator, such as h100-sxm")
    asking.add_argument("--devices", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    add_run_arguments(asking)
    _add_layout_arguments(asking)
    asking.add_argument("--json", action="store_true", help="print the answer's JSON")
    asking.add_argument("--url", help="the service's address; without it, one on port 8000 or this machine's database")
    listing = actions.add_parser("why-not", help="what a stored training plan would cost on a device it leaves out")
    listing.add_argument("id", metavar="ID", help="of the plan, as train prints it")
    listing.add_argument("--device", required=True, help="accelerator, such as a100-sxm-80")
    starting = actions.add_parser("deploy", help="files that start a stored training plan's jobs")
    starting.add_argument("id", metavar="ID", help="of the plan, as train prints it")
    starting.add_argument("--target", choices=TARGETS, default="torchrun", help="default: %(default)s")
    measuring = actions.add_parser("upload", help="a training programme's log: later estimates are corrected by it")
    measuring.add_argument("log", metavar="FILE", help="what it wrote")
    measuring.add_argument("--tool", choices=("torchtitan", "megatron", "hf_trainer"), required=True)
    measuring.add_argument("--llm", required=True, help="language model, such as llama-3.1-8b")
    measuring.add_argument("--device", required=True, help="accelerator, such as h100-sxm")
    measuring.add_argument("--devices", type=int, default=1, metavar="N", help="how many (default: %(default)s)")
    add_run_arguments(measuring)
    _add_layout_arguments(measuring)
    for one in (listing, starting, measuring):
        one.add_argument("--json", action="store_true", help="print the answer's JSON")
        one.add_argument("--url", help="the service's address; without it, one on port 8000 or this machine's database")
    fitting = actions.add_parser(
        "fit", help="fit the model to the published runs in the catalog, print how accurate it is"
    )
    fitting.add_argument("--write", action="store_true", help="keep the constants in catalog/training")


DEGREES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")


def _add_layout_arguments(parser: argparse.ArgumentParser) -> None:
    """How the devices share the work, of estimates and of measured runs."""
    for name, text in (("tensor", "layers"), ("pipeline", "stages"), ("context", "sequences"), ("expert", "experts")):
        parser.add_argument(
            f"--{name}-parallel", type=int, metavar="N", help=f"{text} over N devices; searched if not stated"
        )
    parser.add_argument(
        "--micro-batch", dest="micro_batch_sequences", type=int, metavar="N", help="sequences at a time"
    )
    parser.add_argument("--recompute", choices=("none", "selective", "full"), help="searched if not stated")


def layout_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Micro-batch, recomputation and degrees that were stated."""
    stated: dict[str, object] = {}
    for name in ("micro_batch_sequences", "recompute"):
        if getattr(arguments, name) is not None:
            stated[name] = getattr(arguments, name)
    degrees = {name: getattr(arguments, name) for name in DEGREES if getattr(arguments, name) is not None}
    return stated | ({"layout": degrees} if degrees else {})


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """What is trained and how, of estimates and of jobs."""
    parser.add_argument("--method", choices=METHODS, default="lora", help="default: %(default)s")
    parser.add_argument("--adapters", choices=("lora", "qlora"), help="what dpo trains; every weight if not stated")
    parser.add_argument(
        "--reference", choices=("computed", "precomputed"), help="dpo's log-probabilities, with each step or before"
    )
    parser.add_argument(
        "--precision", default="bf16", help="bf16, fp16, fp8, mxfp8, nvfp4, int8 (default: %(default)s)"
    )
    parser.add_argument("--sequence", dest="sequence_tokens", type=int, metavar="TOKENS", help="tokens of a sequence")
    parser.add_argument("--batch", dest="global_batch_sequences", type=int, metavar="N", help="sequences of one step")
    parser.add_argument("--stack", help="software, such as megatron-bridge, torchtitan or hf-trl")


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("llm", metavar="LLM", help="language model, such as llama-3.1-8b")
    parser.add_argument(
        "--tokens", required=True, type=_count, metavar="N", help="tokens to train on, such as 50M or 2T"
    )
    parser.add_argument("--days", type=number, metavar="N", help="it must be done in so many days")
    parser.add_argument("--by", metavar="INSTANT", help="or by an instant, such as 2026-11-27T18:00:00Z")
    parser.add_argument("--max-usd", metavar="USD", help="it may cost at most so much")
    parser.add_argument("--max-devices", type=int, metavar="N", help="on at most so many accelerators")
    parser.add_argument(
        "--beside-fleet", metavar="ID", help="use what this stored fleet leaves idle, and what its quotas leave over"
    )
    parser.add_argument(
        "--serving",
        metavar="ID",
        help="plan it together with what this stored recommendation serves; needs --days or --by",
    )
    parser.add_argument(
        "--serving-hourly-profile", type=_shares, metavar="SHARE,…",
        help="of its rate served in each of 24 hours of the day (UTC): jobs may use kept nodes that stand idle then",
    )  # fmt: skip
    parser.add_argument("--device", action="append", default=[], help="only an accelerator named so; may be repeated")
    parser.add_argument("--provider", action="append", default=[], help="only a provider named so; may be repeated")
    parser.add_argument(
        "--commitment", action="append", default=[],
        help="on_demand unless stated; reserved_1y, …: paid for the whole term; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--buy", action="append", default=[], metavar="MACHINE[=USD]",
        help="a machine of the catalog that may be bought, at its price there or at yours; all: any; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--keep-months", dest="own_months", type=int, metavar="N",
        help="bought machines are sold after so many months (default: the last deadline's, 12 without one)",
    )  # fmt: skip
    add_run_arguments(parser)


MULTIPLES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}


def _count(text: str) -> float:
    """
    >>> _count("50M"), _count("2t"), _count("1000")
    (50000000.0, 2000000000000.0, 1000.0)
    """
    return number(text[:-1]) * MULTIPLES[text[-1].lower()] if text[-1:].lower() in MULTIPLES else number(text)


def _shares(text: str) -> list[float]:
    """
    >>> _shares("0.5,1")
    [0.5, 1.0]
    """
    return [number(share) for share in text.split(",")]


def site_of(machines: list[str]) -> dict[str, object]:
    """One's own site, with the machines that may be bought for it.

    >>> site_of(["hgx-h100-8=200000"])
    {'region': 'own', 'machines': [{'node': 'hgx-h100-8', 'purchase': {'usd_per_node': '200000'}}]}
    >>> site_of(["all"])
    {'region': 'own'}
    """
    if "all" in machines:
        return {"region": "own"}
    named = []
    for node, _, price in (one.partition("=") for one in machines):
        named.append({"node": node, "purchase": {"usd_per_node": price}} if price else {"node": node})
    return {"region": "own", "machines": named}


RUN_FIELDS = (
    "method", "adapters", "reference", "precision", "sequence_tokens", "global_batch_sequences", "stack",
)  # fmt: skip


def run_of(arguments: argparse.Namespace) -> dict[str, object]:
    """The run's fields that were stated."""
    return {name: value for name in RUN_FIELDS if (value := getattr(arguments, name)) is not None}
