"""Published serving runs, their sources, generations of engines and the levels that ranges are made of."""

import collections

import pytest

from catalog.read_serving import is_current, read_generations, read_levels, read_public_runs, read_public_sources
from service.corrections.public_runs import asked
from solver.corrections.misses import MISS_CONSTANTS
from solver.engine.releases import WROTE_ANEW_WITH, release
from tests.solver.samples import catalog

RUNS = read_public_runs()


def test_every_run_is_of_what_the_catalog_knows_and_every_source_is_used() -> None:
    known = catalog()
    assert len({run.id for run in RUNS}) == len(RUNS) > 1_000
    assert {run.source for run in RUNS} == set(read_public_sources())
    for run in RUNS:
        assert run.device in known.devices, run.id
        assert run.llm in known.llms, run.id
        asked(run)


def test_runs_are_not_given_twice() -> None:
    """A source states a run once; one harness that repeats a load is told apart by what it measured."""
    seen = collections.Counter(run.model_dump_json(exclude={"id"}) for run in RUNS)
    assert [run for run, times in seen.items() if times > 2] == []


def test_who_knows_means_alone_asks_of_requests_that_are_alike() -> None:
    """Sources that state no more than means of lengths that vary: with what is known of a run they vary, about the same mean."""
    told = [run for run in RUNS if run.only_means]
    assert {run.source for run in told} == {name for name, source in read_public_sources().items() if source.only_means}
    varying = [run for run in told if run.prompt_tokens_low < run.prompt_tokens_high]
    assert len(varying) > 200
    for run in varying:
        known, guessed = (asked(run, stated=stated).traffic.prompt_tokens for stated in (True, False))
        assert (known.distribution, guessed.distribution) == ("uniform", "fixed")
        assert guessed.tokens == (known.low + known.high) // 2
    others = (run for run in RUNS if not run.only_means)
    assert all(asked(run).traffic == asked(run, stated=False).traffic for run in others)


def test_levels_are_of_families_and_devices_that_are() -> None:
    families = {device.family for device in catalog().devices.values()}
    for level in read_levels():
        assert set(level.families) <= families
        assert level.device is None or level.device in catalog().devices
        assert level.families or level.device


def test_the_solver_knows_the_same_first_release_of_a_generation() -> None:
    for engine, (since, _) in WROTE_ANEW_WITH.items():
        assert release(read_generations()[engine].since_version)[: len(since)] == since


@pytest.mark.parametrize("engine", sorted(read_generations()))
def test_runs_of_both_generations_are_there(engine: str) -> None:
    told = {is_current(run.engine, run.engine_version, run.measured_on) for run in RUNS if run.engine == engine}
    assert True in told
    assert engine == "sglang" or False in told


def test_every_range_holds_no_error_and_has_a_row_for_everything() -> None:
    rows = [row for row in catalog().constants if row.name in MISS_CONSTANTS]
    assert {row.name for row in rows if (row.family, row.device, row.engine) == ("*", "*", "*")} == set(MISS_CONSTANTS)
    assert all(row.low <= 1.0 <= row.high for row in rows)
    # What holds for any release, of a family or device itself or of everything, holds for today's too: those are among any.
    ranges = {(r.name, r.family, r.device, r.engine): (r.low, r.high) for r in rows}
    for (name, *subject), (low, high) in ranges.items():
        if name in ("interval_token_miss", "interval_first_token_miss"):
            any_release = f"{name}_any_release"
            wide = ranges.get((any_release, *subject), ranges[any_release, "*", "*", "*"])
            assert wide[0] <= low, (name, subject)
            assert high <= wide[1], (name, subject)
