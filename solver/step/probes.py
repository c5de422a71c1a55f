"""What micro-measurements of a device say about its rates, as shares of the datasheet's.

Bare kernels: a copy, matrix products, all-reduces. An engine reaches less of some and more of others (its own fused
kernels); ``ConstantLaw`` rows named ``probe_share_…`` say how much, from a device where both were measured.
"""

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from solver.step.collectives import ring_all_reduce_bytes
from solver.step.constants import CONSTANTS, ConstantPrior, Constants

PROBED_CONSTANTS: Mapping[str, tuple[str, str]] = {
    "gemm_efficiency_16bit": ("gemm_16bit", "probe_share_gemm_16bit"),
    "gemm_efficiency_fp8": ("gemm_fp8", "probe_share_gemm_fp8"),
    "weight_read_efficiency": ("memory", "probe_share_weight_read"),
    "expert_read_efficiency": ("memory", "probe_share_expert_read"),
    "kv_read_efficiency": ("memory", "probe_share_kv_read"),
    "stream_efficiency": ("memory", "probe_share_stream"),
    "link_efficiency": ("link", "probe_share_link"),
}
"""Constant → the probed figure it follows, and the constant that says how much of it an engine reaches."""

ARITHMETIC_BOUND = 4.0
"""A product counts as bound by arithmetic when that takes this many times as long as its memory traffic, by datasheet."""
BEYOND_CACHE = 4.0
"""A copy counts when it is this many times as large as the device's last-level cache."""
LEAST_COPY_BYTES = 256e6
"""Where the cache is not known: no accelerator's holds as much."""
LEAST_LINK_BYTES = 4e6
"""All-reduces below are bound by their start-up and its launch, not by the link."""


@dataclass(frozen=True, slots=True)
class Peaks:
    """Datasheet rates in SI; None where nobody publishes one. dense: FLOP/s by dtype. cache: bytes."""

    memory_bytes_per_s: float | None
    dense: Mapping[str, float | None]
    link_bytes_per_s: float | None
    cache_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Gemm:
    """[m, k] × [k, n] at a rate in FLOP/s."""

    dtype: str
    m: int
    n: int
    k: int
    flop_per_s: float


@dataclass(frozen=True, slots=True)
class Probe:
    """Figures of one micro-measurement in SI.

    copies: (bytes, bytes read and written per second). all_reduces: (devices, bytes on each, seconds).
    """

    id: str
    copies: tuple[tuple[float, float], ...]
    gemms: tuple[Gemm, ...]
    all_reduces: tuple[tuple[int, float, float], ...]


BYTES_PER_ELEMENT = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0}


def memory_share(probe: Probe, peaks: Peaks) -> float | None:
    """Bytes read and written per second by the largest copy, over the memory's datasheet rate.

    None without a copy too large for the device's cache, or without a datasheet rate.
    """
    least = BEYOND_CACHE * peaks.cache_bytes if peaks.cache_bytes else LEAST_COPY_BYTES
    large = [(size, rate) for size, rate in probe.copies if size >= least]
    if not large or not peaks.memory_bytes_per_s:
        return None
    return max(large)[1] / peaks.memory_bytes_per_s


def arithmetic_bound(gemm: Gemm, peaks: Peaks) -> bool:
    """Whether arithmetic, 2·m·n·k at the dense peak, takes several times as long as moving the operands once."""
    dense = peaks.dense.get(gemm.dtype)
    if not dense or not peaks.memory_bytes_per_s:
        return False
    element = BYTES_PER_ELEMENT[gemm.dtype]
    moved_bytes = element * (gemm.m * gemm.k + gemm.k * gemm.n) + 2.0 * gemm.m * gemm.n
    return 2.0 * gemm.m * gemm.n * gemm.k / dense >= ARITHMETIC_BOUND * moved_bytes / peaks.memory_bytes_per_s


def gemm_share(probe: Probe, peaks: Peaks, dtypes: Iterable[str]) -> float | None:
    """Median share of the dense peak over the products that arithmetic bounds; None where there is none."""
    shares = [
        gemm.flop_per_s / (peaks.dense[gemm.dtype] or 1.0)
        for gemm in probe.gemms
        if gemm.dtype in set(dtypes) and arithmetic_bound(gemm, peaks)
    ]
    return statistics.median(shares) if shares else None


def link_bytes_per_s(sizes: Iterable[tuple[int, float, float]]) -> float | None:
    """Bytes a device sends per second in the ring all-reduce: the slope between the two largest sizes.

    The slope leaves out start-up and launch, which both sizes pay. None below two sizes; not positive when a larger
    all-reduce took no longer than a smaller one.

    >>> round(link_bytes_per_s([(2, 8e6, 50e-6), (2, 16e6, 75e-6)]))
    320000000000
    """
    large = sorted((size, seconds, devices) for devices, size, seconds in sizes if size >= LEAST_LINK_BYTES)
    if len(large) < 2:
        return None
    (less, sooner, devices), (more, later, _) = large[-2:]
    volume = float(ring_all_reduce_bytes(more, devices)) - float(ring_all_reduce_bytes(less, devices))
    return round(volume / (later - sooner), 6) if later > sooner else 0.0


def link_share(probe: Probe, peaks: Peaks) -> float | None:
    """Median over the numbers of devices of the all-reduces' rate, over one direction of the link."""
    worlds = {devices for devices, _, _ in probe.all_reduces}
    rates = [link_bytes_per_s(row for row in probe.all_reduces if row[0] == devices) for devices in sorted(worlds)]
    known = [rate for rate in rates if rate is not None]
    if not known or not peaks.link_bytes_per_s:
        return None
    return statistics.median(known) / peaks.link_bytes_per_s


def probed_shares(probe: Probe, peaks: Peaks) -> dict[str, float]:
    """Every share the probe gives, by the names ``PROBED_CONSTANTS`` uses."""
    found = {
        "memory": memory_share(probe, peaks),
        "gemm_16bit": gemm_share(probe, peaks, ("bf16", "fp16")),
        "gemm_fp8": gemm_share(probe, peaks, ("fp8",)),
        "link": link_share(probe, peaks),
    }
    return {name: share for name, share in found.items() if share is not None}


@dataclass(frozen=True, slots=True)
class Refined:
    """A device's constant with the two factors it is the product of."""

    prior: ConstantPrior
    probed_fraction: float
    engine_share: float


def refined(device: str, probes: Iterable[Probe], peaks: Peaks, known: Constants) -> tuple[Refined, ...]:
    """The device's own constants: c = probed share · share of it that an engine reaches.

    Of several probes the median counts. Range: that of the engine's share. Nothing leaves its physical range: no
    efficiency exceeds 1. They hold for the device under any engine; a constant fitted on serving runs of the device
    under an engine goes before them.
    """
    by_share: dict[str, list[tuple[float, str]]] = {}
    for probe in probes:
        for name, share in probed_shares(probe, peaks).items():
            by_share.setdefault(name, []).append((share, probe.id))
    found = []
    for constant, (name, engine_share) in PROBED_CONSTANTS.items():
        if name not in by_share or engine_share not in known.priors:
            continue
        share, reached = statistics.median(s for s, _ in by_share[name]), known.priors[engine_share]
        law = CONSTANTS[constant]
        value, low, high = (
            min(max(share * factor, law.low), law.high) for factor in (reached.value, reached.low, reached.high)
        )
        evidence = tuple(probe_id for _, probe_id in by_share[name])
        prior = ConstantPrior(constant, "*", device, "*", value, low, high, "borrowed", evidence=evidence)
        found.append(Refined(prior, share, reached.value))
    return tuple(found)
