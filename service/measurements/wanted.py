"""Which measurement would most change a stored recommendation.

The cost of a plan's line is proportional to the time a token takes, so the interval of its TPOT is the interval of its
price: what lies between its ends is what a measurement decides. An alternative is worth measuring when the low end of
its price is below the plan's.
"""

from collections.abc import Mapping
from decimal import Decimal

from sqlmodel import Session

from service.llms.queries import llm_by_id
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import (
    layout_from_wire,
    llm_from_row,
    precision_from_wire,
    traffic_from_wire,
)
from service.wire.benchmarks import (
    MeasuredClosedLoad,
    MeasuredEngine,
    MeasuredLayout,
    MeasuredOpenLoad,
    MeasuredPrecision,
)
from service.wire.measurements import MeasurementIn, MeasurementWantedOut, WantedTraffic
from service.wire.plan_lines import PlanLineOut
from service.wire.quantities import Interval
from service.wire.recommendations import RecommendationOut, WorkloadIn
from service.wire.traffic import TrafficShape
from solver.corrections.applied import configuration_correction
from solver.deployment.deploy import deploy
from solver.errors import SolverError
from solver.prediction.estimate import estimate
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings, Load

ROUNDS = 3
"""Requests for each client of the closed loop a configuration is compared under."""


def measurements_wanted(
    session: Session, recommendation: RecommendationOut, snapshot: CatalogSnapshot
) -> list[MeasurementWantedOut]:
    """Measurements of the plan's and its alternatives' configurations, the most decisive first.

    Pools of their own are left out: an agent runs whole replicas.
    """
    workloads = {w.name: w for w in recommendation.request.workloads}
    found: dict[str, MeasurementWantedOut] = {}
    for line in _whole(recommendation.plan, workloads):
        swing = _swing(session, line, workloads[line.workload], snapshot)
        if swing is not None:
            low, high = swing
            _keep(found, recommendation.id, line, workloads, "in the plan", line.usd_per_hour * (high - low))
    for alternative in recommendation.alternatives:
        extra = alternative.extra_usd_per_hour
        for line in _whole(alternative.plan, workloads):
            swing = _swing(session, line, workloads[line.workload], snapshot)
            if swing is None or extra is None:
                continue
            gain = line.usd_per_hour * -swing[0] - extra
            if gain > 0:
                _keep(found, recommendation.id, line, workloads, f"may be cheaper: {alternative.why}", gain)
    return sorted(found.values(), key=lambda w: w.decides_usd_per_hour, reverse=True)


def _whole(lines: list[PlanLineOut], workloads: Mapping[str, WorkloadIn]) -> list[PlanLineOut]:
    """Lines of replicas that prefill and decode, draft nothing, and serve plain text without adapters: agents start plain engines."""
    plain = {
        name
        for name, one in workloads.items()
        if one.adapters is None and all(s.shape.media is None and not s.shape.structured_fraction for s in one.streams)
    }
    return [
        line
        for line in lines
        if line.role == "aggregated" and line.partition is None and not _drafts(line) and line.workload in plain
    ]


def _drafts(line: PlanLineOut) -> bool:
    return line.engine_settings is not None and line.engine_settings.speculative is not None


def _keep(
    found: dict[str, MeasurementWantedOut],
    recommendation_id: str,
    line: PlanLineOut,
    workloads: Mapping[str, WorkloadIn],
    why: str,
    decides: Decimal,
) -> None:
    """One entry for each configuration and workload: the one that decides most."""
    wanted = MeasurementWantedOut(
        why=why, basis=line.basis, decides_usd_per_hour=decides,
        measurement=_measurement(recommendation_id, line, workloads[line.workload]),
    )  # fmt: skip
    key = wanted.measurement.model_dump_json(exclude={"loads", "notes"})
    if key not in found or found[key].decides_usd_per_hour < decides:
        found[key] = wanted


def _measurement(recommendation_id: str, line: PlanLineOut, workload: WorkloadIn) -> MeasurementIn:
    """One replica, in a closed loop at its concurrency and under its share of the traffic.

    Where it serves several traffic classes: in a closed loop of the one it gets most of, since an agent sends requests of
    one kind.
    """
    layout = line.layout
    loads: list[MeasuredClosedLoad | MeasuredOpenLoad] = [MeasuredClosedLoad(concurrency=line.max_concurrency)]
    if line.serves_requests_per_s > 0 and not line.classes:
        loads.append(MeasuredOpenLoad(requests_per_s=line.serves_requests_per_s / line.replicas))
    return MeasurementIn(
        device=line.device,
        devices=layout.tensor_parallel * layout.pipeline_parallel * layout.data_parallel,
        llm=workload.llm,
        layout=MeasuredLayout.model_validate(layout.model_dump()),
        precision=MeasuredPrecision.model_validate(line.precision.model_dump()),
        engine=MeasuredEngine(name=line.engine, arguments=_arguments(line)),
        traffic=WantedTraffic.model_validate(
            _main_shape(line, workload).model_dump(include={"prompt_tokens", "output_tokens"}, mode="python")
        ),
        loads=tuple(loads),
        recommendation=recommendation_id,
        notes=f"{line.workload} of {recommendation_id}",
    )


def _main_shape(line: PlanLineOut, workload: WorkloadIn) -> TrafficShape:
    """Requests that a line serves most of."""
    served = {one.traffic_class: one.serves_requests_per_s for one in line.classes}
    return max(workload.streams, key=lambda stream: served.get(stream.name or "", 0.0)).shape


def _swing(
    session: Session, line: PlanLineOut, workload: WorkloadIn, snapshot: CatalogSnapshot
) -> tuple[Decimal, Decimal] | None:
    """By which share of itself the line's price may be lower (negative) and higher; None where nothing is predicted."""
    interval = line.predicted.tpot_ms.mean if line.predicted is not None else None
    if interval is None:
        interval = _predicted(session, line, workload, snapshot)
    if interval is None or interval.expected <= 0:
        return None
    low, high = interval.low / interval.expected - 1, interval.high / interval.expected - 1
    return Decimal(str(round(low, 6))), Decimal(str(round(high, 6)))


def _captured_tokens(line: PlanLineOut) -> int | None:
    return None if line.engine_settings is None else line.engine_settings.max_captured_tokens


def _api_servers(line: PlanLineOut) -> int:
    return 1 if line.engine_settings is None else line.engine_settings.api_servers


def _arguments(line: PlanLineOut) -> list[str]:
    """What the plan tells its engine besides layout and formats, and times depend on."""
    captured, servers = _captured_tokens(line), _api_servers(line)
    told = [] if captured is None else ["--max-cudagraph-capture-size", str(captured)]
    return told if servers == 1 else [*told, "--api-server-count", str(servers * line.layout.data_parallel)]


def _predicted(session: Session, line: PlanLineOut, workload: WorkloadIn, snapshot: CatalogSnapshot) -> Interval | None:
    """TPOT of one replica at its concurrency: alternatives are stored without predictions."""
    row, device = llm_by_id(session, workload.llm), snapshot.devices.get(line.device)
    if row is None or device is None:
        return None
    traffic = traffic_from_wire(_main_shape(line, workload))
    constants = resolve_constants(
        snapshot.priors, device=device.id, family=device.family, engine=line.engine, llm=workload.llm
    )
    try:
        configuration = deploy(
            llm_from_row(row.row), device, constants, layout_from_wire(line.layout), precision_from_wire(line.precision),
            EngineSettings(line.engine, max_captured_tokens=_captured_tokens(line), api_servers=_api_servers(line)), traffic,
        ).configuration  # fmt: skip
        load = Load("closed", concurrency=line.max_concurrency, requests=ROUNDS * line.max_concurrency)
        correction = configuration_correction(snapshot.corrections, configuration, load)
        tpot = estimate(configuration, traffic, load, correction).time_per_output_token_s.get("mean")
    except SolverError:
        return None
    return None if tpot is None else Interval(expected=tpot.expected, low=tpot.low, high=tpot.high)
