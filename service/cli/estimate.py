"""The command ``estimate``: what deployments will do, of a file, or of one stated in options."""

import argparse
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from service.cli.ask import errors, read_request
from service.cli.client import Client
from service.cli.estimate_arguments import deployment_of
from service.cli.exit_codes import ExitCode
from service.cli.output import print_json, standard_output
from service.cli.tables import interval, layout_text, show_estimates
from service.figures import readable
from service.settings import Settings

STATISTICS = ("mean", "p50", "p95", "p99")
LATENCIES = (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"), ("E2E", "e2e_ms"))


def estimate_command(arguments: argparse.Namespace, settings: Settings) -> int:
    in_options = bool(arguments.device or arguments.node)
    body = {"estimates": [deployment_of(arguments)]} if in_options else read_request(arguments.what)
    client = Client(settings, arguments.url)
    with errors.status("estimating"):
        answer = client.post("/v1/estimates", body)
    if arguments.json:
        print_json(answer)
    elif in_options:
        show_deployment(arguments, answer["estimates"][0], standard_output())
    else:
        show_estimates(body, answer, standard_output())
    return ExitCode.ok if all(e["outcome"] == "estimated" for e in answer["estimates"]) else ExitCode.infeasible


def show_deployment(arguments: argparse.Namespace, found: Mapping[str, Any], console: Console) -> None:
    """One deployment: its latencies with intervals, what it yields, and what it waits for."""
    precision = found["precision"]
    console.print(
        f"[bold]{escape(arguments.what)}[/bold] on {escape(arguments.device or arguments.node)}, {layout_text(found['layout'])}, "
        f"{precision['weights']} weights, {precision['kv_cache']} cache, {escape(found['engine']['name'])}"
    )
    if found["outcome"] != "estimated":
        console.print(f"{found['outcome'].replace('_', ' ')}: {escape(found['detail'])}", soft_wrap=True)
        return
    shown = (("first answer", "ttfat_ms"),) if found["ttfat_ms"] is not None else ()
    table = Table("ms", *STATISTICS, title="each with the interval that holds nine of ten measured values")
    for name, field in (*LATENCIES, *shown):
        table.add_row(name, *(interval(found[field][statistic]) for statistic in STATISTICS))
    console.print(table)
    console.print(
        f"{interval(found['output_tokens_per_s'])} output tokens/s, {interval(found['requests_per_s'])} requests/s"
    )
    if found["prefix_hit_fraction"] is not None:
        console.print(f"{100 * found['prefix_hit_fraction']:.1f} % of prompts' tokens are found in the cache")
    if found["power_w"] is not None:
        console.print(f"{interval(found['power_w'])} W of its devices")
    if found["memory"] is None:
        console.print(f"only speeds of it are published: {escape('; '.join(found['evidence']))}", soft_wrap=True)
        return
    memory, waits = found["memory"], found["bottleneck"]
    console.print(
        f"memory of a device: weights {readable(memory['weights_gib'])} GiB, cache {readable(memory['kv_cache_gib'])} GiB "
        f"({memory['kv_cache_tokens']:,} tokens a replica, at most {memory['max_concurrent_requests']:,} requests at once)",
        soft_wrap=True,
    )
    if (images := found["images"]) is not None:
        media = "videos" if arguments.video else "recordings" if arguments.audio else "images"
        console.print(
            f"{media}: {images['tokens_each']:,} tokens each; encoding those of a request takes {readable(images['encoding_ms'])} ms of "
            f"a device, and {readable(images['host_ms'])} ms of the host before",
            soft_wrap=True,
        )
    if (adapters := found["adapters"]) is not None:
        loading, rank = "", f"{adapters['rank']}"
        if adapters["mean_rank"] != adapters["rank"]:
            rank += f" (their own is {readable(adapters['mean_rank'])} on average)"
        if adapters["resident_fraction"] < 1.0:
            share = f"{100 * adapters['resident_fraction']:.0f} %"
            loading = f"; {share} of requests find theirs there, others load it in {readable(adapters['load_ms'])} ms"
        console.print(
            f"adapters: {adapters['slots']} on a device in rank {rank}, {readable(adapters['gib_on_device'])} GiB of its weights, "
            f"{readable(adapters['different_in_batch'])} different ones in a batch{loading}",
            soft_wrap=True,
        )
    console.print(
        f"prefill waits for {waits['prefill'].replace('_', ' ')}, decode for {waits['decode'].replace('_', ' ')}; "
        f"prediction: {found['basis']}"
    )
    for caution in found["cautions"]:
        console.print(f"mind: {escape(caution)}", soft_wrap=True)
