"""The command ``plan``: a workload stated in options without a file."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import service
from service.cli.drafting import DRAFT_HELP, DRAFT_METAVAR, drafting
from service.cli.exit_codes import CommandError, ExitCode
from service.cli.lengths import OUTPUT
from service.cli.numbers import number
from service.cli.served_arguments import adapters_of
from service.cli.trace_arguments import add_reading_options
from service.cli.traffic_arguments import LENGTH_OPTIONS, add_traffic_options, traffic_of

OBJECTIVES = ("cost", "throughput", "power")
PRESETS = ("chat", "rag", "code", "reasoning", "batch")
PRESETS_FILE = Path(service.__file__).with_name("page") / "static" / "presets.json"
"""The page's own: what both start from is the same."""
TARGET_HELP = "another target, such as ttft.p99=800 or e2e.mean=4000; may be repeated"
TARGET = re.compile(r"(ttft|tpot|e2e|ttfat)\.(mean|p50|p90|p95|p99)=(.+)")
FORMATS_HELP = "such as bf16 or fp8; the model's own unless stated; may be repeated:"


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "llm", metavar="LLM", nargs="?", help="language model, such as llama-3.1-70b; without it the preset's"
    )
    parser.add_argument("--preset", choices=PRESETS, help="what is not stated is taken from here")
    parser.add_argument("--rate", type=number, metavar="N", help="requests a second")
    add_traffic_options(parser)
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
    parser.add_argument(
        "--target", action="append", default=[], metavar="METRIC.STATISTIC=MS", help=TARGET_HELP,
    )  # fmt: skip
    for name, text in (
        ("provider", "a provider"),
        ("region", "a region"),
        ("device", "an accelerator"),
        ("engine", "a serving engine"),
    ):
        parser.add_argument(f"--{name}", action="append", default=[], help=f"only {text} named so; may be repeated")
    for name in ("provider", "region"):
        parser.add_argument(
            f"--without-{name}", action="append", default=[], metavar=name.upper(), help="not this one; may be repeated"
        )
    parser.add_argument(
        "--commitment", action="append", default=[],
        help="on_demand unless stated; spot, reserved_1y, …, or any; may be repeated",
    )  # fmt: skip
    parser.add_argument("--weights", action="append", default=[], metavar="FORMAT", help=f"{FORMATS_HELP} weights")
    parser.add_argument("--kv-cache", action="append", default=[], metavar="FORMAT", help=f"{FORMATS_HELP} KV cache")
    parser.add_argument("--draft", metavar=DRAFT_METAVAR, help=DRAFT_HELP)
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
    parser.add_argument(
        "--context", type=int, metavar="TOKENS", help="longest context served; the longest request unless stated"
    )
    parser.add_argument("--over-context", choices=("clip", "refuse"), help="what becomes of longer requests (clip)")
    parser.add_argument("--min-replicas", type=int, metavar="N", help="so many replicas at least (1 unless stated)")
    parser.add_argument(
        "--role", action="append", default=[], choices=("aggregated", "disaggregated"),
        help="disaggregated: prefill and decode in pools of their own; may be repeated (aggregated unless stated)",
    )  # fmt: skip
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


def request_of(arguments: argparse.Namespace, traced: dict[str, Any] | None = None) -> dict[str, Any]:
    """The body of POST /v1/recommendations. Raises CommandError naming options that are missing.

    traced: traffic of a trace, taken before the preset's and after what options state.
    """
    traced = {name: stated for name, stated in (traced or {}).items() if stated is not None}
    preset: dict[str, Any] = {}
    if arguments.preset:
        preset = json.loads(PRESETS_FILE.read_text(encoding="utf-8"))[arguments.preset]
    targets: dict[str, Any] = preset.get("targets", {}) | _targets(arguments)
    llm = arguments.llm or preset.get("llm")
    rate = next(
        (r for r in (arguments.rate, traced.get("requests_per_s"), preset.get("requests_per_s")) if r is not None), None
    )
    traffic = traffic_of(arguments, _preset_lengths(preset) | traced)
    is_rated = rate is not None or arguments.objective == "throughput"
    missing = [
        name
        for name, value in (("LLM", llm), ("--rate", is_rated), ("--prompt", traffic.get("prompt_tokens") or traffic.get("sessions")),
                            (OUTPUT, traffic.get("output_tokens")), ("--ttft-p95, --tpot-p95 or --e2e-p95", targets))
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
    workload = {
        "name": arguments.preset or "workload", "llm": llm, "traffic": {"requests_per_s": rate} | traffic, "targets": targets,
    }  # fmt: skip
    workload |= {name: stated for name, stated in _of_workload(arguments).items() if stated is not None}
    body: dict[str, Any] = {"workloads": [workload], "limits": limits}
    if arguments.objective != "cost":
        body["objective"] = arguments.objective
    if arguments.time_limit is not None:
        body["time_limit_s"] = arguments.time_limit
    return body


def _of_workload(arguments: argparse.Namespace) -> dict[str, Any]:
    """Fields of the workload beside its traffic and targets; None where no option states them."""
    busy = arguments.busy_at_most
    precision = {"weights": arguments.weights, "kv_cache": arguments.kv_cache}
    return {
        "context_tokens": arguments.context,
        "over_context": arguments.over_context,
        "engines": arguments.engine or None,
        "utilisation_limit_fraction": None if busy is None else busy / 100.0,
        "min_replicas": arguments.min_replicas,
        "adapters": adapters_of(arguments),
        "drafting": None if arguments.draft is None else drafting(arguments.draft),
        "host_cache_gib": arguments.host_cache or None,
        "disk_cache_gib": arguments.disk_cache,
        "disk_read_gbytes_per_s": arguments.disk_rate,
        "providers": {"never": arguments.without_provider} if arguments.without_provider else None,
        "regions": {"never": arguments.without_region} if arguments.without_region else None,
        "precision": {part: formats for part, formats in precision.items() if formats} or None,
        "roles": arguments.role or None,
    }


def _targets(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Limits by metric and statistic. Raises CommandError for one that has another form."""
    found: dict[str, dict[str, float]] = {}
    for metric in ("ttft", "tpot", "e2e", "ttfat"):
        limit = getattr(arguments, f"{metric}_p95")
        if limit is not None:
            found[f"{metric}_ms"] = {"p95": limit}
    for text in arguments.target:
        named = TARGET.fullmatch(text)
        try:
            if named is None:
                raise argparse.ArgumentTypeError(TARGET_HELP)
            found.setdefault(f"{named[1]}_ms", {})[named[2]] = number(named[3])
        except argparse.ArgumentTypeError as wrong:
            raise CommandError(f"--target {text[:40]!r}: {wrong}", ExitCode.bad_input) from None
    return found


def _preset_lengths(preset: dict[str, Any]) -> dict[str, Any]:
    return {name: {"distribution": "lognormal", **preset[name]} for name in LENGTH_OPTIONS if name in preset}
