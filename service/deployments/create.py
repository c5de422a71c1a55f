"""Make the files of a target from a stored plan: read, then a pure function of what was read."""

from collections.abc import Iterable

from sqlmodel import Session

from catalog.engine_options import read_engine_options
from service.deployments.generate import TARGETS, generate
from service.deployments.memory import with_memory
from service.deployments.plan import DeploymentPlan, Machine, ServedModel, replica_kinds
from service.deployments.queries import llms_of, machines_of, offers_of
from service.problems import ConflictError, FieldError, InvalidFieldsError, NotFoundError, unknown_name
from service.recommendations.catalog_snapshot import SnapshotCache
from service.recommendations.from_rows import llm_from_row
from service.recommendations.present import present_recommendation
from service.recommendations.queries import recommendation_by_id
from service.wire.deployments import DeploymentOut


def answer_deployment(
    session: Session,
    snapshots: SnapshotCache,
    recommendation_id: str,
    target: str,
    version: str | None,
    ramp: float | None = None,
) -> DeploymentOut:
    """The files. Raises NotFoundError, InvalidFieldsError for an unknown target or version, ConflictError where the plan
    is none or the target cannot express it."""
    known = {v for versions in read_engine_options().values() for v in versions}
    wrong = []
    if target not in TARGETS:
        wrong.append(FieldError(_unknown("target", target, TARGETS), parameter="target"))
    if version is not None and version not in known:
        wrong.append(FieldError(_unknown("engine version", version, sorted(known)), parameter="engine_version"))
    if wrong:
        raise InvalidFieldsError(wrong)
    return generate(read_plan(session, snapshots, recommendation_id), target, version, ramp)


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """All there are: no list of them can be asked for."""
    listed = list(known)
    near = unknown_name(kind, name, listed).removesuffix("; GET the list for the known ones")
    return f"{near} (known: {', '.join(listed)})"


def read_plan(session: Session, snapshots: SnapshotCache, recommendation_id: str) -> DeploymentPlan:
    """A stored plan with what its machines and models are. Raises NotFoundError; ConflictError where there is no plan."""
    row = recommendation_by_id(session, recommendation_id)
    if row is None:
        raise NotFoundError(f"no recommendation {recommendation_id[:80]!r}")
    found = present_recommendation(row)
    if not found.plan:
        raise ConflictError(f"{row.id} is {found.outcome}: it has no plan to start")
    nodes = machines_of(session, {line.node for line in found.plan})
    offers = offers_of(session, {line.offer for line in found.plan})
    machines = {}
    for line in found.plan:
        if line.node not in nodes:
            raise ConflictError(f"node {line.node!r} of the plan is no longer in the catalog")
        node, device = nodes[line.node]
        offer = offers.get(line.offer)
        machines[line.offer] = Machine(
            line.node,
            node.devices,
            line.device,
            device.row["vendor"],
            tuple(device.row["engines"]),
            line.offer.split(":")[1] if offer is None else offer.instance,
            offer is not None and offer.named_place,
        )
    workloads = {w.name: w for w in found.request.workloads}
    llms = llms_of(session, {w.llm for w in workloads.values()})
    models = {}
    for workload in workloads.values():
        if workload.llm not in llms:
            raise ConflictError(f"llm {workload.llm!r} of the plan is no longer in the catalog")
        about = llms[workload.llm].row
        models[workload.llm] = ServedModel(
            workload.llm,
            about.get("hugging_face_id"),
            about.get("native_weights", "bf16"),
            any(group.get("experts") for group in about["feed_forward"]),
            about["max_context_tokens"],
            about.get("vision") is not None or about.get("audio") is not None,
        )
    limits = found.request.limits
    plan = DeploymentPlan(
        row.id,
        replica_kinds(found.plan, workloads, machines, models),
        tuple(found.fleet),
        machines,
        max(limits.spare_nodes, limits.fault_tolerance.nodes),
    )
    shapes = {llm: llm_from_row(found_row.row) for llm, found_row in llms.items()}
    return with_memory(plan, snapshots.at(session, row.price_as_of), shapes)
