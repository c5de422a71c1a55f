"""Predict many fixed deployments. One bad case does not spoil the rest."""

from collections.abc import Collection, Mapping

from fastapi.concurrency import run_in_threadpool

from service.clock import Clock
from service.database import Database
from service.estimates.batch import CASES_AT_ONCE, AnyCase, Batch, Unresolved
from service.estimates.predict import Case
from service.estimates.predict_disaggregated import DisaggregatedCase
from service.estimates.present import unsupported
from service.estimates.published import published_case
from service.llms.queries import hub_names_by_id, llm_ids, llms_by_ids
from service.metrics import Metrics
from service.names_meant import device_name_meant, llm_name_meant
from service.problems import FieldError, InvalidFieldsError, close_matches, unknown_name
from service.recommendations.catalog_snapshot import CatalogSnapshot, SnapshotCache
from service.recommendations.from_rows import llm_from_row
from service.solver_pool import SolverPool
from service.wire.estimates import EstimateIn, EstimatesIn
from service.wire.roles import DraftModelIn
from solver.deployment.platforms import own_engines
from solver.hardware import Device, instance_of
from solver.llm_shape import LlmShape


async def create_estimates(
    asked: EstimatesIn,
    *,
    database: Database,
    snapshots: SnapshotCache,
    pool: SolverPool,
    metrics: Metrics,
    clock: Clock,
    time_limit_s: float,
) -> bytes:
    """An ``EstimatesOut`` as it is sent, in the order asked. Raises InvalidFieldsError when not one case names an llm and a
    device that exist, and when they take longer than the limit together.
    """
    resolved = await run_in_threadpool(_resolve_all, asked, database, snapshots, clock)
    unknown = [
        FieldError(case.answer.detail, pointer=f"/estimates/{n}/{case.field}")
        for n, case in enumerate(resolved)
        if isinstance(case, Unresolved) and case.field is not None
    ]
    if len(unknown) == len(resolved):
        raise InvalidFieldsError(unknown)
    batch = Batch(resolved, time_limit_s)
    answers = await pool.run("estimates", batch.answers, batch.take_part if len(resolved) > CASES_AT_ONCE else None)
    for answer in answers:
        metrics.count_outcome("estimate", answer.outcome)
    return b'{"estimates":[' + b",".join(answer.document for answer in answers) + b"]}"


def _resolve_all(
    asked: EstimatesIn, database: Database, snapshots: SnapshotCache, clock: Clock
) -> list[AnyCase | Unresolved]:
    """Names → shapes, devices and nodes, in one read transaction."""
    with database.reading() as session:
        now = clock()
        snapshot = snapshots.at(session, now)
        asked = _with_devices_of_nodes(asked, snapshot)
        named = {name for e in asked.estimates for name, _ in _llms(e)}
        rows = llms_by_ids(session, named)
        if len(rows) < len(named) or any(
            name not in snapshot.device_ids for e in asked.estimates for name, _ in _devices(e)
        ):
            asked = _with_names_meant(asked, snapshot, hub_names_by_id(session))
            named = {name for e in asked.estimates for name, _ in _llms(e)}
            rows = llms_by_ids(session, named)
        shapes = {row.id: llm_from_row(row.row) for row in rows}
        known_llms = llm_ids(session) if len(shapes) < len(named) else []
    return [_resolve(e, shapes, snapshot, known_llms) for e in asked.estimates]


def _with_devices_of_nodes(asked: EstimatesIn, snapshot: CatalogSnapshot) -> EstimatesIn:
    """Cases that name a machine alone with the device that it holds; none where the catalog does not know the machine."""
    held = snapshot.device_by_node
    if all(one.device is not None or one.node is None for one in asked.estimates):
        return asked
    return asked.model_copy(
        update={
            "estimates": tuple(
                one
                if one.device is not None or one.node is None
                else one.model_copy(update={"device": held.get(one.node)})
                for one in asked.estimates
            )
        }
    )


def _with_names_meant(
    asked: EstimatesIn, snapshot: CatalogSnapshot, hub_names: Mapping[str, str | None]
) -> EstimatesIn:
    """Models and devices by the catalog's names, where it is clear which are meant."""
    memory = snapshot.memory_gib_by_device
    return asked.model_copy(
        update={
            "estimates": tuple(
                one.model_copy(
                    update={
                        "llm": llm_name_meant(one.llm, hub_names),
                        "device": None if one.device is None else device_name_meant(one.device, memory),
                    }
                )
                for one in asked.estimates
            )
        }
    )


def _llms(asked: EstimateIn) -> list[tuple[str, str]]:
    """Every model a case names, with the field that names it."""
    drafting = asked.engine.speculative
    draft = [(drafting.draft_llm, "engine/speculative/draft_llm")] if isinstance(drafting, DraftModelIn) else []
    return [(asked.llm, "llm"), *draft]


def _devices(asked: EstimateIn) -> list[tuple[str, str]]:
    """Every device a case names, with the field that names it."""
    if asked.disaggregated is None:
        return [] if asked.device is None else [(asked.device, "device")]
    pools = (("prefill", asked.disaggregated.prefill), ("decode", asked.disaggregated.decode))
    return [(pool.device, f"disaggregated/{role}/device") for role, pool in pools]


def _nodes(asked: EstimateIn) -> list[tuple[str, str, str]]:
    """Every node a case names, with its pool's device and the field that names it."""
    if asked.disaggregated is None:
        return [] if asked.node is None else [(asked.node, asked.device or "", "node")]
    pools = (("prefill", asked.disaggregated.prefill), ("decode", asked.disaggregated.decode))
    return [(pool.node, pool.device, f"disaggregated/{role}/node") for role, pool in pools if pool.node is not None]


def _resolve(
    asked: EstimateIn, shapes: dict[str, LlmShape], snapshot: CatalogSnapshot, known_llms: list[str]
) -> AnyCase | Unresolved:
    def unknown(kind: str, name: str, known: Collection[str], field: str) -> Unresolved:
        close = close_matches(name, known)
        return Unresolved(unsupported(asked, f"unknown_{kind}", unknown_name(kind, name, known), close), field)

    for name, field in _llms(asked):
        if name not in shapes:
            return unknown("llm", name, known_llms, field)
    published = published_case(asked, shapes[asked.llm])
    for name, field in _devices(asked):
        if name not in snapshot.device_ids:
            return unknown("device", name, snapshot.device_ids, field)
        if name in snapshot.refused:
            if published is not None:
                return published
            figure = snapshot.refused[name]
            return Unresolved(unsupported(asked, "figure_missing", f"{name}: no sourced value for {figure}"))
    for name, of_device, field in _nodes(asked):
        if name not in snapshot.nodes:
            return unknown("node", name, snapshot.nodes.keys(), field)
        held = snapshot.nodes[name].device.id
        if held != of_device:
            return Unresolved(unsupported(asked, "node_of_another_device", f"{name} holds {held}, not {of_device}"))
    if asked.disaggregated is None:
        device = snapshot.devices[asked.device or ""]
        if asked.partition is not None:
            own = {one.profile: one for one in device.partitions}
            if not own:
                detail = f"{device.id}: no sourced way of splitting it"
                return Unresolved(unsupported(asked, "figure_missing", detail), "partition")
            if asked.partition not in own:
                return unknown("partition", asked.partition, own.keys(), "partition")
            device = instance_of(device, own[asked.partition])
        return Case(_with_own_engine(asked, device), shapes[asked.llm], device, snapshot, shapes)
    return DisaggregatedCase(asked, asked.disaggregated, shapes[asked.llm], snapshot)


def _with_own_engine(asked: EstimateIn, device: Device) -> EstimateIn:
    """A case that names no engine with the device's own, as plans have it: the default one wherever that runs and loads the weights."""
    if "name" in asked.engine.model_fields_set:
        return asked
    own = (own_engines(device, asked.engine.name, (), (asked.precision.weights,)) or (asked.engine.name,))[-1]
    return asked.model_copy(update={"engine": asked.engine.model_copy(update={"name": own})})
