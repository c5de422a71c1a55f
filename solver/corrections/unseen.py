"""What intervals hold of a deployment beside what configurations left out of a fit were off by: what no run on the device tells."""

from collections.abc import Collection, Mapping

from solver.deployment.configuration import Configuration
from solver.engine.profiles import FLASHINFER, scan_kernel
from solver.prediction.spreads import joined
from solver.step.rates import widens
from solver.step.recurrent_terms import has_delta_rule

EXACT = (1.0, 1.0)
SHARED_EXPERTS_MISSES = ("interval_shared_experts_token_miss", "interval_shared_experts_first_token_miss")
"""Constants whose ranges are what times per token and to first tokens of copies that share experts were seen to miss."""


def with_unseen(
    spreads: Mapping[str, tuple[float, float]],
    configuration: Configuration,
    formats: Collection[str],
    *,
    is_measured: bool = False,
) -> Mapping[str, tuple[float, float]]:
    """Spreads with what is not known of the deployment: at what rate weights are widened, whose kernels scan prompts, how much longer
    steps of copies that share experts take than is said. formats: of the weights of all runs on the very device under the engine.
    is_measured: the very configuration was."""
    constants = configuration.constants
    if _widened_unseen(configuration, formats):
        spreads = joined(spreads, constants.range_si("interval_widened_miss"), EXACT)
    if _scan_untold(configuration):
        token, first = (constants.range_si(f"interval_scan_{which}_miss") for which in ("token", "first_token"))
        spreads = joined(spreads, token, first)
    if configuration.lockstep_copies and not is_measured:
        token, first = (constants.range_si(name) for name in SHARED_EXPERTS_MISSES)
        spreads = joined(spreads, token, first)
    return spreads


def _widened_unseen(configuration: Configuration, formats: Collection[str]) -> bool:
    """Whether all weights are widened as they are read, in a format of which no run on the very device is known: at what rate its kernels
    do that is no share of its memory's, which is all that another device tells."""
    device, weights = configuration.device, configuration.precision.weights
    if configuration.shape.native_beside_experts is not None or not widens(device, weights):
        return False
    return weights not in formats


def _scan_untold(configuration: Configuration) -> bool:
    """Whether prompts are scanned with FlashInfer's kernels because nothing else is told: where it is not installed, Triton's do it."""
    engine, untold = configuration.engine, configuration.engine.scan_kernel is None
    return (
        untold
        and has_delta_rule(configuration.shape)
        and scan_kernel(engine, configuration.device.family) == FLASHINFER
    )
