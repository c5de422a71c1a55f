"""What there is to start: the lines of a stored plan with what the catalog says of their machines and models."""

from dataclasses import dataclass
from math import ceil

from service.deployments.refusals import PartError
from service.deployments.words import label_name
from service.wire.plan_lines import FleetNodesOut, PlanLineOut
from service.wire.recommendations import WorkloadIn
from service.wire.roles import DraftingEngineIn


@dataclass(frozen=True, slots=True)
class Machine:
    """vendor, engines: of its devices. instance: what the provider calls the type. named_place: the region says where it stands."""

    node: str
    devices: int
    device: str
    vendor: str
    engines: tuple[str, ...]
    instance: str
    named_place: bool


@dataclass(frozen=True, slots=True)
class ServedModel:
    """native_weights: the format of the published checkpoint. experts: whether it is a mixture of experts. context_tokens: its
    own, without positions scaled. encodes: whether the checkpoint has an encoder of images or recordings."""

    llm: str
    hugging_face_id: str | None
    native_weights: str
    experts: bool
    context_tokens: int
    encodes: bool = False


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a process sees of one device and what the plan gives to what, in bytes; kv_cache_tokens: of one replica."""

    visible_bytes: float
    weights_bytes: float
    kv_cache_bytes: float
    kv_cache_tokens: int


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """Replicas that are alike: one line of the plan. name: a DNS label no other kind has.

    memory: None where a figure for it is missing.
    """

    name: str
    line: PlanLineOut
    workload: WorkloadIn
    machine: Machine
    model: ServedModel
    memory: DeviceMemory | None = None

    @property
    def part(self) -> str:
        """How the kind is called in refusals and notes."""
        line = self.line
        role = "" if line.role == "aggregated" else f" ({line.role})"
        return f"{line.replicas} × {line.workload}{role} on {line.device} at {line.offer}"

    @property
    def settings(self) -> DraftingEngineIn:
        """What to hand to the engine. Raises PartError for plans stored before it was stated."""
        if self.line.engine_settings is None:
            raise PartError(self.part, "the plan was stored before engine settings were; make the recommendation again")
        return self.line.engine_settings

    @property
    def devices(self) -> int:
        """Of one replica; instances where devices are split."""
        layout = self.line.layout
        return layout.tensor_parallel * layout.pipeline_parallel * layout.data_parallel

    @property
    def nodes(self) -> int:
        """That one replica spans."""
        return ceil(self.devices / self.machine.devices)

    @property
    def requests_per_s(self) -> float:
        """What one replica is planned to serve."""
        return self.line.serves_requests_per_s / max(1, self.line.replicas)


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """Everything the files are made from. spare_nodes: idle nodes that the plan keeps for a loss."""

    recommendation: str
    kinds: tuple[ReplicaKind, ...]
    fleet: tuple[FleetNodesOut, ...]
    machines: dict[str, Machine]
    spare_nodes: int


def replica_kinds(
    lines: list[PlanLineOut],
    workloads: dict[str, WorkloadIn],
    machines: dict[str, Machine],
    models: dict[str, ServedModel],
) -> tuple[ReplicaKind, ...]:
    """Lines in the plan's order, with names that say whose they are. machines by offer, models by LLM."""
    return tuple(
        ReplicaKind(
            label_name(line.workload if line.role == "aggregated" else f"{line.workload}-{line.role}", number),
            line,
            workloads[line.workload],
            machines[line.offer],
            models[workloads[line.workload].llm],
        )
        for number, line in enumerate((line for line in lines if line.replicas > 0), 1)
    )
