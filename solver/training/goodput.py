"""What failures, checkpoints and preemptions leave of the time that is paid for."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reliability:
    """device_hours_between_failures: of one device; a job of n devices fails n times as often. checkpoint_s: for which training
    stands still. restart_s: from a failure until steps go on. preemptions_per_node_hour: of spot capacity.
    """

    device_hours_between_failures: float
    checkpoint_s: float
    restart_s: float
    preemptions_per_node_hour: float = 0.0


SECONDS_PER_HOUR = 3600.0


def interruption_mean_s(reliability: Reliability, devices: int, nodes: int) -> float:
    """Mean time between interruptions of a job that needs all of its devices.

    >>> round(interruption_mean_s(Reliability(1000.0, 0.0, 0.0), 100, 10) / 3600, 6)
    10.0
    """
    per_hour = devices / reliability.device_hours_between_failures + nodes * reliability.preemptions_per_node_hour
    return SECONDS_PER_HOUR / per_hour


def checkpoint_interval_s(checkpoint_s: float, interruption_s: float) -> float:
    """How often to checkpoint: √(2·δ·M) (J. W. Young, CACM 17(9), 1974).

    >>> checkpoint_interval_s(50.0, 10_000.0)
    1000.0
    """
    return math.sqrt(2.0 * checkpoint_s * interruption_s)


def goodput_fraction(reliability: Reliability, devices: int, nodes: int) -> float:
    """Share of the time that advances training, the checkpoint interval τ being Young's (never above the mean time M).

    Interruptions come at random and at any time, in checkpoints and restarts too; all since the last checkpoint is lost. Work of τ then
    takes M·e^(R/M)·(e^((τ+δ)/M) − 1) on average (J. T. Daly, Future Generation Computer Systems 22(3), 2006); as
    checkpoints cost nothing, τ goes to zero and e^(−R/M) is left.

    >>> steady = Reliability(50_677.0, 60.0, 900.0)
    >>> round(goodput_fraction(steady, 512, 64), 3), round(goodput_fraction(steady, 16_384, 2_048), 3)
    (0.979, 0.83)
    """
    mean_s = interruption_mean_s(reliability, devices, nodes)
    resumed = math.exp(-reliability.restart_s / mean_s)
    if reliability.checkpoint_s <= 0.0:
        return resumed
    interval_s = min(checkpoint_interval_s(reliability.checkpoint_s, mean_s), mean_s)
    between = (interval_s + reliability.checkpoint_s) / mean_s
    return resumed * interval_s / mean_s * math.exp(-between) / -math.expm1(-between)
