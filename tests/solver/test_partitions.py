"""Instances of split devices in whole plans: cheaper or equal, never where they do not belong, never claimed as measured."""

import random
from dataclasses import replace

import pytest

from solver.corrections.applied import CorrectionSet, EngineCorrection, Evidence, configuration_correction
from solver.deployment.deploy import Deployed, deploy
from solver.errors import UnsupportedError
from solver.hardware import Device, Node, Partition, instance_of
from solver.layout import Layout
from solver.planning.types import PlanLimits
from solver.precision import Precision
from solver.step.constants import resolve_constants
from solver.workload import EngineSettings
from tests.llm_shapes import shape
from tests.solver.planning_cases import SHORT, node, offer, plan, workload
from tests.solver.samples import device, priors

SEVENTH = Partition("1g", 7, 14 / 108, 1 / 8, 9.5 * 2**30)
HALF = Partition("3g", 2, 42 / 108, 4 / 8, 39.25 * 2**30)
SPLIT = PlanLimits(partitions=frozenset({"1g", "3g"}))


def splittable(name: str = "a100-sxm-80") -> Device:
    return replace(device(name), partitions=(SEVENTH, HALF))


A100 = node("a100x1-mig", splittable(), 1)
FOUR = node("a100x4-mig", splittable(), 4)
SMALL = tuple(workload(f"w{n}", "llama-3.2-1b", 0.5, traffic=SHORT) for n in range(3))


def test_small_models_share_a_device_and_its_rent() -> None:
    asked = {"offers": (offer(A100, 2.0),), "nodes": (A100,)}
    whole, split = plan(*SMALL, **asked), plan(*SMALL, limits=SPLIT, **asked)
    assert whole.usd_per_hour == 6.0
    assert split.usd_per_hour == 2.0
    assert sum(entry.usd_per_hour for entry in split.entries) == pytest.approx(2.0)
    (cut,) = split.splits
    assert (cut.devices, cut.nodes, cut.instances) == (1, 1, 7 if cut.profile == "1g" else 2)
    assert all(entry.configuration.device.partition for entry in split.entries)


def test_a_split_device_never_makes_a_plan_dearer() -> None:
    for seed in range(8):
        rng = random.Random(seed)
        asked = [
            workload(f"w{n}", rng.choice(("llama-3.2-1b", "llama-3.1-8b")), rng.choice((0.3, 2.0, 8.0)), traffic=SHORT)
            for n in range(rng.randint(1, 3))
        ]
        market = {"offers": (offer(A100, 2.0), offer(FOUR, rng.uniform(6.0, 9.0))), "nodes": (A100, FOUR)}
        whole, split = plan(*asked, **market), plan(*asked, limits=SPLIT, **market)
        assert split.solve.outcome == whole.solve.outcome == "optimal"
        assert split.usd_per_hour <= whole.usd_per_hour + 1e-9, f"seed {seed}"


def test_machines_whose_devices_the_tenant_cannot_split_stay_whole() -> None:
    held = replace(A100, id="a100x1-container", can_split_devices=False)
    found = plan(*SMALL, limits=SPLIT, offers=(offer(held, 2.0), offer(A100, 7.0)), nodes=(held, A100))
    assert found.usd_per_hour == 6.0
    assert found.splits == ()


def test_pools_of_their_own_have_whole_devices() -> None:
    either = workload("chat", "llama-3.2-1b", 2.0, roles=("aggregated", "disaggregated"))
    networked: Node = replace(FOUR, id="a100x4-net", network_bytes_per_s=5e10)
    found = plan(either, limits=SPLIT, offers=(offer(networked, 8.0),), nodes=(networked,))
    assert found.pools is not None
    paired = [entry for entry in found.entries if entry.role != "aggregated"]
    assert not any(entry.configuration.device.partition for entry in paired)
    forced = plan(
        replace(either, roles=("disaggregated",)), limits=SPLIT, offers=(offer(networked, 8.0),), nodes=(networked,)
    )
    assert {entry.role for entry in forced.entries} == {"prefill", "decode"}
    assert not any(entry.configuration.device.partition for entry in forced.entries)
    assert forced.splits == ()


def configured(on: Device, layout: Layout | None = None) -> Deployed:
    constants = resolve_constants(priors(), device=on.id, family=on.family, engine="vllm")
    asked = (layout or Layout(), Precision("bf16", "bf16"), EngineSettings(max_context_tokens=300), SHORT)
    return deploy(shape("llama-3.2-1b"), on, constants, *asked)


def test_a_model_copy_has_one_instance() -> None:
    one = instance_of(splittable(), SEVENTH)
    assert configured(one, Layout(data_parallel=2)).configuration.layout.devices == 2
    with pytest.raises(UnsupportedError, match="not joined"):
        configured(one, Layout(tensor_parallel=2))


FOLLOWERS = ("time_per_output_token", "inter_token", "end_to_end", "time_to_first_answer")


def test_what_is_known_of_whole_devices_is_borrowed_and_wider() -> None:
    whole = splittable()
    spread, own = ({("dense", "time_per_output_token"): pair} for pair in ((0.9, 1.1), (0.99, 1.01)))
    known = EngineCorrection(
        device=whole.id, family=whole.family, engine="vllm", versions=(), constants={}, precisions=frozenset({("bf16", "bf16", "dense")}),
        evidence=(Evidence("llama-3.2-1b", Precision("bf16", "bf16"), Layout(), ("run",), {"time_per_output_token": 1.2}),),
        spreads=spread, own_spreads=own, borrowed_widening=2.0, unseen_widening=3.0,
    )  # fmt: skip
    current = CorrectionSet(1, (known,), {})
    found = [
        configuration_correction(current, configured(on).configuration) for on in (whole, instance_of(whole, HALF))
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert (found[0].basis, found[1].basis) == ("measured", "borrowed")
    assert found[1].spreads["time_per_output_token"] == pytest.approx((0.9**6.0, 1.1**6.0))
    assert (found[0].factors, found[1].factors) == (dict.fromkeys(FOLLOWERS, 1.2), {})
