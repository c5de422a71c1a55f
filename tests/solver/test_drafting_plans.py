"""Plans that may draft: chosen where that is cheaper, and by candidates that screening bounds as it bounds the others."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from solver.capacity.sustained_rate import is_settled
from solver.engine.profiles import DRAFTING, drafts
from solver.planning.types import PlanEntry
from solver.recommend.recommend import screened
from solver.workload import SpeculativeDecoding
from tests.solver.planning_cases import MEMO, plan, planning, workload

GOOD = SpeculativeDecoding(4, 0.8, 0.0, "ngram", "test")
USELESS = SpeculativeDecoding(4, 0.0, 0.1, "ngram", "test")
FAST = {"p95": 0.012}
"""A time per token that plain decoding of this model meets on the dearest devices at most."""


def drafting_of(entries: Iterable[PlanEntry]) -> set[SpeculativeDecoding | None]:
    each = [entry.configuration.speculation for entry in entries]
    return {None if one is None else one.decoding for one in each}


def test_drafts_that_are_accepted_make_a_fast_plan_cheaper() -> None:
    plain = plan(workload(llm="llama-3.1-70b", rate=2.0, tpot=FAST))
    drafted = plan(workload(llm="llama-3.1-70b", rate=2.0, tpot=FAST, drafting=GOOD))
    assert drafting_of(drafted.entries) == {GOOD}
    assert drafted.usd_per_hour is not None
    assert plain.usd_per_hour is None or drafted.usd_per_hour < plain.usd_per_hour


def test_what_drafting_saves_is_the_difference_of_two_plans() -> None:
    plain = plan(workload(rate=6.0, tpot={"p95": 0.009}))
    drafted = plan(workload(rate=6.0, tpot={"p95": 0.009}, drafting=GOOD), alternatives=1)
    (without,) = [one for one in drafted.alternatives if one.why == "cheapest without drafting"]
    assert plain.usd_per_hour is not None
    assert drafting_of(without.entries) == {None}
    assert without.extra_usd_per_hour == pytest.approx(plain.usd_per_hour - (drafted.usd_per_hour or 0.0), abs=1e-6)
    assert plan(workload(rate=6.0, drafting=USELESS), alternatives=1).alternatives != ()


def test_drafts_that_nobody_accepts_are_not_chosen() -> None:
    plain = plan(workload(rate=40.0))
    offered = plan(workload(rate=40.0, drafting=USELESS))
    assert drafting_of(offered.entries) == {None}
    assert offered.usd_per_hour == plain.usd_per_hour


@pytest.mark.parametrize("rate", [1.0, 15.0, 60.0])
def test_being_allowed_to_draft_never_costs_more(rate: float) -> None:
    plain, allowed = (plan(workload(rate=rate, drafting=one)) for one in (None, SpeculativeDecoding(2, 0.5, 0.05)))
    assert plain.usd_per_hour is not None
    assert allowed.usd_per_hour is not None
    assert allowed.usd_per_hour <= plain.usd_per_hour + 1e-9


def test_screening_bounds_what_replicas_that_draft_sustain() -> None:
    free_of_it = 0
    for decoding in (GOOD, SpeculativeDecoding(1, 0.3, 0.1), SpeculativeDecoding(8, 0.9, 0.02)):
        found = screened(planning(workload(drafting=decoding)), workload(drafting=decoding), MEMO).only
        rows = [n for n, row in enumerate(found.space.rows) if row.drafting is not None and found.allowed[n]]
        assert rows
        for row in rows[:: max(1, len(rows) // 8)]:
            candidate = found.candidate(row)
            free = replace(candidate, most=candidate.anchor)
            # What a plan's front end may pass on is no bound of screening's.
            passed_on = found.space.passed_on_tokens_per_s[row] / found.workload.traffic.output.mean
            assert min(free.bracket(is_settled).holds, passed_on) <= candidate.most
            free_of_it += candidate.most < passed_on
    assert free_of_it > 10


def test_plain_candidates_are_screened_as_without_drafting() -> None:
    plain = screened(planning(workload()), workload(), MEMO).only
    both = screened(planning(workload(drafting=GOOD)), workload(drafting=GOOD), MEMO).only
    number = {row: n for n, row in enumerate(both.space.rows)}
    for n, row in enumerate(plain.space.rows):
        assert both.most_requests_per_s[number[row]] == plain.most_requests_per_s[n]
        assert both.requests_per_s[number[row]] == plain.requests_per_s[n]


def test_only_engines_that_document_it_draft() -> None:
    found = screened(planning(workload(drafting=GOOD)), workload(drafting=GOOD), MEMO).only
    for row in found.space.rows:
        if row.drafting is not None:
            platform = found.space.platforms[row.platform]
            assert drafts(platform.engine, platform.device.vendor, row.layout.pipeline_parallel)
    assert not drafts("vllm", "NVIDIA", 2)
    assert not drafts("neuron", "AWS", 1), "scheduled like vLLM, but not the same program"
    assert all(one.source.startswith("https://") for one in DRAFTING.values())
