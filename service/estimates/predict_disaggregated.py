"""A prefill and a decode pool to the solver, and their prediction back to the wire."""

from dataclasses import dataclass, replace

from service.estimates.predict import (
    constants_for,
    present_estimate,
    present_memory,
    present_step,
    served_traffic,
    with_context,
)
from service.recommendations.catalog_snapshot import CatalogSnapshot
from service.recommendations.from_rows import (
    engine_from_wire,
    layout_from_wire,
    load_from_wire,
    precision_from_wire,
)
from service.recommendations.present import present_percentiles, present_power
from service.wire.estimates import DisaggregatedOut, EstimatedOut, EstimateIn, PoolOut
from service.wire.roles import DisaggregatedIn, KvTransferOut, PoolIn
from solver.corrections.applied import pool_correction
from solver.deployment.deploy import Deployed, deploy
from solver.deployment.kv_transfer import ServingPool
from solver.errors import UnsupportedError
from solver.llm_shape import LlmShape
from solver.prediction.disaggregated import PoolEstimate, estimate_disaggregated
from solver.workload import Traffic

GIGA = 1e9


@dataclass(frozen=True)
class DisaggregatedCase:
    """Two pools whose names are all known."""

    asked: EstimateIn
    pools: DisaggregatedIn
    shape: LlmShape
    snapshot: CatalogSnapshot


def predict_disaggregated(case: DisaggregatedCase) -> EstimatedOut:
    """Runs in a solver thread. Raises what the solver raises: ``present.outcome_of`` turns that into an outcome."""
    case = replace(case, asked=with_context(case.asked, case.shape))
    asked, pools = case.asked, case.pools
    traffic, clipped = served_traffic(asked, case.shape)
    prefill, prefill_pool = _pool(case, pools.prefill, traffic)
    decode, decode_pool = _pool(case, pools.decode, traffic)
    current = case.snapshot.corrections
    found = estimate_disaggregated(
        prefill_pool,
        decode_pool,
        pools.kv_transfer.over,
        traffic,
        load_from_wire(asked.load),
        (pool_correction(current, prefill.configuration), pool_correction(current, decode.configuration)),
    )
    parts = DisaggregatedOut(
        prefill=_present_pool(prefill, prefill_pool, found.prefill),
        decode=_present_pool(decode, decode_pool, found.decode),
        kv_transfer=KvTransferOut(
            over=pools.kv_transfer.over,
            gb_per_s=found.link_bytes_per_s / GIGA,
            busy_fraction=min(1.0, found.link_busy_fraction),
            time_ms=present_percentiles(found.transfer_s),
        ),
    )
    return present_estimate(asked, decode, found.whole, pools=parts, clipped_fraction=clipped)


def _pool(case: DisaggregatedCase, asked: PoolIn, traffic: Traffic) -> tuple[Deployed, ServingPool]:
    """Raises what ``deploy`` raises, and UnsupportedError for a replica that its node does not hold."""
    device = case.snapshot.devices[asked.device]
    node = None if asked.node is None else case.snapshot.nodes[asked.node]
    layout = layout_from_wire(asked.layout)
    if node is not None and layout.devices_per_replica > node.devices:
        raise UnsupportedError(
            "layout_exceeds_node",
            f"a replica of {layout.devices_per_replica} devices does not fit {node.id}, which has {node.devices}",
        )
    engine = case.asked.engine
    precision = precision_from_wire(case.asked.precision)
    deployed = deploy(
        case.shape,
        device,
        constants_for(case.snapshot, device, engine, case.shape),
        layout,
        replace(precision, weights=asked.weights or precision.weights),
        engine_from_wire(engine),
        traffic,
    )
    if node is not None:
        inside = replace(deployed.configuration, link_domain_devices=node.link_domain_devices)
        deployed = replace(deployed, configuration=inside)
    return deployed, ServingPool(deployed.configuration, asked.replicas, node)


def _present_pool(deployed: Deployed, pool: ServingPool, found: PoolEstimate) -> PoolOut:
    return PoolOut(
        devices=pool.devices,
        busy_fraction=min(1.0, found.busy_fraction),
        power_w=present_power(found.power_w),
        memory=present_memory(deployed),
        bottleneck=found.bottleneck,
        step=present_step(found.step),
    )
