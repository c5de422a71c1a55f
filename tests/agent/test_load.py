"""The load generator against a small local engine."""

import asyncio
import contextlib
import itertools
import random
import statistics

import pytest

from service.agent.lengths import FixedTokens, LognormalTokens, UniformTokens
from service.agent.load import ClosedLoop, Load, OpenLoop, SentTraffic, plan_requests, plan_text_requests, run_load
from service.agent.percentiles import latency_statistics, percentile
from service.agent.power import PowerSample, mean_power_w, parse_power_line
from service.agent.records import LoadRun, RequestRecord
from service.agent.stream import Endpoint, StreamedAnswer
from tests.agent.streaming_server import StreamingServer

TRAFFIC = SentTraffic(UniformTokens(20, 40), UniformTokens(5, 15), vocabulary_tokens=1000)


def drive(engine: StreamingServer, load: Load, timeout_s: float = 10.0) -> LoadRun:
    """Serve and load in one event loop."""

    async def both() -> LoadRun:
        server, port = await engine.start()
        steps = asyncio.create_task(engine.tick())
        try:
            endpoint = Endpoint(f"http://127.0.0.1:{port}", "m")
            return await run_load(endpoint, plan_requests(endpoint, TRAFFIC, load.requests, seed=7), load, timeout_s)
        finally:
            steps.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await steps
            server.close()

    return asyncio.run(both())


class TestClosedLoop:
    def test_keeps_exactly_the_stated_number_in_flight(self) -> None:
        engine = StreamingServer(interval_s=0.005)
        run = drive(engine, ClosedLoop(concurrency=4, requests=20))
        assert len(run.completed) == engine.requests_seen == 20
        assert engine.most_in_flight == 4

    def test_counts_tokens_by_the_servers_usage(self) -> None:
        run = drive(StreamingServer(interval_s=0.002), ClosedLoop(concurrency=2, requests=6))
        for record in run.records:
            assert record.tokens_counted_by == "usage"
            assert 20 <= record.prompt_tokens <= 40
            assert record.output_tokens == len(record.chunk_s)

    def test_times_a_steady_stream(self) -> None:
        run = drive(StreamingServer(interval_s=0.02, first_token_after_s=0.1), ClosedLoop(concurrency=1, requests=2))
        results = run.results()
        assert results["tpot_ms"]["mean"] == pytest.approx(20.0, rel=0.1)
        assert 100.0 <= results["ttft_ms"]["mean"] < 150.0

    def test_without_usage_chunks_are_counted_and_said_to_be(self) -> None:
        run = drive(StreamingServer(interval_s=0.002, with_usage=False), ClosedLoop(concurrency=1, requests=3))
        assert {record.tokens_counted_by for record in run.completed} == {"chunks"}
        assert all(5 <= record.output_tokens <= 15 for record in run.completed)


class TestOpenLoop:
    def test_arrivals_are_poisson_and_repeatable(self) -> None:
        load = OpenLoop(requests_per_s=50.0, requests=4000, seed=3)
        arrivals_s = load.arrivals_s()
        gaps_s = [b - a for a, b in itertools.pairwise(arrivals_s)]
        assert arrivals_s == load.arrivals_s()
        assert statistics.mean(gaps_s) == pytest.approx(1 / 50, rel=0.05)
        assert statistics.stdev(gaps_s) == pytest.approx(1 / 50, rel=0.05)  # an exponential's deviation is its mean

    def test_sends_on_time_whether_or_not_answers_came(self) -> None:
        load = OpenLoop(requests_per_s=100.0, requests=40, seed=1)
        engine = StreamingServer(interval_s=0.01, first_token_after_s=0.3)
        run = drive(engine, load)
        late_s = [r.sent_s - at for r, at in zip(run.records, load.arrivals_s(), strict=True)]
        assert len(run.completed) == 40
        assert engine.most_in_flight > 10
        assert all(0.0 <= late < 0.1 for late in late_s)


class TestFailures:
    def test_refusals_are_recorded_with_the_servers_words(self) -> None:
        run = drive(StreamingServer(interval_s=0.002, refuse_every=3), ClosedLoop(concurrency=2, requests=9))
        assert len(run.completed) == 6
        [(error, count)] = run.failures().items()
        assert count == 3
        assert "503" in error
        assert "overloaded" in error

    def test_a_broken_stream_is_a_failure_and_its_tokens_do_not_count(self) -> None:
        run = drive(StreamingServer(interval_s=0.002, break_every=2), ClosedLoop(concurrency=1, requests=4))
        results = run.results()
        assert (results["completed"], results["failed"]) == (2, 2)
        tokens = sum(record.output_tokens for record in run.completed)
        assert results["output_tokens_per_s"] == pytest.approx(tokens / run.duration_s, rel=1e-3)
        assert "broke off" in next(iter(run.failures()))

    def test_a_slow_answer_times_out(self) -> None:
        run = drive(StreamingServer(first_token_after_s=5.0), ClosedLoop(concurrency=1, requests=1), timeout_s=0.2)
        assert run.failures() == {"no complete answer within 0.2 s": 1}
        assert run.results()["ttft_ms"] is None

    def test_no_server_is_a_failure_of_every_request(self) -> None:
        endpoint = Endpoint("http://127.0.0.1:9", "m")
        planned = plan_requests(endpoint, TRAFFIC, 3, seed=1)
        run = asyncio.run(run_load(endpoint, planned, ClosedLoop(2, 3)))
        assert len(run.failed) == 3
        assert all("no connection" in (record.error or "") for record in run.failed)


class TestEvents:
    def test_a_chats_opening_event_is_no_token(self) -> None:
        answer = StreamedAnswer(sent_at=0.0)
        answer.take_event(b' {"choices":[{"delta":{"role":"assistant","content":""}}]}', 1.0)
        answer.take_event(b' {"choices":[{"delta":{"content":"Yes"}}]}', 2.0)
        answer.take_event(b' {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}', 3.0)
        answer.take_event(b" [DONE]", 3.0)
        assert answer.chunk_at == [2.0]
        assert (answer.prompt_tokens, answer.output_tokens, answer.error) == (5, 1, None)

    def test_a_token_and_the_usage_may_share_an_event(self) -> None:
        answer = StreamedAnswer(sent_at=0.0)
        answer.take_event(b'{"choices":[{"text":"a"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}', 1.0)
        assert answer.chunk_at == [1.0]
        assert answer.output_tokens == 1

    @pytest.mark.parametrize("event", [b'{"error":{"message":"out of memory"}}', b"not json"])
    def test_an_error_in_the_stream_is_kept(self, event: bytes) -> None:
        answer = StreamedAnswer(sent_at=0.0)
        answer.take_event(event, 1.0)
        assert answer.error is not None
        assert answer.chunk_at == []


class TestPlans:
    def test_the_same_seed_gives_the_same_requests(self) -> None:
        endpoint = Endpoint("http://127.0.0.1:1", "m")
        assert plan_requests(endpoint, TRAFFIC, 5, seed=1) == plan_requests(endpoint, TRAFFIC, 5, seed=1)
        assert plan_requests(endpoint, TRAFFIC, 5, seed=1) != plan_requests(endpoint, TRAFFIC, 5, seed=2)

    def test_token_ids_need_the_completions_api(self) -> None:
        with pytest.raises(ValueError, match="completions"):
            plan_requests(Endpoint("http://127.0.0.1:1", "m", api="chat"), TRAFFIC, 1, seed=1)

    def test_chat_requests_carry_text(self) -> None:
        endpoint = Endpoint("http://127.0.0.1:1/v2/engine", "m", api="chat", api_key="secret")
        [request] = plan_text_requests(endpoint, ["Hello"], FixedTokens(4), 1, seed=1)
        assert request.encoded.startswith(b"POST /v2/engine/v1/chat/completions HTTP/1.1\r\n")
        assert b"Authorization: Bearer secret\r\n" in request.encoded
        assert b'{"role": "user", "content": "Hello"}' in request.encoded
        assert "secret" not in repr(endpoint)

    def test_a_lognormal_has_the_mean_and_p95_it_states(self) -> None:
        lengths, generator = LognormalTokens(mean=1200, p95=4000, maximum=10**6), random.Random(5)
        drawn = sorted(lengths.draw(generator) for _ in range(60_000))
        assert statistics.mean(drawn) == pytest.approx(1200, rel=0.03)
        assert percentile(drawn, 0.95) == pytest.approx(4000, rel=0.03)

    @pytest.mark.parametrize(
        "make",
        [
            lambda: UniformTokens(5, 4),
            lambda: FixedTokens(0),
            lambda: LognormalTokens(mean=10, p95=5, maximum=100),
            lambda: LognormalTokens(mean=1, p95=100, maximum=100),
            lambda: ClosedLoop(0, 1),
            lambda: OpenLoop(0.0, 1),
            lambda: SentTraffic(FixedTokens(1), FixedTokens(1), vocabulary_tokens=100),
            lambda: Endpoint("localhost:8000", "m"),
        ],
    )
    def test_nonsense_is_refused(self, make) -> None:  # type: ignore[no-untyped-def]
        with pytest.raises(ValueError, match=r"\w"):
            make()


class TestStatistics:
    def test_percentiles_interpolate_between_ranks(self) -> None:
        found = latency_statistics([float(value) for value in range(101)])
        assert found is not None
        assert (found.mean, found.p50, found.p90, found.p95, found.p99) == (50.0, 50.0, 90.0, 95.0, 99.0)

    def test_of_nothing_there_are_none(self) -> None:
        assert latency_statistics([]) is None

    def test_a_records_latencies_follow_their_definitions(self) -> None:
        record = RequestRecord(sent_s=1.0, prompt_tokens=9, output_tokens=4, chunk_s=(1.5, 1.6, 1.8))
        assert record.time_to_first_token_s == 0.5
        assert record.end_to_end_s == pytest.approx(0.8)
        assert record.time_per_output_token_s == pytest.approx(0.1)  # four tokens in three chunks: 0.3 s over 3
        assert record.inter_token_latencies_s == pytest.approx([0.1, 0.2])
        assert record.as_json(with_chunks=True)["gap_ticks"] == [10000, 20000]

    def test_a_single_token_has_no_time_per_output_token(self) -> None:
        assert RequestRecord(0.0, 1, 1, (0.5,)).time_per_output_token_s is None


class TestPower:
    def test_samples_outside_the_run_do_not_count(self) -> None:
        samples = [PowerSample(0.5, 0, 80, None), PowerSample(1.5, 0, 600, 1980), PowerSample(1.5, 1, 500, 1980)]
        assert mean_power_w(samples, 1.0, 2.0) == {0: 600.0, 1: 500.0}

    @pytest.mark.parametrize("line", ["", "No devices were found", "0, [N/A], [N/A]", "0, 300.1"])
    def test_a_line_without_power_is_no_sample(self, line: str) -> None:
        assert parse_power_line(line, 0.0) is None
