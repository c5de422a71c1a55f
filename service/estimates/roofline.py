"""A deployment's operators on the roofline of its device → wire."""

from service.wire.estimates import OperatorOut, RooflineOut
from solver.deployment.configuration import Configuration
from solver.prediction.estimate import Estimate, prefill_step_tokens
from solver.step.operator_report import Operator, roof_flop_per_s, step_operators
from solver.workload import Traffic

GIGA, TERA = 1e9, 1e12


def present_roofline(configuration: Configuration, traffic: Traffic, found: Estimate) -> RooflineOut:
    """A prefill step of the mean prompt alone, and a decode step of the sequences in flight."""
    shape, rates = configuration.shape, configuration.rates()
    drafting = configuration.speculation
    queries = 1.0 if drafting is None else drafting.decoding.draft_tokens + 1.0
    prompt = step_operators(
        shape, rates, 0.0, traffic, prefill_tokens=prefill_step_tokens(configuration, traffic)
    )  # fmt: skip
    decode = step_operators(shape, rates, found.decoding_sequences, traffic, queries=queries)
    if shape.embeds:  # nothing is decoded
        decode = ()
    peak, memory = float(rates.peak_flop_per_s), float(rates.peak_bytes_per_s)

    def present(phase: str, one: Operator) -> OperatorOut:
        return OperatorOut(
            phase=phase,
            operator=one.name,
            flop=one.flops,
            bytes=one.bytes,
            ms=round(one.seconds * 1e3, 5),
            flop_per_byte=one.flop_per_byte,
            tflop_per_s=one.flop_per_s / TERA,
            roof_fraction=one.flop_per_s / roof_flop_per_s(one.flop_per_byte, peak, memory),
        )

    return RooflineOut(
        peak_tflop_per_s=peak / TERA,
        memory_bandwidth_gb_per_s=memory / GIGA,
        ridge_flop_per_byte=peak / memory,
        operators=[present("prefill", one) for one in prompt] + [present("decode", one) for one in decode],
    )
