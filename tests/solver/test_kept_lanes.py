"""What is kept of a deployment between draws and loads is what is made anew, and never that of another one."""

from dataclasses import replace

import pytest

from solver.deployment.configuration import Configuration
from solver.engine.simulate import simulate
from solver.layout import Layout
from solver.lengths import fixed_lengths
from solver.replay.one_stream import capacity_requests_per_s
from solver.step.tables import StepTables
from solver.workload import EngineSettings, Traffic
from tests.llm_shapes import shape
from tests.solver.samples import configuration

SHORT, LONG = Traffic(fixed_lengths(300), fixed_lengths(60)), Traffic(fixed_lengths(900), fixed_lengths(60))
FEW = configuration(shape("llama-3.1-8b"), engine=EngineSettings(max_sequences=32))
DEPLOYMENTS = {
    "few seats": FEW,
    "fewer seats": replace(FEW, engine=replace(FEW.engine, max_sequences=16)),
    "two stages": configuration(shape("llama-3.1-8b"), layout=Layout(1, 2), engine=EngineSettings(max_sequences=32)),
    "another device": configuration(shape("llama-3.1-8b"), "l40s", engine=EngineSettings(max_sequences=32)),
}
TABLES = {name: one.tables() for name, one in DEPLOYMENTS.items()}
PROMPTS, OUTPUTS = [300, 200, 500, 40] * 20, [60, 1, 30, 90] * 20


def _said(on: Configuration, tables: StepTables) -> tuple[object, ...]:
    closed = simulate(tables, on.schedule(), PROMPTS, OUTPUTS, concurrency=8)
    cached = simulate(tables, on.schedule(0.5), PROMPTS, OUTPUTS, concurrency=8)
    arriving = [0.01 * n for n in range(len(PROMPTS))]
    opened = simulate(tables, on.schedule(), PROMPTS, OUTPUTS, arrivals_s=arriving, notes_gaps=False)
    capacities = tuple(capacity_requests_per_s(on, tables, traffic, n) for traffic in (SHORT, LONG) for n in (6, 24))
    times = tuple(tuple(run.end_to_end_s.tolist()) for run in (closed, cached, opened))
    return (*times, len(closed.gaps), len(opened.gaps), *capacities)


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_kept_is_what_is_made_anew(name: str) -> None:
    """Whatever was asked before: other deployments, then this one twice, beside tables that nobody has met."""
    for other, on in DEPLOYMENTS.items():
        _said(on, TABLES[other])
    on = DEPLOYMENTS[name]
    first, again = _said(on, TABLES[name]), _said(on, TABLES[name])
    anew = replace(on)
    assert first == again == _said(anew, anew.tables())


def test_what_differs_is_told_apart() -> None:
    said = [_said(on, TABLES[name]) for name, on in DEPLOYMENTS.items()]
    assert len(set(said)) == len(said)
    for one in said:
        assert one[0] != one[1], "what is cached of prompts"
        assert len(set(one[5:])) == 4, "traffic, and how often seats are taken"


def test_a_schedule_is_made_once_for_each_share_cached() -> None:
    on = replace(FEW)
    assert on.schedule(0.5) is on.schedule(0.5)
    assert on.schedule(0.5) == replace(on.schedule(0.0), cached_prefix_fraction=0.5)
    assert replace(on, kv_cache_tokens=on.kv_cache_tokens / 2).schedule(0.5) != on.schedule(0.5)
