"""Candidates that differ in their machine alone are screened once, and a percentile's times once for all targets: the same figures."""

import math
from dataclasses import replace
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest

from solver.candidates import tabulated
from solver.candidates.screening import (
    at_even_odds,
    no_better_than_one_process,
    no_better_than_smaller,
    screen,
    with_targets,
    with_workload,
)
from solver.engine.in_line import launches_in_line
from solver.engine.screened_capacity import (
    IN_FLIGHT_GRID,
    ScreenedTimes,
    capacity,
    most_requests_per_s,
    saturation_requests_per_s,
)
from solver.engine.steady import COLUMNS, OperatingPoints, operating_points, step_grid
from solver.recommend.recommend import space_of
from solver.traffic_classes import with_confidence, with_rate
from solver.workload import Targets
from tests.solver.naive_session_cache import random_case
from tests.solver.planning_cases import MEMO, NODES, node, planning, workload
from tests.solver.samples import device
from tests.solver.test_expected_hits import traffic_of

BOTH_ROLES: tuple[Literal["aggregated", "disaggregated"], ...] = ("aggregated", "disaggregated")
NEAR_AND_FAR = {"near": 0.01, "far": 0.12}
MARKET = (*NODES, node("h100x4", device("h100-sxm"), 4), node("l4x2", device("l4"), 2))
ASKED = (
    Targets({"p95": 0.8, "mean": 0.4}, {"p95": 0.05, "p99": 0.09}),
    Targets({"p95": 0.2}, {"p50": 0.02}, {"p95": 12.0}),
)


@pytest.mark.parametrize("llm", ["llama-3.1-8b", "qwen3-30b-a3b"])
@pytest.mark.parametrize("at_once", [3, 10_000])
def test_every_row_has_the_steps_that_it_has_by_itself(llm: str, at_once: int) -> None:
    """However many are tabulated at once, behind more processes too, and where others perform as it does."""
    asked = workload(llm=llm, kv_cache_formats=("bf16", "fp8"))
    market = planning(asked, nodes=MARKET)
    with patch.object(tabulated, "TABULATED_AT_ONCE", at_once):
        space = space_of(market, asked, {}, requests_per_s=math.inf)
    assert space.has_more_servers
    assert len(space.grid.decode_s) < len(space.rows), "some perform alike"
    every = space.grid_of(np.arange(len(space.rows)))
    for row, entry in enumerate(space.rows):
        found, layout = space.configuration(row), entry.layout
        in_line = np.array([[launches_in_line(found.engine.name, found.engine.version, layout)]])
        stages, copies = (np.array([[float(n)]]) for n in (layout.pipeline_parallel, layout.data_parallel))
        platform = space.platforms[entry.platform]
        graphs = platform.graphs(space.shape, layout.tensor_parallel, space.settings, 1)
        batches = np.array([[float(found.batches)]])
        own = step_grid(found.shape, found.rates(), stages, copies, graphs, None, in_line, batches)
        for name in COLUMNS:
            assert np.array_equal(getattr(every, name)[row], getattr(own, name)[0]), (name, entry)
        for of_all, of_one in zip((*every.context, *every.pairs), (*own.context, *own.pairs), strict=True):
            assert of_all[0] == of_one[0]
            assert of_all[1][row] == of_one[1][0]
            assert of_all[2][row] == of_one[2][0]


@pytest.mark.parametrize("targets", ASKED)
@pytest.mark.parametrize("away", [None, NEAR_AND_FAR])
def test_every_row_is_as_if_it_were_screened_by_itself(targets: Targets, away: dict[str, float] | None) -> None:
    asked = replace(
        workload(targets=replace(targets, confidence_fraction=0.8), kv_cache_formats=("bf16", "fp8")),
        network_s_by_region=away,
    )
    space = space_of(planning(asked, nodes=MARKET), asked, MEMO)
    one = screen(asked, space).only
    assert len(space.distinct[0]) < len(space.rows), "some differ in their machine alone"
    traffic = asked.traffic
    for front, members in space.fronts:
        points = operating_points(
            space.grid_of(np.arange(len(space.rows))),
            traffic,
            front,
            in_flight=IN_FLIGHT_GRID,
            kv_cache_tokens=space.cache_tokens(traffic.prompt.mean + traffic.output.mean / 2.0)[:, None],
            max_batched_tokens=space.batched_tokens[:, None].astype(float),
            max_sequences=float(space.settings.max_sequences),
        )
        points = OperatingPoints(**{name: getattr(points, name)[members] for name in OperatingPoints.__slots__})
        for copy in range(len(asked.distances_s) or 1):
            mine = copy * len(space.rows) + members
            network = one.network_s[mine] if isinstance(one.network_s, np.ndarray) else one.network_s
            assert isinstance(one.margin, np.ndarray)
            times, margin = ScreenedTimes(points, traffic), one.margin[mine]
            found = capacity(times, one.workload.only.targets, margin, network)
            assert np.array_equal(one.capacity.requests_per_s[mine], found.requests_per_s)
            assert np.array_equal(one.capacity.best_s[mine], found.best_s)
            tried = one.allowed[mine] & ~(no_better_than_smaller([one]) | no_better_than_one_process([one]))[mine]
            passed_on = space.passed_on_tokens_per_s[members] / traffic.output.mean
            most = np.minimum(passed_on, most_requests_per_s(times, one.workload.only.targets, margin, network))
            most = np.where(tried, most, 0.0)
            assert np.array_equal(one.most_requests_per_s[mine], most)
            assert np.array_equal(one.saturation_requests_per_s[mine], saturation_requests_per_s(points))


def test_other_targets_and_rates_are_as_if_screened_anew() -> None:
    first = workload(targets=replace(ASKED[0], confidence_fraction=0.8))
    space = space_of(planning(first, nodes=MARKET), first, MEMO)
    one = screen(first, space)
    looser = with_targets(one, replace(ASKED[1], confidence_fraction=0.8))
    anew = screen(looser.workload, space)
    assert np.array_equal(looser.only.most_requests_per_s, anew.only.most_requests_per_s)
    busier = with_workload(one, with_rate(first, 90.0))
    assert busier.only.most_requests_per_s is one.only.most_requests_per_s
    assert busier.workload.requests_per_s == 90.0
    even = at_even_odds(one, with_confidence(first, 0.5))
    assert np.array_equal(even.only.most_requests_per_s, screen(even.workload, space).only.most_requests_per_s)


def test_what_smaller_steps_do_as_well_they_do_at_every_distance() -> None:
    """What is completed whatever the latency depends on no distance, and no row is compared with one at another."""
    asked = workload(kv_cache_formats=("bf16", "fp8"))
    near, far = (screen(one, space_of(planning(one, nodes=MARKET), one, MEMO)).only for one in (
        asked, replace(asked, network_s_by_region=NEAR_AND_FAR)
    ))  # fmt: skip
    dropped, at_all = no_better_than_smaller([near]), no_better_than_smaller([far])
    copies = len(at_all) // len(dropped)
    assert copies > 1
    assert dropped.any()
    assert not dropped.all()
    assert np.array_equal(at_all, np.tile(dropped, copies))


@pytest.mark.parametrize("away", [None, NEAR_AND_FAR])
@pytest.mark.parametrize("changes", [{}, {"roles": BOTH_ROLES}, {"traffic": traffic_of(random_case(1)[0])}])
def test_rows_on_some_machines_are_as_among_all(away: dict[str, float] | None, changes: dict[str, Any]) -> None:
    """What performs as one of them is there too, and nothing else."""
    asked = replace(workload(kv_cache_formats=("bf16", "fp8"), **changes), network_s_by_region=away)
    space = space_of(planning(asked, nodes=MARKET), asked, {}, requests_per_s=math.inf)
    machine = MARKET[-1].id
    on = space.rows_on({machine})
    assert [machine in space.platforms[row.platform].node_ids for row in space.rows] == on.tolist()
    alike = np.isin(space.twin, space.twin[on])
    assert on.sum() < alike.sum() < len(space.rows), "some that stand elsewhere perform alike, others do not"
    assert any(not alike[members].any() for _, members in space.fronts), "none of them is behind more processes"
    every, some = screen(asked, space), screen(asked, space, among=on)
    mine = np.tile(alike, every.copies)
    for name in ("requests_per_s", "most_requests_per_s"):
        assert np.array_equal(getattr(some.only, name), np.where(mine, getattr(every.only, name), 0.0)), name
    for name in ("saturation_requests_per_s", "power_w_per_replica"):
        assert np.array_equal(getattr(some.only, name)[mine], getattr(every.only, name)[mine]), name
    for name in ("limit", "best_s", "time_to_first_token_s"):
        assert np.array_equal(getattr(some.only.capacity, name)[mine], getattr(every.only.capacity, name)[mine]), name
    assert (every.roles is None) is (some.roles is None) is ("roles" not in changes)
    if every.roles is not None and some.roles is not None:
        assert np.array_equal(some.roles.decode, np.where(mine, every.roles.decode, 0.0))
        assert np.array_equal(some.roles.prefill, np.where(mine, every.roles.prefill, 0.0))
