"""Checks of measured results: each against a run that is right, and against that run made wrong in one way."""

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.benchmarks.plausibility import PhysicalLimits, check_all, quarantine_reasons
from service.wire.benchmarks import BenchmarkUpload

NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)
LIMITS = PhysicalLimits(tpot_ms=6.9, output_tokens_per_s=9_400.0, power_limit_w=700.0)

# 64 clients, 160 requests of 230 tokens in 23.1 s: 6.93 requests/s, 1,593 tokens/s.
# TTFT 1,097 + 33.3 · 229 = 8,723 ms; 6.93 · 8.723 = 60.4 in flight; at least 64 · 160 / 224 · 0.9 = 41.1.
RIGHT: dict[str, Any] = {
    "context": {
        "device": "h200-sxm", "devices": 2, "llm": "llama-3.1-70b",
        "layout": {"tensor_parallel": 2}, "precision": {"weights": "fp8", "kv_cache": "bf16"},
        "engine": {"name": "vllm", "version": "0.24.0"}, "measured_at": "2026-11-21T11:50:00Z", "power_w_mean": 1221.2,
    },
    "load": {"kind": "closed", "concurrency": 64, "requests": 160},
    "traffic": {
        "prompt_tokens": {"distribution": "uniform", "low": 819, "high": 1024},
        "output_tokens": {"distribution": "uniform", "low": 204, "high": 256},
    },
    "results": {
        "completed": 160, "failed": 0, "duration_s": 23.1, "requests_per_s": 6.926, "output_tokens_per_s": 1593.0,
        "ttft_ms": {"mean": 1097.0, "p50": 900.0, "p90": 2100.0, "p95": 2400.0, "p99": 2900.0},
        "tpot_ms": {"mean": 33.3, "p50": 33.5, "p90": 36.0, "p95": 37.0, "p99": 39.0},
        "itl_ms": None,
        "e2e_ms": {"mean": 8700.0, "p50": 8650.0, "p90": 9900.0, "p95": 10200.0, "p99": 10800.0},
    },
}  # fmt: skip


def changed(**parts: dict[str, Any]) -> BenchmarkUpload:
    """The right run with fields of its parts replaced."""
    document = dict(RIGHT)
    for part, fields in parts.items():
        document[part] = {**RIGHT[part], **fields}
    return BenchmarkUpload.model_validate(document)


def failures(upload: BenchmarkUpload, limits: PhysicalLimits = LIMITS) -> dict[str, str]:
    return {c.name: c.message for c in check_all(upload, limits, NOW) if c.verdict == "fail"}


def scaled(factor: float) -> dict[str, Any]:
    latencies = ("ttft_ms", "tpot_ms", "e2e_ms")
    return {name: {k: v * factor for k, v in RIGHT["results"][name].items()} for name in latencies}


def test_the_right_run_passes_every_check() -> None:
    checks = check_all(changed(), LIMITS, NOW)
    assert {c.verdict for c in checks} == {"pass", "skipped"}
    assert [c.name for c in checks if c.verdict == "skipped"] == ["offered_rate"]


class TestLatencyIdentity:
    def test_tpot_understated_by_half(self) -> None:
        message = failures(changed(results={"tpot_ms": {"mean": 16.65}}))["latency_identity"]
        assert "(230 − 1) = 4910 ms, mean E2E is 8700 ms (-43.6%)" in message

    def test_first_token_after_the_last(self) -> None:
        assert "first_token_before_last" in failures(changed(results={"ttft_ms": {"mean": 9000.0}}))

    def test_eight_percent_off_is_a_short_run_not_a_lie(self) -> None:
        assert not failures(changed(results={"e2e_ms": {"mean": 9400.0}}))


class TestLittlesLaw:
    def test_more_in_flight_than_clients(self) -> None:
        assert "above" not in failures(changed(load={"concurrency": 40}))["littles_law"]
        assert "declared concurrency 40" in failures(changed(load={"concurrency": 40}))["littles_law"]

    def test_idle_clients_mean_the_client_set_the_pace(self) -> None:
        message = failures(changed(load={"concurrency": 100, "requests": 1000}))["littles_law"]
        assert "40% of the clients were idle" in message

    def test_the_drain_of_a_short_run_is_allowed_for(self) -> None:
        """160 requests over 80 clients: the last round leaves up to a third idle."""
        assert not failures(changed(load={"concurrency": 80}))

    def test_an_open_load_may_have_any_number_in_flight(self) -> None:
        upload = changed().model_copy(update={"load": None})
        assert not failures(upload)


class TestThroughput:
    def test_tokens_per_second_must_be_rate_times_length(self) -> None:
        assert "throughput_identity" in failures(changed(results={"output_tokens_per_s": 3186.0}))

    def test_three_requests_draw_lengths_off_the_mean(self) -> None:
        small = {"completed": None, "duration_s": None, "requests_per_s": 0.2162, "output_tokens_per_s": 46.27}
        tpot, e2e = {"mean": 21.18}, {"mean": 4624.5}
        latencies = {"ttft_ms": {"mean": 113.4}, "tpot_ms": tpot, "e2e_ms": e2e}
        load = {"kind": "closed", "concurrency": 1, "requests": 3}
        assert not failures(changed(results=small | latencies, load=load), PhysicalLimits())

    def test_rate_must_be_count_over_duration(self) -> None:
        assert "rate_identity" in failures(changed(results={"duration_s": 46.2}))

    def test_no_open_load_is_answered_faster_than_it_is_offered(self) -> None:
        document = {**RIGHT, "load": {"kind": "open", "requests_per_s": 2.0, "requests": 160}}
        assert "offered_rate" in failures(BenchmarkUpload.model_validate(document))


class TestPercentiles:
    def test_reversed(self) -> None:
        message = failures(changed(results={"ttft_ms": {"mean": 1097.0, "p50": 900.0, "p99": 100.0}}))
        assert message["percentiles_in_order"] == "TTFT p50 900 ms is above p99 100 ms"

    def test_a_mean_below_what_its_tail_forces(self) -> None:
        """Markov: 10 % of requests at 20 s or more make a mean of at least 2 s."""
        assert "percentiles_in_order" in failures(changed(results={"ttft_ms": {"mean": 1097.0, "p90": 20_000.0}}))

    @given(st.lists(st.floats(min_value=0.01, max_value=1e5), min_size=3, max_size=200))
    def test_statistics_of_any_sample_pass(self, sample: list[float]) -> None:
        ordered = sorted(sample)
        nearest = {f"p{p}": ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] for p in (50, 90, 95, 99)}
        spread = nearest | {"mean": sum(sample) / len(sample)}
        upload = changed(results={"itl_ms": spread})
        if len(sample) >= 100:  # with fewer, nearest ranks of high percentiles overstate the share above them
            assert "percentiles_in_order" not in failures(upload)


class TestUnits:
    def test_seconds_where_milliseconds_belong(self) -> None:
        found = failures(changed(results=scaled(1e-3)))
        assert "as between seconds and milliseconds" in found["littles_law"]
        assert "roofline" in found

    def test_microseconds_where_milliseconds_belong(self) -> None:
        assert "longer than the whole run" in failures(changed(results=scaled(1e3)))["units"]

    def test_a_slip_shows_without_load_and_roofline(self) -> None:
        upload = changed(results=scaled(1e-3)).model_copy(update={"load": None})
        assert "are these seconds?" in failures(upload, PhysicalLimits())["units"]


class TestPhysics:
    def test_faster_than_light(self) -> None:
        assert "TPOT 3.3 ms, roofline 6.9 ms" in failures(changed(results={"tpot_ms": {"mean": 3.3}}))["roofline"]
        found = failures(changed(results={"output_tokens_per_s": 12_000.0}))
        assert "12000 tokens/s" in found["roofline"].replace("1.2e+04", "12000")

    def test_power_above_the_boards_limit(self) -> None:
        assert failures(changed(context={"power_w_mean": 1500.0}))["power"] == "1500 W mean, 2 × 700 W limit"

    def test_a_dead_power_meter(self) -> None:
        assert "power" in failures(changed(context={"power_w_mean": 0.0}))

    def test_unknown_limits_are_skipped_not_passed(self) -> None:
        verdicts = {c.name: c.verdict for c in check_all(changed(), PhysicalLimits(), NOW)}
        assert (verdicts["roofline"], verdicts["power"]) == ("skipped", "skipped")


class TestCounts:
    def test_too_many_failed(self) -> None:
        assert "20 of 180 requests failed (11.1%)" in failures(changed(results={"failed": 20}))["failed_share"]

    def test_too_few_requests(self) -> None:
        small = {"completed": 2, "duration_s": 0.2888}
        assert "2 completed requests" in failures(changed(results=small, load={"concurrency": 1}))["enough_requests"]

    def test_fewer_requests_than_clients(self) -> None:
        assert "never filled" in failures(changed(load={"concurrency": 200}))["enough_requests"]

    def test_percentiles_of_few_requests_are_flagged(self) -> None:
        flags = [c for c in check_all(changed(results={"completed": 64}), LIMITS, NOW) if c.verdict == "flag"]
        assert [c.message for c in flags] == ["64 completed requests are too few for p99"]


class TestClock:
    @pytest.mark.parametrize(("measured_at", "fails"), [("12:00", False), ("12:04", False), ("13:00", True)])
    def test_measured_after_it_was_received(self, measured_at: str, fails: bool) -> None:
        found = failures(changed(context={"measured_at": f"2026-11-21T{measured_at}:00Z"}))
        assert ("clock" in found) is fails


def test_reasons_name_the_check_and_its_figures() -> None:
    reasons = quarantine_reasons(check_all(changed(context={"power_w_mean": 1500.0}), LIMITS, NOW))
    assert reasons == ["power: 1500 W mean, 2 × 700 W limit"]
