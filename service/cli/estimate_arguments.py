"""The command ``estimate``: a deployment and its load, stated in options without a file."""

import argparse
from typing import Any

from service.cli.drafting import DRAFT_HELP, DRAFT_METAVAR, drafting
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import OUTPUT
from service.cli.numbers import number
from service.cli.served_arguments import adapters_of
from service.cli.traffic_arguments import add_traffic_options, traffic_of

DEGREES = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
ENGINE_FIELDS = {
    "engine": "name", "engine_version": "version", "release": "release", "max_batched_tokens": "max_batched_tokens",
    "max_sequences": "max_sequences", "memory_fraction": "memory_fraction", "context": "max_context_tokens",
    "disk_cache": "disk_cache_gib", "disk_rate": "disk_read_gbytes_per_s", "admission_interval": "admission_interval_steps",
    "api_servers": "api_servers", "max_captured_tokens": "max_captured_tokens",
    "scan_kernel": "scan_kernel", "load_format": "load_format",
}  # fmt: skip
"""Options by their names, and the fields of ``engine`` that they state."""


def add_estimate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="LLM|FILE",
        help="a language model, with --device or --node and the rest; or a request's JSON body, - for input",
    )
    parser.add_argument(
        "--device", metavar="DEVICE", help="the accelerator, such as h100-sxm; left out: what --node holds"
    )
    parser.add_argument("--partition", metavar="PROFILE", help="an instance of a device that is split so (MIG)")
    parser.add_argument("--node", metavar="NODE", help="the machine: how its devices are joined")
    for name, text in (
        ("tensor", "devices that cut every layer among them"), ("pipeline", "stages that layers are dealt out over"),
        ("data", "copies of attention in one replica"), ("expert", "devices that experts are dealt out over"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}-parallel", type=int, metavar="N", help=f"{text} (1 unless stated)")
    parser.add_argument("--weights", metavar="FORMAT", help="bf16 unless stated")
    parser.add_argument("--kv-cache", metavar="FORMAT", help="bf16 unless stated")
    parser.add_argument("--engine", metavar="ENGINE", help="vllm unless stated, or the device's own")
    parser.add_argument("--engine-version", metavar="VERSION", help="any release unless stated")
    parser.add_argument("--release", choices=("any", "planned"), help="planned: the release that a plan's files start")
    for option, metavar, text in (
        ("--max-batched-tokens", "N", "tokens of a step at most (8192 unless stated)"),
        ("--max-sequences", "N", "requests at once at most (512 unless stated)"),
        ("--context", "TOKENS", "longest context; the longest request unless stated"),
        ("--admission-interval", "STEPS", "steps between looks for new requests: SGLang's --scheduler-recv-interval"),
        ("--api-servers", "N", "processes that pass tokens on, for each copy of attention: vLLM's --api-server-count"),
        (
            "--max-captured-tokens",
            "N",
            "tokens of a step that runs as a captured graph: vLLM's --max-cudagraph-capture-size",
        ),
    ):
        parser.add_argument(option, type=int, metavar=metavar, help=text)
    parser.add_argument(
        "--scan-kernel", choices=("triton", "flashinfer"), help="of gated delta rules: vLLM's --gdn-prefill-backend"
    )
    parser.add_argument(
        "--load-format", choices=("auto", "dummy"), help="dummy: of a server whose weights hold random values (auto)"
    )
    parser.add_argument(
        "--memory-fraction", type=number, metavar="SHARE", help="of a device's memory that the engine takes (0.92 unless stated)"
    )  # fmt: skip
    parser.add_argument("--over-context", choices=("clip", "refuse"), help="what becomes of longer requests (clip)")
    parser.add_argument("--draft", metavar=DRAFT_METAVAR, help=DRAFT_HELP)
    add_traffic_options(parser)
    parser.add_argument("--rate", type=number, metavar="N", help="requests a second, arriving at random")
    parser.add_argument("--concurrency", type=int, metavar="N", help="clients that each wait for their answer, instead")
    parser.add_argument("--requests", type=int, metavar="N", help="of a load that ends: so many in all")


def deployment_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """One entry of POST /v1/estimates. Raises CommandError naming options that are missing."""
    traffic = traffic_of(arguments, {})
    has_load = (arguments.rate is None) != (arguments.concurrency is None)
    missing = [
        name
        for name, value in (("--prompt", traffic.get("prompt_tokens") or traffic.get("sessions")),
                            (OUTPUT, traffic.get("output_tokens")), ("either --rate or --concurrency", has_load))
        if not value
    ]  # fmt: skip
    if missing:
        raise CommandError(f"state {', '.join(missing)}", ExitCode.bad_input)
    closed = {"kind": "closed", "concurrency": arguments.concurrency}
    load = closed if arguments.rate is None else {"kind": "open", "requests_per_s": arguments.rate}
    degrees = {name: getattr(arguments, name) for name in DEGREES}
    precision = {"weights": arguments.weights, "kv_cache": arguments.kv_cache}
    stated: dict[str, Any] = {
        "llm": arguments.what,
        "layout": {name: degree for name, degree in degrees.items() if degree is not None},
        "precision": {part: name for part, name in precision.items() if name is not None},
        "traffic": traffic,
        "load": load if arguments.requests is None else load | {"requests": arguments.requests},
    }
    beside = {
        "device": arguments.device,
        "node": arguments.node, "partition": arguments.partition, "over_context": arguments.over_context,
        "adapters": adapters_of(arguments), "engine": _engine_of(arguments),
    }  # fmt: skip
    return stated | {name: value for name, value in beside.items() if value}


def _engine_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """What options state of the engine. Raises CommandError for several sizes of host memory."""
    if len(arguments.host_cache) > 1:
        raise CommandError("--host-cache: one size is estimated; a plan chooses among several", ExitCode.bad_input)
    engine = {
        field: stated for option, field in ENGINE_FIELDS.items() if (stated := getattr(arguments, option)) is not None
    }
    if arguments.host_cache:
        engine["host_cache_gib"] = arguments.host_cache[0]
    if arguments.draft is not None:
        engine["speculative"] = drafting(arguments.draft)
    return engine
