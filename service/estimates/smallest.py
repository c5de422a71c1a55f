"""The smallest layout that holds a model on a device: what an estimate takes where none is stated, and what one that does not fit
is told."""

from service.estimates.predict import Case, constants_for, served_shape, served_traffic, with_context
from service.recommendations.from_rows import engine_from_wire, layout_from_wire, precision_from_wire
from service.wire.deployment import LayoutIn
from solver.deployment.deploy import deploy
from solver.deployment.layout_rules import legal_tensor_parallels
from solver.errors import SolverError


def smallest_layout(case: Case) -> LayoutIn | None:
    """The least tensor parallelism inside one machine of the device that holds the model; None where none does."""
    asked = with_context(case.asked, case.shape)
    traffic, _ = served_traffic(asked, case.shape)
    asked, shape = served_shape(asked, case.shape, traffic)
    constants = constants_for(case.snapshot, case.device, asked.engine, case.shape)
    most = max((n.devices for n in case.snapshot.nodes.values() if n.device.id == case.device.id), default=1)
    for degree in legal_tensor_parallels(case.shape, most, asked.precision.weights):
        layout = LayoutIn(tensor_parallel=degree)
        try:
            deploy(
                shape,
                case.device,
                constants,
                layout_from_wire(layout),
                precision_from_wire(asked.precision),
                engine_from_wire(asked.engine),
                traffic,
            )
        except SolverError:
            continue
        return layout
    return None
