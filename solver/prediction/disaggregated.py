"""Predict a prefill and a decode pool together: replay the load through both and the link between them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from solver.deployment.bound import Bound, roofline_bound
from solver.deployment.kv_transfer import Over, ServingPool, kv_link
from solver.errors import SaturatedError
from solver.prediction.estimate import Correction, Estimate, decode_terms, devices_power_w, prefill_terms
from solver.prediction.intervals import PredictedInterval, metric_interval, no_earlier, percentile_intervals
from solver.prediction.moved_constants import moved_constants
from solver.prediction.spreads import moved_spreads, power_spread, widened
from solver.prediction.step_error import stretched
from solver.replay.disaggregated import (
    Utilisation,
    cache_bytes_sent,
    replay_disaggregated,
    sent_tokens,
)
from solver.replay.one_stream import Replay, Statistics
from solver.step.named_terms import Term, dominant
from solver.workload import Load, Traffic

Spreads = dict[str, tuple[float, float]]
BASES = ("measured", "corrected", "borrowed", "analytical")


@dataclass(frozen=True, slots=True)
class PoolEstimate:
    """One pool. busy_fraction: share of time its engines work. step: of a prefill chunk, or of a decode step."""

    power_w: PredictedInterval
    busy_fraction: float
    bottleneck: str
    step: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class DisaggregatedEstimate:
    """The whole, as for one deployment (its step is the decode pool's), and each part.

    transfer_s: mean and percentiles from the first token to the arrival of the prompt's cache, waiting included.
    """

    whole: Estimate
    prefill: PoolEstimate
    decode: PoolEstimate
    transfer_s: dict[str, PredictedInterval]
    link_bytes_per_s: float
    link_busy_fraction: float


def estimate_disaggregated(
    prefill: ServingPool,
    decode: ServingPool,
    over: Over,
    traffic: Traffic,
    load: Load,
    corrections: tuple[Correction | None, Correction | None] = (None, None),
    *,
    seed: int = 1,
    requests: int | None = None,
) -> DisaggregatedEstimate:
    """Predict an open load on two pools.

    corrections: of the prefill and of the decode pool (see ``solver.corrections.applied.pool_correction``). Nobody has
    measured such pools: intervals are those of one deployment, widened. Raises what ``kv_link`` and
    ``replay_disaggregated`` raise.
    """
    link = kv_link(over, prefill, decode)
    found = replay_disaggregated(prefill, decode, link, traffic, load, seed=seed, requests=requests)
    result = found.statistics
    if all(c is not None and c.spreads for c in corrections):
        spreads, factors = joined_corrections(*corrections)
    else:
        ends = [
            _moved(prefill, decode, over, traffic, load, result, seed, requests, towards_slow=slow)
            for slow in (True, False)
        ]
        unseen = max(p.configuration.constants.si("interval_widening_unseen") for p in (prefill, decode))
        one = prefill.configuration
        moved = moved_spreads(result, ends[0], ends[1], one.constants, any_release=one.engine.any_release)
        spreads, factors = widened(moved, unseen), {}
    basis = max((_basis(p, c) for p, c in zip((prefill, decode), corrections, strict=True)), key=BASES.index)
    bound = disaggregated_bound(prefill, decode, link.bytes_per_s, traffic, load)
    power = (
        _power(prefill, found.prefill, corrections[0]),
        _power(decode, found.decode, corrections[1]),
    )
    first = prefill_terms(prefill.configuration, traffic)
    seated = max(1.0, result.mean_in_flight)
    later = decode_terms(decode.configuration, decode.configuration.tables(), seated, traffic)
    several_tokens = traffic.output.maximum > 1
    return DisaggregatedEstimate(
        whole=_whole(result, basis, corrections, spreads, factors, power, bound, (first, later), several_tokens),
        prefill=PoolEstimate(power[0], found.prefill_busy_fraction, dominant(first), first),
        decode=PoolEstimate(power[1], found.decode_busy_fraction, dominant(later), later),
        transfer_s=percentile_intervals("transfer", found.transfer_s, {"transfer": link_spread(over, prefill)}, {}),
        link_bytes_per_s=link.bytes_per_s * prefill.lanes,
        link_busy_fraction=found.link_busy_fraction,
    )


def link_spread(over: Over, pool: ServingPool) -> tuple[float, float]:
    """Factors on a transfer's time between the ends of the range of what transfers reach of the link."""
    prior = pool.configuration.constants.priors["link_efficiency" if over == "node_link" else "network_efficiency"]
    return min(1.0, prior.value / prior.high), max(1.0, prior.value / prior.low)


def joined_corrections(first: Correction | None, second: Correction | None) -> tuple[Spreads, dict[str, float]]:
    """Spreads and factors of both pools: first tokens are the prefill pool's, later ones the decode pool's; what both
    make (end to end, rate) has the wider of the two spreads, and the decode pool's factor."""
    assert first is not None
    assert second is not None
    spreads: Spreads = {}
    for metric in {*first.spreads, *second.spreads}:
        own = first if metric.startswith("time_to_first_token") else second
        if metric.startswith(("time_", "inter_")):
            if metric in own.spreads:
                spreads[metric] = own.spreads[metric]
            continue
        both = [c.spreads[metric] for c in (first, second) if metric in c.spreads]
        spreads[metric] = min(low for low, _ in both), max(high for _, high in both)
    factors = {m: f for m, f in first.factors.items() if m.startswith("time_to_first_token")}
    factors |= {m: f for m, f in second.factors.items() if not m.startswith("time_to_first_token")}
    return spreads, factors


def disaggregated_bound(
    prefill: ServingPool, decode: ServingPool, link_bytes_per_s: float, traffic: Traffic, load: Load
) -> Bound:
    """Least TPOT, and most output tokens per second, of both pools and the link between them.

        requests/s ≤ min(prefill FLOP/s / (2 · weights · prompt), link / cache of a prompt, decode tokens/s / (Q − 1))

    TPOT as of the decode configuration. The prefill pool makes the first token of each reply, so a rate is Q times that
    many. Prompts are multiplied with all but the output head, at the fastest datasheet rate of all the pool's devices.
    """
    own = decode.configuration
    alone = roofline_bound(own, traffic, load)
    output = traffic.output.mean
    limits = [prefill_bound_requests_per_s(prefill, traffic)]
    if output > 1.0:
        limits.append(alone.output_tokens_per_s * decode.replicas / (output - 1.0))
        mean = round(max(1.0, traffic.prompt.mean))
        size = cache_bytes_sent(prefill, decode, traffic, mean)
        leaving = math.fsum(s for t, s in zip(traffic.output.tokens, traffic.output.shares, strict=True) if t > 1)
        if own.shape.attention and all(a.kind in ("full", "mla") for a in own.shape.attention) and size > 0:
            # Windows make the cache of long prompts shorter than proportional: no bound by the mean prompt then.
            limits.append(link_bytes_per_s * prefill.lanes / (size * leaving))
    return Bound(alone.time_per_output_token_s, min(limits) * max(1.0, output))


def prefill_bound_requests_per_s(pool: ServingPool, traffic: Traffic) -> float:
    """Most prompts per second the pool's arithmetic admits: Σ devices · fastest rate / (2 · weights · own tokens)."""
    own = pool.configuration
    body = own.shape.active_weights - float(own.shape.vocabulary) * own.shape.hidden
    tokens = math.fsum(
        sent_tokens(traffic, t) * share for t, share in zip(traffic.prompt.tokens, traffic.prompt.shares, strict=True)
    )
    flops = 2.0 * body * tokens
    return max(own.device.flop_per_s.values()) * pool.devices / flops if flops > 0 else math.inf


def _whole(
    result: Replay,
    basis: str,
    corrections: tuple[Correction | None, Correction | None],
    spreads: Spreads,
    factors: Mapping[str, float],
    power: tuple[PredictedInterval, PredictedInterval],
    bound: Bound,
    steps: tuple[tuple[Term, ...], tuple[Term, ...]],
    several_tokens: bool,
) -> Estimate:
    def times(metric: str, values: Statistics, floor: float = 0.0) -> dict[str, PredictedInterval]:
        return percentile_intervals(metric, values, spreads, factors, floor)

    # Below its capacity an open load is served as it comes: no factor changes its rate, only its interval.
    rate = metric_interval("output_rate", result.output_tokens_per_s, spreads, {}, ceiling=bound.output_tokens_per_s)
    per_token = result.requests_per_s / max(result.output_tokens_per_s, 1e-12)
    watts = PredictedInterval(*(sum(getattr(p, end) for p in power) for end in ("expected", "low", "high")))
    evidence = tuple(dict.fromkeys(b for c in corrections if c is not None for b in c.evidence))
    floor = bound.time_per_output_token_s if several_tokens else 0.0
    first = times("time_to_first_token", result.time_to_first_token_s)
    return Estimate(
        basis=basis,
        evidence=evidence,
        time_to_first_token_s=first,
        time_per_output_token_s=times("time_per_output_token", result.time_per_output_token_s, floor),
        inter_token_s=times("inter_token", result.inter_token_s),
        end_to_end_s=no_earlier(times("end_to_end", result.end_to_end_s), first) if several_tokens else first,
        output_tokens_per_s=rate,
        requests_per_s=PredictedInterval(rate.expected * per_token, rate.low * per_token, rate.high * per_token),
        power_w=watts,
        joules_per_output_token=PredictedInterval(
            watts.expected / rate.expected, watts.low / rate.high, watts.high / max(rate.low, 1e-12)
        ),
        prefill_bottleneck=dominant(steps[0]),
        decode_bottleneck=dominant(steps[1]),
        step=steps[1],
        bound=bound,
        decoding_sequences=max(1.0, result.mean_in_flight),
    )


def _basis(pool: ServingPool, correction: Correction | None) -> str:
    """Never better than borrowed: the constants may be fitted, such pools were not measured."""
    basis = correction.basis if correction is not None else pool.configuration.constants.basis
    return "borrowed" if basis in ("measured", "corrected") else basis


def _power(pool: ServingPool, used: Utilisation, correction: Correction | None) -> PredictedInterval:
    """Of all the pool's devices, in watts; NaN where nobody publishes the board's power."""
    watts = devices_power_w(pool.configuration, used.memory, used.compute) * pool.replicas
    spreads: Mapping[str, tuple[float, float]] = {"power": power_spread(pool.configuration.constants)}
    if correction is not None and correction.spreads:
        spreads = correction.spreads
    return metric_interval("power", watts, spreads, {} if correction is None else correction.factors)


def _moved(
    prefill: ServingPool,
    decode: ServingPool,
    over: Over,
    traffic: Traffic,
    load: Load,
    fallback: Replay,
    seed: int,
    requests: int | None,
    *,
    towards_slow: bool,
) -> Replay:
    """The replay with all constants of both pools moved, the link's among them."""
    pools = [
        replace(
            pool,
            configuration=pool.configuration.with_constants(
                moved_constants(pool.configuration.constants, towards_slow=towards_slow)
            ),
        )
        for pool in (prefill, decode)
    ]
    try:
        link = kv_link(over, pools[0], pools[1])
        found = replay_disaggregated(pools[0], pools[1], link, traffic, load, seed=seed, requests=requests)
    except SaturatedError as limit:
        return stretched(fallback, load, limit, prefill.configuration.constants)
    return found.statistics
