"""The commands ``plan`` and ``estimate``: a workload, and a deployment, stated in options without a file."""

import argparse
import json
from pathlib import Path
from typing import Any

import service
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import LENGTHS_HELP, lengths
from service.cli.numbers import number
from service.cli.served_arguments import adapters_of, add_served_options, media_of
from service.cli.session_arguments import add_session_options, sessions_of
from service.cli.trace_arguments import add_reading_options

OBJECTIVES = ("cost", "throughput", "power")
PRESETS = ("chat", "rag", "code", "reasoning", "batch")
PRESETS_FILE = Path(service.__file__).with_name("page") / "static" / "presets.json"
"""The page's own: what both start from is the same."""
FORMATS_HELP = "such as bf16 or fp8; the model's own unless stated; may be repeated:"
DRAFT_HELP = (
    "engines may draft, where that is cheaper: ngram or head, tokens drafted a step, share of them accepted, and seconds of "
    "drafting one over seconds of a decode step, such as ngram:4:0.6:0"
)


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "llm", metavar="LLM", nargs="?", help="language model, such as llama-3.1-70b; without it the preset's"
    )
    parser.add_argument("--preset", choices=PRESETS, help="what is not stated is taken from here")
    parser.add_argument("--rate", type=number, metavar="N", help="requests a second")
    parser.add_argument("--prompt", metavar="MEAN:P95", help=f"tokens of a prompt: {LENGTHS_HELP}")
    parser.add_argument("--output", metavar="MEAN:P95", help=f"tokens of a reply: {LENGTHS_HELP}")
    parser.add_argument("--thinking", metavar="MEAN:P95", help=f"hidden tokens before a reply: {LENGTHS_HELP}")
    add_session_options(parser)
    add_served_options(parser)
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="take rate and lengths from recorded requests: JSONL, CSV, or a stored trace's id",
    )
    parser.add_argument(
        "--trace-sessions", action="store_true", help="take the trace's requests as turns of the sessions fitted to it"
    )
    add_reading_options(parser)
    for name, text in (
        ("ttft", "to the first token"),
        ("tpot", "for each further token"),
        ("e2e", "to the last token"),
        ("ttfat", "to the first token after hidden ones"),
    ):
        parser.add_argument(
            f"--{name}-p95", type=number, metavar="MS", help=f"at most so many ms {text}, for 95 %% of requests"
        )
    for name, text in (
        ("provider", "a provider"),
        ("region", "a region"),
        ("device", "an accelerator"),
        ("engine", "a serving engine"),
    ):
        parser.add_argument(f"--{name}", action="append", default=[], help=f"only {text} named so; may be repeated")
    parser.add_argument(
        "--without-provider", action="append", default=[], metavar="PROVIDER", help="not this one; may be repeated"
    )
    parser.add_argument(
        "--commitment", action="append", default=[],
        help="on_demand unless stated; spot, reserved_1y, …, or any; may be repeated",
    )  # fmt: skip
    parser.add_argument("--weights", action="append", default=[], metavar="FORMAT", help=f"{FORMATS_HELP} weights")
    parser.add_argument("--kv-cache", action="append", default=[], metavar="FORMAT", help=f"{FORMATS_HELP} KV cache")
    parser.add_argument("--draft", metavar="METHOD:TOKENS:ACCEPTANCE:COST", help=DRAFT_HELP)
    parser.add_argument(
        "--any-source",
        action="store_true",
        help="without the buying policy: marketplaces, old prices, unnamed places too",
    )
    parser.add_argument(
        "--busy-at-most",
        type=number,
        metavar="PERCENT",
        help="of what a replica sustains (85 unless stated); the rest is for bursts",
    )
    parser.add_argument("--max-nodes", type=int, metavar="N", help="so many machines of an offer at most")
    parser.add_argument("--max-usd-per-hour", metavar="USD", help="the plan may cost at most so much")
    parser.add_argument(
        "--objective",
        choices=OBJECTIVES,
        default="cost",
        help="least cost, most throughput for --max-usd-per-hour, or least power (default: %(default)s)",
    )
    parser.add_argument(
        "--confidence", type=number, metavar="PERCENT", help="how sure the targets are to be met, 50 to 99"
    )
    parser.add_argument("--time-limit", type=number, metavar="S", help="how long to search at most (10 unless stated)")
    parser.add_argument("--show-request", action="store_true", help="print the request's JSON and do nothing")
    parser.add_argument("--async", dest="later", action="store_true", help="print the job's id; do not wait")


def add_estimate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="LLM|FILE",
        help="a language model, with --device and the rest; or a request's JSON body, - for input",
    )
    parser.add_argument("--device", metavar="DEVICE", help="the accelerator, such as h100-sxm")
    parser.add_argument("--node", metavar="NODE", help="the machine: how its devices are joined")
    for name, text in (
        ("tensor", "devices that cut every layer among them"), ("pipeline", "stages that layers are dealt out over"),
        ("data", "copies of attention in one replica"), ("expert", "devices that experts are dealt out over"),
    ):  # fmt: skip
        parser.add_argument(f"--{name}-parallel", type=int, metavar="N", help=f"{text} (1 unless stated)")
    parser.add_argument("--weights", metavar="FORMAT", help="bf16 unless stated")
    parser.add_argument("--kv-cache", metavar="FORMAT", help="bf16 unless stated")
    parser.add_argument("--engine", metavar="ENGINE", help="vllm unless stated, or the device's own")
    parser.add_argument("--prompt", metavar="MEAN:P95", help=f"tokens of a prompt: {LENGTHS_HELP}")
    parser.add_argument("--output", metavar="MEAN:P95", help=f"tokens of a reply: {LENGTHS_HELP}")
    parser.add_argument("--thinking", metavar="MEAN:P95", help=f"hidden tokens before a reply: {LENGTHS_HELP}")
    add_session_options(parser)
    add_served_options(parser)
    parser.add_argument("--rate", type=number, metavar="N", help="requests a second, arriving at random")
    parser.add_argument("--concurrency", type=int, metavar="N", help="clients that each wait for their answer, instead")


def request_of(arguments: argparse.Namespace, traced: dict[str, Any] | None = None) -> dict[str, Any]:
    """The body of POST /v1/recommendations. Raises CommandError naming options that are missing.

    traced: traffic of a trace, taken before the preset's and after what options state.
    """
    traced = traced or {}
    preset: dict[str, Any] = {}
    if arguments.preset:
        preset = json.loads(PRESETS_FILE.read_text(encoding="utf-8"))[arguments.preset]
    stated = {
        name: value
        for name, value in (("ttft_ms", arguments.ttft_p95), ("tpot_ms", arguments.tpot_p95), ("e2e_ms", arguments.e2e_p95),
                            ("ttfat_ms", arguments.ttfat_p95))
        if value is not None
    }  # fmt: skip
    targets: dict[str, Any] = preset.get("targets", {}) | {name: {"p95": value} for name, value in stated.items()}
    llm = arguments.llm or preset.get("llm")
    rate = next(
        (r for r in (arguments.rate, traced.get("requests_per_s"), preset.get("requests_per_s")) if r is not None), None
    )
    prompt, output = (
        lengths(option, text) or traced.get(name) or _preset_lengths(preset.get(name))
        for option, text, name in (
            ("--prompt", arguments.prompt, "prompt_tokens"), ("--output", arguments.output, "output_tokens"),
        )
    )  # fmt: skip
    sessions = sessions_of(arguments) or traced.get("sessions")
    missing = [
        name
        for name, value in (("LLM", llm), ("--rate", rate), ("--prompt", prompt or sessions), ("--output", output),
                            ("--ttft-p95, --tpot-p95 or --e2e-p95", targets))
        if not value
    ]  # fmt: skip
    if missing:
        raise CommandError(f"state {', '.join(missing)}, or --preset {'|'.join(PRESETS)}", ExitCode.bad_input)
    if arguments.confidence is not None:
        targets["confidence_percent"] = arguments.confidence
    commitments = arguments.commitment or ["on_demand"]
    limits: dict[str, Any] = {"commitments": None if "any" in commitments else commitments}
    named = {"providers": arguments.provider, "regions": arguments.region, "devices": arguments.device}
    limits |= {name: chosen for name, chosen in named.items() if chosen}
    if arguments.any_source:
        limits["sourcing"] = "any"
    if arguments.max_nodes is not None:
        limits["max_nodes_per_offer"] = arguments.max_nodes
    if arguments.max_usd_per_hour:
        limits["max_usd_per_hour"] = arguments.max_usd_per_hour
    of_prompts = {"prompt_tokens": prompt} if sessions is None else {"sessions": sessions}
    traffic = {"requests_per_s": rate, **of_prompts, "output_tokens": output}
    thinking = lengths("--thinking", arguments.thinking) or _preset_lengths(preset.get("thinking_tokens"))
    if thinking is not None:
        traffic["thinking_tokens"] = thinking
    traffic |= media_of(arguments)
    if sessions is None and traced.get("shared_prefix_fraction"):
        traffic["shared_prefix_fraction"] = traced["shared_prefix_fraction"]
    workload = {"name": arguments.preset or "workload", "llm": llm, "traffic": traffic, "targets": targets}
    if arguments.engine:
        workload["engines"] = arguments.engine
    if arguments.busy_at_most is not None:
        workload["utilisation_limit_fraction"] = arguments.busy_at_most / 100.0
    if (adapters := adapters_of(arguments)) is not None:
        workload["adapters"] = adapters
    if arguments.draft:
        workload["drafting"] = drafting(arguments.draft)
    if arguments.host_cache:
        workload["host_cache_gib"] = arguments.host_cache
    if arguments.disk_cache:
        workload["disk_cache_gib"] = arguments.disk_cache
    if arguments.disk_rate:
        workload["disk_read_gbytes_per_s"] = arguments.disk_rate
    if arguments.without_provider:
        workload["providers"] = {"never": arguments.without_provider}
    precision = {"weights": arguments.weights, "kv_cache": arguments.kv_cache}
    if any(precision.values()):
        workload["precision"] = {part: formats for part, formats in precision.items() if formats}
    body: dict[str, Any] = {"workloads": [workload], "limits": limits}
    if arguments.objective != "cost":
        body["objective"] = arguments.objective
    if arguments.time_limit is not None:
        body["time_limit_s"] = arguments.time_limit
    return body


def drafting(text: str) -> dict[str, Any]:
    """
    >>> drafting("ngram:4:0.6:0")["acceptance_fraction"]
    0.6
    """
    try:
        method, tokens, acceptance, cost = text.split(":")
        return {
            "method": method, "draft_tokens": int(tokens), "acceptance_fraction": number(acceptance),
            "draft_step_fraction": number(cost), "draft_cost_source": "stated on the command line",
        }  # fmt: skip
    except (ValueError, argparse.ArgumentTypeError):
        raise CommandError(f"--draft {text!r}: {DRAFT_HELP}", ExitCode.bad_input) from None


def _preset_lengths(stated: dict[str, float] | None) -> dict[str, Any] | None:
    return {"distribution": "lognormal", **stated} if stated else None
