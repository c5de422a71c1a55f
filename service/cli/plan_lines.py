"""Lines of a plan as a buyer reads them: what to rent, what runs on it, how fast it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from service.cli.tables import layout_text
from service.deployments.targets import ENGINE_TARGETS, TARGET_OF_ENGINE
from service.figures import readable

Answer = Mapping[str, Any]
ALL_OF_IT = 0.9995
"""Shares are rounded to whole per cent, which must not make all of a small remainder."""


def plan_table(plan: list[dict[str, Any]], workloads: Sequence[Answer]) -> Table:
    """One block a line of the plan, narrow enough for 80 columns. workloads: as asked, whose targets say which times are shown."""
    table = Table(show_lines=True)
    own = [is_own(line.get("source")) for line in plan]
    table.add_column("own" if own and all(own) else "rent or own" if any(own) else "rent", overflow="fold", ratio=5)
    table.add_column("run on it", overflow="fold", ratio=4)
    table.add_column("p95 (90 % interval)", overflow="fold", ratio=4)
    table.add_column("USD/h", justify="right", no_wrap=True)
    to_the_end = {one["name"] for one in workloads if _limits_whole_requests(one)}
    for line in plan:
        is_limited = line["workload"] in to_the_end
        table.add_row(
            f"[bold]{line['nodes']} × {escape(line['node'])}[/bold]\n{escape(line['region'])}, {line['commitment'].replace('_', ' ')}",
            f"[bold]{escape(line['workload'])}[/bold]{role_text(line)}, {line['serves_requests_per_s']:.3g} req/s\n"
            f"{line['replicas']} × {layout_text(line['layout'])}{partition_text(line)}\n"
            f"weights {line['precision']['weights']}, KV {line['precision']['kv_cache']}\n"
            f"{100 * line['utilisation_fraction']:.0f} % of capacity used\n{escape(line['engine'])}"
            f"{scheduler_text(line)}{drafting_text(line)}{host_cache_text(line)}"
            + "".join(f"\n{class_text(one)}" for one in line.get("classes", ())),
            _by_class(line["classes"], is_limited) if line.get("classes") else _predicted(line, is_limited),
            f"{float(line['usd_per_hour']):,.2f}",
        )
    return table


def is_own(source: Mapping[str, Any] | None) -> bool:
    """A machine of the user's; not a contract of theirs with a seller whom the catalog knows.

    >>> is_own({"own": True, "provider_class": None}), is_own({"own": True, "provider_class": "hyperscaler"})
    (True, False)
    """
    return source is not None and bool(source.get("own")) and source.get("provider_class") is None


def device_text(rejected: Answer) -> str:
    """
    >>> device_text({"device": "a30", "partition": "1g.6gb"}), device_text({"device": "a30"})
    ('a30 (1g.6gb)', 'a30')
    """
    profile = rejected.get("partition")
    return f"{rejected['device']} ({escape(profile)})" if profile else str(rejected["device"])


def rented(plan: list[dict[str, Any]]) -> str:
    """What a plan rents, lines on the same kind of node added up.

    >>> line = {"nodes": 1, "node": "box", "replicas": 3, "partition": None}
    >>> rented([line, line, line | {"node": "rack"}])
    '2 × box, 1 × rack'
    """
    whole: dict[str, dict[str, Any]] = {}
    split = []
    for line in plan:
        if line.get("partition"):
            split.append(rented_text(line))
        elif line["node"] in whole:
            whole[line["node"]]["nodes"] += line["nodes"]
        else:
            whole[line["node"]] = dict(line)
    return ", ".join([*(rented_text(line) for line in whole.values()), *split])


def rented_text(line: Answer) -> str:
    """
    >>> line = {"nodes": 1, "node": "box", "replicas": 3}
    >>> rented_text(line), rented_text(line | {"partition": {"profile": "1g.10gb"}})
    ('1 × box', '3 × 1g.10gb of box')
    """
    partition = line.get("partition")
    return (
        f"{line['replicas']} × {partition['profile']} of {line['node']}"
        if partition
        else f"{line['nodes']} × {line['node']}"
    )


def partition_text(line: Answer) -> str:
    """
    >>> partition_text({"partition": {"profile": "1g.10gb", "instances_per_device": 7}}), partition_text({})
    (' on 1g.10gb', '')
    """
    partition = line.get("partition")
    return f" on {escape(partition['profile'])}" if partition else ""


def scheduler_text(line: Answer) -> str:
    """What the engine's server is told of its scheduler: tokens of its largest step, seats, up to how many tokens are captured, and how
    many processes answer where that is more than one.

    >>> settings = {"max_batched_tokens": 2048, "max_sequences": 512}
    >>> scheduler_text({"engine": "vllm", "engine_settings": settings})
    ', steps ≤ 2,048\\n512 seats'
    >>> scheduler_text({"engine": "vllm", "engine_settings": settings | {"max_captured_tokens": 4096}})
    ', steps ≤ 2,048\\n512 seats, graphs ≤ 4,096'
    >>> scheduler_text({"engine": "vllm", "engine_settings": settings | {"api_servers": 4}})
    ', steps ≤ 2,048\\n512 seats\\n4 API servers'
    >>> scheduler_text({"engine": "tgi", "engine_settings": settings})
    ''
    """
    settings = line.get("engine_settings") or {}
    steps = steps_text(line["engine"], settings.get("max_batched_tokens"))
    if not steps:
        return ""
    captured = settings.get("max_captured_tokens")
    graphs = f", graphs ≤ {captured:,}" if captured else ""
    servers = settings.get("api_servers") or 1
    answering = f"\n{servers} API servers" if servers > 1 else ""
    return f"{steps}\n{settings['max_sequences']:,} seats{graphs}{answering}"


def steps_text(engine: str, tokens: int | None) -> str:
    """The largest step of an engine's scheduler, where it is stated; nothing of an engine whose command is not written here.

    >>> steps_text("vllm", 512), steps_text("vllm", None), steps_text("tgi", 512)
    (', steps ≤ 512', '', '')
    """
    return f", steps ≤ {tokens:,}" if tokens and TARGET_OF_ENGINE.get(engine, engine) in ENGINE_TARGETS else ""


def drafting_text(line: Answer) -> str:
    """
    >>> drafting_text({"engine_settings": {"speculative": {"draft_tokens": 4, "acceptance_fraction": 0.6}}})
    ', drafts 4 tokens a step, 60 % of them accepted'
    """
    by = (line.get("engine_settings") or {}).get("speculative")
    return (
        f", drafts {by['draft_tokens']} tokens a step, {100 * by['acceptance_fraction']:g} % of them accepted"
        if by
        else ""
    )


def host_cache_text(line: Answer) -> str:
    """
    >>> host_cache_text({"engine_settings": {"host_cache_gib": 64.0}})
    ', 64 GiB of the host beside each device for caches'
    >>> host_cache_text({"engine_settings": {"host_cache_gib": 64.0, "disk_cache_gib": 500.0}})
    ', 64 GiB of the host and 500 GiB of disk beside each device for caches'
    """
    settings = line.get("engine_settings") or {}
    gib, disk = settings.get("host_cache_gib"), settings.get("disk_cache_gib")
    under = f" and {disk:g} GiB of disk" if disk else ""
    return f", {gib:g} GiB of the host{under} beside each device for caches" if gib else ""


def class_text(one: Answer) -> str:
    """
    >>> class_text({"traffic_class": "short", "share_fraction": 0.625, "serves_requests_per_s": 12.5})
    'short: 62 %, 12.5 req/s'
    """
    share = "all" if one["share_fraction"] >= ALL_OF_IT else f"{100 * one['share_fraction']:.2g} %"
    return f"{escape(one['traffic_class'])}: {share}, {one['serves_requests_per_s']:.3g} req/s"


def _limits_whole_requests(workload: Answer) -> bool:
    """Has it, or one of its traffic classes, a target to the last token?"""
    every = [workload, *(workload.get("traffic_classes") or ())]
    return any((one.get("targets") or {}).get("e2e_ms") for one in every)


def _by_class(classes: list[dict[str, Any]], is_limited: bool) -> str:
    return "\n".join(f"[bold]{escape(one['traffic_class'])}[/bold]\n{_predicted(one, is_limited)}" for one in classes)


def role_text(line: Answer) -> str:
    """
    >>> role_text({"role": "prefill"}), role_text({})
    (' prefill', '')
    """
    role = line.get("role", "aggregated")
    return "" if role == "aggregated" else f" {role}"


def _predicted(line: Mapping[str, Any], is_limited: bool) -> str:
    """is_limited: whole requests have a target, so that a plan shows what it was held to."""
    predicted = line["predicted"]
    if predicted is None:
        return "stands by" if line.get("serves_requests_per_s") == 0.0 else "not predicted in time"
    hits = predicted.get("prefix_hit_fraction")
    shown = [("TTFT", "ttft_ms")]
    shown += [("first answer token", "ttfat_ms")] if predicted.get("ttfat_ms") else []
    shown += [("TPOT", "tpot_ms")] if predicted["tpot_ms"]["p95"]["high"] > 0.0 else []  # none after the only token
    shown += [("E2E", "e2e_ms")] if is_limited else []
    found = [] if hits is None else [f"{100 * hits:.0f} % of prompts found in cache"]
    if (predicted.get("routed_over") or 1) > 1:
        found.append(f"turns over {predicted['routed_over']} replicas")
    return "\n".join([f"{name} {interval(predicted[field]['p95'])} ms" for name, field in shown] + found)


def interval(value: Answer) -> str:
    """
    >>> interval({"expected": 739.71, "low": 488.8, "high": 1080.2})
    '740 (489–1,080)'
    """
    return f"{readable(value['expected'])} ({readable(value['low'])}–{readable(value['high'])})"
