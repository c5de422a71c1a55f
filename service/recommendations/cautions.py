"""What a buyer should know before signing a plan, and might not read out of its figures."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from service.figures import readable, rounded_down
from service.recommendations.from_rows import layout_from_wire
from service.recommendations.lasting_queue import lasting_queue_doubt
from service.wire.plan_explained import CautionOut
from service.wire.plan_lines import PlanLineOut, PublishedLineOut
from service.wire.recommendations import RecommendationIn, WorkloadIn
from solver.deployment.context import extension_doubt
from solver.deployment.platforms import processors_needed
from solver.hardware import Offer
from solver.llm_shape import LlmShape

METRICS = ("ttft_ms", "tpot_ms", "e2e_ms", "ttfat_ms")
UNMEASURED = {
    "analytical": "its speed is physics, with shares of its rates that were not seen on it, and how often its intervals hold is not known",
    "borrowed": "its speed is physics, corrected by runs of a sibling device",
}


def cautions(
    asked: RecommendationIn,
    plan: Sequence[PlanLineOut],
    offers: Sequence[Offer],
    bought: Mapping[str, str],
    shapes: Mapping[str, LlmShape],
) -> list[CautionOut]:
    """Workload by workload: machines that may be taken back, outages after the loss of a node, predictions that may miss a target or
    rest on no measurement of the device, prices to be asked for, machines that are bought, and commitments that cost more than none.
    offers: all there are; bought: how prices of some come about; shapes: the models by name."""
    found: list[CautionOut] = []
    for workload in asked.workloads:
        lines = [line for line in plan if line.workload == workload.name]
        found += _spot(workload, lines, offers)
        found += [*_losses(asked, workload, lines), *_near_targets(workload, lines), *_lasting_queues(workload, lines)]
        found += _front_ends(workload, lines, offers)
        found += _unmeasured(workload, lines)
        found += [*_drafting(workload, lines), *_sessions(workload, lines), *_host_cache(workload, lines)]
        found += [*_old_prices(workload, lines), *_dear_commitments(workload, lines, offers), *_blocks(workload, lines)]
        found += _extended(workload, lines, shapes[workload.llm])
        found += [
            CautionOut(about="bought", workload=workload.name, offer=offer, detail=bought[offer])
            for offer in dict.fromkeys(line.offer for line in lines)
            if offer in bought
        ]
    return found


def published_cautions(lines: Iterable[PublishedLineOut]) -> list[CautionOut]:
    """What is not known of lines that rest on published speeds."""
    found = []
    for line in lines:
        sold = line.by_the_token
        detail = (
            f"{line.provider} serves this on its own machines ({line.device}), which prompts and replies are sent to; its price was "
            f"seen on {sold.seen_on}, its speed is what others measured, and it limits the rate of an account ({sold.tier})"
            if sold is not None
            else f"of {line.device} only the speed of one stream of requests is published; {line.price_source}"
        )
        found.append(CautionOut(about="published_speed", workload=line.workload, offer=line.offer, detail=detail))
    return found


def _spot(workload: WorkloadIn, lines: Sequence[PlanLineOut], offers: Sequence[Offer]) -> Iterator[CautionOut]:
    """Machines that their seller may take back: once an offer, with what the same machine costs there where it may not."""
    price = {(o.provider, o.region, o.node.id): o.usd_per_hour for o in offers if o.commitment == "on_demand"}
    spot = [line for line in lines if line.commitment == "spot"]
    for line in _one_an_offer(spot):
        nodes = sum(one.nodes for one in spot if one.offer == line.offer)
        kept = price.get((line.provider, line.region, line.node))
        kept_usd = "" if kept is None else f"; on demand each is {kept:.2f} USD an hour"
        detail = (
            f"{line.provider} may take {'this machine' if nodes == 1 else f'these {nodes} machines'} back at any time, all at "
            f"once too, and may have none to give: the plan counts on them as if that never happened{kept_usd}. "
            "limits.max_spot_fraction bounds their share"
        )
        yield CautionOut(about="spot", workload=workload.name, offer=line.offer, detail=detail)


def _losses(asked: RecommendationIn, workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """What is left after the worst node is lost; nothing where spares or losses were asked for."""
    fault_tolerance = asked.limits.fault_tolerance
    if asked.limits.spare_nodes or fault_tolerance.nodes or fault_tolerance.providers or fault_tolerance.regions:
        return
    serving = [line for line in lines if line.replicas and line.serves_requests_per_s and line.utilisation_fraction]
    for role in sorted({line.role for line in serving}):
        of_role = [line for line in serving if line.role == role]
        kind = "replica" if role == "aggregated" else f"{role} replica"
        replicas = sum(line.replicas for line in of_role)
        if replicas == 1:
            detail = f"one {kind}: a node lost is an outage. limits.spare_nodes 1 keeps a node to restart on"
            yield CautionOut(about="one_replica", workload=workload.name, offer=of_role[0].offer, detail=detail)
            continue
        demand = math.fsum(line.serves_requests_per_s for line in of_role)
        sustained = {n: line.serves_requests_per_s / line.utilisation_fraction for n, line in enumerate(of_role)}
        lost = {
            n: math.ceil(line.replicas / max(1, line.nodes)) / line.replicas * sustained[n]
            for n, line in enumerate(of_role)
        }
        worst = max(lost, key=lambda n: lost[n])
        left = math.fsum(sustained.values()) - lost[worst]
        if left <= 0.0:
            detail = f"all {replicas} {kind}s are on one node: a node lost is an outage"
            yield CautionOut(about="one_node", workload=workload.name, offer=of_role[worst].offer, detail=detail)
        elif demand > left:
            detail = (
                f"after the loss of one node the {kind}s that are left are asked for {100 * demand / left:.0f} % of what they "
                "sustain. limits.spare_nodes 1 keeps a node to restart on"
            )
            yield CautionOut(about="no_spare", workload=workload.name, offer=of_role[worst].offer, detail=detail)


def _near_targets(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """Predictions whose interval crosses a target: they are expected to keep it, and may not."""
    for line in lines:
        if line.predicted is None or workload.traffic is None:
            continue
        where = f" on {line.node}" if len(lines) > 1 else ""
        for metric in METRICS:
            name = metric.removesuffix("_ms").upper()
            for percentile, limit in getattr(workload.targets, metric).items():
                high = getattr(getattr(line.predicted, metric), percentile).high + (line.network_ms or 0.0) * (
                    metric != "tpot_ms"
                )
                if high > limit:
                    detail = (
                        f"{name} {percentile}{where} is expected to keep its target of {readable(limit, 4)} ms, with "
                        f"{workload.targets.confidence_percent:g} % confidence; its 90 % interval reaches {readable(high, 4)} ms"
                    )
                    yield CautionOut(
                        about="interval_crosses_target", workload=workload.name, offer=line.offer, detail=detail
                    )


def _lasting_queues(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """Replicas that are asked for more than they complete once requests wait."""
    for line in lines:
        queue = None if line.predicted is None else line.predicted.lasting_queue
        if queue is not None and line.engine_settings is not None:
            asked_requests_per_s = line.serves_requests_per_s / line.replicas
            doubt = lasting_queue_doubt(queue, asked_requests_per_s, line.engine_settings.max_sequences)
            eased = line.utilisation_fraction * queue.completed_requests_per_s / asked_requests_per_s
            less = (
                f" (utilisation_limit_fraction {rounded_down(eased)})" if queue.prefix_hit_fraction is not None else ""
            )
            detail = f"of a replica on {line.node}, {doubt}{less}"
            yield CautionOut(about="lasting_queue", workload=workload.name, offer=line.offer, detail=detail)


def _api_servers(line: PlanLineOut) -> int:
    return 1 if line.engine_settings is None else line.engine_settings.api_servers


def _front_ends(workload: WorkloadIn, lines: Sequence[PlanLineOut], offers: Sequence[Offer]) -> Iterator[CautionOut]:
    """Replicas that count on processors of a host of which nobody states how many it has: once for each machine."""
    nodes, said = {offer.id: offer.node for offer in offers}, set()
    for line in lines:
        servers, node = _api_servers(line), nodes.get(line.offer)
        if servers == 1 or line.node in said or node is None or node.host_processors:
            continue
        said.add(line.node)
        layout = layout_from_wire(line.layout)
        needed = processors_needed(node.devices, layout, servers)
        detail = (
            f"each replica answers from {servers * layout.data_parallel} processes, each of which takes a processor: with the engine's own "
            f"{needed} on a {line.node} full of them. How many it has is not stated: ask"
        )
        yield CautionOut(about="front_end", workload=workload.name, offer=line.offer, detail=detail)


def _unmeasured(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """Devices of which no run was ever measured: once for each device and engine."""
    said = set()
    for line in lines:
        key = (line.device, line.engine, line.basis, _api_servers(line))
        if not line.serves_requests_per_s or line.basis not in UNMEASURED or key in said:
            continue
        said.add(key)
        beside = _served_beside(workload, line)
        known = (
            f"no run of {line.engine} on {line.device} with {beside} is behind this: its speed is physics, corrected by runs without, "
            "on that device or a sibling"
            if beside and line.basis == "borrowed"
            else f"no run of {line.engine} on {line.device} has been measured: {UNMEASURED[line.basis]}"
        )
        detail = f"{known}. Measure one node before you sign for the others"
        yield CautionOut(about="unmeasured", workload=workload.name, offer=line.offer, detail=detail)


def _served_beside(workload: WorkloadIn, line: PlanLineOut) -> str:
    """What a replica serves or does that runs behind corrections did not, in words; empty where that is nothing."""
    traffic = workload.traffic
    stated = {
        "adapters": workload.adapters is not None,
        "drafts": workload.drafting is not None,
        "images, video or audio": traffic is not None and bool(traffic.images or traffic.video or traffic.audio),
        "grammars": traffic is not None and traffic.structured_fraction > 0.0,
        "several processes that answer": _api_servers(line) > 1,
    }
    return ", ".join(name for name, asked in stated.items() if asked)


def _extended(workload: WorkloadIn, lines: Sequence[PlanLineOut], shape: LlmShape) -> Iterator[CautionOut]:
    """A context beyond that which the model is published with."""
    doubt = extension_doubt(shape, workload.context_tokens or 0)
    if doubt is not None and lines:
        yield CautionOut(about="extended_context", workload=workload.name, offer=lines[0].offer, detail=doubt)


def _drafting(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """Replicas that keep their targets only as far as drafts are accepted."""
    asked = workload.drafting
    drafting = [
        line for line in lines if line.engine_settings is not None and line.engine_settings.speculative is not None
    ]
    if asked is not None and drafting:
        detail = (
            f"it drafts {asked.draft_tokens} tokens at a time and counts on {100 * asked.acceptance_fraction:g} % of them being "
            "accepted, as stated: where this traffic accepts fewer, it is slower than predicted. No run that drafts has been measured here"
        )
        yield CautionOut(about="drafting", workload=workload.name, offer=drafting[0].offer, detail=detail)


def _sessions(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """What the hits in the cache of prefixes rest on: that requests are routed as stated."""
    sessions = workload.traffic.sessions if workload.traffic is not None else None
    serving = [line for line in lines if line.predicted is not None and line.predicted.prefix_hit_fraction is not None]
    if sessions is None or not serving:
        return
    copies = sum(line.replicas * line.layout.data_parallel for line in serving)
    found = f"the simulated share of prompts found in cache, {100 * _mean_hits(serving):.0f} %, holds"
    routed_over = max((line.predicted.routed_over or 1 for line in serving if line.predicted is not None), default=1)
    if sessions.routing != "sticky" and copies > routed_over:
        detail = (
            f"{found} for turns spread over {routed_over} replicas; the plan has {copies}, which find less each. Ask again"
            f" with replicas {copies} or null, or keep sessions where they began (routing sticky)"
        )
        yield CautionOut(about="sessions", workload=workload.name, offer=serving[0].offer, detail=detail)
    elif sessions.routing == "sticky" and copies > 1:
        detail = f"{found} where the router keeps a session on the copy where it began; routed at random each of {copies} finds less"
        yield CautionOut(about="sessions", workload=workload.name, offer=serving[0].offer, detail=detail)


def _host_cache(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    """Replicas that find prompts in memory of the host."""
    for line in lines:
        if line.engine_settings is not None and line.engine_settings.host_cache_gib:
            detail = (
                f"caches take {line.engine_settings.host_cache_gib:g} GiB of the host's memory beside each device of {line.node}, as "
                "was permitted: whether the rest is enough for what else runs there is not known. Such a tier has been measured "
                "here under vLLM on one H100 alone"
            )
            yield CautionOut(about="host_cache", workload=workload.name, offer=line.offer, detail=detail)
        if line.engine_settings is not None and line.engine_settings.disk_cache_gib:
            detail = (
                f"caches take {line.engine_settings.disk_cache_gib:g} GiB of the local disks of {line.node} for each device, read at the "
                "rate that was stated for them: one load with such a tier has been measured here, under vLLM on one H100, and "
                "it answered later and decoded slower than predicted"
            )
            yield CautionOut(about="disk_cache", workload=workload.name, offer=line.offer, detail=detail)


def _mean_hits(lines: Sequence[PlanLineOut]) -> float:
    """Over the requests of all lines."""
    hits = [(line.serves_requests_per_s, line.predicted.prefix_hit_fraction or 0.0) for line in lines if line.predicted]
    return math.fsum(rate * share for rate, share in hits) / max(math.fsum(rate for rate, _ in hits), 1e-12)


def _one_an_offer(lines: Sequence[PlanLineOut]) -> Iterable[PlanLineOut]:
    """The first line of each offer: what holds of an offer is said once, however many layouts run on it."""
    return {line.offer: line for line in reversed(lines)}.values()


def _old_prices(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    for line in _one_an_offer(lines):
        if line.source is not None and line.source.ask_for_quote:
            detail = f"the price was stated {line.source.price_age_days} days ago: ask {line.provider} for a quote"
            yield CautionOut(about="old_price", workload=workload.name, offer=line.offer, detail=detail)


def _blocks(workload: WorkloadIn, lines: Sequence[PlanLineOut]) -> Iterator[CautionOut]:
    for line in _one_an_offer(lines):
        if line.commitment == "capacity_block":
            detail = (
                "a capacity block is booked for certain days and paid in advance: what a month costs holds only while blocks "
                "can be had one after the other"
            )
            yield CautionOut(about="capacity_block", workload=workload.name, offer=line.offer, detail=detail)


def _dear_commitments(
    workload: WorkloadIn, lines: Sequence[PlanLineOut], offers: Sequence[Offer]
) -> Iterator[CautionOut]:
    """Lines whose machine the same seller rents on demand in the same place for no more."""
    price = {(o.provider, o.region, o.node.id): o for o in offers if o.commitment == "on_demand"}
    by_id = {offer.id: offer for offer in offers}
    for line in lines:
        free, own = price.get((line.provider, line.region, line.node)), by_id.get(line.offer)
        if free is None or own is None or not line.commitment.startswith("reserved"):
            continue
        if free.usd_per_hour <= own.usd_per_hour:
            detail = (
                f"{line.commitment} costs {own.usd_per_hour:.2f} USD a node-hour and on demand {free.usd_per_hour:.2f}: the "
                "commitment saves nothing"
            )
            yield CautionOut(about="commitment_dearer", workload=workload.name, offer=line.offer, detail=detail)
