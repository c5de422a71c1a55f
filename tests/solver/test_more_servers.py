"""Candidates behind several processes that answer: there where one may limit them, where the host has processors, chosen where they pay."""

import dataclasses
from unittest.mock import patch

import numpy as np
import pytest

from solver.candidates.rejections import rejections
from solver.candidates.screening import screen
from solver.engine import profiles
from solver.hardware import Node
from solver.layout import Layout
from solver.lengths import uniform_lengths
from solver.recommend.recommend import recommend, space_of
from solver.workload import EngineSettings, Traffic
from tests.solver.planning_cases import H100, H200, L4, MEMO, cost, offer, planning, workload

MORE = profiles.PLANNED_SERVERS["vllm"].api_servers
SHORT = Traffic(uniform_lengths(100, 300), uniform_lengths(100, 300))
LONG = Traffic(uniform_lengths(2000, 6000), uniform_lengths(100, 300))
MANY = 1000.0
"""Requests a second: more than one process passes on of either."""
FORMATS = {"weight_formats": ("bf16", "fp8"), "kv_cache_formats": ("bf16", "fp8")}


def processes(layout: Layout, devices: int) -> int:
    """Of all replicas on a machine, counted one by one."""
    each = 0
    for _ in range(layout.data_parallel):
        each += MORE + 1
    each += layout.tensor_parallel * layout.pipeline_parallel * layout.data_parallel
    each += 1 if layout.data_parallel > 1 else 0
    return each * max(1, devices // (layout.tensor_parallel * layout.pipeline_parallel * layout.data_parallel))


def with_processors(node: Node, processors: float) -> Node:
    return dataclasses.replace(node, id=f"{node.id}-{processors:g}", host_processors=processors)


@pytest.mark.parametrize("traffic", [SHORT, LONG])
@pytest.mark.parametrize("llm", ["llama-3.1-8b", "qwen3-30b-a3b", "llama-3.1-70b"])
def test_what_has_no_candidate_behind_more_needs_none(llm: str, traffic: Traffic) -> None:
    """Screened as if all engines answered from as many processes, none carries more than one process may pass on."""
    asked = workload(llm=llm, traffic=traffic, rate=MANY, **FORMATS)
    space = space_of(planning(asked), asked, MEMO)
    many = dataclasses.replace(planning(asked), engine=EngineSettings("vllm", api_servers=MORE))
    all_behind = screen(asked, space_of(many, asked, MEMO))
    one, several = space.passed_on_tokens_per_s, all_behind.only.most_requests_per_s * traffic.output.mean
    asked_rows = np.flatnonzero(space.api_servers == 1)
    assert [space.rows[row] for row in asked_rows] == list(all_behind.space.rows)
    without = np.setdiff1d(asked_rows, space.behind_as_asked[space.api_servers == MORE])
    assert len(without) < len(asked_rows)
    assert np.all(several[without] <= one[without])


def test_more_is_tried_on_machines_that_have_the_processors_or_do_not_say() -> None:
    machines = [with_processors(H100, n) for n in (0, 8, 20, 27, 28, 47, 48, 200)]
    asked = workload(traffic=SHORT, rate=MANY)
    space = space_of(planning(asked, nodes=(*machines, L4)), asked, MEMO)
    able: dict[Layout, set[str]] = {}
    for row in np.flatnonzero(space.api_servers == MORE):
        entry = space.rows[row]
        able.setdefault(entry.layout, set()).update(space.platforms[entry.platform].node_ids)
    assert len(able) > 2
    for layout, ids in able.items():
        needed = processes(layout, H100.devices)
        assert ids - {L4.id} == {m.id for m in machines if m.host_processors == 0 or m.host_processors >= needed}, (
            layout
        )


@pytest.mark.parametrize(("traffic", "is_said"), [(SHORT, True), (LONG, False)])
def test_a_machine_with_too_few_is_a_reason_only_where_one_process_is_the_limit(
    traffic: Traffic, is_said: bool
) -> None:
    asked = workload(traffic=traffic, rate=MANY)
    machine = with_processors(H100, 16)
    found = rejections(screen(asked, space_of(planning(asked, nodes=(machine, L4)), asked, MEMO)))
    said = [one for one in found if one.reason == "host_processors_exceeded"]
    assert bool(said) == is_said
    assert all(one.device_id == "h100-sxm" and "16" in one.detail for one in said)


@pytest.mark.parametrize("rate", [30.0, 120.0, 300.0, 400.0, 600.0, 900.0])
def test_as_cheap_as_with_all_processes_and_no_more_of_them_than_that_takes(rate: float) -> None:
    """Where the plan with one process costs as much, it is that one."""
    asked, market = workload(traffic=SHORT, rate=rate), {"nodes": (H200,), "offers": (offer(H200, 30.0),)}
    found = recommend(planning(asked, **market), MEMO)
    with patch.dict(
        profiles.PLANNED_SERVERS, clear=True
    ):  # under a name of its own: answers may be remembered by what is asked
        one = recommend(dataclasses.replace(planning(asked, **market), catalog_key="one process"), {})
    many = dataclasses.replace(planning(asked, **market), engine=EngineSettings("vllm", api_servers=MORE))
    assert cost(found) == cost(recommend(many, MEMO)) <= cost(one)
    behind = {entry.configuration.engine.api_servers for entry in found.entries}
    assert behind == ({1} if cost(found) == cost(one) else {MORE})


def test_they_are_there_at_rates_that_may_need_them_only() -> None:
    """One process may pass on 12,500 tokens a second; a plan keeps to the utilisation limit."""
    for rate, limit, is_there in ((62.0, 1.0, False), (63.0, 1.0, True), (43.0, 0.7, False), (44.0, 0.7, True)):
        asked = workload(traffic=SHORT, rate=rate, utilisation_limit_fraction=limit)
        assert space_of(planning(asked), asked, MEMO).has_more_servers == is_there, (rate, limit)
    most = dataclasses.replace(planning(asked), objective="throughput")
    few = workload(traffic=SHORT, rate=1.0)
    assert space_of(most, few, MEMO).has_more_servers


def test_rows_of_the_space_without_are_the_first_of_that_with() -> None:
    """Simulations are kept by row, for both together."""
    few, many = workload(traffic=SHORT, rate=1.0), workload(traffic=SHORT, rate=MANY)
    alone, both = (space_of(planning(one), one, MEMO) for one in (few, many))
    before = len(alone.rows)
    assert len(both.rows) > before
    assert both.runs is alone.runs
    assert np.array_equal(both.twin[:before], alone.twin)
    assert both.twin[before:].min() >= before
    for row in range(before):
        assert both.configuration(row) == alone.configuration(row)
    for row in range(before, len(both.rows)):
        engine = both.configuration(int(both.behind_as_asked[row])).engine
        assert both.configuration(row).engine == dataclasses.replace(engine, api_servers=MORE)
