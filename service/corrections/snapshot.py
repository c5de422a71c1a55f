"""Stored correction sets → what the solver applies: SI stays in the constants' own rows."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from catalog.borrowings import borrowed_by, is_kept, strangers
from catalog.correction_rows import CorrectionSetRow, EngineCorrectionRow, SpreadRow
from solver.corrections.applied import CorrectionSet, EngineCorrection, Evidence
from solver.layout import Layout
from solver.precision import Precision
from solver.step.constants import CONSTANTS, OWNED, ConstantPrior


def correction_set(row: CorrectionSetRow) -> CorrectionSet:
    return CorrectionSet(row.number, tuple(_engine_correction(c) for c in row.corrections))


def _engine_correction(row: EngineCorrectionRow) -> EngineCorrection:
    return EngineCorrection(
        device=row.device,
        family=row.family,
        lent=not is_kept(row.family, row.engine),
        strangers=strangers(row.engine),
        engine=row.engine,
        versions=tuple(row.versions),
        constants={name: c.value for name, c in row.constants.items() if c.taken},
        evidence=tuple(
            Evidence(
                llm=e.llm,
                precision=Precision(e.weights, e.kv_cache),
                layout=Layout(e.tensor_parallel, e.pipeline_parallel, e.data_parallel, e.expert_parallel),
                benchmarks=tuple(e.benchmarks),
                factors=dict(e.factors),
                random_routing=e.random_routing,
            )
            for e in row.evidence
        ),
        spreads=_spreads(row.spreads),
        own_spreads=_spreads(row.own_spreads),
        closed_spreads=_spreads(row.spreads, "closed"),
        closed_own_spreads=_spreads(row.own_spreads, "closed"),
        precisions=frozenset((e.weights, e.kv_cache, e.model_class) for e in row.evidence),
        borrowed_widening=row.borrowed_widening,
        unseen_widening=row.unseen_widening,
    )


def _spreads(rows: list[SpreadRow], load: str = "*") -> dict[tuple[str, str], tuple[float, float]]:
    return {(r.model_class, r.metric): (r.low, r.high) for r in rows if r.load == load}


ROUTING = ("expert_evenness_16bit", "expert_evenness_8bit", "expert_evenness_int4")
"""Constants of a model's router. Sets 1 and 2 have one for all measured models."""


def routing_constant(weights: str) -> str:
    """Which of them is measured with weights of a format: random ones, and rounded ones send tokens elsewhere.

    >>> routing_constant("fp8"), routing_constant("mxfp4")
    ('expert_evenness_8bit', 'expert_evenness_16bit')
    """
    of_format = {"fp8": "expert_evenness_8bit", "int8": "expert_evenness_8bit", "int4": "expert_evenness_int4"}
    return of_format.get(weights, "expert_evenness_16bit")


def measured_models(correction: EngineCorrectionRow, name: str) -> list[str]:
    """Mixtures of experts that were measured in weights of the format a routing constant belongs to."""
    return sorted(
        {e.llm for e in correction.evidence if e.model_class == "moe" and routing_constant(e.weights) == name}
    )


def told_by_random_weights(correction: EngineCorrectionRow, name: str, llm: str) -> bool:
    """Whether a model's routing constant is that of random weights, which says nothing of trained ones."""
    return any(e.random_routing and e.llm == llm and routing_constant(e.weights) == name for e in correction.evidence)


DEVICE_LEVEL = (
    "gemm_efficiency_16bit", "gemm_efficiency_fp8", "expert_half_width_16bit", "expert_half_width_8bit",
    "weight_read_efficiency", "expert_read_efficiency", "kv_read_efficiency", "kv_read_efficiency_8bit",
    "attention_efficiency", "stream_efficiency", "link_efficiency", "all_reduce_latency_us", "decode_sequence_tokens",
    "layer_overhead_us", "quantised_layer_overhead_us", "expert_layer_overhead_us", "linear_layer_overhead_us",
    "latent_layer_overhead_us",
)  # fmt: skip
"""Constants of devices and their kernels, which others may borrow; the rest are those of an engine's host and scheduler."""


def _lent(name: str, value: float, correction: EngineCorrectionRow) -> Iterator[ConstantPrior]:
    """A constant as families and engines take it that nobody measured here (``catalog/borrowings.toml``)."""
    if name not in DEVICE_LEVEL:
        return
    law = CONSTANTS[name]
    for row in borrowed_by(correction.family, correction.engine):
        low, high = max(value * row.low_fraction, law.low), min(value * row.high_fraction, law.high)
        yield ConstantPrior(name, row.family, "*", row.engine, value, low, high, "borrowed")


def in_force(row: CorrectionSetRow | None, catalog: Iterable[ConstantPrior]) -> tuple[ConstantPrior, ...]:
    """All rows about constants, in the order in which the first of two that apply equally is taken: what was fitted, what the catalog
    states, and what others lend, which gives way to a row of the catalog for that very family and engine."""
    return (*corrected_priors(row), *catalog, *lent_priors(row))


def lent_priors(row: CorrectionSetRow | None) -> tuple[ConstantPrior, ...]:
    """Fitted constants as families and engines take them that nobody measured (``catalog/borrowings.toml``)."""
    return tuple(
        lent
        for correction in _by_runs(row)
        for name, constant in correction.constants.items()
        if constant.taken
        for lent in _lent(name, constant.value, correction)
    )


def _by_runs(row: CorrectionSetRow | None) -> list[EngineCorrectionRow]:
    """Corrections with most runs first."""
    return [] if row is None else sorted(row.corrections, key=lambda c: -sum(len(e.benchmarks) for e in c.evidence))


def corrected_priors(row: CorrectionSetRow | None) -> tuple[ConstantPrior, ...]:
    """Fitted constants as rows more specific than the catalog's: the device's own, and its family's (borrowed).

    Of several devices of a family the one with most runs speaks for the family: its rows come first. Where what was measured is
    kept (``catalog/borrowings.toml``) none does.

    A fitted value's range is two standard errors to either side: what a single configuration may still ask for.
    """
    priors: list[ConstantPrior] = []
    for correction in _by_runs(row):
        for of_what, constant in correction.constants.items():
            name, _, model = of_what.partition(OWNED)
            if not constant.taken:
                continue
            # How a router spreads tokens belongs to the measured model's weights, not to the device.
            of_any: tuple[str, ...] = ()
            models = (
                [(model,)]
                if model
                else [(m,) for m in measured_models(correction, name)]
                if name in ROUTING
                else [of_any]
            )
            margin = min(2.0 * constant.standard_error_fraction, 0.9)
            low, high = constant.value * (1.0 - margin), constant.value * (1.0 + margin)
            reach = [(correction.device, "*", "corrected")]
            if not is_kept(correction.family, correction.engine):
                reach.append(("*", correction.family, "borrowed"))
            for device, family, basis in reach:
                priors.extend(
                    ConstantPrior(
                        name, family, device, correction.engine, constant.value, low, high, basis, llms,
                        random_weights=any(told_by_random_weights(correction, name, llm) for llm in llms),
                    )
                    for llms in models
                )  # fmt: skip
    return tuple(priors)


def probed_constants(content: Mapping[str, Any]) -> tuple[ConstantPrior, ...]:
    """A device's constants in a set from uploads: its own under any engine, behind those fitted on serving runs."""
    return tuple(
        ConstantPrior(
            c["name"],
            "*",
            content["device"],
            "*",
            c["value"],
            c["low"],
            c["high"],
            "borrowed",
            evidence=tuple(c["evidence"]),
        )
        for c in content["constants"]
    )
