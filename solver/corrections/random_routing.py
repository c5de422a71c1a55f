"""What was measured with weights of random values says nothing of routers that were trained: where that is all there is."""

from dataclasses import replace

from solver.corrections.applied import CorrectionSet, cell_of
from solver.deployment.configuration import Configuration


def measured_with_random_weights(current: CorrectionSet | None, configuration: Configuration) -> bool:
    """Whether runs of this mixture of experts on this device, cut and stored alike, had their experts chosen by random weights, and it
    has trained ones."""
    if current is None or configuration.random_routing:
        return False
    drawn = replace(cell_of(configuration), random_routing=True)
    uploaded = current.cells.get(drawn)
    evidence = (
        e for c in current.corrections if (c.device, c.engine) == (drawn.device, drawn.engine) for e in c.evidence
    )
    return (uploaded is not None and bool(uploaded.benchmarks)) or any(
        e.random_routing and e.speaks_of(drawn) for e in evidence
    )


def random_routing_doubt(basis: str) -> str:
    """Why a prediction does not rest on such runs. basis: that which it has instead."""
    return (
        f"its basis is {basis} though it was measured: those runs had weights of random values, which send tokens to fewer experts than "
        "trained ones are expected to (engine.load_format dummy asks for theirs)"
    )
