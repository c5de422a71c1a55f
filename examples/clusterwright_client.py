"""A client of a Clusterwright service. Needs Python 3.11 and httpx; copy this file into your project.

    client = Client("http://127.0.0.1:8000", token="…")
    answer = client.finished(client.post_recommendation({"workloads": […]}))

Generated from the service's OpenAPI document by `python -m tests.client.generate`: change it there. Types are those of the
document, so that a type checker knows every field; nothing is checked at run time, the service does that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NotRequired, TypedDict, cast
from urllib.parse import quote

import httpx

JOB_ENDED = ("succeeded", "failed", "cancelled", "expired")


class Problem(Exception):
    """What the service refused or could not do: its problem document (RFC 9457)."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        errors = "; ".join(f"{e.get('pointer', e.get('parameter', ''))} {e['detail']}" for e in document.get("errors", ()))
        super().__init__(f"{status} {document.get('title', '')}: {errors or document.get('detail', '')}")
        self.status = status
        self.document = dict(document)


class Client:
    """Every route as a method of its name. Leave ``token`` out for a service on this machine that has none."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:8000",
        token: str | None = None,
        *,
        timeout_s: float = 300.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout_s, transport=transport)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> Any:
        """Any route: JSON as Python has it, other answers as bytes, None without content. Raises Problem."""
        answer = self._http.request(
            method,
            path,
            json=body,
            params={name: value for name, value in (query or {}).items() if value is not None},
            headers={name: value for name, value in (headers or {}).items() if value is not None},
        )
        kind = answer.headers.get("content-type", "")
        if answer.is_error:
            raise Problem(answer.status_code, answer.json() if "json" in kind else {"detail": answer.text[:500]})
        if not answer.content:
            return None
        return answer.json() if "json" in kind else answer.content

    def finished(self, answer: Any, *, poll_s: float = 1.0) -> Any:
        """The answer itself; where it is a job, its result once it is done. Raises Problem where there is none."""
        if not isinstance(answer, dict) or not str(answer.get("id", "")).startswith("job_"):
            return answer
        while answer["state"] not in JOB_ENDED:
            time.sleep(poll_s)
            answer = self.get_job(answer["id"])
        if answer["result"] is None:
            problem = answer["problem"] or {"title": f"The job {answer['state']}"}
            raise Problem(problem.get("status", 0), problem)
        return self.call("GET", answer["result"])

    def every(self, page: Callable[..., Any], **filters: Any) -> Iterator[Any]:
        """Every entry of a list, page after page: ``client.every(client.get_devices, vendor="amd")``."""
        following = None
        while True:
            read = page(**filters, limit=500, next=following)
            yield from read["items"]
            following = read["next"]
            if following is None:
                return

    def post_training_run(
        self,
        body: TrainingRunIn,
        *,
        idempotency_key: str | None = None,
    ) -> TrainingRunOut:
        """``POST /v1/benchmarks/training-runs``. Upload a measured training run, or the log of one"""
        answer = self.call(
            "POST",
            "/v1/benchmarks/training-runs",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("TrainingRunOut", answer)

    def get_training_runs(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        llm: str | None = None,
        device: str | None = None,
    ) -> PageTrainingRunOut:
        """``GET /v1/benchmarks/training-runs``. Measured training runs, by id"""
        answer = self.call(
            "GET",
            "/v1/benchmarks/training-runs",
            query={"limit": limit, "next": next, "llm": llm, "device": device},
        )
        return cast("PageTrainingRunOut", answer)

    def get_training_run(
        self,
        run_id: str,
    ) -> TrainingRunOut:
        """``GET /v1/benchmarks/training-runs/{run_id}``. One measured training run, beside what is predicted of it
        """
        answer = self.call(
            "GET",
            f"/v1/benchmarks/training-runs/{quote(run_id, safe='')}",
        )
        return cast("TrainingRunOut", answer)

    def post_retract(
        self,
        run_id: str,
    ) -> TrainingRunOut:
        """``POST /v1/benchmarks/training-runs/{run_id}/retract``. Withdraw a training run; it stays stored and
        corrects nothing any more
        """
        answer = self.call(
            "POST",
            f"/v1/benchmarks/training-runs/{quote(run_id, safe='')}/retract",
        )
        return cast("TrainingRunOut", answer)

    def post_benchmark(
        self,
        body: BenchmarkUpload,
        *,
        idempotency_key: str | None = None,
    ) -> BenchmarkReceipt:
        """``POST /v1/benchmarks``. Upload a measured result"""
        answer = self.call(
            "POST",
            "/v1/benchmarks",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("BenchmarkReceipt", answer)

    def get_benchmarks(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        status: Literal["accepted", "quarantined", "retracted"] | None = None,
        device: str | None = None,
        llm: str | None = None,
        engine: str | None = None,
        tool: str | None = None,
    ) -> PageBenchmarkSummary:
        """``GET /v1/benchmarks``. List measured results: uploads oldest first, then the catalog's own"""
        answer = self.call(
            "GET",
            "/v1/benchmarks",
            query={"limit": limit, "next": next, "status": status, "device": device, "llm": llm, "engine": engine, "tool": tool},
        )
        return cast("PageBenchmarkSummary", answer)

    def post_import(
        self,
        body: BenchmarkImport,
        *,
        idempotency_key: str | None = None,
    ) -> ImportReceipt:
        """``POST /v1/benchmarks/import``. Upload a benchmark tool's own output"""
        answer = self.call(
            "POST",
            "/v1/benchmarks/import",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("ImportReceipt", answer)

    def get_benchmark(
        self,
        benchmark_id: str,
    ) -> StoredBenchmark:
        """``GET /v1/benchmarks/{benchmark_id}``. One measured result with its checks"""
        answer = self.call(
            "GET",
            f"/v1/benchmarks/{quote(benchmark_id, safe='')}",
        )
        return cast("StoredBenchmark", answer)

    def post_release(
        self,
        benchmark_id: str,
        body: BenchmarkDecision,
    ) -> StoredBenchmark:
        """``POST /v1/benchmarks/{benchmark_id}/release``. Accept a quarantined result after all"""
        answer = self.call(
            "POST",
            f"/v1/benchmarks/{quote(benchmark_id, safe='')}/release",
            body=body,
        )
        return cast("StoredBenchmark", answer)

    def post_retract(
        self,
        benchmark_id: str,
        body: BenchmarkDecision,
    ) -> StoredBenchmark:
        """``POST /v1/benchmarks/{benchmark_id}/retract``. Withdraw a result; it stays stored and listed"""
        answer = self.call(
            "POST",
            f"/v1/benchmarks/{quote(benchmark_id, safe='')}/retract",
            body=body,
        )
        return cast("StoredBenchmark", answer)

    def get_devices(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        vendor: str | None = None,
        category: str | None = None,
        status: str | None = None,
        family: str | None = None,
        device_class: Literal["datacentre", "workstation", "consumer", "edge"] | None = None,
    ) -> PageDeviceOut:
        """``GET /v1/devices``. List accelerators"""
        answer = self.call(
            "GET",
            "/v1/devices",
            query={"limit": limit, "next": next, "vendor": vendor, "category": category, "status": status, "family": family, "device_class": device_class},
        )
        return cast("PageDeviceOut", answer)

    def get_device(
        self,
        device_id: str,
    ) -> DeviceOut:
        """``GET /v1/devices/{device_id}``. One accelerator"""
        answer = self.call(
            "GET",
            f"/v1/devices/{quote(device_id, safe='')}",
        )
        return cast("DeviceOut", answer)

    def get_nodes(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        device: str | None = None,
        kind: str | None = None,
    ) -> PageNodeOut:
        """``GET /v1/nodes``. List machines"""
        answer = self.call(
            "GET",
            "/v1/nodes",
            query={"limit": limit, "next": next, "device": device, "kind": kind},
        )
        return cast("PageNodeOut", answer)

    def get_node(
        self,
        node_id: str,
    ) -> NodeOut:
        """``GET /v1/nodes/{node_id}``. One machine"""
        answer = self.call(
            "GET",
            f"/v1/nodes/{quote(node_id, safe='')}",
        )
        return cast("NodeOut", answer)

    def get_llms(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        family: str | None = None,
        origin: str | None = None,
    ) -> PageLlmOut:
        """``GET /v1/llms``. List language models"""
        answer = self.call(
            "GET",
            "/v1/llms",
            query={"limit": limit, "next": next, "family": family, "origin": origin},
        )
        return cast("PageLlmOut", answer)

    def post_llm(
        self,
        body: LlmIn,
        *,
        idempotency_key: str | None = None,
    ) -> LlmOut:
        """``POST /v1/llms``. Add a language model from its config.json"""
        answer = self.call(
            "POST",
            "/v1/llms",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("LlmOut", answer)

    def get_llm(
        self,
        llm_id: str,
    ) -> LlmOut:
        """``GET /v1/llms/{llm_id}``. One language model"""
        answer = self.call(
            "GET",
            f"/v1/llms/{quote(llm_id, safe='')}",
        )
        return cast("LlmOut", answer)

    def get_offers(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        provider: str | None = None,
        region: str | None = None,
        commitment: Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"] | None = None,
        node: str | None = None,
        device: str | None = None,
        origin: str | None = None,
        provider_class: Literal["hyperscaler", "specialist", "marketplace"] | None = None,
        device_class: Literal["datacentre", "workstation", "consumer", "edge"] | None = None,
        named_place: bool | None = None,
        price_as_of: str | None = None,
        believed_at: str | None = None,
    ) -> PageOfferOut:
        """``GET /v1/offers``. List offers with their prices"""
        answer = self.call(
            "GET",
            "/v1/offers",
            query={"limit": limit, "next": next, "provider": provider, "region": region, "commitment": commitment, "node": node, "device": device, "origin": origin, "provider_class": provider_class, "device_class": device_class, "named_place": named_place, "price_as_of": price_as_of, "believed_at": believed_at},
        )
        return cast("PageOfferOut", answer)

    def post_offer(
        self,
        body: OfferIn,
        *,
        idempotency_key: str | None = None,
    ) -> OfferOut:
        """``POST /v1/offers``. Add own hardware or an own contract"""
        answer = self.call(
            "POST",
            "/v1/offers",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("OfferOut", answer)

    def get_unpriced(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        provider: str | None = None,
        device: str | None = None,
        provider_class: Literal["hyperscaler", "specialist", "marketplace"] | None = None,
        price_as_of: str | None = None,
    ) -> PageUnpricedOut:
        """``GET /v1/offers/unpriced``. List one- and three-year terms of which no price is known"""
        answer = self.call(
            "GET",
            "/v1/offers/unpriced",
            query={"limit": limit, "next": next, "provider": provider, "device": device, "provider_class": provider_class, "price_as_of": price_as_of},
        )
        return cast("PageUnpricedOut", answer)

    def get_offer(
        self,
        offer_id: str,
        *,
        price_as_of: str | None = None,
        believed_at: str | None = None,
    ) -> OfferOut:
        """``GET /v1/offers/{offer_id}``. One offer with its price"""
        answer = self.call(
            "GET",
            f"/v1/offers/{quote(offer_id, safe='')}",
            query={"price_as_of": price_as_of, "believed_at": believed_at},
        )
        return cast("OfferOut", answer)

    def get_prices(
        self,
        offer_id: str,
    ) -> PriceStepsOut:
        """``GET /v1/offers/{offer_id}/prices``. The price history of one offer"""
        answer = self.call(
            "GET",
            f"/v1/offers/{quote(offer_id, safe='')}/prices",
        )
        return cast("PriceStepsOut", answer)

    def post_price(
        self,
        offer_id: str,
        body: PriceIn,
        *,
        idempotency_key: str | None = None,
    ) -> PriceStepOut:
        """``POST /v1/offers/{offer_id}/prices``. Append a price step"""
        answer = self.call(
            "POST",
            f"/v1/offers/{quote(offer_id, safe='')}/prices",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("PriceStepOut", answer)

    def get_providers(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        provider_class: Literal["hyperscaler", "specialist", "marketplace"] | None = None,
    ) -> PageProviderOut:
        """``GET /v1/providers``. List sellers of machine hours"""
        answer = self.call(
            "GET",
            "/v1/providers",
            query={"limit": limit, "next": next, "provider_class": provider_class},
        )
        return cast("PageProviderOut", answer)

    def get_provider(
        self,
        provider_id: str,
    ) -> ProviderOut:
        """``GET /v1/providers/{provider_id}``. One seller, and which of its regions name a place"""
        answer = self.call(
            "GET",
            f"/v1/providers/{quote(provider_id, safe='')}",
        )
        return cast("ProviderOut", answer)

    def get_api_prices(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        provider: str | None = None,
        model: str | None = None,
    ) -> PageApiPriceOut:
        """``GET /v1/api-prices``. What sellers of tokens ask, by seller and model; `model` matches any part of a name,
        however it is punctuated
        """
        answer = self.call(
            "GET",
            "/v1/api-prices",
            query={"limit": limit, "next": next, "provider": provider, "model": model},
        )
        return cast("PageApiPriceOut", answer)

    def post_estimates(
        self,
        body: EstimatesIn,
    ) -> EstimatesOut:
        """``POST /v1/estimates``. Predict fixed deployments"""
        answer = self.call(
            "POST",
            "/v1/estimates",
            body=body,
        )
        return cast("EstimatesOut", answer)

    def post_training_estimates(
        self,
        body: TrainingEstimatesIn,
    ) -> TrainingEstimatesOut:
        """``POST /v1/training/estimates``. Predict training runs"""
        answer = self.call(
            "POST",
            "/v1/training/estimates",
            body=body,
        )
        return cast("TrainingEstimatesOut", answer)

    def post_training_recommendation(
        self,
        body: TrainingRecommendationIn,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
    ) -> TrainingRecommendationOut | JobOut:
        """``POST /v1/training/recommendations``. Training jobs in, the cheapest machines, layouts and dates out"""
        answer = self.call(
            "POST",
            "/v1/training/recommendations",
            body=body,
            headers={"Idempotency-Key": idempotency_key, "prefer": prefer},
        )
        return cast("TrainingRecommendationOut | JobOut", answer)

    def get_training_recommendations(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
    ) -> PageTrainingPlanSummaryOut:
        """``GET /v1/training/recommendations``. Stored training plans, newest first"""
        answer = self.call(
            "GET",
            "/v1/training/recommendations",
            query={"limit": limit, "next": next},
        )
        return cast("PageTrainingPlanSummaryOut", answer)

    def get_training_recommendation(
        self,
        plan_id: str,
    ) -> TrainingRecommendationOut:
        """``GET /v1/training/recommendations/{plan_id}``. One stored training plan; it never changes"""
        answer = self.call(
            "GET",
            f"/v1/training/recommendations/{quote(plan_id, safe='')}",
        )
        return cast("TrainingRecommendationOut", answer)

    def post_training_why_not(
        self,
        plan_id: str,
        body: TrainingWhyNotIn,
    ) -> TrainingWhyNotOut:
        """``POST /v1/training/recommendations/{plan_id}/why-not``. What the jobs would cost on a device that the plan
        leaves out
        """
        answer = self.call(
            "POST",
            f"/v1/training/recommendations/{quote(plan_id, safe='')}/why-not",
            body=body,
        )
        return cast("TrainingWhyNotOut", answer)

    def get_training_deployments(
        self,
        plan_id: str,
        *,
        target: str,
    ) -> TrainingDeploymentOut:
        """``GET /v1/training/recommendations/{plan_id}/deployments``. Files that start the plan's jobs"""
        answer = self.call(
            "GET",
            f"/v1/training/recommendations/{quote(plan_id, safe='')}/deployments",
            query={"target": target},
        )
        return cast("TrainingDeploymentOut", answer)

    def post_recommendation(
        self,
        body: RecommendationIn,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
    ) -> RecommendationOut | JobOut:
        """``POST /v1/recommendations``. Workloads in, proven-cheapest cluster out"""
        answer = self.call(
            "POST",
            "/v1/recommendations",
            body=body,
            headers={"Idempotency-Key": idempotency_key, "prefer": prefer},
        )
        return cast("RecommendationOut | JobOut", answer)

    def get_recommendations(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        outcome: Literal["optimal", "feasible", "infeasible"] | None = None,
    ) -> PageRecommendationSummaryOut:
        """``GET /v1/recommendations``. Stored recommendations, newest first"""
        answer = self.call(
            "GET",
            "/v1/recommendations",
            query={"limit": limit, "next": next, "outcome": outcome},
        )
        return cast("PageRecommendationSummaryOut", answer)

    def get_recommendation(
        self,
        recommendation_id: str,
    ) -> RecommendationOut:
        """``GET /v1/recommendations/{recommendation_id}``. One stored recommendation; it never changes"""
        answer = self.call(
            "GET",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}",
        )
        return cast("RecommendationOut", answer)

    def get_diff(
        self,
        recommendation_id: str,
        *,
        against: str,
    ) -> PlanDiffOut:
        """``GET /v1/recommendations/{recommendation_id}/diff``. From another stored plan to this one, in words and in
        numbers
        """
        answer = self.call(
            "GET",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/diff",
            query={"against": against},
        )
        return cast("PlanDiffOut", answer)

    def get_deployments(
        self,
        recommendation_id: str,
        *,
        target: str,
        engine_version: str | None = None,
        ramp: float | None = None,
    ) -> DeploymentOut:
        """``GET /v1/recommendations/{recommendation_id}/deployments``. Files that start the plan's servers; 409 where
        the target cannot express it
        """
        answer = self.call(
            "GET",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/deployments",
            query={"target": target, "engine_version": engine_version, "ramp": ramp},
        )
        return cast("DeploymentOut", answer)

    def post_fleet(
        self,
        body: FleetIn,
        *,
        idempotency_key: str | None = None,
        prefer: str | None = None,
    ) -> FleetOut | JobOut:
        """``POST /v1/fleets``. Demand over time in; what to own, reserve and rent by the hour out"""
        answer = self.call(
            "POST",
            "/v1/fleets",
            body=body,
            headers={"Idempotency-Key": idempotency_key, "prefer": prefer},
        )
        return cast("FleetOut | JobOut", answer)

    def get_fleets(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        outcome: Literal["optimal", "feasible", "infeasible"] | None = None,
    ) -> PageFleetSummaryOut:
        """``GET /v1/fleets``. Stored fleets, newest first"""
        answer = self.call(
            "GET",
            "/v1/fleets",
            query={"limit": limit, "next": next, "outcome": outcome},
        )
        return cast("PageFleetSummaryOut", answer)

    def get_fleet(
        self,
        fleet_id: str,
    ) -> FleetOut:
        """``GET /v1/fleets/{fleet_id}``. One stored fleet; it never changes"""
        answer = self.call(
            "GET",
            f"/v1/fleets/{quote(fleet_id, safe='')}",
        )
        return cast("FleetOut", answer)

    def get_jobs(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"] | None = None,
        kind: str | None = None,
    ) -> PageJobSummaryOut:
        """``GET /v1/jobs``. Jobs, newest first"""
        answer = self.call(
            "GET",
            "/v1/jobs",
            query={"limit": limit, "next": next, "state": state, "kind": kind},
        )
        return cast("PageJobSummaryOut", answer)

    def get_job(
        self,
        job_id: str,
    ) -> JobOut:
        """``GET /v1/jobs/{job_id}``. One job: its state, its progress, its result"""
        answer = self.call(
            "GET",
            f"/v1/jobs/{quote(job_id, safe='')}",
        )
        return cast("JobOut", answer)

    def get_job_events(
        self,
        job_id: str,
        *,
        last_event_id: str | None = None,
    ) -> bytes | None:
        """``GET /v1/jobs/{job_id}/events``. A job's events as they happen"""
        answer = self.call(
            "GET",
            f"/v1/jobs/{quote(job_id, safe='')}/events",
            headers={"last-event-id": last_event_id},
        )
        return cast("bytes | None", answer)

    def post_job_cancel(
        self,
        job_id: str,
    ) -> JobOut:
        """``POST /v1/jobs/{job_id}/cancel``. Cancel a job"""
        answer = self.call(
            "POST",
            f"/v1/jobs/{quote(job_id, safe='')}/cancel",
        )
        return cast("JobOut", answer)

    def post_why_not(
        self,
        recommendation_id: str,
        body: WhyNotIn,
    ) -> WhyNotOut:
        """``POST /v1/recommendations/{recommendation_id}/why-not``. What a device, offer, provider, precision or
        layout the plan does without would cost
        """
        answer = self.call(
            "POST",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/why-not",
            body=body,
        )
        return cast("WhyNotOut", answer)

    def post_price_curve(
        self,
        recommendation_id: str,
        body: PriceCurveIn,
    ) -> PriceCurveOut:
        """``POST /v1/recommendations/{recommendation_id}/price-curve``. What a target, context, confidence, spare or
        rate costs at several values
        """
        answer = self.call(
            "POST",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/price-curve",
            body=body,
        )
        return cast("PriceCurveOut", answer)

    def get_quote(
        self,
        recommendation_id: str,
        *,
        time_limit_s: float | None = None,
    ) -> QuoteOut:
        """``GET /v1/recommendations/{recommendation_id}/quote``. What to confirm with each seller before the plan is
        signed, and how much each price may rise
        """
        answer = self.call(
            "GET",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/quote",
            query={"time_limit_s": time_limit_s},
        )
        return cast("QuoteOut", answer)

    def post_near_optimal(
        self,
        recommendation_id: str,
        body: NearOptimalIn,
    ) -> NearOptimalOut:
        """``POST /v1/recommendations/{recommendation_id}/near-optimal``. Other plans nearly as cheap, and what none of
        them can do without
        """
        answer = self.call(
            "POST",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/near-optimal",
            body=body,
        )
        return cast("NearOptimalOut", answer)

    def post_pareto(
        self,
        recommendation_id: str,
        body: ParetoIn,
    ) -> ParetoOut:
        """``POST /v1/recommendations/{recommendation_id}/pareto``. Plans none of which is both cheaper and better:
        cost against a target or power
        """
        answer = self.call(
            "POST",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/pareto",
            body=body,
        )
        return cast("ParetoOut", answer)

    def get_accuracy(
        self,
        *,
        device: str | None = None,
        engine: str | None = None,
        llm: str | None = None,
        correction_set: int | None = None,
    ) -> AccuracyOut:
        """``GET /v1/accuracy``. Predicted against measured, per device, engine, LLM and precision,
        leave-one-configuration-out
        """
        answer = self.call(
            "GET",
            "/v1/accuracy",
            query={"device": device, "engine": engine, "llm": llm, "correction_set": correction_set},
        )
        return cast("AccuracyOut", answer)

    def get_drift(
        self,
        *,
        device: str | None = None,
        engine: str | None = None,
    ) -> DriftsOut:
        """``GET /v1/accuracy/drift``. Where an engine or a driver changed what is measured"""
        answer = self.call(
            "GET",
            "/v1/accuracy/drift",
            query={"device": device, "engine": engine},
        )
        return cast("DriftsOut", answer)

    def post_measurement(
        self,
        body: MeasurementIn,
        *,
        idempotency_key: str | None = None,
    ) -> MeasurementOut:
        """``POST /v1/measurements``. Queue a measurement"""
        answer = self.call(
            "POST",
            "/v1/measurements",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("MeasurementOut", answer)

    def get_measurements(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        status: Literal["queued", "leased", "done", "dead", "cancelled"] | None = None,
        device: str | None = None,
    ) -> PageMeasurementOut:
        """``GET /v1/measurements``. List wanted measurements, oldest first"""
        answer = self.call(
            "GET",
            "/v1/measurements",
            query={"limit": limit, "next": next, "status": status, "device": device},
        )
        return cast("PageMeasurementOut", answer)

    def post_lease(
        self,
        body: LeaseIn,
    ) -> LeaseOut | None:
        """``POST /v1/measurements/lease``. Take the most urgent measurement"""
        answer = self.call(
            "POST",
            "/v1/measurements/lease",
            body=body,
        )
        return cast("LeaseOut | None", answer)

    def get_measurement(
        self,
        measurement_id: str,
    ) -> MeasurementOut:
        """``GET /v1/measurements/{measurement_id}``. One wanted measurement with its attempts"""
        answer = self.call(
            "GET",
            f"/v1/measurements/{quote(measurement_id, safe='')}",
        )
        return cast("MeasurementOut", answer)

    def post_heartbeat(
        self,
        measurement_id: str,
        body: HeartbeatIn,
    ) -> MeasurementOut:
        """``POST /v1/measurements/{measurement_id}/heartbeat``. Keep a lease"""
        answer = self.call(
            "POST",
            f"/v1/measurements/{quote(measurement_id, safe='')}/heartbeat",
            body=body,
        )
        return cast("MeasurementOut", answer)

    def post_complete(
        self,
        measurement_id: str,
        body: CompletionIn,
    ) -> MeasurementOut:
        """``POST /v1/measurements/{measurement_id}/complete``. End a lease with results"""
        answer = self.call(
            "POST",
            f"/v1/measurements/{quote(measurement_id, safe='')}/complete",
            body=body,
        )
        return cast("MeasurementOut", answer)

    def post_fail(
        self,
        measurement_id: str,
        body: FailureIn,
    ) -> MeasurementOut:
        """``POST /v1/measurements/{measurement_id}/fail``. End a lease without results"""
        answer = self.call(
            "POST",
            f"/v1/measurements/{quote(measurement_id, safe='')}/fail",
            body=body,
        )
        return cast("MeasurementOut", answer)

    def post_cancel(
        self,
        measurement_id: str,
    ) -> MeasurementOut:
        """``POST /v1/measurements/{measurement_id}/cancel``. Take a measurement out of the queue"""
        answer = self.call(
            "POST",
            f"/v1/measurements/{quote(measurement_id, safe='')}/cancel",
        )
        return cast("MeasurementOut", answer)

    def put_agent(
        self,
        agent_id: str,
        body: RegistrationIn,
    ) -> AgentOut:
        """``PUT /v1/agents/{agent_id}``. Report an agent; again as its heartbeat"""
        answer = self.call(
            "PUT",
            f"/v1/agents/{quote(agent_id, safe='')}",
            body=body,
        )
        return cast("AgentOut", answer)

    def get_agents(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
    ) -> PageAgentOut:
        """``GET /v1/agents``. List agents"""
        answer = self.call(
            "GET",
            "/v1/agents",
            query={"limit": limit, "next": next},
        )
        return cast("PageAgentOut", answer)

    def get_measurements_wanted(
        self,
        recommendation_id: str,
    ) -> WantedListOut:
        """``GET /v1/recommendations/{recommendation_id}/measurements-wanted``. Which measurement would most change a
        recommendation
        """
        answer = self.call(
            "GET",
            f"/v1/recommendations/{quote(recommendation_id, safe='')}/measurements-wanted",
        )
        return cast("WantedListOut", answer)

    def post_device_measurement(
        self,
        body: DeviceMeasurementIn,
        *,
        idempotency_key: str | None = None,
    ) -> DeviceMeasurementOut:
        """``POST /v1/device-measurements``. Upload micro-measurements of a device"""
        answer = self.call(
            "POST",
            "/v1/device-measurements",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("DeviceMeasurementOut", answer)

    def get_device_measurements(
        self,
        *,
        limit: int | None = None,
        next: str | None = None,
        device: str | None = None,
        status: Literal["accepted", "quarantined"] | None = None,
    ) -> PageDeviceMeasurementOut:
        """``GET /v1/device-measurements``. List micro-measurements of devices, oldest first"""
        answer = self.call(
            "GET",
            "/v1/device-measurements",
            query={"limit": limit, "next": next, "device": device, "status": status},
        )
        return cast("PageDeviceMeasurementOut", answer)

    def post_comparison(
        self,
        body: ComparisonIn,
        *,
        idempotency_key: str | None = None,
    ) -> ComparisonOut:
        """``POST /v1/tco/comparisons``. Rent, reserve, buy, or call an API: what each costs"""
        answer = self.call(
            "POST",
            "/v1/tco/comparisons",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("ComparisonOut", answer)

    def get_comparison(
        self,
        comparison_id: str,
        *,
        format: Literal["json", "csv", "xlsx"] | None = None,
    ) -> ComparisonOut | bytes:
        """``GET /v1/tco/comparisons/{comparison_id}``. One stored comparison; it never changes"""
        answer = self.call(
            "GET",
            f"/v1/tco/comparisons/{quote(comparison_id, safe='')}",
            query={"format": format},
        )
        return cast("ComparisonOut | bytes", answer)

    def post_trace(
        self,
        body: TraceIn,
        *,
        idempotency_key: str | None = None,
    ) -> TraceOut:
        """``POST /v1/traces``. Upload recorded requests; stored once, under their digest"""
        answer = self.call(
            "POST",
            "/v1/traces",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("TraceOut", answer)

    def get_trace(
        self,
        trace_id: str,
        *,
        cache_tokens: int | None = None,
    ) -> TraceOut:
        """``GET /v1/traces/{trace_id}``. What a stored trace says, and the traffic to plan for"""
        answer = self.call(
            "GET",
            f"/v1/traces/{quote(trace_id, safe='')}",
            query={"cache_tokens": cache_tokens},
        )
        return cast("TraceOut", answer)

    def post_price_list(
        self,
        body: PricesImportIn,
        *,
        idempotency_key: str | None = None,
    ) -> PricesImportOut:
        """``POST /v1/offers/import``. Import a price list; tells what changed and which stored plans it touches"""
        answer = self.call(
            "POST",
            "/v1/offers/import",
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )
        return cast("PricesImportOut", answer)

    def get_healthz(
        self,
    ) -> LiveOut:
        """``GET /healthz``. The process is alive"""
        answer = self.call(
            "GET",
            "/healthz",
        )
        return cast("LiveOut", answer)

    def get_readyz(
        self,
    ) -> ReadyOut:
        """``GET /readyz``. The database is reachable, migrated, and seeded with what this version needs"""
        answer = self.call(
            "GET",
            "/readyz",
        )
        return cast("ReadyOut", answer)

    def get_metrics(
        self,
    ) -> bytes:
        """``GET /metrics``. Prometheus metrics"""
        answer = self.call(
            "GET",
            "/metrics",
        )
        return cast("bytes", answer)

    def get_problem_type(
        self,
        slug: str,
    ) -> ProblemTypeOut:
        """``GET /problems/{slug}``. What a problem type means"""
        answer = self.call(
            "GET",
            f"/problems/{quote(slug, safe='')}",
        )
        return cast("ProblemTypeOut", answer)


class AccuracyOut(TypedDict):
    """Null and empty while nothing has been measured."""
    correction_set: int | None
    """Number of the corrections used; null without any."""
    made_on: str | None
    """The day the correction set was made; null without one."""
    engines: list[EngineAccuracyOut]
    """Serving engines, by name."""


class AdaptersIn(TypedDict):
    """Adapters of one base, each request naming one of them: tenants, tasks or languages that share the base's
    weights.
    """
    count: int
    """How many."""
    rank: NotRequired[int | list[int]]
    """Rank of the adapters. One for all, or one for each where they differ: in the order of ``shares``, else the most
    popular first. Engines keep room for the largest in every slot.
    """
    target_modules: NotRequired[list[Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]]]
    """Matrices that are adapted; engines reserve memory for these."""
    zipf_exponent: NotRequired[float | None]
    """Popularity: the i-th adapter is named in proportion to i to the power of minus this. 0 where all are named
    alike, which null means too; or state ``shares``.
    """
    shares: NotRequired[list[float] | None]
    """Popularity of each adapter, as a share of requests. One for each adapter, together 1."""
    slots: NotRequired[int | None]
    """Adapters that a device holds at once. Adapters that a device holds at once; null: all of them. With fewer,
    others are loaded from the host as requests name them, and no more requests run at once than name that many on
    average.
    """


class AdaptersOut(TypedDict):
    """What serving adapters takes. ``rank``: what the engine pads them to; ``mean_rank``: own rank of the adapter that
    a request names, on average. ``load_ms``: of one that is loaded, in its own rank.
    """
    slots: int
    """Adapters that a device holds at once."""
    rank: int
    """Rank of the adapters."""
    mean_rank: float
    """Rank on average over requests."""
    mib_each: float
    """Size of one adapter in 16 bits, MiB."""
    gib_on_device: float
    """Memory that the adapters' slots take of a device, GiB; part of its weights."""
    different_in_batch: float
    """Mean number of different adapters in a batch of the predicted size."""
    resident_fraction: float
    """Share of requests that find their adapter on the device, 0 to 1."""
    load_ms: float | None
    """Time to load one adapter from the host's memory, ms. Null where the device's link to the host is not known.
    """


class AgentIdentity(TypedDict):
    """Which agent measured."""
    id: str
    """Its id."""
    version: NotRequired[str | None]
    """Version."""


class AgentOut(TypedDict):
    id: str
    """Its id."""
    version: str
    """Version."""
    hostname: str
    """Name of the host that the agent runs on."""
    device: str | None
    """Id of the accelerator."""
    devices: int
    """Accelerators on the host, a count."""
    first_seen_at: str
    """When it first reported, RFC 3339."""
    last_seen_at: str
    """When it last reported, RFC 3339."""


class AllReduceFigure(TypedDict):
    """Over ``world_size`` devices, ``bytes`` on each."""
    world_size: int
    """Devices that take part, a count."""
    bytes: int
    """Size of the message or buffer, bytes."""
    us: float
    """Time, µs."""


class AlternativeCostOut(TypedDict):
    """Unit costs divide the whole cost by each kind of token; null with ``undefined_because`` where none is served.
    """
    name: str
    """Its name."""
    kind: str
    """Which kind it is."""
    acquisition: str | None
    """How machines are had: a commitment to rent, or `purchase`; null keeps each offer's own."""
    recommendation: str | None
    """Id of a stored recommendation."""
    training_plan: NotRequired[str | None]
    """Id of a stored training plan."""
    parts: list[PartOut]
    """Nodes by kind."""
    computed_from: list[ComputedFromOut]
    """All inputs that the costs were computed from, by kind of node."""
    lines: list[CostLineOut]
    """Cost lines; together they are the total."""
    usd_by_month: list[str]
    """US dollars paid at the start, then at the end of each month; received money is negative."""
    total_usd: str
    """Total over the horizon, US dollars."""
    npv_usd: str
    """Net present value over the horizon, US dollars."""
    total_in_currency: str | None
    """Total in the stated currency."""
    npv_in_currency: str | None
    """Net present value in the stated currency."""
    usd_per_million_input_tokens: str | None
    """Cost or price of prompt tokens, US dollars a million."""
    usd_per_million_output_tokens: str | None
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    usd_per_million_tokens: str | None
    """The whole cost over prompt and output tokens together, US dollars a million."""
    usd_per_request: str | None
    """The whole cost over requests, US dollars a request."""
    undefined_because: str | None
    """Why there is no cost for a token; null where there is one."""
    input_tokens: float
    """Prompt tokens: of one request in `demand`, else over the horizon; a count."""
    output_tokens: float
    """Reply lengths in tokens, 1 of models that embed; of comparisons, a count over the horizon."""
    it_energy_kwh: float | None
    """Energy of the machines alone over the horizon, kWh; null where power is not known."""
    energy_kwh: float | None
    """Energy at the meter over the horizon, cooling included, kWh; null where power is not known."""
    co2e_kg: float | None
    """Emissions of the electricity used over the horizon, kg of CO2 equivalent; null where power is not known."""
    water_l: float | None
    """Water used for cooling and electricity over the horizon, litres; null where not known."""
    break_even: list[BreakEvenOut]
    """Against each other alternative: where the costs cross."""
    sensitivity: list[SwingOut]
    """Net present value with each input moved, largest effect first."""
    uncertainty: UncertaintyOut | None
    """Spread of the results over random draws; null without draws."""
    depreciation: DepreciationOut | None
    """How bought machines lose book value."""
    sunk_usd: str | None
    """Paid earlier for machines that are there already, in no cost line, US dollars; null where none are. Paid earlier
    for machines that are there already, in no line; null where none are.
    """
    precision: list[str]
    """Number formats of weights and KV cache. Formats of weights and cache that the plan serves with; empty where
    nobody says.
    """
    survives: dict[str, int] | None
    """Losses after which the plan still serves all demand, by kind; null where nobody says."""
    notes: list[str]
    """What to know before believing it, each in words."""


class AlternativeIn(TypedDict):
    """One way to serve the workload: the plan of a stored recommendation, an explicit fleet, or an API; or to train: a
    stored training plan. acquisition: null keeps each offer's own. payment: of a commitment. follows_demand: nodes
    on demand are released and taken again through the day; needs ``hourly_profile``. carries: how many times the
    demand of the start the nodes serve within their targets; null takes what the plan says, or the planner says of
    a fleet. Growth needs no node before. egress_gb_per_month, storage_usd_per_month: of rented nodes, data sent out
    at the start (it grows with demand) and disks; counted only where stated. payment_timing: of rent, instalments
    and lease rates, at the end or the start of each month; ``payment`` says what is paid upfront.
    commitment_used_fraction: share of a commitment that is used on average; so much more is committed, and counted
    only where stated.
    """
    name: str
    """Its name."""
    recommendation: NotRequired[str | None]
    """Id of a stored recommendation."""
    training_plan: NotRequired[str | None]
    """Id of a stored training plan."""
    fleet: NotRequired[list[FleetPartIn] | None]
    """Nodes by kind or offer."""
    api: NotRequired[ApiIn | None]
    """Prices of somebody's API, instead of machines."""
    acquisition: NotRequired[Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase", "lease"] | None]
    """How machines are had: a commitment to rent, or `purchase`; null keeps each offer's own."""
    payment: NotRequired[Literal["no_upfront", "partial_upfront", "all_upfront"]]
    """When a commitment is paid: nothing, part or all of it upfront."""
    payment_timing: NotRequired[Literal["in_arrears", "in_advance"]]
    """When rent, instalments and lease rates are paid: at the end of each month or at its start."""
    commitment_used_fraction: NotRequired[float | None]
    """Share of a commitment that is used on average, 0.01 to 1; null: all of it."""
    lease: NotRequired[LeaseTermsIn | None]
    """Terms of a lease; stated where the acquisition is `lease`, null elsewhere."""
    owned: NotRequired[OwnedIn | None]
    """Machines that are there already, whose price is sunk; null where none are."""
    follows_demand: NotRequired[bool]
    """Nodes on demand are released and taken again through the day; needs `hourly_profile`."""
    carries: NotRequired[float | None]
    """How many times the demand of the start the nodes serve within their targets."""
    egress_gb_per_month: NotRequired[float | None]
    """Data that rented nodes send out at the start, GB a month."""
    storage_usd_per_month: NotRequired[str | None]
    """Disks of rented nodes, US dollars a month."""
    purchase: NotRequired[PurchaseIn]
    """Terms of buying; null takes the catalog's figures."""


class AlternativeOut(TypedDict):
    why: str
    """What is different, or why, in words."""
    extra_usd_per_hour: str | None
    """Price above the plan's, US dollars an hour; null where there is no such plan or no measurable difference. Null
    where no plan exists that way. Under another objective than cost, what it happens to cost beside.
    """
    less_served_requests_per_s: NotRequired[float | None]
    """Requests a second served less than by the plan. Under the objective throughput: how much less it serves."""
    extra_power_kw: NotRequired[float | None]
    """Power above the plan's, kW. Under the objective power: how much more it draws."""
    plan: list[PlanLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    published_lines: NotRequired[list[PublishedLineOut]]
    """Lines of the plan that rest on speeds which others measured and published."""


class ApiIn(TypedDict):
    """Prices of somebody's API: your own, or ``model`` as the catalog lists it (``provider/model``). Cached input
    costs as much as other input unless stated.
    """
    model: NotRequired[str | None]
    """A model of a seller's price list, whose prices are taken."""
    usd_per_million_input_tokens: NotRequired[str | None]
    """Cost or price of prompt tokens, US dollars a million."""
    usd_per_million_output_tokens: NotRequired[str | None]
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    usd_per_million_cached_tokens: NotRequired[str | None]
    """Price of cached prompt tokens, US dollars a million."""


class ApiPriceOut(TypedDict):
    """Prices of one model at one seller, base tier; null where the seller lists none. valid_from: the day it holds
    from, null where no source says; seen_on: the day by which the source had it. ends: a day, ``deprecated``,
    ``retired``, or null.
    """
    id: str
    """Its id."""
    provider: str
    """Id of the seller."""
    model: str
    """What the seller calls the model."""
    usd_per_million_input_tokens: str
    """Cost or price of prompt tokens, US dollars a million."""
    usd_per_million_output_tokens: str | None
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    usd_per_million_cached_tokens: str | None
    """Price of cached prompt tokens, US dollars a million."""
    valid_from: str | None
    """From when on the price holds, RFC 3339."""
    seen_on: str
    """The day by which the source had it."""
    ends: str | None
    """When the seller ends it: a day, `deprecated`, `retired`, or null."""
    confidence: Literal["high", "medium", "low"]
    """How sure the price is: `high`, `medium` or `low`."""
    source: str
    """Where the figure comes from."""
    notes: str
    """Remarks."""


class ArrivalPeak(TypedDict):
    window_s: float
    """How long a window is, s."""
    peak_to_mean: float
    """Most arrivals of one window over the mean of all."""


class AttemptOut(TypedDict):
    """One lease and how it ended; ``ended_at`` is null while it runs or when it ran out."""
    lease: str
    """Secret of the lease, from the answer that granted it."""
    agent: str
    """Which agent measured."""
    started_at: str
    """When it began, RFC 3339; null before."""
    ended_at: str | None
    """When the attempt ended; null while it runs."""
    outcome: str
    """How it ended."""
    detail: str
    """The same in words."""


class AttentionOut(TypedDict):
    """A group of identical token-mixing layers; widths that the kind does not have are 0."""
    kind: str
    """Which kind it is."""
    layers: int
    """Layers, a count."""
    heads: int
    """Query heads, a count."""
    kv_heads: int
    """Key and value heads, a count."""
    head_dim: int
    """Width of a query and key head."""
    v_head_dim: int
    """Width of a value head; 0: as wide as a key head."""
    window_tokens: int
    """Tokens that sliding-window layers look back; 0: all."""
    q_lora_rank: int
    """Width of the compressed queries; 0 where they are not compressed."""
    kv_lora_rank: int
    """Width of the compressed keys and values; 0 where they are not compressed."""
    qk_nope_head_dim: int
    """Width of the part of a head without rotary position; 0 where there is none."""
    qk_rope_head_dim: int
    """Width of the part of a head with rotary position; 0 where there is none."""
    kv_values_per_token: float
    """Cached values a token and layer where widths alone do not say it; 0 otherwise."""
    attended_tokens_limit: int
    """Most tokens of the context that a token attends to; 0: all of them."""
    index_bytes_per_token: float
    """Cache bytes a token that an index over the context takes."""
    state_values: float
    """Values of the recurrent state a layer, a count; 0 without."""
    state_value_bytes: float
    """Bytes of each value of the state."""
    key_heads: NotRequired[int]
    """Of a gated delta rule, whose values have ``heads``; 0 of any other layer."""
    weights: float
    """Parameters of all layers of the group, a count."""


class AudioIn(TypedDict):
    """Recordings in every prompt, all of one length; their tokens come on top of ``prompt_tokens``, as many as the
    model makes of them.
    """
    per_request: NotRequired[int]
    """How many of them a request carries."""
    seconds: float
    """How long the answer took, s."""


class AudioOut(TypedDict):
    """An audio encoder: chunks of ``chunk_s`` are heard each by itself, and ``pooled`` positions, of a fiftieth of a
    second each, become a token.
    """
    layers: int
    """Layers, a count."""
    hidden: int
    """Width of the model's hidden state."""
    heads: int
    """Query heads, a count."""
    intermediate: int
    """Width inside a dense layer; 0 for mixtures."""
    pooled: int
    """Positions of a spectrogram that become one token."""
    chunk_s: float
    """Length of the parts in which a recording is heard, s."""
    most_s: float
    """Longest recording that is taken, s; 0: any. Longest recording; 0: any."""
    padded_tokens: bool
    """Whether tokens of whole chunks count, padding and all. The tokens of whole chunks count, padding and all."""
    joined: bool
    """Whether positions that become a token are joined side by side, rather than averaged. Positions that become a
    token are joined side by side; else averaged.
    """
    weights: float
    """Number format of the weights; in requests, those the plan may choose from."""


class BaseOut(TypedDict):
    """The plan that answers are compared with: the recommendation, solved again from its request and price instant.
    changed: what differs from when it was stored (``catalog_digest``, ``correction_set``, ``version``), and whether
    the plan's price does (``usd_per_hour``); empty where the same inputs gave the same price.
    """
    recommendation: str
    """Id of a stored recommendation."""
    outcome: Literal["optimal", "feasible", "infeasible"]
    """How it ended."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    stored_usd_per_hour: str | None
    """What the stored plan cost, US dollars an hour."""
    stored_at: str
    """When the recommendation was stored, RFC 3339."""
    inputs: InputsOut
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    changed: list[str]
    """What differs from when the recommendation was stored: catalog, corrections, version, …"""


class BatchIn(TypedDict):
    """Work that may be done at any hour of the months [from_month, to_month); it fills what others leave over."""
    requests: float
    """Requests to be done in the months, a count."""
    from_month: NotRequired[int]
    """First month in which the work may be done, from 0."""
    to_month: NotRequired[int | None]
    """Month before which the work must be done, from 0. The deadline: done before this month begins; null means the
    end of the horizon.
    """


class BenchmarkContext(TypedDict):
    """What was measured: hardware, model, layout, precision, engine."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    llm: str
    """Id of the language model."""
    layout: NotRequired[MeasuredLayout]
    """How the model is spread over devices."""
    precision: NotRequired[MeasuredPrecision]
    """Number formats of weights and KV cache."""
    engine: MeasuredEngine
    """The serving engine."""
    driver: NotRequired[str | None]
    """Version of the device driver."""
    measured_at: NotRequired[str | None]
    """When it was measured, RFC 3339."""
    agent: NotRequired[AgentIdentity | None]
    """Which agent measured."""
    power_w_mean: NotRequired[float | None]
    """Mean board power over the run, summed over devices, W. Mean board power over the run, summed over the devices.
    """
    notes: NotRequired[str]
    """Remarks."""


class BenchmarkDecision(TypedDict):
    """The body of POST /v1/benchmarks/{id}/release and /retract."""
    reason: str
    """Why, as a stable slug or in words."""


class BenchmarkEvent(TypedDict):
    """Something decided about a stored result after its upload. Events are appended, never changed."""
    action: Literal["release", "retract"]
    """What was decided."""
    reason: str
    """Why, as a stable slug or in words."""
    actor: str
    """Who decided: a token's id or an address."""
    recorded_at: str
    """When it was stored, RFC 3339."""


class BenchmarkImport(TypedDict):
    """A tool's own output and what it does not say: the body of POST /v1/benchmarks/import."""
    context: NotRequired[ImportContext]
    """What was measured: hardware, model, layout, precision, engine."""
    tool: NotRequired[str]
    """The tool that wrote the file; `auto` recognises it. ``auto`` detects the tool by content; a name insists on one.
    """
    payload: Any
    """The file, as JSON or as text. The tool's file, as JSON or as text."""


class BenchmarkReceipt(TypedDict):
    """The answer to an upload. ``reasons`` says why a result is quarantined, ``warnings`` what is odd about it."""
    id: str
    """Its id."""
    status: Literal["accepted", "quarantined", "retracted"]
    """Its state."""
    reasons: list[str]
    """Why, each in words."""
    warnings: list[str]
    """What is odd about it, each in words."""
    predicted_over_measured: dict[str, float] | None
    """Predicted over measured by metric, 1 is exact; null without a prediction. Predicted over measured at the time of
    upload; null where the service has no prediction to compare.
    """


class BenchmarkResults(TypedDict):
    """What came out of the run."""
    completed: NotRequired[int | None]
    """Requests that were answered, a count."""
    failed: NotRequired[int | None]
    """Requests that failed, a count."""
    duration_s: NotRequired[float | None]
    """Wall time of the run, s."""
    requests_per_s: NotRequired[float | None]
    """Rate, requests a second."""
    output_tokens_per_s: NotRequired[float | None]
    """Output tokens of the whole deployment, tokens a second. All output tokens of the deployment over the wall time
    of the run, ramp-up and drain included.
    """
    input_tokens_per_s: NotRequired[float | None]
    """Prompt tokens of the deployment over the wall time of the run, tokens a second."""
    ttft_ms: NotRequired[Statistics]
    """From sending a request to its first token, ms."""
    tpot_ms: NotRequired[Statistics]
    """Time per output token after the first, ms."""
    itl_ms: NotRequired[Statistics]
    """From one streamed chunk to the next, ms."""
    e2e_ms: NotRequired[Statistics]
    """From sending a request to its last token, ms."""


class BenchmarkSummary(TypedDict):
    """A stored result in a list."""
    id: str
    """Its id."""
    status: Literal["accepted", "quarantined", "retracted"]
    """Its state."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    llm: str
    """Id of the language model."""
    engine: str
    """The serving engine."""
    engine_version: str | None
    """The engine's version; null where it was not stated."""
    tool: str
    """The tool that wrote the file; `auto` recognises it."""
    measured_at: str | None
    """When it was measured, RFC 3339."""
    recorded_at: str
    """When it was stored, RFC 3339."""
    output_tokens_per_s: float | None
    """Output tokens of the whole deployment, tokens a second."""
    ttft_ms_mean: float | None
    """Mean time to the first token, ms; null where not measured."""
    tpot_ms_mean: float | None
    """Mean time per output token after the first, ms; null where not measured."""
    reasons: list[str]
    """Why, each in words."""


class BenchmarkUpload(TypedDict):
    """One measured run, canonical form: the body of POST /v1/benchmarks."""
    context: BenchmarkContext
    """What was measured: hardware, model, layout, precision, engine."""
    load: NotRequired[MeasuredClosedLoad | MeasuredOpenLoad | None]
    """How requests come: so many clients at once, or at a rate."""
    traffic: NotRequired[MeasuredTraffic]
    """Lengths of requests, and where it matters how many come."""
    results: BenchmarkResults
    """What came out of the run."""


class BindingOut(TypedDict):
    """A limit that the plan would be better without: what relaxing it to ``relaxing_to`` gains, by solving again. One
    of three, by the objective: money for cost, requests for throughput, power for power.
    """
    limit: str
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    workload: str | None
    """Name of the workload; null where it is about all of them."""
    relaxing_to: float | str
    """What the limit would become; `any` lifts a choice of places."""
    saves_usd_per_hour: NotRequired[str | None]
    """Saved, US dollars an hour."""
    serves_more_requests_per_s: NotRequired[float | None]
    """Requests a second that would be served more."""
    saves_power_kw: NotRequired[float | None]
    """Power saved, kW."""


class BottleneckOut(TypedDict):
    prefill: str
    """What most of a prefill step waits for."""
    decode: str
    """What most of a decode step waits for."""


class BoundOut(TypedDict):
    """The roofline limit no engine can beat."""
    tpot_ms: float
    """Time per output token that no engine can go below here, ms."""
    output_tokens_per_s: float
    """Output tokens a second that no engine can exceed here."""


class BreakEvenOut(TypedDict):
    """Against one other alternative, looked for to ``until_month`` whatever the horizon. undiscounted: cost had either
    ended in that month, machines sold at what they fetch then and debts paid. discounted: the same in present value
    (discounted payback). cash: payments alone, undiscounted, machines worth nothing until sold.
    utilisation_fraction: where net present values (discounted, over the horizon) are equal, null (with
    ``utilisation_reason``) where there is none.
    """
    against: str
    """What it is compared with."""
    until_month: int
    """The last month that is looked at, counted from the start."""
    undiscounted: CrossingsOut
    """Where cost had either ended in that month would be equal, not discounted."""
    discounted: CrossingsOut
    """The same in present value."""
    cash: CrossingsOut
    """Where payments alone are equal, not discounted, machines worth nothing until sold."""
    utilisation_fraction: float | None
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand.
    """
    cheaper_below: str | None
    """Which alternative is cheaper at lower utilisation."""
    cheaper_above: str | None
    """Which alternative is cheaper at higher utilisation."""
    utilisation_reason: str | None
    """Why there is no break-even utilisation; null where there is one."""


class ByTokenOut(TypedDict):
    """What the maker of a device asks for tokens of the model, served on machines of its own. ``id``: among
    ``/v1/api-prices``, and as ``api.model`` of a comparison of costs.
    """
    id: str
    """Its id."""
    usd_per_million_input_tokens: str
    """Cost or price of prompt tokens, US dollars a million."""
    usd_per_million_output_tokens: str
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    seen_on: str
    """The day by which the source had it."""


class CacheSizeOut(TypedDict):
    """What a cache of this size finds."""
    tokens: int
    """Length, tokens. Tokens of context that it holds."""
    block_hit_share: float
    """Share of full blocks of prompts that are found: exact for a cache that forgets the least recently used block.
    """
    che_block_hit_share: float
    """The same by Che's approximation, which takes uses of a block as independent of each other."""
    shared_prefix_fraction: float
    """Share of every prompt that is cached already, 0 to 1. Tokens found over all tokens of prompts: what a request to
    plan states under this name.
    """


class CautionOut(TypedDict):
    """What to know before signing. ``one_replica``, ``one_node``, ``no_spare``: what a lost node does, where nothing
    was asked to survive it. ``interval_crosses_target``: a prediction is expected to keep its target and may not.
    ``old_price``: ask for a quote. ``commitment_dearer``: the same machine costs no more without the commitment
    that was asked for. ``bought``: nobody rents the machine out, so its hours are those of one that is bought, and
    how they were priced. ``capacity_block``: booked for certain days and paid in advance. ``unmeasured``:
    predictions of the device rest on physics, or on runs of a sibling. ``drafting``: targets are kept as far as
    drafts are accepted as often as was stated. ``host_cache``: caches take memory of the host, which must be there
    beside all else that runs on it. ``disk_cache``: they take local disks too, of which only the stated rate is
    known. ``published_speed``: a line rests on speeds that others measured; tokens leave the house, and their
    seller limits the rate. ``sessions``: hits hold as far as turns are routed as was stated. ``extended_context``:
    requests may be longer than the context the model is published with. ``spot``: the seller may take the machines
    back. ``lasting_queue``: what is asked of replicas is more than they complete once requests wait for seats.
    ``front_end``: replicas answer from several processes, on a machine of which nobody states how many processors
    it has.
    """
    about: Literal["drafting", "extended_context", "sessions", "host_cache", "disk_cache", "one_replica", "one_node", "no_spare", "interval_crosses_target", "lasting_queue", "front_end", "old_price", "commitment_dearer", "bought", "capacity_block", "unmeasured", "published_speed", "spot"]
    """What the note is about: a variable, a label, or part of the plan."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    detail: str
    """The same in words."""


class CheapestOut(TypedDict):
    """The alternative with the lowest net present value at the typical value of every input (``measure``). lead_usd:
    how far ``runner_up`` is behind. Over the draws, null without any: chance of being cheapest; most_often_cheapest
    and its chance; value_at_stake_usd, the net present value lost on average by taking this one and not whichever
    turns out cheapest, and its 90th percentile. agrees: whether both measures name the same alternative; why_not:
    the reason where they do not.
    """
    name: str
    """Its name."""
    measure: str
    """What is compared, in words."""
    npv_usd: str
    """Net present value over the horizon, US dollars."""
    runner_up: str | None
    """The alternative that comes second; null without one."""
    lead_usd: str | None
    """How far the runner-up is behind, US dollars of present value."""
    chance: float | None
    """Share of the draws in which it is the cheapest, 0 to 1; null without draws."""
    most_often_cheapest: str | None
    """The alternative that is the cheapest in most draws."""
    most_often_chance: float | None
    """Share of the draws in which that one is the cheapest, 0 to 1."""
    value_at_stake_usd: str | None
    """Present value lost on average by taking this one and not whichever turns out cheapest, US dollars."""
    value_at_stake_p90_usd: str | None
    """The same at its 90th percentile, US dollars."""
    agrees: bool | None
    """Whether both measures name the same alternative."""
    why_not: str | None
    """Why they do not; null where they do."""


class ClassLineOut(TypedDict):
    """One traffic class on the replicas of a line. share_fraction: of what the plan serves of the class."""
    traffic_class: str
    """Which traffic class; null for all, or where there are none."""
    serves_requests_per_s: float
    """Rate planned to be served, requests a second."""
    share_fraction: float
    """Share of the workload's requests, 0 to 1; in answers, of what the plan serves of the class."""
    predicted: ClassPredictedOut | None
    """What is predicted; null where nothing runs or nothing can be predicted. Null in alternatives."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """


class ClassPredictedOut(TypedDict):
    """Latencies of one class's requests among the others on a replica, and what of them all replicas of the line put
    out.
    """
    ttft_ms: Percentiles
    """From sending a request to its first token, ms."""
    tpot_ms: Percentiles
    """Time per output token after the first, ms."""
    e2e_ms: Percentiles
    """From sending a request to its last token, ms."""
    output_tokens_per_s: Interval
    """Output tokens of the whole deployment, tokens a second."""


class ClosedLoad(TypedDict):
    """``concurrency`` clients, each sends its next request when the last is answered; all start at once."""
    kind: Literal["closed"]
    """Which kind it is."""
    concurrency: int
    """Clients that each send their next request when the last is answered, a count."""
    requests: NotRequired[int | None]
    """Requests, a count; null: as many as the simulation needs."""


class CommitmentLeftOutOut(TypedDict):
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    why: str
    """What is different, or why, in words."""


class CommitmentOut(TypedDict):
    """Nodes reserved or bought at the start of month ``start_month`` (0 is the first). usd: all payments of the term,
    present_usd: in present value at the start of the horizon. beyond_horizon_usd: the part due after the horizon.
    used_fraction: of the node-hours inside the horizon. lines: of bought nodes, what usd is made of; sales are
    negative.
    """
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    start_month: int
    """Month in which it begins, from 0."""
    term_months: int
    """Months the commitment or lease runs, a count."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    usd: str
    """US dollars over the horizon, not discounted unless it says so."""
    present_usd: NotRequired[str | None]
    """Present value, US dollars."""
    usd_per_node_hour: str
    """Rent of a node, US dollars an hour."""
    beyond_horizon_usd: str
    """The part of the payments due after the horizon, US dollars."""
    used_fraction: float
    """Share of the commitment's node-hours inside the horizon that is used, 0 to 1."""
    lines: NotRequired[dict[str, str] | None]
    """Cost lines; together they are the total."""


class Comparison(TypedDict):
    """Predicted over measured under one correction set; null without a prediction."""
    correction_set: int | None
    """Number of the corrections used; null without any."""
    predicted_over_measured: dict[str, float] | None
    """Predicted over measured by metric, 1 is exact; null without a prediction."""


class ComparisonIn(TypedDict):
    """What is compared, and the circumstances that all alternatives share. Null takes the catalog's figure.
    utilisation_fraction: average demand over the demand of the peak hour, for which fleets are sized;
    hourly_profile states it hour by hour instead. Of training plans: the share of the hours in which the plan that
    takes longest would be training; training_runs_per_month states it as how often all jobs are done instead.
    ramp_months: demand rises evenly to that of the workloads over so many months. tax_percent: on what is bought;
    income_tax_percent: saved on expenses when they are paid and on machines as they are written off, counted only
    where stated. workloads: needed unless a recommendation brings them.
    """
    horizon_months: NotRequired[int]
    """Months that are compared, 1 to 240."""
    discount_rate_percent: NotRequired[float | None]
    """Discount rate, per cent a year; null: the catalog's cost of capital."""
    utilisation_fraction: NotRequired[float | None]
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand.
    """
    hourly_profile: NotRequired[list[float] | None]
    """Average demand of each hour of a day over that of the peak hour: 24 shares, 0 to 1."""
    training_runs_per_month: NotRequired[float | None]
    """How often all jobs are done in a month."""
    growth_percent_per_month: NotRequired[float]
    """Growth of demand, per cent a month."""
    ramp_months: NotRequired[int]
    """Months over which demand rises evenly to that of the workloads."""
    inflation_percent_per_year: NotRequired[float | None]
    """Inflation of bills, per cent a year; null: the catalog's."""
    market: NotRequired[MarketIn]
    """Where prices go, a year."""
    tax_percent: NotRequired[float | None]
    """Tax on purchases and bills, per cent; null: the catalog's."""
    income_tax_percent: NotRequired[float | None]
    """Tax on income that costs are deducted from, per cent."""
    electricity: NotRequired[ElectricityIn]
    """The tariff and the grid."""
    power_usage_effectiveness: NotRequired[float | None]
    """Energy at the meter over that of the machines, at least 1; null: the catalog's."""
    colocation_usd_per_kw_month: NotRequired[str | None]
    """Rent of space and power connection, US dollars a kilowatt and month; null: the catalog's."""
    site: NotRequired[SiteIn | None]
    """Where bought machines are to stand; what is left out is not checked."""
    operator: NotRequired[str]
    """Whose costs of capital and of work: enterprise, neocloud, hyperscaler, …"""
    currency: NotRequired[CurrencyIn | None]
    """Totals are shown in this currency too, at the rate stated here."""
    price_as_of: NotRequired[str | None]
    """The instant that prices are of, RFC 3339; null in requests is now."""
    workloads: NotRequired[list[WorkloadIn] | None]
    """Streams of requests to a model each; in lists, their names."""
    alternatives: list[AlternativeIn]
    """Other plans, or other ways to serve the same, each with what it costs."""
    machines: NotRequired[list[MachineIn]]
    """Machines that may be bought; in answers, those that were considered with their figures."""
    sensitivity: NotRequired[SensitivityIn]
    """Net present value with each input moved, largest effect first."""
    monte_carlo: NotRequired[MonteCarloIn]
    """Random draws over the ranges of the catalog's figures."""


class ComparisonInputsOut(TypedDict):
    price_as_of: str
    """The instant that prices are of, RFC 3339; null in requests is now."""
    catalog_digest: str
    """SHA-256 of the catalog the answer was computed from."""
    cost_catalog_digest: str
    """SHA-256 of the catalog of cost figures."""
    version: str
    """Version."""


class ComparisonOut(TypedDict):
    """``link``: to hand on. Its id cannot be guessed; where tokens are in use, opening it needs one of any role."""
    summary: str
    """The comparison in three sentences."""
    warnings: list[str]
    """What is odd about it, each in words."""
    demand: DemandOut
    """How much is asked for."""
    alternatives: list[AlternativeCostOut]
    """Other plans, or other ways to serve the same, each with what it costs."""
    cheapest: CheapestOut
    """The alternative with the lowest net present value, and how sure that is."""
    wanted: list[WantedOut]
    """Measurements that would decide most, most first."""
    defaults: list[DefaultOut]
    """Every figure that was taken from the catalog, with its source."""
    id: str
    """Its id."""
    link: str
    """Address to hand on; its id cannot be guessed."""
    created_at: str
    """When it was made, RFC 3339."""
    inputs: ComparisonInputsOut
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    request: ComparisonIn
    """What was asked, with every default filled in. The request with every default of the API filled in."""


class CompletionIn(TypedDict):
    """Measured: the ids of the uploaded results."""
    lease: str
    """Secret of the lease, from the answer that granted it."""
    benchmarks: list[str]
    """Ids of stored runs."""


class ComputedFromOut(TypedDict):
    """All that the costs of one kind of node, or of an API, were computed from: enough to compute them again.
    nodes_by_month: paid for in each month; started_by_month: bought, leased or committed in it; needed_by_month:
    those that demand needs. Empty for an API. usd_by_line: by month, where the alternative has several kinds of
    node; empty where ``lines`` are those of the only one. in_advance: rent, instalments and rates are paid at the
    start of a month. busy_fraction: share of the demand's hours in which the nodes train, null of what serves; by
    the hour they are rented only then. interrupted_together: nodes that stop when one of them is interrupted.
    lease_months: null without a lease. held_nodes: there already, ``held_age_months`` old at the start.
    """
    name: str
    """Its name."""
    kind: str
    """Which kind it is."""
    nodes_by_month: list[float]
    """Nodes paid for in each month, a count."""
    started_by_month: list[float]
    """Nodes bought or committed in each month, a count."""
    devices_per_node: int | None
    """Accelerators in one node, a count."""
    term_months: int | None
    """Months the commitment or lease runs, a count."""
    upfront_fraction: float | None
    """Share of a commitment that is paid at its start, 0 to 1."""
    interruptible: bool
    """Whether the provider may take the machines back."""
    follows_demand: bool
    """Nodes on demand are released and taken again through the day; needs `hourly_profile`."""
    busy_fraction: NotRequired[float | None]
    """Share of the time in which it works, 0 to 1."""
    interrupted_together: NotRequired[int | None]
    """Nodes that stop when one of them is interrupted, a count."""
    life_months: int | None
    """Months a bought machine is used, a count."""
    finance_months: int | None
    """Months over which the loan is paid back; null: as long as the machines last."""
    lead_time_months: int | None
    """Months from ordering machines to their being needed."""
    needed_by_month: list[float]
    """Nodes that demand needs in each month, a count; those paid for may be more."""
    in_advance: bool
    """Whether rent, instalments and lease rates are paid at the start of each month instead of its end."""
    lease_months: int | None
    """Months that a lease runs, a count; null without one."""
    bought_out: bool
    """Whether leased machines are bought at the end of the lease."""
    held_nodes: int
    """Nodes that are there already at the start, a count."""
    held_age_months: int | None
    """How old the nodes that are there already are at the start, months; null where none are."""
    inputs: list[UsedInputOut]
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    usd_by_line: dict[str, list[str]]
    """Costs by line, US dollars in each month."""


class ConflictOut(TypedDict):
    """Limits that together rule everything out."""
    limits: list[str]
    """What the plan must stay within; in answers, limits by their path in the request."""
    detail: str
    """The same in words."""


class ConstantOut(TypedDict):
    name: str
    """Its name."""
    unit: str
    """The figure's unit."""
    value: float
    """The fitted constant, in `unit`."""
    before: float
    """The constant before the fit, in `unit`."""
    standard_error_fraction: float
    """Standard error of the constant as a share of it."""
    taken: bool
    """Whether the fitted value is used."""


class ContextOut(TypedDict):
    """The context a workload is served with."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none."""
    context_tokens: int
    """Longest context served, prompt and reply together, tokens; null: the longest that the traffic produces."""
    clipped_fraction: float
    """Share of requests that are longer than the context and end there, 0 to 1. Share of the requests that are longer,
    and end there.
    """


class CopyFigure(TypedDict):
    """A device-to-device copy; every byte is read once and written once."""
    bytes: int
    """Size of the message or buffer, bytes."""
    read_plus_write_gb_per_s: float
    """Bytes read and written a second, GB."""


class CostLineOut(TypedDict):
    """``usd_by_month``: at the start, then at the end of each month. Received money is negative."""
    line: str
    """Kind of cost: rent, electricity, staff, …"""
    total_usd: str
    """Total over the horizon, US dollars."""
    present_value_usd: str
    """Present value of the payments, US dollars."""
    usd_by_month: list[str]
    """US dollars paid at the start, then at the end of each month; received money is negative."""


class CrossingsOut(TypedDict):
    """month: first crossing of two curves of cost so far, null without one; crossings: all of them."""
    month: float | None
    """Month, from 0; of a break-even, the first crossing, null without one."""
    crossings: list[float]
    """Months at which cumulative costs cross, all of them."""
    cheaper_at_start: str | None
    """Which alternative has cost less at the start; null when equal."""
    cheaper_at_horizon: str | None
    """Which alternative has cost less by the end; null when equal."""


class CurrencyIn(TypedDict):
    """Totals are shown in this currency too. No exchange rate is stored: state the one you use."""
    code: str
    """Currency code (ISO 4217), such as EUR."""
    usd_per_unit: str
    """What one unit of the currency is worth in US dollars."""


class CurrentIn(TypedDict):
    """The fleet that runs now: the plan of a recommendation, or nodes by offer id."""
    recommendation: NotRequired[str | None]
    """Id of a stored recommendation."""
    nodes: NotRequired[dict[str, CurrentNodesIn]]
    """Nodes that run now, by offer id."""
    switching: NotRequired[SwitchingIn]
    """What a change of nodes costs, once."""
    keep_unless: NotRequired[KeepUnlessIn]
    """The fleet is kept as it is unless switching saves more than this."""


class CurrentNodesIn(TypedDict):
    """Nodes of one offer that run now. committed_until: until then they are paid for, used or not."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    committed_until: NotRequired[str | None]
    """Until then the nodes are paid for, used or not; RFC 3339."""


class CurvePointOut(TypedDict):
    value: float
    """The value, in the unit of what it is of."""
    is_requested: bool
    """The value the recommendation was made with."""
    solved: SolvedOut
    """The changed request's plan, and what it costs more or less."""
    reasons: list[MissOut]
    """Why, each in words."""


class DefaultOut(TypedDict):
    """A figure taken from the catalog. ``alternative``: null where it holds for all."""
    alternative: str | None
    """Which alternative the figure is for; null where it holds for all."""
    input: str
    """Which figure."""
    low: float
    """Lower end of the catalog row, in `unit`."""
    typical: float
    """The figure used, in `unit`."""
    high: float
    """Upper end of the catalog row, in `unit`."""
    unit: str
    """The figure's unit."""
    how: str
    """How the figure was chosen among rows."""
    origins: list[OriginOut]
    """Rows that the figure comes from."""


class DemandFitOut(TypedDict):
    """How representative periods stand for the demand: each has the largest rates of the hours it stands for, so that
    a plan serves every hour. ``overstated_fraction``: what that adds to the requests; ``worst_hour_fraction``: the
    most it adds to a workload in an hour, as a share of its peak.
    """
    points: int
    """Values in the stated demand, a count."""
    hours: int
    """Hours, a count."""
    periods: int
    """Representative periods that stand for them, a count."""
    overstated_fraction: float
    """Requests that hourly and representative rates add to the stated demand, as a share of it."""
    worst_hour_fraction: float
    """The most that any hour is overstated, as a share of it."""
    peak_requests_per_s: dict[str, float]
    """Highest rate, requests a second."""


class DemandOut(TypedDict):
    """What every alternative serves: the peak hour's requests and mean tokens of a request. Of training plans a
    request is one run of all jobs, its input the tokens trained on, and the peak is runs back to back.
    """
    trained: NotRequired[TrainedOut | None]
    """What is trained, how often. Null of what serves."""
    requests_per_s: float
    """Rate of the peak hour, requests a second."""
    input_tokens: float
    """Mean prompt of a request, tokens."""
    output_tokens: float
    """Mean reply of a request, tokens."""
    cached_fraction: float
    """Share of prompt tokens that is cached already, 0 to 1."""
    utilisation_fraction: float
    """Average demand over the peak's, 0 to 1."""


class DeploymentFileOut(TypedDict):
    path: str
    """Path of the file."""
    content: str
    """The file's text."""


class DeploymentNoteOut(TypedDict):
    """Something the files leave to whoever uses them. ``about``: a variable, a label, or part of the plan."""
    about: str
    """What the note is about: a variable, a label, or part of the plan."""
    text: str
    """In words."""


class DeploymentOut(TypedDict):
    """The same plan, catalog and versions give the same bytes. ``check``: a command that says whether it runs as
    planned.
    """
    recommendation: str
    """Id of a stored recommendation."""
    target: str
    """What the files are for: vllm, sglang, compose, kubernetes, …"""
    generator_version: str
    """Version of what wrote the files: it goes up when it writes others."""
    engine_versions: dict[str, str]
    """Whose options the command lines are written with."""
    files: list[DeploymentFileOut]
    """Files, each with its path and text."""
    notes: list[DeploymentNoteOut]
    """Remarks."""
    readiness: list[ReadinessOut]
    """How long further replicas take to start, by kind."""
    check: str
    """A command that says whether it runs as planned."""


class DepreciationOut(TypedDict):
    """What owned machines are worth at the start, then at the end of each month: to the accounts, network and storage
    included, and on the market, where only machines fetch anything. Moves no cash until they are sold.
    """
    method: str
    """Which method."""
    months: int
    """Months, a count."""
    book_value_usd_by_month: list[str]
    """Book value in US dollars at the start, then at the end of each month."""
    market_value_usd_by_month: list[str]
    """What the machines would fetch at the end of each month, US dollars."""


class DeviceMeasurementIn(TypedDict):
    """What a device did in micro-measurements: the body of POST /v1/device-measurements."""
    device: str
    """Id of the accelerator."""
    name: str
    """Its name. As the driver calls it."""
    driver: NotRequired[str | None]
    """Version of the device driver."""
    torch: str
    """Version of PyTorch that measured."""
    copy: NotRequired[list[CopyFigure]]
    """Measured copies in device memory."""
    gemm: NotRequired[list[GemmFigure]]
    """Measured matrix products."""
    all_reduce: NotRequired[list[AllReduceFigure]]
    """Measured all-reduces over the devices of a node."""


class DeviceMeasurementOut(TypedDict):
    """``refines``: what the figures say of the device's constants; empty when quarantined."""
    id: str
    """Its id."""
    status: Literal["accepted", "quarantined"]
    """Its state."""
    reasons: list[str]
    """Why, each in words."""
    recorded_at: str
    """When it was stored, RFC 3339."""
    figures: DeviceMeasurementIn
    """The measured figures, by name."""
    refines: list[RefinedOut]
    """Constants of the device that it refines."""


class DeviceOut(TypedDict):
    id: str
    """Its id."""
    name: str
    """Its name."""
    vendor: str
    """Who makes the device."""
    architecture: str
    """The vendor's name of the device's architecture."""
    family: str
    """Family of like models or devices."""
    category: str
    """What kind of device it is: gpu, tpu, npu, …"""
    device_class: NotRequired[Literal["datacentre", "workstation", "consumer", "edge"] | None]
    """Whom the vendor makes the device for: datacentre, workstation, consumer or edge. Whom the vendor makes it for.
    """
    device_class_source: NotRequired[str | None]
    """Where its class is from."""
    memory_class: str | None
    """Kind of memory: HBM, GDDR, LPDDR, SRAM, …"""
    status: str
    """Its state."""
    launched: str | None
    """When it came to market."""
    form_factor: str | None
    """How the device is built in: SXM, PCIe, OAM, …"""
    memory_gib: float | None
    """Memory that can be used, GiB."""
    memory_gb_marketed: float | None
    """Memory as the vendor markets it, GB."""
    memory_type: str | None
    """Generation of memory, such as HBM3e."""
    memory_bandwidth_gb_per_s: float | None
    """Bandwidth of device memory, GB a second; null where not published."""
    dense_fp64_tflop_per_s: float | None
    """Dense fp64 rate, TFLOP a second; null where not published."""
    dense_fp32_tflop_per_s: float | None
    """Dense fp32 rate, TFLOP a second; null where not published."""
    dense_tf32_tflop_per_s: float | None
    """Dense tf32 matrix rate, TFLOP a second; null where not published."""
    dense_bf16_tflop_per_s: float | None
    """Dense bf16 matrix rate, TFLOP a second; null where not published."""
    dense_fp16_tflop_per_s: float | None
    """Dense fp16 matrix rate, TFLOP a second; null where not published."""
    dense_fp8_tflop_per_s: float | None
    """Dense fp8 matrix rate, TFLOP a second; null where not published."""
    dense_int8_top_per_s: float | None
    """Dense int8 matrix rate, TOP a second; null where not published."""
    dense_fp6_tflop_per_s: float | None
    """Dense fp6 matrix rate, TFLOP a second; null where not published."""
    dense_int4_top_per_s: float | None
    """Dense int4 matrix rate, TOP a second; null where not published."""
    dense_fp4_tflop_per_s: float | None
    """Dense fp4 matrix rate, TFLOP a second; null where not published."""
    sparse_bf16_tflop_per_s: float | None
    """Structured-sparse bf16 matrix rate, TFLOP a second; never planned with."""
    sparse_fp8_tflop_per_s: float | None
    """Structured-sparse fp8 matrix rate, TFLOP a second; never planned with."""
    sparse_int8_top_per_s: float | None
    """Structured-sparse int8 matrix rate, TOP a second; never planned with."""
    sparse_fp4_tflop_per_s: float | None
    """Structured-sparse fp4 matrix rate, TFLOP a second; never planned with."""
    on_chip_sram_mb: float | None
    """On-chip memory that programs use directly, MB; null where not published."""
    cache_mb: float | None
    """On-chip cache, MB; null where not published."""
    power_limit_w: float | None
    """Highest power of the device, W; null where not published."""
    power_basis: str | None
    """What the power figure is: board power, thermal design power, …"""
    link_name: str | None
    """Name of the fast link between devices; null without one."""
    link_one_direction_gb_per_s: float | None
    """Bandwidth of a device's fast link in one direction, GB a second; null where not published."""
    link_domain_devices: int
    """Devices joined by the fast link, a count."""
    link_topology: str | None
    """How the link joins devices: switch, mesh, ring, …"""
    pcie_generation: int | None
    """PCIe generation; null where not published."""
    pcie_lanes: int | None
    """PCIe lanes, a count; null where not published."""
    engines: list[str]
    """Serving engines, by name."""
    past_engines: NotRequired[dict[str, str]]
    """Engines of which only earlier releases ran on it, and the last of them. Estimated where a request names one,
    never planned.
    """
    missing: list[str]
    """Figures nobody has published; planning with them is refused by name."""
    partitions: NotRequired[list[PartitionOut]]
    """Profiles into which devices can be split. How the device can be split; empty where that is not possible or its
    figures are not known.
    """
    provenance: ProvenanceOut
    """Where the figures come from."""


class DiffSideOut(TypedDict):
    """One of the two plans; nothing is rented where it is infeasible."""
    recommendation: str
    """Id of a stored recommendation."""
    outcome: str
    """How it ended."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""


class DisaggregatedIn(TypedDict):
    """Prefill and decode in pools of their own."""
    prefill: PoolIn
    """The part that reads prompts."""
    decode: PoolIn
    """The part that writes replies, a token a step."""
    kv_transfer: KvTransferIn
    """How the cache gets from the prefill pool to the decode pool."""


class DisaggregatedOut(TypedDict):
    prefill: PoolOut
    """The part that reads prompts."""
    decode: PoolOut
    """The part that writes replies, a token a step."""
    kv_transfer: KvTransferOut
    """How the cache gets from the prefill pool to the decode pool."""


class DiscountOut(TypedDict):
    """The rate at which payments are weighed: what is minimised is present value at the start of the horizon."""
    percent_per_year: float
    """Per cent a year."""
    source: str
    """Where the figure comes from."""


class DoesNotFitOut(TypedDict):
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    layout: LayoutIn | None
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    engine: DraftingEngineIn
    """The serving engine."""
    disaggregated: NotRequired[DisaggregatedIn | None]
    """Prefill and decode in pools of their own; null for replicas that do both."""
    outcome: Literal["does_not_fit"]
    """How it ended."""
    detail: str
    """The same in words."""
    needed_bytes_per_device: int
    """Memory that a device would need, bytes."""
    available_bytes_per_device: int
    """Memory of a device that the engine may use, bytes."""
    smallest_layout: NotRequired[LayoutIn | None]
    """The least parallel degrees that would hold the model. The least tensor parallelism in one machine of the device
    that would hold the model; null where none does.
    """


class DominatedOut(TypedDict):
    """A plan found on the way. by: the value of the front's point that is no dearer and no worse."""
    limit: float
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    value: float
    """The value, in the unit of what it is of."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    by: float
    """The value of the front's point that is no dearer and no worse, in the unit of `against`."""


class DraftModelIn(TypedDict):
    """A smaller model drafts, on the same devices in the same layout. ``acceptance_fraction``: of each drafted token.
    ``draft_weights``: null means the served model's format.
    """
    method: Literal["draft_model"]
    """Which method."""
    draft_tokens: int
    """Tokens drafted a step, a count."""
    acceptance_fraction: float
    """Share of drafted tokens that the served model accepts, 0 to 1; the traffic's own, taken as stated."""
    draft_llm: str
    """Id of the model that drafts; it has the served model's vocabulary."""
    draft_weights: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"] | None]
    """Number format of the draft model's weights; null: the served model's."""


class DraftingEngineIn(TypedDict):
    """The engine, and what it drafts with; null: nothing."""
    name: NotRequired[str]
    """Its name. Unless stated: vLLM, or the device's own where that is not known to run."""
    version: NotRequired[str | None]
    """Version."""
    release: NotRequired[Literal["any", "planned"]]
    """Of an engine without a stated version: `planned` is the release that a plan's files start; with `any` intervals
    hold what releases differ by.
    """
    max_batched_tokens: NotRequired[int]
    """Most tokens the engine processes in one step, a count."""
    max_sequences: NotRequired[int]
    """Most requests the engine runs at once, a count."""
    memory_fraction: NotRequired[float]
    """Share of device memory that the engine may use, 0 to 1."""
    max_context_tokens: NotRequired[int | None]
    """Longest context, prompt and reply together, tokens."""
    host_cache_gib: NotRequired[float]
    """Memory of the host that caches of prefixes may take beside each device, GiB; 0 for none. What requests of
    sessions leave in the cache is kept there too, by vLLM and SGLang; loading it takes its time on PCIe.
    """
    disk_cache_gib: NotRequired[float]
    """Of the node's local disks, what caches of prefixes may take for each device under host memory, GiB; 0 for none.
    Under that host memory: prompts that go on there are read into it before they are queued, at the rate of the
    node's disks.
    """
    disk_read_gbytes_per_s: NotRequired[float | None]
    """At which each device's share of the local disks is read, 10⁹ bytes a second, as measured; null: the documented
    rate of the node, shared by its devices.
    """
    admission_interval_steps: NotRequired[int | None]
    """New requests are taken in once in so many decode steps, and after every step with prompts. SGLang's
    --scheduler-recv-interval; null: what the engine's documentation starts this model with on this device, else 1.
    """
    api_servers: NotRequired[int]
    """Processes for each copy of attention that take requests in and pass tokens on, side by side. vLLM's
    --api-server-count, divided by data_parallel, which is how many vLLM starts unless told.
    """
    max_captured_tokens: NotRequired[int | None]
    """Most tokens of a step that runs as a captured graph; larger ones are launched from the host, kernel by kernel.
    vLLM's --max-cudagraph-capture-size; null: as many as the engine captures unless told.
    """
    scan_kernel: NotRequired[Literal["triton", "flashinfer"] | None]
    """vLLM's --gdn-prefill-backend, of models with gated delta rules (Qwen3-Next, Qwen3.5); null: FlashInfer's on
    Hopper and on data-centre Blackwell, Triton's elsewhere, and intervals hold the other where vLLM is not told and
    could have either.
    """
    load_format: NotRequired[Literal["auto", "dummy"]]
    """vLLM's and SGLang's --load-format; dummy: weights hold random values, as in benchmarks without a checkpoint.
    Routers of mixtures then spread tokens over experts as was measured with such, less evenly than trained ones, so
    that steps are shorter.
    """
    speculative: NotRequired[DraftModelIn | StatedDraftIn | None]
    """Drafting: tokens guessed ahead and checked together; null without."""


class DriftOut(TypedDict):
    """Measured over predicted moved between two releases of an engine or driver by more than chance explains."""
    device: str
    """Id of the accelerator."""
    engine: str
    """The serving engine."""
    metric: str
    """Which measured quantity."""
    from_version: str | None
    """Engine version before the shift."""
    from_driver: str | None
    """Driver version before the shift."""
    to_version: str | None
    """Engine version after the shift."""
    to_driver: str | None
    """Driver version after the shift."""
    runs_before: int
    """Runs before the shift, a count."""
    runs_after: int
    """Runs after the shift, a count."""
    median_change_fraction: float
    """Shift of the median of measured over predicted, as a share."""
    deviations: float
    """How many standard deviations the shift lies beyond chance."""


class DriftsOut(TypedDict):
    items: list[DriftOut]
    """The entries of this page."""


class ElectricityIn(TypedDict):
    """A tariff of your own, or the catalog's for ``region``. A demand charge belongs to an energy-only tariff."""
    usd_per_kwh: NotRequired[str | None]
    """Price of electricity, US dollars a kWh."""
    region: NotRequired[str | None]
    """Region, as the catalog has it."""
    demand_charge_usd_per_kw_month: NotRequired[str | None]
    """Charge for the highest power drawn, US dollars a kilowatt and month."""
    grid_kg_co2e_per_kwh: NotRequired[float | None]
    """Emissions of the grid's electricity, kg of CO2 equivalent a kWh, 0 to 3."""


class EngineAccuracyOut(TypedDict):
    device: str
    """Id of the accelerator."""
    engine: str
    """The serving engine."""
    versions: list[str]
    """Engine versions, newest last."""
    runs: int
    """Measured runs: how many, or each of them."""
    constants: list[ConstantOut]
    """Constants of the performance model, fitted."""
    slices: list[SliceOut]
    """Runs judged together; of a partition, its memory slices, a count."""


class ErrorOut(TypedDict):
    """Errors of one metric on configurations the fit had not seen, beside what the physics alone gives.
    coverage_fraction: share of measured values inside the 90 % interval that the other configurations gave them.
    """
    metric: str
    """Which measured quantity."""
    runs: int
    """Measured runs: how many, or each of them."""
    left_out_mape_percent: float
    """Mean absolute error on configurations the fit had not seen, per cent."""
    left_out_median_percent: float
    """Median signed error on configurations the fit had not seen, per cent: predicted over measured."""
    physics_mape_percent: float
    """Mean absolute error of the physics alone, per cent."""
    physics_median_percent: float
    """Median signed error of the physics alone, per cent."""
    coverage_fraction: float | None
    """Share of measured values inside the predicted 90 % interval, 0 to 1."""


class EstimateIn(TypedDict):
    """One deployment and what is asked of it: on one ``device``, or ``disaggregated`` over two pools."""
    llm: str
    """Id of the language model."""
    device: NotRequired[str | None]
    """Id of the accelerator. Left out where ``node`` is named: what that machine holds."""
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices. A profile: the deployment has one instance of a
    device that is split so.
    """
    node: NotRequired[str | None]
    """Id of the machine type. The machine: how its devices are joined, and over which network a replica larger than it
    spans several. Null: links that every machine has that holds the layout.
    """
    layout: NotRequired[LayoutIn]
    """How the model is spread over devices. Left out: one device, or where that does not hold the model the least
    tensor parallelism in one machine that does. As stated otherwise, whether it fits or not.
    """
    precision: NotRequired[PrecisionIn]
    """Number formats of weights and KV cache."""
    engine: NotRequired[DraftingEngineIn]
    """The serving engine."""
    disaggregated: NotRequired[DisaggregatedIn | None]
    """Prefill and decode in pools of their own; null for replicas that do both."""
    traffic: TrafficShape
    """Lengths of requests, and where it matters how many come."""
    adapters: NotRequired[AdaptersIn | None]
    """Low-rank adapters over the model, one named by every request. Null: the model as published."""
    load: ClosedLoad | OpenLoad
    """How requests come: so many clients at once, or at a rate."""
    over_context: NotRequired[Literal["clip", "refuse"]]
    """Requests longer than the context end there (`clip`) or are an error (`refuse`)."""


class EstimatedOut(TypedDict):
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    layout: LayoutIn | None
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    engine: DraftingEngineIn
    """The serving engine."""
    disaggregated: NotRequired[DisaggregatedIn | None]
    """Prefill and decode in pools of their own; null for replicas that do both."""
    outcome: Literal["estimated"]
    """How it ended."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    evidence: list[str]
    """Ids of the runs that the prediction rests on."""
    ttft_ms: Percentiles
    """From sending a request to its first token, ms."""
    tpot_ms: Percentiles
    """Time per output token after the first, ms."""
    itl_ms: Percentiles
    """From one streamed chunk to the next, ms."""
    e2e_ms: Percentiles
    """From sending a request to its last token, ms."""
    output_tokens_per_s: Interval
    """Output tokens of the whole deployment, tokens a second."""
    requests_per_s: Interval
    """Rate, requests a second."""
    power_w: Interval | None
    """Power of the devices, W; null where not published. Null where nobody has published what the device draws."""
    joules_per_output_token: Interval | None
    """Energy of the devices for each output token, J; null where power is not known."""
    memory: MemoryOut | None
    """What fills a device's memory. Of the decode pool, where there are two; null where only speeds of the system are
    published.
    """
    bottleneck: BottleneckOut | None
    """What most of the time is spent waiting for. Null where only speeds of the system are published."""
    step: list[StepTermOut]
    """Terms of the time of a step."""
    bound: BoundOut | None
    """The roofline limit that no engine can beat. Null where only speeds of the system are published."""
    roofline: RooflineOut | None
    """Where the operators stand under the roof of their device. Null where pools have devices of their own, and where
    only speeds of the system are published.
    """
    clipped_fraction: float
    """Share of requests that are longer than the context and end there, 0 to 1. Share of the requests that are longer
    than the context, and end there.
    """
    cautions: NotRequired[list[str]]
    """What to know before acting on the answer."""
    ttfat_ms: NotRequired[Percentiles | None]
    """Time to the first answer token, after hidden ones: percentiles in ms. Null where no tokens are hidden: it is the
    first token then.
    """
    prefix_hit_fraction: NotRequired[float | None]
    """Share of the prompts' tokens that replicas find in their cache of prefixes, 0 to 1, as simulated. Null where
    requests are no turns of sessions.
    """
    routed_over: NotRequired[int | None]
    """Replicas among which turns of sessions are spread, a count; 1 where a session stays where it began. Null where
    requests are no turns of sessions.
    """
    speculative: NotRequired[SpeculativeOut | None]
    """Drafting: tokens guessed ahead and checked together; null without."""
    adapters: NotRequired[AdaptersOut | None]
    """Low-rank adapters over the model, one named by every request. Null where requests name none."""
    images: NotRequired[ImagesOut | None]
    """Images in every prompt. Null where requests carry none."""
    pools: NotRequired[DisaggregatedOut | None]
    """Pools of prefill and decode."""
    lasting_queue: NotRequired[LastingQueueOut | None]
    """Of an open load; null where a queue goes by itself once it has come up."""
    front_end_fraction: NotRequired[float | None]
    """Share of the time that passing tokens on takes the process of a replica that does so, 0 to 1 and more; towards 1
    tokens wait for it. Null of pools that prefill and decode apart.
    """


class EstimatesIn(TypedDict):
    estimates: list[EstimateIn]
    """One for each deployment, in the order asked."""


class EstimatesOut(TypedDict):
    """In the order asked. One bad case does not spoil the rest."""
    estimates: list[EstimatedOut | DoesNotFitOut | UnsupportedOut | SaturatedOut]
    """One for each deployment, in the order asked."""


class FailureIn(TypedDict):
    """Could not be measured this time."""
    lease: str
    """Secret of the lease, from the answer that granted it."""
    reason: str
    """Why, as a stable slug or in words."""


class FaultToleranceIn(TypedDict):
    """N−k by construction: after the loss of any so many, what remains still serves all demand. Kinds are lost one at
    a time. nodes: replicas of lost nodes restart on idle spares of the same kind. providers, regions: the replicas
    elsewhere take the traffic at once.
    """
    nodes: NotRequired[int]
    """Nodes that may be lost at once, a count: replicas restart on idle spares."""
    providers: NotRequired[int]
    """Providers that may be lost at once, a count."""
    regions: NotRequired[int]
    """Regions that may be lost at once, a count."""
    utilisation_limit_fraction: NotRequired[float]
    """How busy replicas may be planned, 0 to 1. Share of a replica's capacity that may be used after the loss of
    providers or regions.
    """


class FeedForwardOut(TypedDict):
    """A group of identical feed-forward layers, dense or mixture of experts."""
    layers: int
    """Layers, a count."""
    intermediate: int
    """Width inside a dense layer; 0 for mixtures."""
    grouped_intermediate: NotRequired[int]
    """Width inside a dense layer, padded so that shards hold whole groups. Of published checkpoints whose weights are
    quantised in groups; 0 where it is the same.
    """
    gated: bool
    """Whether the layer has a gate beside its first matrix."""
    experts: int
    """Experts of each layer, a count; 0 for dense layers."""
    top_k: int
    """Experts that each token passes, a count."""
    expert_intermediate: int
    """Width inside an expert."""
    expert_hidden: int
    """Width of an expert's input; 0: the model's own."""
    shared_intermediate: int
    """Width inside the expert that every token passes; 0 without one."""
    weights: float
    """Parameters of all layers of the group, a count."""
    active_weights: float
    """Parameters of the group that a token passes through, a count."""


class FixedLength(TypedDict):
    distribution: Literal["fixed"]
    """Which form the distribution has."""
    tokens: int
    """Length, tokens."""


class FleetAlternativeOut(TypedDict):
    """Amounts are in present value."""
    why: str
    """What is different, or why, in words."""
    usd: str | None
    """Cost over the horizon, US dollars of present value; null where there is no such plan. Null where no plan exists
    that way.
    """
    bound_usd: str | None
    """What every plan costs at least over the horizon, US dollars of present value, by the optimiser's proof."""
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    extra_usd: str | None
    """Cost above the plan's over the horizon, US dollars of present value; null where there is no such plan."""


class FleetDeploymentOut(TypedDict):
    """One way of running a workload. ``requests_per_s``: of a replica, at the utilisation limit.
    ``nodes_per_replica``: whole nodes of one offer that a replica takes, where it does not fit inside one.
    """
    id: int
    """Its number, which `periods` refer to."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    engine: str
    """The serving engine."""
    layout: LayoutIn
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    requests_per_s: float
    """Rate of one replica at the utilisation limit, requests a second."""
    nodes_per_replica: NotRequired[int]
    """Nodes that one replica spans, a count."""
    network_ms: NotRequired[float | None]
    """Round trip to the users, ms; null where not stated. Round trip to the users that it is counted with; null where
    the workload states none.
    """
    max_batched_tokens: NotRequired[int | None]
    """Most tokens the engine processes in one step, a count. Most tokens of a step of its engine, a count; null in
    plans stored before it was told.
    """


class FleetIn(TypedDict):
    workloads: list[FleetWorkloadIn]
    """Streams of requests to a model each; in lists, their names."""
    horizon: NotRequired[HorizonIn]
    """How many months, in how many representative periods."""
    limits: NotRequired[FleetLimitsIn]
    """What the plan must stay within; in answers, limits by their path in the request."""
    spot: NotRequired[SpotIn | None]
    """Figures of capacity that the provider may take back."""
    own: NotRequired[list[OwnSiteIn]]
    """Places of your own in which machines may be bought. Places where machines may be bought and run."""
    discount_rate_percent_per_year: NotRequired[float | None]
    """Rate at which payments are weighed, per cent a year; null: 0, or the catalog's cost of capital where machines
    may be bought. Null: 0, or with ``own`` the catalog's cost of capital of its operator.
    """
    commitment_tail: NotRequired[Literal["inside", "liability"]]
    """`inside`: terms end within the horizon; `liability`: they may end later, and all their payments count.
    ``inside``: a term ends within the horizon. ``liability``: it may end later, and all its payments count.
    """
    price_as_of: NotRequired[str | None]
    """The instant that prices are of, RFC 3339; null in requests is now."""
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together."""
    gap_fraction: NotRequired[float]
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """


class FleetLimitsIn(TypedDict):
    """What the fleet must stay within; null leaves a choice open."""
    devices: NotRequired[list[str] | None]
    """Accelerators that may be used, by id; null: any."""
    providers: NotRequired[list[str] | None]
    """Providers, by id; null: all."""
    regions: NotRequired[list[str] | None]
    """Regions, as the catalog has them; null: all."""
    commitments: NotRequired[list[Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"]] | None]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to. Null: every kind whose
    term fits; spot only with ``spot``, ``purchase`` only with ``own``.
    """
    offers: NotRequired[dict[str, OfferLimitIn]]
    """Limits of single offers, by offer id."""
    sourcing: NotRequired[SourcingIn | Literal["any"]]
    """The buying policy: its rules about offers. How many places a workload is in is not bounded over time."""
    operation: NotRequired[OperationIn | Literal["any"]]
    """What makes the plan one that people can run."""
    max_nodes_per_offer: NotRequired[int]
    """Most nodes of an offer of which neither it nor `offers` states a number, a count."""


class FleetNodesOut(TypedDict):
    """All nodes rented at one offer, idle spares included; ``usd_per_hour`` is of all of them."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    splits: NotRequired[list[SplitDevicesOut]]
    """Devices that are split into instances."""


class FleetOut(TypedDict):
    outcome: Literal["optimal", "feasible", "infeasible"]
    """How it ended."""
    solve: FleetSolveOut
    """How the answer was found and what is proven."""
    demand: DemandFitOut
    """How much is asked for."""
    totals: FleetTotalsOut | None
    """Sums over the whole plan; null without one."""
    commitments: list[CommitmentOut]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to."""
    deployments: list[FleetDeploymentOut]
    """The kinds of replica that the fleet runs."""
    periods: list[PeriodOut]
    """Representative periods."""
    calendar: NotRequired[list[list[int]]]
    """By month, the position in ``periods`` of each hour in order, which then repeats: 168 hours of a week from Monday
    on where every workload has a profile, else the month's 730. Plans stored before there were rules of operation
    have none.
    """
    operation: NotRequired[OperationOut | None]
    """How the plan is run, and what the rules of operation cost; null without a plan."""
    alternatives: list[FleetAlternativeOut]
    """Other plans, or other ways to serve the same, each with what it costs."""
    rejected: list[RejectedOut]
    """What cannot serve, by device and reason: nearest miss first."""
    left_out: list[CommitmentLeftOutOut]
    """What was asked for and the catalog does not know: it is in no plan and no proof."""
    spot: SpotUsedOut | None
    """Figures of capacity that the provider may take back."""
    discount: NotRequired[DiscountOut | None]
    """The rate at which later payments count less, and where it is from."""
    own: NotRequired[list[OwnUsedOut]]
    """Places of your own in which machines may be bought."""
    reasons: list[str]
    """Why, each in words."""
    id: str
    """Its id."""
    created_at: str
    """When it was made, RFC 3339."""
    inputs: InputsOut
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    request: dict[str, Any]
    """What was asked, with every default filled in. The request with every default filled in; a long series is
    replaced by its number of values and SHA-256.
    """


class FleetPartIn(TypedDict):
    """Nodes of one kind. ``usd_per_node_hour``: a rent of your own; otherwise ``offer`` names a stored price."""
    node: str
    """Id of the machine type."""
    count: int
    """How many."""
    offer: NotRequired[str | None]
    """Id of the offer: provider, instance, region and commitment."""
    usd_per_node_hour: NotRequired[str | None]
    """Rent of a node, US dollars an hour."""


class FleetSolveOut(TypedDict):
    """Amounts are in present value."""
    status: Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible"]
    """Its state."""
    usd: str | None
    """US dollars over the horizon, not discounted unless it says so."""
    bound_usd: str | None
    """What every plan costs at least over the horizon, US dollars of present value, by the optimiser's proof. No plan
    of the same demand, offers and capacities costs less.
    """
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    distinct_periods: int
    """Periods that differ from each other, a count."""
    periods_solved: int
    """Periods that the optimiser solved, a count."""
    branches: int
    """Nodes of the optimiser's search tree that were looked at."""
    simulations: int
    """Runs of the engine's scheduler, request by request, a count."""
    seconds: float
    """How long the answer took, s."""


class FleetSummaryOut(TypedDict):
    """A line of the list."""
    id: str
    """Its id."""
    created_at: str
    """When it was made, RFC 3339."""
    outcome: str
    """How it ended."""
    workloads: list[str]
    """Streams of requests to a model each; in lists, their names."""
    llms: list[str]
    """Ids of the language models."""
    months: int
    """Months, a count."""
    usd: str | None
    """US dollars over the horizon, not discounted unless it says so."""


class FleetTotalsOut(TypedDict):
    """Over the horizon, undiscounted, and as ``present_…`` in present value, which is what is minimised.
    ``saved_usd``: against ``on_demand_usd``, the same demand on demand alone. ``purchase_usd``: of bought nodes,
    all they cost to own and run, less what they are sold for.
    """
    usd: str
    """US dollars over the horizon, not discounted unless it says so."""
    usd_per_month: str
    """US dollars a month of 730 hours."""
    purchase_usd: str
    """All that bought nodes cost to own and run, less what they are sold for, US dollars."""
    reserved_usd: str
    """Paid for commitments, US dollars."""
    on_demand_part_usd: str
    """Paid for nodes on demand, US dollars."""
    spot_usd: str
    """Paid for spot nodes, US dollars."""
    on_demand_usd: str | None
    """The same demand on demand alone, US dollars."""
    saved_usd: str | None
    """Saved against the same demand on demand alone, US dollars."""
    saved_fraction: float | None
    """Share saved against the same demand on demand alone, 0 to 1."""
    present_usd: NotRequired[str | None]
    """Present value, US dollars."""
    on_demand_present_usd: NotRequired[str | None]
    """The same demand on demand alone, US dollars of present value."""
    saved_present_usd: NotRequired[str | None]
    """Present value saved against the same demand on demand alone, US dollars."""
    saved_present_fraction: NotRequired[float | None]
    """Share of present value saved against the same demand on demand alone, 0 to 1."""


class FleetWorkloadIn(TypedDict):
    """One stream of requests to one model: ``demand`` over time, or ``batch`` work with a deadline."""
    name: str
    """Its name."""
    llm: str
    """Id of the language model."""
    context_tokens: NotRequired[int | None]
    """Longest context served, prompt and reply together, tokens; null: the longest that the traffic produces."""
    traffic: TrafficShape
    """Lengths of requests, and where it matters how many come."""
    demand: NotRequired[ProfileIn | SeriesIn | None]
    """How much is asked for."""
    batch: NotRequired[BatchIn | None]
    """Work that may be done at any hour of some months, instead of demand over time."""
    targets: NotRequired[TargetsIn]
    """Upper limits of latencies by percentile, ms; what is left out is not limited."""
    precision: NotRequired[PrecisionChoiceIn]
    """Number formats of weights and KV cache."""
    utilisation_limit_fraction: NotRequired[float]
    """How busy replicas may be planned, 0 to 1."""
    regions: NotRequired[PlacesIn]
    """Regions, as the catalog has them; null: all."""
    providers: NotRequired[PlacesIn]
    """Providers, by id; null: all. Bought nodes are of the provider ``own``."""
    network_ms_by_region: NotRequired[dict[str, float] | None]
    """Round trip between the users and each region, ms. Round trip between the users and each region that may be used;
    counts towards TTFT and e2e.
    """


class FreedomOut(TypedDict):
    """The demand planned without one rule of operation, or without all of them (``rule`` null), in present value. What
    is saved lies between ``saves_usd``, by the best plan found, and ``saves_at_most_usd``, by the bound that no
    plan is below.
    """
    rule: str | None
    """The rule that is lifted; null for the whole policy."""
    usd: str | None
    """US dollars over the horizon, not discounted unless it says so. Null where no plan was confirmed in the time.
    """
    bound_usd: str | None
    """What every plan costs at least over the horizon, US dollars of present value, by the optimiser's proof."""
    saves_usd: str | None
    """US dollars over the horizon, by the best plan found; 0 where that is no cheaper. Null without one."""
    saves_at_most_usd: str | None
    """US dollars over the horizon, by the bound; null where there is none."""
    saves_fraction: float | None
    """Share of the cost without the rule by which the plan is dearer, by the best plan found."""


class FrontPointOut(TypedDict):
    """A plan that no other one found is both no dearer and no worse than. limit: what it was made to keep. value: what
    it is compared by: the target kept at its utilisation limit, or its power at full use, or what the electricity
    for that emits. predicted: the percentile at the planned rate, the slowest line's; null for power and carbon.
    """
    limit: float
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    value: float
    """The value, in the unit of what it is of."""
    predicted: float | None
    """What is predicted; null where nothing runs or nothing can be predicted."""
    is_recommended: bool
    """Whether it rents what the recommendation rents. It rents what the recommendation rents."""
    solved: SolvedOut
    """The changed request's plan, and what it costs more or less."""


class GemmFigure(TypedDict):
    """[m, k] × [k, n], 2·m·n·k operations."""
    dtype: Literal["bf16", "fp16", "fp8"]
    """Number format of the matrices."""
    m: int
    """Rows of the product."""
    n: int
    """Columns of the product."""
    k: int
    """Inner dimension of the product."""
    tflop_per_s: float
    """Rate, TFLOP a second."""


class GridOut(TypedDict):
    """Electricity of one provider's region. What its nodes emit is their power × both figures."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    place: str | None
    """Where the region is; null where its name does not say."""
    grid: str | None
    """Name of the electricity grid; null where the request states the intensity. Null where the request states the
    intensity.
    """
    grid_kg_co2e_per_kwh: float
    """Emissions of the grid's electricity, kg of CO2 equivalent a kWh, 0 to 3."""
    power_usage_effectiveness: float
    """Energy at the meter over that of the machines, at least 1; null: the catalog's."""
    sources: list[str]
    """Where the figures come from."""


class HeartbeatIn(TypedDict):
    """Still working: the lease runs anew from now."""
    lease: str
    """Secret of the lease, from the answer that granted it."""
    lease_s: NotRequired[float]
    """How long the lease lasts, s."""


class HistogramBin(TypedDict):
    tokens: int
    """Length, tokens."""
    share: float
    """Share of requests, 0 to 1."""


class HistogramLength(TypedDict):
    """Shares that sum to 1, one for each token count."""
    distribution: Literal["histogram"]
    """Which form the distribution has."""
    histogram: list[HistogramBin]
    """Shares that sum to 1, one for each token count."""


class HorizonIn(TypedDict):
    """``months`` of 730 hours. ``periods_per_month``: most representative periods; 48 hold a profile exactly."""
    months: NotRequired[int]
    """Months, a count."""
    periods_per_month: NotRequired[int]
    """Most representative periods a month, a count; 48 hold a profile exactly."""


class ImagesIn(TypedDict):
    """Images in every prompt, all of one size; their tokens come on top of ``prompt_tokens``, as many as the model
    makes of them.
    """
    per_request: NotRequired[int]
    """How many of them a request carries."""
    width_px: int
    """Width of an image or a frame as it is sent, pixels."""
    height_px: int
    """Height of an image or a frame as it is sent, pixels."""


class ImagesOut(TypedDict):
    """What the images, videos or recordings of one request come to."""
    tokens_each: int
    """Tokens of one image, video or recording in the prompt, without those that mark its ends."""
    patches_each: int
    """Patches of one image or video, or positions of one recording, that the encoder works on."""
    encoding_ms: float
    """Time that encoding the images, videos or recordings of one request takes of a device, ms."""
    host_ms: float
    """Time that the host takes for the images or frames of one request before it is queued, ms."""


class ImportContext(TypedDict):
    """What the tool's file does not say. Every field may be left out when the file has it."""
    device: NotRequired[str | None]
    """Id of the accelerator."""
    devices: NotRequired[int | None]
    """How many accelerators."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    llm: NotRequired[str | None]
    """Id of the language model."""
    layout: NotRequired[MeasuredLayout]
    """How the model is spread over devices."""
    precision: NotRequired[MeasuredPrecision]
    """Number formats of weights and KV cache."""
    engine: NotRequired[MeasuredEngine | None]
    """The serving engine."""
    driver: NotRequired[str | None]
    """Version of the device driver."""
    measured_at: NotRequired[str | None]
    """When it was measured, RFC 3339."""
    agent: NotRequired[AgentIdentity | None]
    """Which agent measured."""
    power_w_mean: NotRequired[float | None]
    """Mean board power over the run, summed over devices, W. Mean board power over the run, summed over the devices.
    """
    notes: NotRequired[str]
    """Remarks."""


class ImportReceipt(TypedDict):
    """The answer to an import: the first run at the top, and every run of the file in ``runs``. ``status`` and
    ``reasons`` at the top cover the whole file: quarantined as soon as one run is.
    """
    id: str
    """Its id."""
    status: Literal["accepted", "quarantined", "retracted"]
    """Its state."""
    reasons: list[str]
    """Why, each in words."""
    warnings: list[str]
    """What is odd about it, each in words."""
    predicted_over_measured: dict[str, float] | None
    """Predicted over measured by metric, 1 is exact; null without a prediction. Predicted over measured at the time of
    upload; null where the service has no prediction to compare.
    """
    tool: str
    """The tool that wrote the file; `auto` recognises it."""
    runs: list[BenchmarkReceipt]
    """Measured runs: how many, or each of them."""


class InputsOut(TypedDict):
    """What the answer was computed from; the same request against the same inputs gives the same plan."""
    price_as_of: str
    """The instant that prices are of, RFC 3339; null in requests is now."""
    catalog_digest: str
    """SHA-256 of the catalog the answer was computed from."""
    correction_set: int | None
    """Number of the corrections used; null without any."""
    version: str
    """Version."""


class Interval(TypedDict):
    """A predicted quantity with the interval that holds nine of ten measured values."""
    expected: float
    """The predicted value, in the unit of the field."""
    low: float
    """Lower end: of a predicted quantity, nine of ten measured values lie between low and high."""
    high: float
    """Upper end: of a predicted quantity, nine of ten measured values lie between low and high."""


class JobOut(TypedDict):
    """``request``: what was asked, with its defaults filled in."""
    id: str
    """Its id."""
    kind: str
    """Which kind it is."""
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    """Where it stands: queued, running, succeeded, failed, cancelled or expired."""
    created_at: str
    """When it was made, RFC 3339."""
    started_at: str | None
    """When it began, RFC 3339; null before."""
    finished_at: str | None
    """When it ended, RFC 3339; null before."""
    expires_at: str
    """When it lapses, RFC 3339. A job that no worker has taken by then expires."""
    attempts: int
    """Every time somebody took it up, oldest first. How often a worker took it up: more than one after a worker died.
    """
    cancel_requested: bool
    """Whether somebody asked to cancel it."""
    progress: ProgressOut | None
    """How far it is; null before it starts."""
    result: str | None
    """Address of the stored result; null until it succeeded. Address of the stored result; null until the job
    succeeded.
    """
    problem: ProblemOut | None
    """Why it failed: what the request would have been answered with; null unless it did. Why it failed: what the
    request would have been answered with.
    """
    events: str
    """What happened to it; of jobs, the address of its server-sent events. Address of the job's server-sent events.
    """
    request: dict[str, Any]
    """What was asked, with every default filled in."""


class JobSummaryOut(TypedDict):
    id: str
    """Its id."""
    kind: str
    """Which kind it is."""
    state: Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
    """Where it stands: queued, running, succeeded, failed, cancelled or expired."""
    created_at: str
    """When it was made, RFC 3339."""
    started_at: str | None
    """When it began, RFC 3339; null before."""
    finished_at: str | None
    """When it ended, RFC 3339; null before."""
    expires_at: str
    """When it lapses, RFC 3339. A job that no worker has taken by then expires."""
    attempts: int
    """Every time somebody took it up, oldest first. How often a worker took it up: more than one after a worker died.
    """
    cancel_requested: bool
    """Whether somebody asked to cancel it."""
    progress: ProgressOut | None
    """How far it is; null before it starts."""
    result: str | None
    """Address of the stored result; null until it succeeded. Address of the stored result; null until the job
    succeeded.
    """
    problem: ProblemOut | None
    """Why it failed: what the request would have been answered with; null unless it did. Why it failed: what the
    request would have been answered with.
    """
    events: str
    """What happened to it; of jobs, the address of its server-sent events. Address of the job's server-sent events.
    """


class KeepUnlessIn(TypedDict):
    """The fleet is kept as it is unless switching, its cost counted, saves more than every threshold stated."""
    saving_percent: NotRequired[float | None]
    """Switch only if it saves more than so much, per cent of the rent; null: any."""
    saving_usd_per_hour: NotRequired[str | None]
    """Switch only if it saves more, US dollars an hour; null: any."""


class KvTransferIn(TypedDict):
    """Over which link the cache of a prompt travels."""
    over: Literal["node_link", "pcie", "network"]
    """Which way the cache goes: `node_link`, `pcie` or `network`."""


class KvTransferOut(TypedDict):
    """``time_ms``: from the first token to the arrival of the prompt's cache, waiting for the link included.
    ``gb_per_s``: what all prefill replicas together send at most, one direction, 10^9 bytes.
    """
    over: Literal["node_link", "pcie", "network"]
    """Which way the cache goes: `node_link`, `pcie` or `network`."""
    gb_per_s: float
    """Bandwidth, GB (10^9 bytes) a second."""
    busy_fraction: float
    """Share of the time in which it works, 0 to 1."""
    time_ms: Percentiles
    """Time of the transfer of one request, ms."""


class LastingQueueOut(TypedDict):
    """What is completed once requests wait for seats: less than is asked for, so that they go on to wait. Of one
    replica in a plan, and of the whole deployment in an estimate.
    """
    completed_requests_per_s: float
    """Requests per second, with all seats taken and some waiting."""
    max_sequences: int
    """Most requests the engine runs at once, a count. Seats of a replica with which it then completes the most of all
    that were tried: the stated ones where none were better.
    """
    settled_requests_per_s: float
    """Requests per second that it completes with those."""
    prefix_hit_fraction: NotRequired[float | None]
    """Share of the prompts' tokens that replicas find in their cache of prefixes, 0 to 1, as simulated. Share of the
    tokens of prompts then found in the cache; null where requests are no turns of sessions.
    """


class LayoutFilterIn(TypedDict):
    """Degrees of one replica that are meant; what is left out is free."""
    tensor_parallel: NotRequired[int | None]
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: NotRequired[int | None]
    """Stages over which layers are dealt out, a count."""
    data_parallel: NotRequired[int | None]
    """Copies within one replica that share its load."""
    expert_parallel: NotRequired[int | None]
    """Devices over which the experts of a mixture are dealt out, a count."""


class LayoutIn(TypedDict):
    """Parallel degrees; each is 1 unless stated."""
    tensor_parallel: NotRequired[int]
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: NotRequired[int]
    """Stages over which layers are dealt out, a count."""
    data_parallel: NotRequired[int]
    """Copies within one replica that share its load."""
    expert_parallel: NotRequired[int]
    """Devices over which the experts of a mixture are dealt out, a count."""


class LeaseIn(TypedDict):
    """What an agent can run: the body of POST /v1/measurements/lease."""
    agent: AgentIdentity
    """Which agent measured."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators. The most it has; a measurement needs no more."""
    lease_s: NotRequired[float]
    """How long the lease lasts, s. How long it may go without a heartbeat."""


class LeaseOut(TypedDict):
    """A measurement to take now. Answers to its lease after ``expires_at`` are refused."""
    lease: str
    """Secret of the lease, from the answer that granted it."""
    expires_at: str
    """When it lapses, RFC 3339."""
    measurement: MeasurementOut
    """The measurement to be made."""


class LeaseTermsIn(TypedDict):
    """Somebody else's machines for ``term_months``, housed and run by oneself: power, space, people, upkeep and
    insurance are counted as for bought ones, by the ``purchase`` terms. It cannot be cancelled: rates that outlast
    the horizon are owed. usd_per_node_month: null computes the level rate that gives a lessor
    ``implicit_rate_percent`` (null: the catalog's) on the machine's price. buyout_usd_per_node: what each is bought
    for at the end; null: they go back and others are leased.
    """
    term_months: int
    """Months the commitment or lease runs, a count."""
    usd_per_node_month: NotRequired[str | None]
    """Rate of a leased node, US dollars a month; null: computed from the lessor's rate."""
    implicit_rate_percent: NotRequired[float | None]
    """What the lessor earns on the price of machines, per cent a year; null: the catalog's."""
    buyout_usd_per_node: NotRequired[str | None]
    """Price at which a leased node is bought at the end of the lease, US dollars; null: it goes back."""


class LeftOutLines(TypedDict):
    reason: str
    """Why, as a stable slug or in words. Why the lines are no requests to plan for."""
    lines: int
    """Cost lines; together they are the total. How many they are."""
    first_line: int
    """The first of them, counted from 1."""


class LeftOutOut(TypedDict):
    """What was asked for and is not in the catalog: no proof covers it. ``price_missing``: machines without a known
    price for the commitment ``what``. ``figure_missing``: devices of which the figure ``what`` is not published.
    ``count``: of machines or devices; ``names``: the first of them; ``devices``: how many of each.
    """
    reason: Literal["price_missing", "figure_missing"]
    """Why, as a stable slug or in words."""
    what: str
    """What is not known."""
    count: int
    """How many machines or devices."""
    names: list[str]
    """The first of them, by name."""
    devices: dict[str, int]
    """How many accelerators each of them has, by name."""


class LimitsIn(TypedDict):
    """What the plan must stay within; null leaves a choice open."""
    devices: NotRequired[list[str] | None]
    """Accelerators that may be used, by id; null: any."""
    providers: NotRequired[list[str] | None]
    """Providers, by id; null: all."""
    regions: NotRequired[list[str] | None]
    """Regions, as the catalog has them; null: all."""
    commitments: NotRequired[list[Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"]] | None]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to."""
    offers: NotRequired[dict[str, OfferLimitIn]]
    """Limits of single offers, by offer id."""
    max_nodes_per_offer: NotRequired[int]
    """Most nodes of an offer of which neither it nor `offers` states a number, a count. Nobody rents out infinitely
    many.
    """
    by_the_token: NotRequired[list[str] | None]
    """Who sells tokens of models on machines of their own: sellers that a request admits, or what one asks for a line.
    Makers who may be sent a share of the traffic, at a price by the token, where that is cheapest: tokens are
    served on their own machines, at published speeds and within what an account may send. Who is named here is
    meant: the limits of devices, providers and regions and the rules of ``sourcing`` about offers do not apply to
    them, those about how many providers and devices a workload may have do. Not with losses to be survived, traffic
    classes, ``current``, or another objective than cost.
    """
    max_usd_per_hour: NotRequired[str | None]
    """The plan may cost at most so much, US dollars an hour; null: any."""
    max_power_kw: NotRequired[float | None]
    """The plan may draw at most so much at full use, kW; null: any."""
    spare_nodes: NotRequired[int]
    """Idle nodes kept in every pool of interchangeable nodes, a count. Idle nodes kept in every pool of
    interchangeable nodes in use: the same as ``fault_tolerance.nodes``.
    """
    fault_tolerance: NotRequired[FaultToleranceIn]
    """What the plan must outlive."""
    max_spot_fraction: NotRequired[float | None]
    """Share of all devices that the provider may take back."""
    quotas: NotRequired[list[QuotaIn]]
    """At most so many devices over the offers that match."""
    sourcing: NotRequired[SourcingIn | Literal["any"]]
    """The buying policy: from whom, where, on what and at which prices. ``any`` lifts it."""
    partitions: NotRequired[bool | list[str]]
    """Profiles into which devices can be split. May devices be split into instances that serve small models side by
    side (MIG), and into which profiles?
    """


class LinePartitionOut(TypedDict):
    """Each replica has one instance of a device that is split into ``instances_per_device`` of this profile."""
    profile: str
    """Name of the profile."""
    instances_per_device: int
    """Instances that a device is split into, a count."""
    memory_gib: float
    """Memory that can be used, GiB."""
    launch: list[str]
    """Commands on a node: for each device that is split, then for each replica."""


class LineSourceOut(TypedDict):
    """What the buying policy asks of a line's offer."""
    provider_class: Literal["hyperscaler", "specialist", "marketplace"] | None
    """Hyperscaler, specialist or marketplace; null for a provider without a row. Null for a provider that nobody has
    classed, and for one's own machines.
    """
    device_class: Literal["datacentre", "workstation", "consumer", "edge"] | None
    """Whom the vendor makes the device for: datacentre, workstation, consumer or edge."""
    named_place: bool
    """Whether the region says where the machine stands."""
    price_confidence: Literal["high", "medium", "low"]
    """How sure the price is: `high`, `medium` or `low`."""
    price_age_days: int | None
    """How long before ``price_as_of`` its source stated the price; null for one's own."""
    ask_for_quote: bool
    """Older than ``limits.sourcing.max_price_age_days``."""
    own: bool
    """Places of your own in which machines may be bought. An offer of the user's, not of the catalog."""


class LiveOut(TypedDict):
    status: Literal["alive"]
    """Its state."""
    version: str
    """Version."""


class LlmIn(TypedDict):
    """A model to add: an id of your choice and its Hugging Face ``config.json``."""
    id: str
    """Its id."""
    config: dict[str, Any]
    """The model's Hugging Face `config.json`, as it is."""
    hugging_face_id: NotRequired[str | None]
    """Repository on Hugging Face; null where there is none. The repository that holds its weights, such as
    ``meta-llama/Llama-3.1-8B``; null: files that start servers of it cannot be written.
    """
    embeds: NotRequired[bool]
    """Whether it makes a vector or a score of a text, and no tokens: output_tokens is then 1, the vector. Of a
    decoder, whose config does not tell. Encoders (BERT, RoBERTa, XLM-RoBERTa) always do.
    """


class LlmOut(TypedDict):
    """One model. ``total_weights`` and ``active_weights`` are counts of parameters, computed from the widths."""
    id: str
    """Its id."""
    name: str
    """Its name."""
    hugging_face_id: str | None
    """Repository on Hugging Face; null where there is none."""
    family: str
    """Family of like models or devices."""
    origin: str
    """`catalog`: from the catalog's files; `user`: added over the API. ``catalog``: from the catalog files; ``user``:
    added over the API.
    """
    hidden: int
    """Width of the model's hidden state."""
    vocabulary: int
    """Entries of the vocabulary, a count."""
    tied_embeddings: bool
    """Whether the output head shares the embedding's weights."""
    max_context_tokens: int
    """Longest context, prompt and reply together, tokens."""
    extended_context_tokens: NotRequired[int | None]
    """Longest context that a source states the model is served with, positions scaled, tokens; null: none does."""
    layers: int
    """Layers, a count."""
    attention: list[AttentionOut]
    """Groups of identical token-mixing layers."""
    feed_forward: list[FeedForwardOut]
    """Groups of identical feed-forward layers."""
    qk_norm: bool
    """Whether queries and keys are normalised."""
    embeds: bool
    """Whether it makes a vector or a score of a text, and no tokens: output_tokens is then 1, the vector."""
    bidirectional: bool
    """Whether every token attends to all of its text, those after it too."""
    audio: NotRequired[AudioOut | None]
    """Of a model: what it listens with. Of traffic: recordings in every prompt; null for none. Null where it takes no
    recordings, or its encoder's figures are not known.
    """
    vision: NotRequired[VisionOut | None]
    """What the model looks at images with. Null where it takes no images, or its encoder's figures are not known.
    """
    native_weights: str
    """Number format in which the weights are published."""
    native_beside_experts: str | None
    """Number format of published weights outside the experts, where it differs."""
    other_weights: float
    """Outside layers, embedding and head."""
    unquantised_weights: float
    """Kept in 16 bits by quantised checkpoints, beyond embedding and head."""
    total_weights: float
    """Parameters, a count."""
    active_weights: float
    """Parameters that a token passes through, a count."""
    published_total_weights: float | None
    """Parameters as published, a count; null where not."""
    published_active_weights: float | None
    """Active parameters as published, a count; null where not."""
    weight_bytes: dict[str, int]
    """Bytes of the whole model, by weight format. Of the whole model, by weight format."""
    kv_cache_bytes_per_token: dict[str, float]
    """Of one more token of context while no window is full, by cache format."""
    state_bytes_per_sequence: float
    """State of recurrent layers, bytes a request. Of recurrent layers, whatever the context."""
    provenance: ProvenanceOut
    """Where the figures come from."""


class LognormalFitted(TypedDict):
    """The lognormal of greatest likelihood, as `mean` and `p95` of a request state it."""
    mean: float
    """Mean over requests. Tokens."""
    p95: float
    """95th percentile. Tokens."""
    distance: float
    """Largest difference between its cumulative share and the recorded one (Kolmogorov): 0 is perfect, 1 nothing in
    common.
    """


class LognormalLength(TypedDict):
    distribution: Literal["lognormal"]
    """Which form the distribution has."""
    mean: float
    """Mean length, tokens."""
    p95: float
    """95th percentile, tokens; above the mean."""


class LossOut(TypedDict):
    """The worst loss of its kind for one workload."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    kind: str
    """Which kind it is. provider | region"""
    lost: list[str]
    """What is lost: nodes, a provider or a region, by name."""
    utilisation_fraction: float
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand. Of the capacity of the replicas that remain, when they take all the traffic.
    """


class LowerPrecisionOut(TypedDict):
    """The same request where 8-bit weights and an 8-bit cache are allowed beside the checkpoint's own formats, solved.
    Whether answers stay good enough is for an evaluation of the model to say. What is saved is 0 where nothing
    better comes of it; then ``plan`` is empty. One of three is stated, by the objective; none of them where there
    is no plan without: then ``plan`` is one that there would be, or empty.
    """
    saves_usd_per_hour: NotRequired[str | None]
    """Saved, US dollars an hour."""
    serves_more_requests_per_s: NotRequired[float | None]
    """Requests a second that would be served more."""
    saves_power_kw: NotRequired[float | None]
    """Power saved, kW."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none. Of the whole plan that way; null where there is none."""
    plan: list[PlanLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    published_lines: NotRequired[list[PublishedLineOut]]
    """Lines of the plan that rest on speeds which others measured and published."""


class MachineIn(TypedDict):
    """Figures of one kind of node that the catalog lacks, or that you know better, wherever an alternative has it.
    Stated with a price, a node is bought as it is; otherwise slices of a server or rack are bought as whole ones.
    """
    node: str
    """Id of the machine type."""
    usd_per_node: NotRequired[str | None]
    """Price of a node, US dollars; null: the catalog's."""
    peak_kw_per_node: NotRequired[float | None]
    """Power of a node at full use, kW; null where not published."""
    network_usd_per_node: NotRequired[str | None]
    """Network equipment for each node, US dollars; null: the catalog's."""
    storage_usd_per_node: NotRequired[str | None]
    """Storage for each node, US dollars; null: the catalog's."""


class MarketIn(TypedDict):
    """Where prices go, a year; null takes the catalog's figure with its range. Zero: as they are today."""
    rent_percent_per_year: NotRequired[float | None]
    """How rents change, per cent a year."""
    api_percent_per_year: NotRequired[float | None]
    """How prices of APIs change, per cent a year."""
    hardware_percent_per_year: NotRequired[float | None]
    """How prices of new machines change, per cent a year."""


class MeasuredBin(TypedDict):
    """``share`` of the requests have ``tokens`` tokens."""
    tokens: int
    """Length, tokens."""
    share: float
    """Share of requests, 0 to 1."""


class MeasuredClosedLoad(TypedDict):
    """``concurrency`` clients, each sending its next request when the last is answered."""
    kind: NotRequired[Literal["closed"]]
    """Which kind it is."""
    concurrency: int
    """Clients that each send their next request when the last is answered, a count."""
    requests: NotRequired[int | None]
    """Requests, a count; null: as many as the simulation needs."""
    range: NotRequired[str | None]
    """What part of the run the results cover, in words."""


class MeasuredEngine(TypedDict):
    """The serving engine, its version and the arguments it was started with."""
    name: str
    """Its name."""
    version: NotRequired[str | None]
    """Version."""
    arguments: NotRequired[list[str]]
    """Arguments the engine was started with, as they were given."""


class MeasuredFixed(TypedDict):
    """Every request has the same length."""
    distribution: NotRequired[Literal["fixed"]]
    """Which form the distribution has."""
    tokens: int
    """Length, tokens."""


class MeasuredHistogram(TypedDict):
    """Lengths as they were, by share."""
    distribution: NotRequired[Literal["histogram"]]
    """Which form the distribution has."""
    histogram: list[MeasuredBin]
    """Shares that sum to 1, one for each token count."""


class MeasuredLayout(TypedDict):
    """How the deployment was spread over devices. Left empty for a single device, all degrees are 1."""
    tensor_parallel: NotRequired[int | None]
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: NotRequired[int | None]
    """Stages over which layers are dealt out, a count."""
    data_parallel: NotRequired[int | None]
    """Copies within one replica that share its load."""
    expert_parallel: NotRequired[int | None]
    """Devices over which the experts of a mixture are dealt out, a count."""


class MeasuredLognormal(TypedDict):
    """Lognormal by its mean and 95th percentile."""
    distribution: NotRequired[Literal["lognormal"]]
    """Which form the distribution has."""
    mean: float
    """Mean length, tokens."""
    p95: float
    """95th percentile, tokens."""


class MeasuredMean(TypedDict):
    """Only the mean length is known: what most tools write. Comparable with a prediction only approximately."""
    distribution: NotRequired[Literal["mean"]]
    """Which form the distribution has."""
    mean: float
    """Mean length, tokens."""


class MeasuredOpenLoad(TypedDict):
    """Requests arrive at a rate, whether or not earlier ones are answered."""
    kind: NotRequired[Literal["open"]]
    """Which kind it is."""
    requests_per_s: float
    """Rate, requests a second."""
    requests: NotRequired[int | None]
    """Requests, a count; null: as many as the simulation needs."""
    arrivals: NotRequired[Literal["poisson", "constant", "other"]]
    """How requests arrived: `poisson`, `constant` intervals, or otherwise."""
    max_concurrency: NotRequired[int | None]
    """Most requests in flight at once, a count. Cap on requests in flight, where the generator had one."""
    range: NotRequired[str | None]
    """What part of the run the results cover, in words."""


class MeasuredPrecision(TypedDict):
    """Number formats of the weights and of the KV cache."""
    weights: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"] | None]
    """Number format of the weights; in requests, those the plan may choose from."""
    kv_cache: NotRequired[Literal["fp32", "bf16", "fp16", "fp8", "int8"] | None]
    """Number format of keys and values kept for tokens already processed; in requests, those the plan may choose from.
    """


class MeasuredTraffic(TypedDict):
    """Shape of the requests that were sent; a part that is unknown is null."""
    prompt_tokens: NotRequired[MeasuredFixed | MeasuredUniform | MeasuredLognormal | MeasuredHistogram | MeasuredMean | None]
    """Prompt lengths in tokens."""
    output_tokens: NotRequired[MeasuredFixed | MeasuredUniform | MeasuredLognormal | MeasuredHistogram | MeasuredMean | None]
    """Reply lengths in tokens, 1 of models that embed; of comparisons, a count over the horizon."""
    shared_prefix_fraction: NotRequired[float]
    """Share of every prompt that is cached already, 0 to 1."""


class MeasuredUniform(TypedDict):
    """Whole numbers drawn uniformly from [low, high]."""
    distribution: NotRequired[Literal["uniform"]]
    """Which form the distribution has."""
    low: int
    """Shortest, tokens."""
    high: int
    """Longest, tokens."""


class MeasurementIn(TypedDict):
    """A deployment to measure under one or more loads: the body of POST /v1/measurements."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    llm: str
    """Id of the language model."""
    layout: NotRequired[MeasuredLayout]
    """How the model is spread over devices."""
    precision: NotRequired[MeasuredPrecision]
    """Number formats of weights and KV cache."""
    engine: MeasuredEngine
    """The serving engine."""
    traffic: WantedTraffic
    """Lengths of requests, and where it matters how many come."""
    loads: list[MeasuredClosedLoad | MeasuredOpenLoad]
    """Loads to be measured, one after another."""
    recommendation: NotRequired[str | None]
    """Id of a stored recommendation."""
    priority: NotRequired[int]
    """Larger is more important. Larger is taken earlier."""
    most_attempts: NotRequired[int]
    """How often it is tried before it is given up, a count."""
    notes: NotRequired[str]
    """Remarks."""


class MeasurementOut(TypedDict):
    id: str
    """Its id."""
    status: Literal["queued", "leased", "done", "dead", "cancelled"]
    """Its state."""
    wanted: MeasurementIn
    """Measurements that would decide most, most first."""
    created_at: str
    """When it was made, RFC 3339."""
    lease_expires_at: str | None
    """Until when an agent holds it, RFC 3339; null when nobody does."""
    attempts: list[AttemptOut]
    """Every time somebody took it up, oldest first."""
    benchmarks: list[str]
    """Ids of the runs that it led to."""


class MeasurementWantedOut(TypedDict):
    """A measurement that would decide something. ``measurement`` is a body of POST /v1/measurements."""
    why: str
    """What is different, or why, in words."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    decides_usd_per_hour: str
    """How much of the plan's price the measurement may decide, US dollars an hour. What lies between the ends of the
    line's price, or what an alternative may save.
    """
    measurement: MeasurementIn
    """The measurement to be made."""


class MemoryOut(TypedDict):
    """Per device, on the fullest one; ``kv_cache_tokens`` and ``max_concurrent_requests`` are of one replica."""
    weights_gib: float
    """Memory of the weights on the fullest device, GiB."""
    kv_cache_gib: float
    """Memory left for the KV cache on the fullest device, GiB."""
    activations_gib: float
    """Memory of intermediate results on the fullest device, GiB."""
    reserved_gib: float
    """Memory kept back by the driver and the engine on the fullest device, GiB."""
    kv_cache_tokens: int
    """Tokens that the cache of one replica holds, a count."""
    max_concurrent_requests: int
    """Requests of this traffic that fit into one replica's cache at once, no more than its engine admits, a count.
    """


class MissOut(TypedDict):
    """Why candidates serve nothing: ``detail`` in words; for a missed target its limit and by how much, at best."""
    workload: str | None
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none."""
    reason: str
    """Why, as a stable slug or in words."""
    detail: str
    """The same in words."""
    limit: NotRequired[str | None]
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    best_ms: NotRequired[float | None]
    """The best that a candidate reached, ms."""
    target_ms: NotRequired[float | None]
    """The target that was missed, ms."""
    above_percent: NotRequired[float | None]
    """How far the best candidate is above the target, in per cent of it."""


class MonteCarloIn(TypedDict):
    """Draws over the ranges of the catalog's figures, half on either side of typical; what you state does not vary.
    """
    draws: NotRequired[int]
    """Random draws, a count."""
    seed: NotRequired[int]
    """Start of the random draws: the same seed gives the same draws."""


class NearOptimalIn(TypedDict):
    """Plans that cost at most so much more."""
    within_percent: NotRequired[float]
    """How much dearer plans may be, per cent."""
    count: NotRequired[int]
    """How many."""
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together."""


class NearOptimalOut(TypedDict):
    base: BaseOut
    """The recommendation's plan as it is now: what the answers are compared with."""
    within_percent: float
    """How much dearer plans may be, per cent."""
    plans: list[NearPlanOut]
    """Plans found."""
    diversity_proven: bool
    """Whether no other plans within the percentage differ more; false: they differ, by leaving things out."""
    without: list[WithoutOut]
    """What the plan was made to do without; in answers, one entry for each thing."""
    seconds: float
    """How long the answer took, s."""


class NearPlanOut(TypedDict):
    """A plan within the percentage. without: what it was made to do without."""
    without: list[str]
    """What the plan was made to do without; in answers, one entry for each thing."""
    solved: SolvedOut
    """The changed request's plan, and what it costs more or less."""


class NodeOut(TypedDict):
    id: str
    """Its id."""
    name: str
    """Its name."""
    device: str
    """Id of the accelerator."""
    devices: int
    """Accelerators of the machine, a count."""
    kind: str
    """What kind of machine it is: cloud instance, server, rack, …"""
    link_domain_devices: int
    """Devices joined by the fast link, a count."""
    rack_domain_devices: int
    """Devices joined by a fast link within the rack, a count."""
    pcie_generation: int | None
    """PCIe generation; null where not published."""
    pcie_lanes_per_device: int | None
    """PCIe lanes for each device, a count; null where not published."""
    network_gbit_per_s: float | None
    """Bandwidth of the node's network, Gbit a second; null where not published."""
    network_name: str | None
    """Name of the network between nodes; null where not published."""
    vcpus: float | None
    """Virtual processors of the host, a count; null where not published."""
    host_memory_gib: float | None
    """Memory of the host, GiB; null where not published."""
    local_disk_gib: NotRequired[float | None]
    """NVMe disks in the machine that come with it, all together, GiB; null where not published."""
    local_disk_read_gbytes_per_s: NotRequired[float | None]
    """At which these disks are read, all together, 10⁹ bytes a second; null where not published."""
    local_disk_provenance: NotRequired[ProvenanceOut | None]
    """Where the figures of the disks are from."""
    host_power_w: float | None
    """Power of the host without its devices, W; null where not published."""
    psu_w: float | None
    """Power of the node's supplies, W; null where not published."""
    tenancy: NotRequired[Literal["machine", "container"] | None]
    """Whether the machine is had whole (`bare`, `vm`) or as a `container`. ``container``: without rights on the
    driver, so that devices are never split.
    """
    provenance: ProvenanceOut
    """Where the figures come from."""


class NodesChangeOut(TypedDict):
    """Nodes of one offer before and after."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    before: int
    """How it was; null where there was nothing."""
    after: int
    """How it is afterwards; null where there is nothing."""


class OfferIn(TypedDict):
    """Own hardware or an own contract. The id is ``provider:instance:region:commitment``."""
    id: NotRequired[str | None]
    """Its id."""
    provider: str
    """Id of the seller."""
    instance: str
    """The provider's name of the machine."""
    region: str
    """Region, as the catalog has it."""
    commitment: Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"]
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    max_nodes: NotRequired[int | None]
    """At most so many nodes, a count; null: no limit of its own."""
    notes: NotRequired[str]
    """Remarks."""
    price: NotRequired[PriceIn | None]
    """The price in force; null where none is known."""


class OfferLimitIn(TypedDict):
    max_nodes: int
    """At most so many nodes, a count; null: no limit of its own."""


class OfferOut(TypedDict):
    id: str
    """Its id."""
    provider: str
    """Id of the seller."""
    provider_class: Literal["hyperscaler", "specialist", "marketplace"] | None
    """Hyperscaler, specialist or marketplace; null for a provider without a row. Null for a provider the catalog has
    no row of.
    """
    instance: str
    """The provider's name of the machine."""
    region: str
    """Region, as the catalog has it."""
    named_place: bool
    """Whether the region says where the machine stands. Whether the region says where the machine stands: a city, a
    metropolitan area or a country.
    """
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    device_class: Literal["datacentre", "workstation", "consumer", "edge"] | None
    """Whom the vendor makes the device for: datacentre, workstation, consumer or edge."""
    devices: int
    """Accelerators of one machine, a count."""
    max_nodes: int | None
    """At most so many nodes, a count; null: no limit of its own."""
    notes: str
    """Remarks."""
    origin: str
    """`catalog`: from the catalog's files; `user`: added over the API."""
    price_as_of: str
    """The instant that prices are of, RFC 3339; null in requests is now."""
    price: PriceOut | None
    """The price in force; null where none is known. Null where no price is known at that instant."""
    usd_per_device_hour: str | None
    """The machine's price over its accelerators, US dollars an hour; null without a price."""


class OpenLoad(TypedDict):
    """Poisson arrivals."""
    kind: Literal["open"]
    """Which kind it is."""
    requests_per_s: float
    """Rate, requests a second."""
    requests: NotRequired[int | None]
    """Requests, a count; null: as many as the simulation needs."""


class OperationIn(TypedDict):
    """Rules of operation; null lifts one. Committed nodes may stand idle, and are not bound by hours."""
    max_configurations: NotRequired[int | None]
    """Of each workload over the whole horizon: one to deploy and one to burst, unless stated."""
    min_up_hours: NotRequired[int | None]
    """Least hours that a node taken by the hour stays; of one offer the last that came goes first."""
    max_change_percent_per_hour: NotRequired[float | None]
    """Of the replicas of a configuration that would serve its workload's peak alone: how many are started, or stopped,
    from one hour to the next at most; one always may be. Batch work is not bound.
    """


class OperationOut(TypedDict):
    """How the plan is run, and what the rules of operation cost."""
    configurations: int
    """Different ways of running workloads, over the whole horizon."""
    configurations_by_workload: dict[str, int]
    """The same of each workload, by its name."""
    least_hours_up: int | None
    """Fewest hours that a node by the hour stays, the last that came going first; null where none comes or goes."""
    stock: list[StockOut]
    """What is taken by the hour."""
    freedoms: list[FreedomOut]
    """Without all rules, and where that may gain anything without each alone; empty where no rule was in force."""


class OperatorOut(TypedDict):
    """One operator of a step on one device of the tensor-parallel group, over all layers, with its place on the
    roofline.
    """
    phase: Literal["prefill", "decode"]
    """When it runs: `prefill` (reading the prompt) or `decode` (writing a token)."""
    operator: str
    """What it is: dense_products, expert_products, output_head, decode_attention or prefill_attention."""
    flop: float
    """Floating-point operations of a step, FLOP."""
    bytes: float
    """Bytes of device memory that it moves in a step, at least."""
    ms: float
    """Time, ms."""
    flop_per_byte: float
    """Arithmetic intensity, FLOP per byte of device memory moved."""
    tflop_per_s: float
    """Rate, TFLOP a second."""
    roof_fraction: float
    """Share of what the roof allows at this intensity, 0 to 1."""


class OriginOut(TypedDict):
    source: str
    """Where the figure comes from."""
    as_of: str
    """The day the figure is of."""
    checked: str
    """How the figure was checked."""


class OwnMachineIn(TypedDict):
    """A machine of the catalog that may be bought. ``purchase``: null takes the site's. ``max_nodes``: ever at work.
    """
    node: str
    """Id of the machine type."""
    purchase: NotRequired[PurchaseIn | None]
    """Terms of buying; null takes the catalog's figures."""
    max_nodes: NotRequired[int | None]
    """At most so many nodes, a count; null: no limit of its own."""


class OwnSiteIn(TypedDict):
    """A place of your own, with what a comparison of costs states of one; null takes the catalog's figure. region: its
    name, for workloads that are pinned to regions or state round trips; one of the providers' or a new one.
    machines: null is every machine of the catalog with a price, but for providers' own instance types;
    workstations, desktops, edge boards and CPU servers only where ``limits.devices`` names their devices.
    purchase_months: months at whose start machines may be bought; null is each. utilisation_fraction: share of the
    time in which bought nodes serve, for their electricity; 1 is the upper end. staffed_nodes: nodes of a kind that
    the site's staff keep running; a node needs fewer people the more there are.
    """
    region: str
    """Region, as the catalog has it."""
    machines: NotRequired[list[OwnMachineIn] | None]
    """Machines that may be bought; in answers, those that were considered with their figures."""
    purchase: NotRequired[PurchaseIn]
    """Terms of buying; null takes the catalog's figures."""
    max_nodes: NotRequired[int | None]
    """At most so many nodes, a count; null: no limit of its own. Of each machine, where it states none itself."""
    purchase_months: NotRequired[list[int] | None]
    """Months in which machines may be bought, from 0."""
    operator: NotRequired[str]
    """Whose costs of capital and of work: enterprise, neocloud, hyperscaler, …"""
    electricity: NotRequired[ElectricityIn]
    """The tariff and the grid."""
    power_usage_effectiveness: NotRequired[float | None]
    """Energy at the meter over that of the machines, at least 1; null: the catalog's."""
    colocation_usd_per_kw_month: NotRequired[str | None]
    """Rent of space and power connection, US dollars a kilowatt and month; null: the catalog's."""
    inflation_percent_per_year: NotRequired[float | None]
    """Inflation of bills, per cent a year; null: the catalog's."""
    tax_percent: NotRequired[float | None]
    """Tax on purchases and bills, per cent; null: the catalog's."""
    utilisation_fraction: NotRequired[float]
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand.
    """
    staffed_nodes: NotRequired[int]
    """Nodes of a kind that the site's staff keep running, a count: a node needs fewer people the more there are."""
    site: NotRequired[SiteIn | None]
    """Where bought machines are to stand; what is left out is not checked."""


class OwnUsedOut(TypedDict):
    """What owning was taken to cost. Electricity is that of ``utilisation_fraction`` around the clock, whatever the
    plan makes the nodes do.
    """
    region: str
    """Region, as the catalog has it."""
    operator: str
    """Whose costs of capital and of work: enterprise, neocloud, hyperscaler, …"""
    utilisation_fraction: float
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand.
    """
    defaults: list[DefaultOut]
    """Every figure that was taken from the catalog, with its source. Of the place: electricity, inflation, taxes.
    """
    machines: list[OwnedMachineOut]
    """Machines that may be bought; in answers, those that were considered with their figures."""


class OwnedIn(TypedDict):
    """Machines that are there already. What was paid for them is sunk; what they would fetch today counts, at the
    start. nodes: null: all of the alternative's. usd_paid_per_node: what resale and upkeep are counted on; null:
    the price of a new one. They last until they are as old as ``purchase.depreciation_months``, and are then
    replaced.
    """
    age_months: int
    """How old the machines are at the start, months."""
    nodes: NotRequired[int | None]
    """Nodes that are there already, a count; null: all of the alternative's."""
    usd_paid_per_node: NotRequired[str | None]
    """What was paid for a node that is there already, US dollars; null: the price of a new one."""


class OwnedMachineOut(TypedDict):
    """A machine as it was offered to the plan. ``usd_per_node``: all payments of a node bought at the start and kept
    to the end of its life or of the horizon, less what it is then sold for; ``lines``: by kind, sales negative.
    """
    node: str
    """Id of the machine type."""
    region: str
    """Region, as the catalog has it."""
    life_months: int
    """Months a bought machine is used, a count."""
    usd_per_node: str
    """Price of a node, US dollars; null: the catalog's."""
    usd_per_node_hour: str
    """Rent of a node, US dollars an hour."""
    lines: dict[str, str]
    """Cost lines; together they are the total."""
    peak_kw_per_node: float | None
    """Power of a node at full use, kW; null where not published."""
    defaults: list[DefaultOut]
    """Every figure that was taken from the catalog, with its source."""
    notes: list[str]
    """Remarks."""


class PageAgentOut(TypedDict):
    items: list[AgentOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageApiPriceOut(TypedDict):
    items: list[ApiPriceOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageBenchmarkSummary(TypedDict):
    items: list[BenchmarkSummary]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageDeviceMeasurementOut(TypedDict):
    items: list[DeviceMeasurementOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageDeviceOut(TypedDict):
    items: list[DeviceOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageFleetSummaryOut(TypedDict):
    items: list[FleetSummaryOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageJobSummaryOut(TypedDict):
    items: list[JobSummaryOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageLlmOut(TypedDict):
    items: list[LlmOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageMeasurementOut(TypedDict):
    items: list[MeasurementOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageNodeOut(TypedDict):
    items: list[NodeOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageOfferOut(TypedDict):
    items: list[OfferOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageProviderOut(TypedDict):
    items: list[ProviderOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageRecommendationSummaryOut(TypedDict):
    items: list[RecommendationSummaryOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageTrainingPlanSummaryOut(TypedDict):
    items: list[TrainingPlanSummaryOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageTrainingRunOut(TypedDict):
    items: list[TrainingRunOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class PageUnpricedOut(TypedDict):
    items: list[UnpricedOut]
    """The entries of this page."""
    next: str | None
    """What to send as `?next=` for the following page; null on the last one."""
    total: int
    """How many there are in all, on every page together, under the same filters; a count."""


class ParetoIn(TypedDict):
    """against: a target by its path, such as ``targets.ttft_ms.p95``, ``power_kw`` or ``carbon_kg_co2e_per_hour``.
    workload: whose target is moved; may be left out where there is one.
    """
    against: Literal["targets.ttft_ms.mean", "targets.ttft_ms.p50", "targets.ttft_ms.p90", "targets.ttft_ms.p95", "targets.ttft_ms.p99", "targets.tpot_ms.mean", "targets.tpot_ms.p50", "targets.tpot_ms.p90", "targets.tpot_ms.p95", "targets.tpot_ms.p99", "power_kw", "carbon_kg_co2e_per_hour"]
    """What it is compared with."""
    workload: NotRequired[str | None]
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none. Whose target is moved; null moves the workload's
    own, for all of its classes that keep to it.
    """
    points: NotRequired[list[float] | None]
    """Values to look at, in the unit of what is moved; null chooses some. In answers, one for each. Limits to solve
    at, in the unit of ``against``; null chooses some from the tightest that has a plan to the one at which cost
    stops falling.
    """
    grid_kg_co2e_per_kwh_by_region: NotRequired[dict[str, float]]
    """Emissions of electricity by region, kg of CO2 equivalent a kWh, where the catalog does not know it or is to be
    overruled. Of the electricity in regions whose grid the catalog does not know, or knows otherwise; against
    carbon only.
    """
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together. For all solves of this call together."""


class ParetoOut(TypedDict):
    """points: by value. none_below: no plan keeps a limit below it; null where that is not known. reaches_cheapest: no
    limit looser than the last point's saves more. complete: no other plan belongs on the front.
    """
    base: BaseOut
    """The recommendation's plan as it is now: what the answers are compared with."""
    against: str
    """What it is compared with."""
    workload: str | None
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none."""
    points: list[FrontPointOut]
    """Values to look at, in the unit of what is moved; null chooses some. In answers, one for each."""
    dominated: list[DominatedOut]
    """Plans found on the way that are not on the front."""
    unreached: list[UnreachedOut]
    """Limits without a plan: there is none, or it was not found in time."""
    stretches: list[StretchOut]
    """Between limits solved at: proven complete, or sampled."""
    none_below: float | None
    """No plan keeps a limit below this; null where that is not known."""
    reaches_cheapest: bool
    """Whether no limit looser than the last point's saves more."""
    complete: bool
    """Whether it is proven that nothing else belongs there."""
    left_out: list[UnmeteredOut]
    """What was asked for and the catalog does not know: it is in no plan and no proof."""
    grids: list[GridOut]
    """Electricity of every region that a plan is in. Against carbon: of every region that a plan of ``points`` is in.
    """
    seconds: float
    """How long the answer took, s."""


class PartOut(TypedDict):
    """Nodes of one kind in an alternative, and where the price comes from. sold_as_devices: of the whole machine that
    is bought where ``node`` is a slice of one, and ``nodes`` and ``devices`` are then of whole machines; null
    otherwise. carries: the demand they serve, relative to that of the start; nodes_per_step: how many are added at
    a time. kg_co2e_per_kwh: of the grid where they stand, null where nobody says.
    """
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    devices: int
    """How many accelerators."""
    sold_as_devices: int | None
    """Accelerators of the whole machine that is bought where the node is a slice of one; null otherwise."""
    carries: float
    """How many times the demand of the start the nodes serve within their targets."""
    nodes_per_step: int
    """How many nodes are added at a time, a count."""
    region: str | None
    """Region, as the catalog has it."""
    kg_co2e_per_kwh: float | None
    """Emissions of the electricity, kg CO2e per kWh; null where nobody says."""
    offer: str | None
    """Id of the offer: provider, instance, region and commitment."""
    usd_per_node_hour: str | None
    """Rent of a node, US dollars an hour."""
    rent_basis: str
    """Where the rent comes from: the plan, an offer, or a stated price."""
    peak_kw_per_node: float | None
    """Power of a node at full use, kW; null where not published."""


class PartitionOut(TypedDict):
    """A profile into ``instances`` of which the device can be split, each with these parts of it (MIG)."""
    profile: str
    """Name of the profile."""
    instances: int
    """Instances that a device is split into, a count."""
    multiprocessors: int
    """Multiprocessors of one instance, a count."""
    device_multiprocessors: int
    """Multiprocessors of the whole device, a count."""
    memory_gib: float
    """Memory that can be used, GiB."""
    slices: int
    """Runs judged together; of a partition, its memory slices, a count. Of memory: an instance has ``slices`` of
    ``device_slices`` of the device's bandwidth.
    """
    device_slices: int
    """Memory slices of the whole device, a count."""
    provenance: ProvenanceOut
    """Where the figures come from."""


class Percentiles(TypedDict):
    """Statistics over requests."""
    mean: Interval
    """Mean over requests."""
    p50: Interval
    """Median."""
    p90: Interval
    """90th percentile."""
    p95: Interval
    """95th percentile."""
    p99: Interval
    """99th percentile."""


class PeriodNodesOut(TypedDict):
    """Nodes in use. ``spare``: idle ones among them that ride out a reclaim. Plans stored before regions were told
    have neither provider nor region here.
    """
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: NotRequired[str]
    """Id of the seller."""
    region: NotRequired[str]
    """Region, as the catalog has it."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    spare: int
    """Idle nodes among them that ride out a reclaim, a count."""


class PeriodOut(TypedDict):
    """Hours of one month with one demand, and what runs in them. ``usd_per_hour``: of nodes taken by the hour."""
    month: int
    """Month of the horizon, from 0."""
    hours: float
    """Hours, a count."""
    requests_per_s: dict[str, float]
    """Demand by workload, requests a second."""
    nodes: list[PeriodNodesOut]
    """Nodes in use, by offer."""
    replicas: list[PeriodReplicasOut]
    """Replicas that run, by deployment."""
    usd_per_hour: str
    """Price of nodes taken by the hour, US dollars an hour."""


class PeriodReplicasOut(TypedDict):
    workload: str
    """Name of the workload; null where it is about all of them."""
    deployment: int
    """Which way of running: an `id` in `deployments`."""
    replicas: int
    """Running copies of the engine with the model, a count; in changes, which ones."""


class PlacesIn(TypedDict):
    """Names a workload is pinned to (``only``) or kept out of (``never``); null leaves it open."""
    only: NotRequired[list[str] | None]
    """Nowhere else than these; null: anywhere."""
    never: NotRequired[list[str]]
    """Kept out of these; wins over `only`, of which one at least must be left."""


class PlanDiffOut(TypedDict):
    """What must change to go from one plan to the other; what stays as it is, is left out."""
    before: DiffSideOut
    """The plan gone from."""
    after: DiffSideOut
    """The plan gone to."""
    usd_per_hour_change: str | None
    """Change of the price, US dollars an hour; null where either has no plan."""
    nodes: list[NodesChangeOut]
    """Nodes that differ, by offer, before and after."""
    replicas: list[ReplicasChangeOut]
    """Running copies of the engine with the model, a count; in changes, which ones."""
    routing: list[RoutingChangeOut]
    """Traffic classes of which other replicas take another share. Of traffic classes, where their shares change by
    half a per cent or more.
    """
    same: bool
    """Whether both plans are the same."""
    words: list[str]
    """The same in words, a line each."""


class PlanLineOut(TypedDict):
    """Replicas of one workload on nodes of one offer."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    role: NotRequired[Literal["aggregated", "prefill", "decode"]]
    """Whether the line does both (`aggregated`), `prefill` or `decode`. ``prefill`` and ``decode`` lines of one
    workload, provider and region serve the same requests together.
    """
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    partition: NotRequired[LinePartitionOut | None]
    """Profile of the instance it runs on; null for whole devices. Null where replicas have whole devices."""
    engine: str
    """The serving engine."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    replicas: int
    """Running copies of the engine with the model, a count; in changes, which ones."""
    layout: LayoutIn
    """How one replica is spread over devices, as an estimate of it takes it."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    engine_settings: NotRequired[DraftingEngineIn | None]
    """What to hand to the engine, and what the prediction assumed. What to hand to the engine, and what the prediction
    assumed; null in plans stored before it was stated.
    """
    max_concurrency: int
    """Most requests in flight at once, a count. Requests that the engine of one replica admits at once."""
    serves_requests_per_s: float
    """Rate planned to be served, requests a second."""
    utilisation_fraction: float
    """Planned rate over the highest rate at which the targets hold, 0 to 1; in comparisons, average demand over peak
    demand.
    """
    network_ms: NotRequired[float | None]
    """Round trip to the users, ms; null where not stated. Round trip to the users, where stated: what they wait beyond
    ``predicted``, which is the engine's own.
    """
    predicted: PredictedOut | None
    """What is predicted; null where nothing runs or nothing can be predicted. Null in alternatives other than those of
    why-not, and for replicas that stand by without traffic. Of all traffic classes together.
    """
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    classes: NotRequired[list[ClassLineOut]]
    """What is routed here of each traffic class; empty where the workload has none."""
    source: NotRequired[LineSourceOut | None]
    """Where the figure comes from. Null in plans stored before it was stated."""


class PlausibilityCheck(TypedDict):
    """One check of a result against arithmetic or physics, with the figures it compared."""
    name: str
    """Its name."""
    verdict: Literal["pass", "flag", "fail", "skipped"]
    """`pass`, `flag`, `fail` or `skipped`."""
    message: str
    """What was compared, with the figures."""


class PointIn(TypedDict):
    at: str
    """The instant, RFC 3339 with offset."""
    requests_per_s: float
    """Rate, requests a second."""


class PoolIn(TypedDict):
    """Replicas for one role. ``node``: the machine they stand in; its network joins the pools. ``weights``: null means
    the format in ``precision``; the cache's format is the same in both pools.
    """
    device: str
    """Id of the accelerator."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    layout: NotRequired[LayoutIn]
    """How the model is spread over devices."""
    replicas: NotRequired[int]
    """Running copies of the engine with the model, a count; in changes, which ones."""
    weights: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"] | None]
    """Number format of the weights; in requests, those the plan may choose from."""


class PoolOut(TypedDict):
    """One pool. ``step``: terms of a prefill step, or of a decode step; ``bottleneck``: what most of it waits for.
    """
    devices: int
    """Accelerators of the pool, a count."""
    busy_fraction: float
    """Share of the time in which it works, 0 to 1."""
    power_w: Interval | None
    """Power of the devices, W; null where not published."""
    memory: MemoryOut
    """What fills a device's memory."""
    bottleneck: str
    """What most of the time is spent waiting for."""
    step: list[StepTermOut]
    """Terms of the time of a step."""


class PoolsOut(TypedDict):
    """Whether prefill and decode got pools of their own. ``saves_usd_per_hour``: over the best plan without, null
    where there is none. ``extra_usd_per_hour``: what they would cost on top where they were not chosen; null where
    that is not known. ``reason``: why they were not.
    """
    chosen: bool
    """Whether pools of their own were chosen."""
    saves_usd_per_hour: str | None
    """Saved, US dollars an hour."""
    extra_usd_per_hour: str | None
    """Price above the plan's, US dollars an hour; null where there is no such plan or no measurable difference."""
    reason: str | None
    """Why pools of their own were not chosen; null where they were."""


class PrecisionChoiceIn(TypedDict):
    """Formats the plan may choose from. Fewer bits are a choice of quality, so they are not taken unasked."""
    weights: NotRequired[list[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"]] | None]
    """Number format of the weights; in requests, those the plan may choose from. Null: the format of the published
    checkpoint. What 8-bit weights and an 8-bit cache would save is then in the answer (``lower_precision``).
    """
    kv_cache: NotRequired[list[Literal["fp32", "bf16", "fp16", "fp8", "int8"]]]
    """Number format of keys and values kept for tokens already processed; in requests, those the plan may choose from.
    """


class PrecisionFilterIn(TypedDict):
    """Formats that are meant; what is left out is free."""
    weights: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"] | None]
    """Number format of the weights; in requests, those the plan may choose from."""
    kv_cache: NotRequired[Literal["fp32", "bf16", "fp16", "fp8", "int8"] | None]
    """Number format of keys and values kept for tokens already processed; in requests, those the plan may choose from.
    """


class PrecisionIn(TypedDict):
    """Formats of weights and of the key-value cache; 16-bit bfloat unless stated."""
    weights: NotRequired[Literal["fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m"]]
    """Number format of the weights; in requests, those the plan may choose from."""
    kv_cache: NotRequired[Literal["fp32", "bf16", "fp16", "fp8", "int8"]]
    """Number format of keys and values kept for tokens already processed; in requests, those the plan may choose from.
    """


class PredictedOut(TypedDict):
    ttft_ms: Percentiles
    """From sending a request to its first token, ms."""
    tpot_ms: Percentiles
    """Time per output token after the first, ms."""
    e2e_ms: Percentiles
    """From sending a request to its last token, ms."""
    output_tokens_per_s: Interval
    """Output tokens of the whole deployment, tokens a second."""
    power_w: Interval | None
    """Power of the devices, W; null where not published."""
    ttfat_ms: NotRequired[Percentiles | None]
    """Time to the first answer token, after hidden ones: percentiles in ms. Null where no tokens are hidden: it is the
    first token then.
    """
    prefix_hit_fraction: NotRequired[float | None]
    """Share of the prompts' tokens that replicas find in their cache of prefixes, 0 to 1, as simulated. Null where
    requests are no turns of sessions.
    """
    routed_over: NotRequired[int | None]
    """Replicas among which turns of sessions are spread, a count; 1 where a session stays where it began. Null where
    requests are no turns of sessions.
    """
    lasting_queue: NotRequired[LastingQueueOut | None]
    """Null where a queue goes by itself once it has come up."""
    front_end_fraction: NotRequired[float | None]
    """Share of the time that passing tokens on takes the process of a replica that does so, 0 to 1 and more; towards 1
    tokens wait for it. Null of lines stored before it was said.
    """


class PriceChangeOut(TypedDict):
    """usd_per_hour_before: null where the offer had no price."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    usd_per_hour_before: str | None
    """Price before, US dollars an hour; null: there was none."""
    usd_per_hour_after: str
    """Price afterwards, US dollars an hour; null: withdrawn."""
    change_percent: float | None
    """Change of the price, per cent of what it was."""


class PriceCurveIn(TypedDict):
    """of: a target by its path, such as ``targets.ttft_ms.p95``, or ``context_tokens``, ``confidence_percent``,
    ``spare_nodes``, ``requests_per_s``. workload: may be left out where there is one, and for spare nodes.
    """
    of: Literal["targets.ttft_ms.mean", "targets.ttft_ms.p50", "targets.ttft_ms.p90", "targets.ttft_ms.p95", "targets.ttft_ms.p99", "targets.tpot_ms.mean", "targets.tpot_ms.p50", "targets.tpot_ms.p90", "targets.tpot_ms.p95", "targets.tpot_ms.p99", "targets.e2e_ms.mean", "targets.e2e_ms.p50", "targets.e2e_ms.p90", "targets.e2e_ms.p95", "targets.e2e_ms.p99", "targets.ttfat_ms.mean", "targets.ttfat_ms.p50", "targets.ttfat_ms.p90", "targets.ttfat_ms.p95", "targets.ttfat_ms.p99", "context_tokens", "confidence_percent", "spare_nodes", "requests_per_s"]
    """Which requirement is moved, by its path."""
    workload: NotRequired[str | None]
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none. Whose target is moved; null moves the workload's
    own, for all of its classes that keep to it.
    """
    points: NotRequired[list[float] | None]
    """Values to look at, in the unit of what is moved; null chooses some. In answers, one for each. Values in the
    requirement's own unit; null chooses some around the request's own.
    """
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together."""


class PriceCurveOut(TypedDict):
    base: BaseOut
    """The recommendation's plan as it is now: what the answers are compared with."""
    of: str
    """Which requirement is moved, by its path."""
    workload: str | None
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none."""
    says: str
    """The difference in words. What the points say together: whether price moves with the requirement, from where to
    where.
    """
    points: list[CurvePointOut]
    """Values to look at, in the unit of what is moved; null chooses some. In answers, one for each."""
    seconds: float
    """How long the answer took, s."""


class PriceIn(TypedDict):
    """A price step: from ``valid_from`` on, a node-hour costs this. Null withdraws the offer from then on, and 0 is
    what an hour of a machine costs that is paid for and stands there anyway.
    """
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    valid_from: str
    """From when on the price holds, RFC 3339."""
    source: str
    """Where the figure comes from."""
    confidence: NotRequired[Literal["high", "medium", "low"]]
    """How sure the price is: `high`, `medium` or `low`."""
    correction: NotRequired[bool]
    """True replaces what is stored for the same instant; the earlier belief is kept beside it."""


class PriceOut(TypedDict):
    """The step in force. ``age_days``: how long before the instant asked for its source stated it."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    valid_from: str
    """From when on the price holds, RFC 3339."""
    source: str
    """Where the figure comes from."""
    retrieved_on: str
    """The day the source was read."""
    confidence: str
    """How sure the price is: `high`, `medium` or `low`."""
    recorded_at: str
    """When it was stored, RFC 3339."""
    age_days: int
    """Days from when the price was stated to the instant asked for."""


class PriceStepOut(TypedDict):
    """A stored price step."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    valid_from: str
    """From when on the price holds, RFC 3339."""
    source: str
    """Where the figure comes from."""
    retrieved_on: str
    """The day the source was read."""
    confidence: str
    """How sure the price is: `high`, `medium` or `low`."""
    recorded_at: str
    """When it was stored, RFC 3339."""


class PriceStepsOut(TypedDict):
    """Every step ever stored for an offer, oldest first."""
    items: list[PriceStepOut]
    """The entries of this page."""


class PricesImportIn(TypedDict):
    """payload: the list, as JSON or as text (CSV). valid_from: the day its prices hold from. provider: whose prices
    they are, where the list does not say. Instances nobody knows are skipped. correction: prices stored for the
    same instant are corrected instead of reported as conflicts. dry_run: report only. replan: plan the touched
    recommendations again, as far as ``most_replans``.
    """
    format: NotRequired[Literal["auto", "own", "skypilot", "gpuhunt", "karpenter", "vantage"]]
    """Which form the price list has; `auto` recognises it."""
    payload: Any
    """The file, as JSON or as text."""
    provider: NotRequired[str | None]
    """Id of the seller."""
    valid_from: str
    """From when on the price holds, RFC 3339."""
    source: str
    """Where the figure comes from."""
    confidence: NotRequired[Literal["high", "medium", "low"]]
    """How sure the price is: `high`, `medium` or `low`."""
    correction: NotRequired[bool]
    """True replaces what is stored for the same instant; the earlier belief is kept beside it."""
    dry_run: NotRequired[bool]
    """True: only says what would change."""
    replan: NotRequired[bool]
    """Whether stored plans that use a changed price are made again, to see what changes."""
    most_replans: NotRequired[int]
    """At most so many stored plans are made again to see whether they change, a count."""


class PricesImportOut(TypedDict):
    format: str
    """Which form the price list has; `auto` recognises it."""
    dry_run: bool
    """True: only says what would change."""
    valid_from: str
    """From when on the price holds, RFC 3339."""
    quotes: int
    """Prices read from the list, a count."""
    new_offers: int
    """Offers that the list adds."""
    appended: int
    """How many price steps were added."""
    unchanged: int
    """Prices that were stored already, a count."""
    conflicts: list[PriceChangeOut]
    """Limits or entries that contradict each other. Another price is stored for the same instant; nothing was written
    for these.
    """
    changes: list[PriceChangeOut]
    """Offers whose price changes, largest change first. Largest relative change first."""
    skipped: list[SkippedOut]
    """Entries of the list that were not taken, by reason."""
    recommendations: list[TouchedOut]
    """Stored plans that the new prices touch."""


class ProblemOut(TypedDict):
    type: str
    """Address that explains this type of problem."""
    title: str
    """What it is called."""
    status: int
    """Its state."""
    detail: str
    """The same in words."""


class ProblemTypeOut(TypedDict):
    """What one ``type`` means."""
    type: str
    """Address that explains this type of problem."""
    status: int
    """Its state."""
    title: str
    """What it is called."""
    explanation: str
    """What this type of problem means and what to do."""


class ProfileIn(TypedDict):
    """Requests per second by hour of day. ``monthly_factors``: for January to December, or any twelve months."""
    kind: Literal["profile"]
    """Which kind it is."""
    weekday_requests_per_s: list[float]
    """Rate in each hour of a weekday, requests a second, 24 values."""
    weekend_requests_per_s: NotRequired[list[float] | None]
    """Rate in each hour of a weekend day, requests a second, 24 values. Null: as on weekdays."""
    monthly_factors: NotRequired[list[float] | None]
    """Twelve factors, one for each month of a year."""
    growth_percent_per_month: NotRequired[float]
    """Growth of demand, per cent a month."""


class ProgressOut(TypedDict):
    """How far the work is. The amounts are those of the best plan so far; null where there is none, or no bound yet.
    """
    stage: str
    """What it is doing."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    bound_usd_per_hour: str | None
    """What every plan costs at least, US dollars an hour, by the optimiser's proof; null while none is known."""
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    at: str
    """The instant, RFC 3339 with offset."""


class ProvenanceOut(TypedDict):
    """Where figures come from. ``exceptions`` gives fields whose source or check differs from the row's."""
    source: str
    """Where the figure comes from."""
    retrieved_on: str
    """The day the source was read."""
    checked: str
    """How the figure was checked."""
    exceptions: dict[str, str]
    """Fields whose source or check differs from the row's."""
    notes: str
    """Remarks."""


class ProviderOut(TypedDict):
    """``places``: regions that say where a machine stands, and what they name. ``no_place``: regions that do not.
    """
    id: str
    """Its id."""
    name: str
    """Its name."""
    provider_class: Literal["hyperscaler", "specialist", "marketplace"]
    """Hyperscaler, specialist or marketplace; null for a provider without a row."""
    region_classes: dict[str, Literal["hyperscaler", "specialist", "marketplace"]]
    """Whether regions of this provider name a place, by region. Regions that are sold in another way than
    ``provider_class`` says.
    """
    places: dict[str, str]
    """Regions that say where a machine stands, and what they name."""
    no_place: list[str]
    """Regions that do not say where a machine stands."""
    quotas: list[ProviderQuotaOut]
    """At most so many devices over the offers that match. Limits of an account that its machines count against; empty
    where the catalog names none.
    """
    provenance: ProvenanceOut
    """Where the figures come from."""


class ProviderQuotaOut(TypedDict):
    """``instances``: how the names of the machines begin that count. ``unit``: what is counted."""
    name: str
    """Its name."""
    instances: list[str]
    """Instances that a device is split into, a count."""
    commitments: list[str]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to."""
    unit: Literal["vCPU", "GPU"]
    """The figure's unit."""
    source: str
    """Where the figure comes from."""


class PublishedLineOut(TypedDict):
    """A line of a plan that rests on speeds which others measured and published: tokens of a maker that
    ``limits.by_the_token`` names, or machines whose matrix rates nobody publishes. Latencies are of the mean
    request; percentiles were not published. Of tokens ``usd_per_hour`` is of whole twentieths of the workload's
    traffic.
    """
    workload: str
    """Name of the workload; null where it is about all of them."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    device: str
    """Id of the accelerator."""
    engine: str
    """The serving engine."""
    weights: str
    """Number format of the weights; in requests, those the plan may choose from."""
    node: str | None
    """Id of the machine type. Null for tokens."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    serves_requests_per_s: float
    """Rate planned to be served, requests a second."""
    share_fraction: float
    """Share of the workload's requests, 0 to 1; in answers, of what the plan serves of the class."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    ttft_ms: Interval
    """From sending a request to its first token, ms."""
    tpot_ms: Interval
    """Time per output token after the first, ms."""
    e2e_ms: Interval
    """From sending a request to its last token, ms."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    evidence: list[str]
    """Ids of the runs that the prediction rests on."""
    price_source: str | None
    """Where the price was stated. Of machines: how the price of an hour comes about."""
    by_the_token: TokenServiceOut | None
    """Who sells tokens of models on machines of their own: sellers that a request admits, or what one asks for a line.
    Null for machines.
    """


class PurchaseIn(TypedDict):
    """Terms of buying; null takes the catalog's figure. usd_per_node, peak_kw_per_node: of every machine that is
    bought, so of a whole server where the plan has slices of one; ``machines`` of the request states them of nodes
    one by one. residual_fraction: resale value when the machines are written off, after ``depreciation_months``.
    finance_rate_percent: null pays cash; a loan runs ``finance_months`` (null: as long as the machines last).
    lead_time_months: how long before growth needs them machines are ordered and paid; those of the start stand
    ready. availability_fraction: share of the time that a machine works; so many more are bought that as many work
    on average; null counts none. decommissioning_usd_per_node: taking a machine out when it is sold; counted only
    where stated.
    """
    usd_per_node: NotRequired[str | None]
    """Price of a node, US dollars; null: the catalog's."""
    peak_kw_per_node: NotRequired[float | None]
    """Power of a node at full use, kW; null where not published."""
    network_usd_per_node: NotRequired[str | None]
    """Network equipment for each node, US dollars; null: the catalog's."""
    storage_usd_per_node: NotRequired[str | None]
    """Storage for each node, US dollars; null: the catalog's."""
    software_usd_per_device_year: NotRequired[str]
    """Software for each device, US dollars a year."""
    staff_fte_per_node: NotRequired[float | None]
    """Staff for one node, full-time people."""
    maintenance_percent_per_year: NotRequired[float | None]
    """Maintenance, per cent of the purchase price a year."""
    residual_fraction: NotRequired[float | None]
    """Resale value at the horizon as a share of the price, 0 to 1; null: the catalog's."""
    depreciation_months: NotRequired[int | None]
    """Months over which machines are written off and used; null: the catalog's."""
    depreciation: NotRequired[Literal["straight_line", "declining_balance"]]
    """How bought machines lose book value."""
    finance_rate_percent: NotRequired[float | None]
    """Interest of the loan, per cent a year; null: paid in cash."""
    finance_months: NotRequired[int | None]
    """Months over which the loan is paid back; null: as long as the machines last."""
    lead_time_months: NotRequired[int]
    """Months from ordering machines to their being needed."""
    availability_fraction: NotRequired[float | None]
    """Share of the time in which spot capacity is to be had, 0 to 1."""
    decommissioning_usd_per_node: NotRequired[str | None]
    """Taking a node out when it is sold, US dollars."""


class QuotaIn(TypedDict):
    """At most ``max_devices`` devices over all offers that match; what is null matches every offer."""
    name: str
    """Its name."""
    max_devices: int
    """At most so many devices over all matching offers, a count."""
    providers: NotRequired[list[str] | None]
    """Providers, by id; null: all."""
    regions: NotRequired[list[str] | None]
    """Regions, as the catalog has them; null: all."""
    devices: NotRequired[list[str] | None]
    """Accelerators that count towards it, by id; null: all."""
    commitments: NotRequired[list[Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"]] | None]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to."""


class QuotaOut(TypedDict):
    """An account's limit that the machines count against. ``needs``: in ``unit``; null where the machine's part of it
    is not known.
    """
    name: str
    """Its name."""
    unit: str
    """The figure's unit."""
    needs: float | None
    """How much of the quota the machines take, in its unit; null where that is not known."""


class QuoteLineOut(TypedDict):
    """Nodes of one offer."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    place: str | None
    """Where the region is; null where its name does not say. What the region names, as far as the catalog knows."""
    instance: str
    """The provider's name of the machine."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    devices: int
    """How many accelerators."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none. Of a node, as planned."""
    price_source: str
    """Where the price was stated."""
    source: LineSourceOut
    """Where the figure comes from."""
    confirm: list[str]
    """What to ask the seller for, in words."""
    quotas: list[QuotaOut]
    """At most so many devices over the offers that match."""
    may_rise_to_usd_per_hour: str | None
    """The highest price of a node at which the plan is still the cheapest, US dollars an hour. The highest price of a
    node at which the plan is still the cheapest, other prices unchanged; found by solving at it. Null where that
    was not settled in time, the plan is not proven, or the machine costs nothing.
    """
    may_rise_percent: float | None
    """How far the price may rise before another plan is cheaper, per cent of it."""
    at_least: bool
    """Nothing was cheaper up to that price, which is the highest that was tried."""
    then: list[PlanLineOut]
    """The plan that is cheaper beyond; empty where there is none or it is not known."""


class QuoteOut(TypedDict):
    """``usd_per_hour``: of the whole plan as quoted here."""
    base: BaseOut
    """The recommendation's plan as it is now: what the answers are compared with."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    lines: list[QuoteLineOut]
    """Cost lines; together they are the total."""
    seconds: float
    """How long the answer took, s."""


class ReadinessOut(TypedDict):
    """How long a further replica of one kind takes until it answers: the sum of its parts, one after another."""
    replicas: str
    """Running copies of the engine with the model, a count; in changes, which ones. The kind, as the files call it.
    """
    parts: list[ReadinessPartOut]
    """Nodes by kind."""
    unknown: list[str]
    """Parts of which no figure is known: the sums leave them out."""
    fast_s: float
    """The sum of the fastest cases, in seconds; a least where parts are unknown."""
    slow_s: float | None
    """The sum of the slowest cases, in seconds; null where parts are unknown."""
    scale_to_zero: bool
    """Whether the targets allow the first request to wait for a replica to start."""
    spares: SpareReplicasOut | None
    """Null without ``ramp``, and where parts are unknown."""


class ReadinessPartOut(TypedDict):
    """One part of a replica's start, from the fastest to the slowest case in ``source``."""
    part: str
    """``node``: a machine ordered until it runs containers; ``image``; ``weights``; ``engine``: the server's own
    start.
    """
    fast_s: float
    """The fastest case, in seconds."""
    slow_s: float
    """The slowest case, in seconds."""
    source: str
    """Where the figure comes from."""


class ReadyOut(TypedDict):
    status: Literal["ready"]
    """Its state."""
    version: str
    """Version."""
    schema_revision: str
    """Revision of the database's schema; null where it is not migrated."""
    catalog_digest: str
    """SHA-256 of the catalog the answer was computed from."""
    catalog_revision: int
    """Revision of the stored catalog; null where none is seeded."""


class RecommendationIn(TypedDict):
    workloads: list[WorkloadIn]
    """Streams of requests to a model each; in lists, their names."""
    limits: NotRequired[LimitsIn]
    """What the plan must stay within; in answers, limits by their path in the request."""
    objective: NotRequired[Literal["cost", "throughput", "power"]]
    """What is best: least `cost`, most `throughput` for a budget, or least `power`."""
    current: NotRequired[CurrentIn | None]
    """The fleet that runs now, to be planned from."""
    price_as_of: NotRequired[str | None]
    """The instant that prices are of, RFC 3339; null in requests is now."""
    time_limit_s: NotRequired[float]
    """How long all solves together may take, s; above 10 the request becomes a job."""
    gap_fraction: NotRequired[float]
    """How far above the cheapest the plan may be, as a share of its price; 0 asks for proof that none is cheaper.
    """
    alternatives: NotRequired[int]
    """How many other plans to show, 0 to 10: each without a device that the one before relies on."""
    on_shortage: NotRequired[Literal["refuse", "shed"]]
    """Where the limits cannot serve everyone: `refuse`, or `shed` by priority. Where the limits cannot serve everyone:
    no plan, with reasons; or a plan for part of it, by priority.
    """


class RecommendationOut(TypedDict):
    outcome: Literal["optimal", "feasible", "infeasible"]
    """How it ended."""
    solve: SolveOut
    """How the answer was found and what is proven."""
    plan: list[PlanLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    published_lines: NotRequired[list[PublishedLineOut]]
    """Lines of the plan that rest on speeds which others measured and published. Further lines of the plan: tokens
    that ``limits.by_the_token`` admits, and machines of which only speeds are published. ``totals`` and the proof
    hold of all lines together; ``nodes``, ``devices`` and rates of the totals too, power is then not known.
    """
    fleet: NotRequired[list[FleetNodesOut]]
    """Nodes by kind or offer. The plan's nodes by offer: lines that share nodes state their part of them. Empty in
    older answers.
    """
    totals: TotalsOut | None
    """Sums over the whole plan; null without one."""
    alternatives: list[AlternativeOut]
    """Other plans, or other ways to serve the same, each with what it costs."""
    binding: list[BindingOut]
    """Limits that the plan would be better without, by solving again; largest gain first."""
    rejected: list[RejectedOut]
    """What cannot serve, by device and reason: nearest miss first."""
    conflicts: list[ConflictOut]
    """Limits or entries that contradict each other."""
    replanning: NotRequired[ReplanningOut | None]
    """How the plan follows from the fleet that runs; null without one. How the plan follows from ``current``; null
    without one.
    """
    relaxations: list[RelaxationOut]
    """Single changes that make a plan possible, each confirmed by simulation."""
    served: NotRequired[list[ServedOut]]
    """What each workload is served where traffic was shed. What each workload is served where ``on_shortage`` is
    ``shed``.
    """
    worst_losses: NotRequired[list[LossOut]]
    """For every kind of loss that the plan survives: the worst one for each workload."""
    confidence_premium_usd_per_hour: str | None
    """What that confidence costs, US dollars an hour. What confidence above 50 % adds to the price; null where it was
    not asked for.
    """
    sourcing: NotRequired[list[SourcingChangeOut]]
    """What the buying policy costs: the whole of it first, then each rule alone where that gains anything. Empty where
    no rule leaves anything out, where time was up, and in answers stored before it was stated.
    """
    cautions: NotRequired[list[CautionOut]]
    """What to know before acting on the answer. What to know before signing; empty in answers stored before it was
    stated.
    """
    lower_precision: NotRequired[LowerPrecisionOut | None]
    """Null where every workload names its formats, where time was up, and in answers stored before it was stated.
    """
    unsettled: NotRequired[list[Literal["predictions", "alternatives", "binding", "sourcing", "lower_precision", "confidence", "relaxations"]]]
    """Which explanations, or predictions of lines, time ran out for, so that they are missing or not whole: a larger
    ``time_limit_s`` settles them. Empty in answers stored before it was stated.
    """
    left_out: NotRequired[list[LeftOutOut]]
    """What was asked for and the catalog does not know: it is in no plan and no proof. What the catalog does not know
    of the request's choices; empty in answers stored before it was stated.
    """
    contexts: NotRequired[list[ContextOut]]
    """By workload, or traffic class; empty in answers stored before it was stated."""
    pools: NotRequired[PoolsOut | None]
    """Pools of prefill and decode. Null unless a workload's ``roles`` admit pools of their own."""
    largest_servable_fraction: float | None
    """Infeasible requests only: the largest share of the stated traffic that the limits admit; 0 when none of it.
    """
    id: str
    """Its id."""
    created_at: str
    """When it was made, RFC 3339."""
    inputs: InputsOut
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    request: RecommendationIn
    """What was asked, with every default filled in. The request with every default filled in."""


class RecommendationSummaryOut(TypedDict):
    """A line of the list."""
    id: str
    """Its id."""
    created_at: str
    """When it was made, RFC 3339."""
    outcome: str
    """How it ended."""
    objective: str
    """What is best: least `cost`, most `throughput` for a budget, or least `power`."""
    workloads: list[str]
    """Streams of requests to a model each; in lists, their names."""
    llms: list[str]
    """Ids of the language models."""
    asked: list[str]
    """By workload: its rate, or how many traffic classes, and its targets."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""


class RefinedOut(TypedDict):
    """A constant of the performance model by these figures alone. value = probed_fraction · engine_share: the share of
    the datasheet's rate that bare kernels reached, times how much of it an engine reaches. low–high follows the
    range of the engine's share.
    """
    constant: str
    """Which constant of the device."""
    unit: str
    """The figure's unit."""
    probed_fraction: float
    """Share of the datasheet's rate that bare kernels reached, 0 to 1."""
    engine_share: float
    """How much of that rate an engine reaches, 0 to 1."""
    value: float
    """The value, in the unit of what it is of."""
    low: float
    """Lower end, following the range of the engine's share, in `unit`."""
    high: float
    """Upper end, following the range of the engine's share, in `unit`."""


class RegistrationIn(TypedDict):
    """An agent says that it is there: the body of PUT /v1/agents/{id}, sent again as its heartbeat."""
    version: str
    """Version."""
    hostname: str
    """Name of the host that the agent runs on."""
    device: NotRequired[str | None]
    """Id of the accelerator."""
    devices: NotRequired[int]
    """How many accelerators."""
    probe: NotRequired[dict[str, Any]]
    """What the agent found on its host."""


class RejectedOut(TypedDict):
    workload: str
    """Name of the workload; null where it is about all of them."""
    traffic_class: NotRequired[str | None]
    """Which traffic class; null for all, or where there are none. Whose targets are missed; null where it is the
    candidate itself, and without traffic classes.
    """
    device: str
    """Id of the accelerator."""
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices. The profile, where instances of the device are
    meant.
    """
    reason: str
    """Why, as a stable slug or in words."""
    count: int
    """How many."""
    nearest: str | None
    """What the nearest miss reached; null where nothing ran."""
    wins_below: NotRequired[WinsBelowOut | None]
    """Of ``no_offer`` and objective ``cost``; null where they do not serve the request, or there was no time to find
    out.
    """
    by_token: NotRequired[list[ByTokenOut]]
    """Of ``no_offer`` and ``figure_missing``: the model at the device's maker by the token, cheapest replies first.
    Empty where it does not sell that, and in answers stored before it was stated.
    """


class RelaxationOut(TypedDict):
    """One smallest change that makes the request feasible, and the price of the plan it allows; null where that is not
    known to one per cent. A target may come twice: at its smallest, and a little looser where that costs less than
    half.
    """
    limit: str
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    workload: str | None
    """Name of the workload; null where it is about all of them."""
    relaxing_from: float | str | None
    """What the limit is now."""
    relaxing_to: float | str | None
    """What the limit would become; `any` lifts a choice of places."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""


class ReplanningOut(TypedDict):
    """How the plan follows from the fleet that runs. decision: ``switched``, ``kept`` (switching saves less than
    asked), ``infeasible`` (nothing serves the request), or ``unchanged`` (the best plan rents what runs already).
    total_usd_per_hour: rent and the switch spread over ``payback_hours``: what was minimised. kept_usd_per_hour:
    rent of the fleet as it is, null where it cannot serve the demand. saves_usd_per_hour: of the best plan over
    keeping the fleet, its switch counted.
    """
    decision: Literal["switched", "kept", "unchanged", "infeasible"]
    """What was decided about the fleet that runs."""
    total_usd_per_hour: str | None
    """Rent and the switch spread over the payback hours, US dollars an hour: what was minimised."""
    switching_usd: str
    """Cost of the switch, once, US dollars."""
    switching_usd_per_hour: str
    """Cost of the switch spread over the payback hours, US dollars an hour."""
    kept_usd_per_hour: str | None
    """Rent of the fleet as it is, US dollars an hour; null where it cannot serve the demand."""
    saves_usd_per_hour: str | None
    """Saved, US dollars an hour."""
    idle_but_paid: dict[str, int]
    """Nodes by offer that are paid for in any case: committed, or dearer to give back than to keep."""
    nodes: list[NodesChangeOut]
    """Nodes that change, by offer."""
    words: list[str]
    """The same in words, a line each."""


class ReplicasChangeOut(TypedDict):
    """Replicas of one workload, run in one way on one offer, before and after. layout: of one replica."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    device: str
    """Id of the accelerator."""
    engine: str
    """The serving engine."""
    layout: LayoutIn
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    speculative: NotRequired[StatedDraftIn | None]
    """Drafting: tokens guessed ahead and checked together; null without. How they draft; null: not at all."""
    host_cache_gib: float
    """Memory of the host that caches of prefixes may take beside each device, GiB; 0 for none."""
    disk_cache_gib: float
    """Of the node's local disks, what caches of prefixes may take for each device under host memory, GiB; 0 for none.
    """
    max_batched_tokens: NotRequired[int | None]
    """Most tokens the engine processes in one step, a count."""
    max_sequences: NotRequired[int | None]
    """Most requests the engine runs at once, a count."""
    max_captured_tokens: NotRequired[int | None]
    """Most tokens of a step that runs as a captured graph; larger ones are launched from the host, kernel by kernel.
    """
    api_servers: NotRequired[int | None]
    """Processes for each copy of attention that take requests in and pass tokens on, side by side."""
    before: int
    """How it was; null where there was nothing."""
    after: int
    """How it is afterwards; null where there is nothing."""


class RooflineOut(TypedDict):
    """A device's roof at datasheet rates, and the operators of a prefill step of the mean prompt and of a decode step
    at the predicted batch on it. Passes without matrix work and links are not on it; ``step`` has their time.
    """
    peak_tflop_per_s: float
    """Dense matrix rate of the datasheet in the format that the weights are multiplied in, TFLOP a second."""
    memory_bandwidth_gb_per_s: float
    """Bandwidth of device memory, GB a second; null where not published."""
    ridge_flop_per_byte: float
    """Intensity from which arithmetic is the limit and no longer memory, FLOP per byte."""
    operators: list[OperatorOut]
    """Operators of a prefill step and of a decode step, longest first in each."""


class RoutingChangeOut(TypedDict):
    """Share of a traffic class that goes to replicas of one kind on one offer, before and after. layout: of one
    replica.
    """
    workload: str
    """Name of the workload; null where it is about all of them."""
    traffic_class: str
    """Which traffic class; null for all, or where there are none."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    device: str
    """Id of the accelerator."""
    layout: LayoutIn
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    max_batched_tokens: NotRequired[int | None]
    """Most tokens the engine processes in one step, a count."""
    before_fraction: float
    """Share that the line got, 0 to 1."""
    after_fraction: float
    """Share that the line gets afterwards, 0 to 1."""


class SaturatedOut(TypedDict):
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    layout: LayoutIn | None
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    engine: DraftingEngineIn
    """The serving engine."""
    disaggregated: NotRequired[DisaggregatedIn | None]
    """Prefill and decode in pools of their own; null for replicas that do both."""
    outcome: Literal["saturated"]
    """How it ended."""
    detail: str
    """The same in words."""
    capacity_requests_per_s: float
    """The highest rate that it can keep up with, requests a second."""


class SensitivityIn(TypedDict):
    """``step``: each input up and down by ``step_percent``. ``range``: to the low and high of its catalog row."""
    mode: NotRequired[Literal["step", "range"]]
    """`step`: each input up and down by a percentage; `range`: to the ends of its catalog row."""
    step_percent: NotRequired[float]
    """How far each input is moved, per cent."""


class SeriesIn(TypedDict):
    """Measured or forecast demand from the start of the horizon on, without gaps; repeated until the horizon's end.
    Either ``step_s`` and ``requests_per_s``, or ``points`` with equal steps. A step divides an hour or is whole
    hours.
    """
    kind: Literal["series"]
    """Which kind it is."""
    step_s: NotRequired[int | None]
    """Time between entries, s."""
    requests_per_s: NotRequired[list[float] | None]
    """Rates, one every `step_s`, requests a second."""
    points: NotRequired[list[PointIn] | None]
    """Instants with their rates, with equal steps between."""
    growth_percent_per_month: NotRequired[float]
    """Growth of demand, per cent a month."""


class ServedOut(TypedDict):
    """The share of its traffic that a workload is served."""
    workload: str
    """Name of the workload; null where it is about all of them."""
    priority: int
    """Larger is more important."""
    served_fraction: float
    """Share of the stated traffic that is served, 0 to 1."""


class SessionsIn(TypedDict):
    """Requests that are turns of sessions, each with the whole session so far as the beginning of its prompt. prompt
    of turn t = system prompt + document + user₁ + reply₁ + … + user_t What replicas find of that in their cache of
    prefixes is simulated. A session ends early where its next turn would not fit into the context.
    """
    turns: FixedLength | UniformLength | LognormalLength | HistogramLength
    """Turns of a session. Turns of a session, a count where other lengths have tokens; on average and at the 95th
    percentile, or as a histogram.
    """
    user_tokens: FixedLength | UniformLength | LognormalLength | HistogramLength
    """Tokens that a user adds in a turn."""
    think_time_s: float
    """Mean seconds between the end of a reply and the next turn of its session, exponentially distributed."""
    system_prompt_tokens: NotRequired[int]
    """Tokens that every session begins with: its system prompt."""
    system_prompts: NotRequired[int]
    """How many different system prompts there are; each session has any one of them."""
    document_tokens: NotRequired[int]
    """Tokens of a document that each session is about, after its system prompt."""
    documents: NotRequired[int]
    """How many different documents there are; each session is about any one of them."""
    routing: NotRequired[Literal["sticky", "random", "least_loaded", "prefix_aware"]]
    """`sticky`: a session stays with the replica where it began. `random`: each turn goes to any replica.
    `least_loaded`: to where fewest turns are in progress. `prefix_aware`: to where fewest prompt tokens are left to
    compute.
    """
    replicas: NotRequired[int | None]
    """Running copies of the engine with the model, a count; in changes, which ones. Among how many replicas turns are
    spread; null with ``sticky``, and in a recommendation for as many as its plan has.
    """


class SiteIn(TypedDict):
    """Where bought machines are to stand; what is left out is not checked. circuit_*: what one machine is plugged
    into. pcie_lanes: of one machine's board. feed_kw: at the meter, so PUE is in it. cooling_kw: heat the room
    takes away. rack_kw, nodes_per_rack: of each of ``racks``.
    """
    circuit_v: NotRequired[float | None]
    """Voltage of the circuit, volts."""
    circuit_a: NotRequired[float | None]
    """Current of the circuit that one machine is plugged into, amperes."""
    circuit_phases: NotRequired[Literal[1, 3]]
    """Phases of the circuit."""
    pcie_lanes: NotRequired[int | None]
    """PCIe lanes, a count; null where not published."""
    feed_kw: NotRequired[float | None]
    """Power at the meter, cooling included, kW."""
    cooling_kw: NotRequired[float | None]
    """Heat that the room takes away, kW."""
    racks: NotRequired[int | None]
    """Racks, a count."""
    rack_kw: NotRequired[float | None]
    """Power of each rack, kW."""
    nodes_per_rack: NotRequired[int | None]
    """Machines that fit into a rack, a count."""


class SkippedOut(TypedDict):
    reason: str
    """Why, as a stable slug or in words."""
    count: int
    """How many."""
    examples: list[str]
    """The first of them, by name."""


class SliceOut(TypedDict):
    """Runs judged together: one configuration, one class of model, one kind of load, or all."""
    slice: str
    """Which runs are judged together."""
    llm: str | None
    """Id of the language model."""
    weights: str | None
    """Number format of the weights; null where several are judged together."""
    kv_cache: str | None
    """Number format of the KV cache; null where several are judged together."""
    tensor_parallel: int | None
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: int | None
    """Stages over which layers are dealt out, a count."""
    benchmarks: list[str]
    """Ids of stored runs."""
    errors: list[ErrorOut]
    """Prediction errors by metric; or every wrong field."""


class SolveOut(TypedDict):
    status: Literal["proven_optimal", "within_gap", "time_limit", "proven_infeasible", "mixes_open", "kept_current"]
    """Its state. ``mixes_open``: with traffic classes, the search has ended and knows nothing better, but what
    replicas would sustain of mixes of requests that nobody simulated leaves open whether there is.
    """
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    bound_usd_per_hour: str | None
    """What every plan costs at least, US dollars an hour, by the optimiser's proof; null while none is known."""
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    candidates: int
    """Ways to run a workload on a device (layout, precision) that were looked at, a count."""
    solver: str
    """What found the plan: `highs` and `cbc` are solvers; `greedy` is a heuristic whose plan arithmetic proved,
    `bound` arithmetic alone.
    """
    seconds: float
    """How long the answer took, s."""
    confirmation_rounds: int
    """How often the optimiser ran, a count. How often the optimiser ran until everything it chose held in simulation.
    """
    simulations: int
    """Runs of the engine's scheduler, request by request, a count."""
    proof_over: NotRequired[Literal["every_candidate", "each_class_alone", "simulated_mixes", "simulated_pools"]]
    """What the bound and ``proven_optimal`` hold over. ``each_class_alone``: with traffic classes, what the dearest
    costs by itself at least, which holds whatever replicas sustain of mixes; ``simulated_mixes``: stored before
    that, it held as far as mixes fall short as like ones did. ``simulated_pools``: where prefill and decode may be
    apart, replicas of either that nobody simulated are.
    """


class SolvedOut(TypedDict):
    """A changed request, solved and confirmed like any other. extra_usd_per_hour: above the base plan; below zero
    where it is cheaper, null where the difference is within the gaps of the two solves (``measurable`` false).
    extra_power_kw, less_served_fraction: the same for recommendations whose objective is power or throughput.
    """
    outcome: Literal["optimal", "feasible", "infeasible", "not_in_time"]
    """How it ended."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none."""
    gap_fraction: float | None
    """How far above the cheapest the plan may be at most, as a share of its cost; 0 is proven cheapest. In requests:
    how much is allowed.
    """
    measurable: bool
    """Whether the difference is beyond the gaps of both solves."""
    extra_usd_per_hour: str | None
    """Price above the plan's, US dollars an hour; null where there is no such plan or no measurable difference."""
    extra_power_kw: float | None
    """Power above the plan's, kW."""
    less_served_fraction: float | None
    """Share of the plan's served rate that is lost, 0 to 1."""
    says: str
    """The difference in words."""
    plan: list[PlanLineOut]
    """Lines of the plan: what runs where; empty where there is none."""


class SourcingChangeOut(TypedDict):
    """What one rule of the buying policy costs: the request solved again without it. ``rule``: null for the whole
    policy; ``limits.commitments``: with machines on demand too, where only commitments were asked for. What is
    saved is 0 where nothing better comes of it; then ``plan`` is empty. One of three is stated, by the objective.
    """
    rule: str | None
    """The rule that is lifted; null for the whole policy."""
    saves_usd_per_hour: NotRequired[str | None]
    """Saved, US dollars an hour."""
    serves_more_requests_per_s: NotRequired[float | None]
    """Requests a second that would be served more."""
    saves_power_kw: NotRequired[float | None]
    """Power saved, kW."""
    usd_per_hour: str | None
    """Price, US dollars an hour; null where there is none. Of the whole plan without the rule."""
    plan: list[PlanLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    published_lines: NotRequired[list[PublishedLineOut]]
    """Lines of the plan that rest on speeds which others measured and published."""


class SourcingIn(TypedDict):
    """What a plan may be bought from; null lifts a rule. The user's own offers, those of ``current`` and those that
    ``limits.offers`` names pass every rule about offers. A provider, device or region that the request names in its
    ``limits`` passes the rule about its class or place: who asks for it means it.
    """
    max_price_age_days: NotRequired[int | None]
    """Lines at prices that were stated longer ago ask for a quote (``ask_for_quote``); they are planned with all the
    same.
    """
    min_price_confidence: NotRequired[Literal["high", "medium", "low"] | None]
    """The least confidence that a price needs: `high`, `medium` or `low`; null takes any."""
    provider_classes: NotRequired[list[Literal["hyperscaler", "specialist", "marketplace"]] | None]
    """Not on marketplaces, where machines come from whoever offers them."""
    device_classes: NotRequired[list[Literal["datacentre", "workstation", "consumer", "edge"]] | None]
    """For whom devices are made that may be planned with; null takes any."""
    named_place: NotRequired[bool]
    """Whether the region says where the machine stands. Only regions that say where the machine stands: a city, a
    metropolitan area or a country.
    """
    max_providers: NotRequired[int | None]
    """For each workload; as many more as ``fault_tolerance.providers`` asks to outlive."""
    max_regions: NotRequired[int | None]
    """For each workload, a region being one provider's; as many more as ``fault_tolerance`` asks to outlive regions or
    providers.
    """
    max_device_types: NotRequired[int | None]
    """For each workload: one engine, one image, one set of drivers to run."""


class SpareReplicasOut(TypedDict):
    """Replicas that stand by so that demand may rise as stated while further ones start."""
    replicas: int
    """Running copies of the engine with the model, a count; in changes, which ones."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none. What they add to the plan, at the price of its own
    replicas.
    """


class SpeculativeOut(TypedDict):
    """``tokens_per_step``: mean tokens one verification yields. GiB per device, null without a draft model."""
    tokens_per_step: float
    """Tokens gained a decode step, on average."""
    draft_weights_gib: float | None
    """Memory that the draft model's weights take, GiB on the fullest device."""
    draft_kv_cache_gib: float | None
    """Memory that the draft model's cache takes, GiB on the fullest device."""
    caution: str | None
    """What to know before relying on it; null where nothing is."""


class SplitDevicesOut(TypedDict):
    """``nodes`` nodes of an offer, of each of which ``devices`` are split; all other devices are whole."""
    profile: str
    """Name of the profile."""
    instances_per_device: int
    """Instances that a device is split into, a count."""
    devices: int
    """How many accelerators."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""


class SpotIn(TypedDict):
    """Interruptible nodes. Null figures are the catalog's, and echoed with their source. availability_fraction: share
    of time in which the nodes that are left, without spares, are as many as planned. reclaims_at_once: nodes of a
    type that may be taken together without harm.
    """
    max_fraction: float
    """Most share of devices in any period that may be spot, 0 to 1."""
    interruptions_per_node_month: NotRequired[float | None]
    """How often the provider takes a spot node back, times a node and month."""
    lost_hours_per_interruption: NotRequired[float | None]
    """Hours of a node's work lost each time it is taken back."""
    availability_fraction: NotRequired[float]
    """Share of the time in which spot capacity is to be had, 0 to 1."""
    reclaims_at_once: NotRequired[int]
    """Nodes of a type that may be taken together without harm, a count."""


class SpotUsedOut(TypedDict):
    """The figures the spare rule used, and where they come from."""
    max_fraction: float
    """Most share of devices in any period that may be spot, 0 to 1."""
    interruptions_per_node_month: float
    """How often the provider takes a spot node back, times a node and month."""
    lost_hours_per_interruption: float
    """Hours of a node's work lost each time it is taken back."""
    unavailable_fraction: float
    """Share of the time without spot capacity that the plan allows for, 0 to 1."""
    availability_fraction: float
    """Share of the time in which spot capacity is to be had, 0 to 1."""
    reclaims_at_once: int
    """Nodes of a type that may be taken together without harm, a count."""
    sources: list[str]
    """Where the figures come from."""


class SpreadOut(TypedDict):
    p10: str
    """10th percentile of the draws, US dollars."""
    p25: str
    """25th percentile over the draws."""
    p50: str
    """Median of the draws, US dollars."""
    p75: str
    """75th percentile over the draws."""
    p90: str
    """90th percentile of the draws, US dollars."""


class StatedDraftIn(TypedDict):
    """What drafts has no model of its own: look-up in the context (``ngram``), or heads on the served model (``head``,
    as EAGLE or Medusa). ``draft_step_fraction``: seconds of drafting one token over seconds of one plain decode
    step, as measured; ``draft_cost_source`` says where that figure is from.
    """
    method: Literal["ngram", "head"]
    """Which method."""
    draft_tokens: int
    """Tokens drafted a step, a count."""
    acceptance_fraction: float
    """Share of drafted tokens that the served model accepts, 0 to 1; the traffic's own, taken as stated."""
    draft_step_fraction: float
    """Measured cost of drafting one token as a share of a plain decode step, 0 or more."""
    draft_cost_source: str
    """Where the measured cost of drafting is from."""


class Statistics(TypedDict):
    """One latency over all requests, in milliseconds. What was not measured is null."""
    mean: NotRequired[float | None]
    """Mean over requests, ms; null where not measured."""
    p50: NotRequired[float | None]
    """Median over requests, ms; null where not measured."""
    p90: NotRequired[float | None]
    """90th percentile over requests, ms; null where not measured."""
    p95: NotRequired[float | None]
    """95th percentile over requests, ms; null where not measured."""
    p99: NotRequired[float | None]
    """99th percentile over requests, ms; null where not measured."""


class StepTermOut(TypedDict):
    """One term of the time of a decode step at the predicted batch."""
    term: str
    """Which part of a step's time."""
    ms: float
    """Time, ms."""


class StockOut(TypedDict):
    """Nodes by the hour that the plan counts on: whether the provider has them at that hour is assumed, not known.
    """
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    node: str
    """Id of the machine type."""
    usd: str
    """US dollars over the horizon, not discounted unless it says so. Over the horizon, undiscounted."""
    most_nodes: int
    """At once, in the busiest hour."""
    most_started: int
    """Nodes more from one hour to the next, at most."""
    assumed_nodes: int
    """The plan could have had so many: what the offer states, else the request's ``max_nodes_per_offer``."""


class StoredBenchmark(TypedDict):
    """A stored result: what was uploaded, in canonical form, and what was decided about it."""
    id: str
    """Its id."""
    status: Literal["accepted", "quarantined", "retracted"]
    """Its state."""
    reasons: list[str]
    """Why, each in words."""
    warnings: list[str]
    """What is odd about it, each in words."""
    predicted_over_measured: dict[str, float] | None
    """Predicted over measured by metric, 1 is exact; null without a prediction. Predicted over measured at the time of
    upload; null where the service has no prediction to compare.
    """
    tool: str
    """The tool that wrote the file; `auto` recognises it."""
    digest: str
    """SHA-256 of what was uploaded, whatever the order of its keys."""
    recorded_at: str
    """When it was stored, RFC 3339."""
    benchmark: BenchmarkUpload
    """The run in canonical form."""
    before: Comparison
    """How it was; null where there was nothing. As predicted when it was uploaded."""
    after: Comparison
    """How it is afterwards; null where there is nothing. As predicted now, by the newest correction set."""
    checks: list[PlausibilityCheck]
    """Every plausibility check with its verdict."""
    events: list[BenchmarkEvent]
    """What happened to it; of jobs, the address of its server-sent events."""


class StretchOut(TypedDict):
    """Limits above ``above`` and up to ``up_to``. complete: proven that no plan in between is cheaper than that of
    ``above``; else sampled: plans there cost at least ``usd_per_hour_at_least``, the cheapest at most the other.
    """
    above: float
    """The stretch begins above this limit, in the unit of `against`."""
    up_to: float
    """The stretch ends with this limit, in the unit of `against`."""
    complete: bool
    """Whether it is proven that nothing else belongs there."""
    usd_per_hour_at_least: str
    """What plans there cost at least, US dollars an hour."""
    usd_per_hour_at_most: str | None
    """What the cheapest plan there costs at most, US dollars an hour; null where not known."""


class SwingOut(TypedDict):
    """Net present value with one input at either end. Null ends: parts of a fleet have values of their own."""
    input: str
    """Which figure."""
    low: float | None
    """Lower end of the input, in its unit; null where parts have values of their own."""
    high: float | None
    """Upper end of the input, in its unit; null where parts have values of their own."""
    npv_usd_at_low: str
    """Net present value with the input at its lower end, US dollars."""
    npv_usd_at_high: str
    """Net present value with the input at its upper end, US dollars."""
    effect_usd: str
    """Difference between both ends, US dollars of net present value."""


class SwitchingIn(TypedDict):
    """What a change of nodes costs, once. Nothing is assumed: what is left out is zero. overlap_hours: how long a node
    that goes runs on beside those that come. payback_hours: over how many hours a switch must pay for itself;
    needed as soon as it costs anything.
    """
    usd_per_node_added: NotRequired[str]
    """Cost of a node that comes, once, US dollars."""
    usd_per_node_removed: NotRequired[str]
    """Cost of a node that goes, once, US dollars."""
    overlap_hours: NotRequired[float]
    """Hours that a node which goes runs on beside those that come."""
    payback_hours: NotRequired[float | None]
    """Over how many hours a switch must pay for itself."""


class TargetsIn(TypedDict):
    """Upper limits by percentile: ``{"ttft_ms": {"p95": 1000}}``. What is left out is not limited."""
    ttft_ms: NotRequired[dict[str, float]]
    """Upper limits of the time to the first token by percentile, ms: `{"p95": 1000}`; a bare number is the p95."""
    tpot_ms: NotRequired[dict[str, float]]
    """Upper limits of the time per output token after the first by percentile, ms: `{"p95": 50}`."""
    e2e_ms: NotRequired[dict[str, float]]
    """Upper limits of the time to the last token by percentile, ms: `{"p95": 20000}`."""
    ttfat_ms: NotRequired[dict[str, float]]
    """Upper limits of the time to the first token that is shown by percentile, ms: `{"p95": 15000}`; hidden ones come
    before it.
    """
    confidence_percent: NotRequired[float]
    """How sure targets are to be met, per cent, 50 to 99. How sure the targets are to be met: at 50 the prediction
    itself decides, above it an upper quantile does.
    """


class TokenServiceOut(TypedDict):
    """A model as its machines' maker sells it by the token: prices, and how much an account may send."""
    id: str
    """Its id."""
    tier: str
    """Kind of account that the seller's limits are of, in its own words."""
    usd_per_million_input_tokens: str
    """Cost or price of prompt tokens, US dollars a million."""
    usd_per_million_output_tokens: str
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    seen_on: str
    """The day by which the source had it."""
    requests_per_minute: int | None
    """Most requests a minute of one account; null where the seller states no such limit."""
    tokens_per_minute: int | None
    """Most tokens a minute of one account, prompts and replies; null where the seller states no such limit."""
    requests_per_day: int | None
    """Most requests a day of one account; null where the seller states no such limit."""
    tokens_per_day: int | None
    """Most tokens a day of one account, prompts and replies; null where the seller states no such limit."""
    source: str
    """Where the figure comes from."""


class TotalsOut(TypedDict):
    """Of the whole plan. Rates are what is planned to be served, tokens prompts and replies together."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    usd_per_month: str
    """US dollars a month of 730 hours."""
    usd_per_million_output_tokens: str
    """Cost or price of output tokens, US dollars a million: the whole cost over output tokens alone."""
    usd_per_million_tokens: str
    """The whole cost over prompt and output tokens together, US dollars a million."""
    power_kw: float | None
    """Power at full use, kW; null where not published."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    devices: int
    """How many accelerators."""
    served_fraction: float | None
    """Share of the stated traffic that is served, 0 to 1. Share of the stated traffic that the plan serves: 1 unless
    the objective is throughput or some was shed. Null where no rate was stated.
    """
    serves_requests_per_s: NotRequired[float | None]
    """Rate planned to be served, requests a second. Null in answers stored before it was stated."""
    output_tokens_per_s: NotRequired[float | None]
    """Output tokens of the whole deployment, tokens a second."""
    tokens_per_s: NotRequired[float | None]
    """Prompt and output tokens together, tokens a second."""


class TouchedOut(TypedDict):
    """A stored recommendation that these prices bear on. effect: ``price_changes``: its plan costs something else now;
    ``cheaper_offer``: an offer it may use is new or got cheaper. answered_differently: known for changed plans, and
    for others once planned again; null otherwise.
    """
    recommendation: str
    """Id of a stored recommendation."""
    effect: Literal["price_changes", "cheaper_offer"]
    """What the new prices do to the plan."""
    offers: list[str]
    """Offers, by id; or how many of them."""
    usd_per_hour_stored: str | None
    """What the stored plan cost, US dollars an hour."""
    plan_usd_per_hour_now: str | None
    """What the stored plan costs at the new prices, US dollars an hour."""
    replanned_usd_per_hour: str | None
    """Price of the plan made again, US dollars an hour; null where it was not."""
    answered_differently: bool | None
    """Whether a plan made now would be another one."""


class TraceArrivals(TypedDict):
    """How the requests arrive. Plans take Poisson arrivals, whose `variation` is 1, at a steady rate."""
    span_s: float
    """From the first arrival to the last, s."""
    requests_per_s: float | None
    """Rate, requests a second. The mean rate; null where no time passes."""
    variation: float | None
    """Coefficient of variation of the times between arrivals: 1 for Poisson, above it for bursts."""
    peaks: list[ArrivalPeak]
    """Of windows of 1 s to 1 h, as far as ten of them fit."""
    by_hour: list[float] | None
    """Rate in each hour of a day over the mean rate, by the trace's own clock; null below a day."""
    by_weekday: list[float] | None
    """Rate on each day of a week over the mean rate, by the trace's own clock; null below a week."""
    longest_gap_s: float
    """The longest time without an arrival, s."""
    longest_gap_after_line: int
    """The line of the request before it."""


class TraceIn(TypedDict):
    """A file of recorded requests, one a line."""
    payload: str
    """The file, as JSON or as text. The file as text: JSONL, or CSV with a heading."""
    block_tokens: NotRequired[int | None]
    """Tokens of a prompt that one of its `hash_ids` stands for; 512 in Mooncake's shape, stated for all others."""


class TraceLengths(TypedDict):
    """Token counts of prompts or replies."""
    mean: float
    """Mean over requests. Tokens."""
    least: int
    """Tokens."""
    p50: float
    """Median. Tokens."""
    p90: float
    """90th percentile. Tokens."""
    p95: float
    """95th percentile. Tokens."""
    p99: float
    """99th percentile. Tokens."""
    most: int
    """Tokens."""
    lognormal: LognormalFitted | None
    """Null where all are alike, and where they spread wider than a mean and a 95th percentile can state."""
    histogram_distance: float
    """The same distance of the histogram in `traffic`."""


class TraceOut(TypedDict):
    """A stored trace."""
    shape: str
    """Whose fields it has: `mooncake`, `burstgpt`, `chats` or `lengths`."""
    requests: int
    """Requests, a count; null: as many as the simulation needs. Requests described."""
    left_out: list[LeftOutLines]
    """What was asked for and the catalog does not know: it is in no plan and no proof. Lines with a prompt or a reply
    of no tokens.
    """
    arrivals: TraceArrivals | None
    """How requests arrived: `poisson`, `constant` intervals, or otherwise. Null where arrivals are not recorded."""
    prompt_tokens: TraceLengths
    """Prompt lengths in tokens. Of prompts."""
    output_tokens: TraceLengths
    """Reply lengths in tokens, 1 of models that embed; of comparisons, a count over the horizon. Of replies."""
    length_rank_correlation: float | None
    """Spearman's, of prompts and replies, -1 to 1; plans take them as independent. Null where either is the same for
    all.
    """
    longest_request_tokens: int
    """Prompt and reply of the longest request, tokens."""
    longest_request_line: int
    """Its line."""
    sessions: TraceSessions | None
    """Null where no session is recorded."""
    prefixes: TracePrefixes | None
    """Null where no prompt has a full block with a hash."""
    traffic: TrafficIn
    """Lengths of requests, and where it matters how many come. To plan for: what was recorded, in the fields of a
    request. No prefix is shared unless a size of cache is asked for.
    """
    session_traffic: NotRequired[TrafficIn | None]
    """To plan for instead, as turns of sessions whose hits follow from each replica's cache; null where no prompt
    continues another, or where arrivals are not recorded.
    """
    fitted: list[str]
    """What `traffic` is made of, how well that fits, and what of the trace is not in it."""
    id: str
    """Its id. `trace_` and the SHA-256 of what was sent."""
    recorded_at: str
    """When it was stored, RFC 3339. When it was stored."""


class TracePrefixes(TypedDict):
    """Prefixes that prompts share, by the hashes of their blocks."""
    block_tokens: int
    """Tokens of a block."""
    blocks: int
    """Full blocks of all prompts."""
    distinct_blocks: int
    """Different ones: a cache of so many forgets nothing."""
    cache_sizes: list[CacheSizeOut]
    """By size; the last one finds all that can be found."""


class TraceSessions(TypedDict):
    sessions: int
    """How many."""
    requests_without: int
    """Requests that name no session."""
    turns_mean: float
    """Requests of a session, mean."""
    turns_p95: float
    """Requests of a session, 95th percentile."""
    turns_most: int
    """Requests of the longest session."""
    median_gap_s: float | None
    """Between arrivals of one session's turns, median, s; null where arrivals are not recorded or no session has two.
    """


class TrafficClassIn(TypedDict):
    """Requests of one kind: their shape, how many come, and what they must keep to. How many: ``requests_per_s``, or
    ``share_fraction`` of the workload's. targets: instead of the workload's, as a whole; null keeps to those.
    """
    prompt_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Prompt lengths in tokens: a distribution, or a number for all alike. Null where ``sessions`` are stated."""
    output_tokens: FixedLength | UniformLength | LognormalLength | HistogramLength
    """Reply lengths in tokens: a distribution, or a number for all alike; 1 of models that embed."""
    shared_prefix_fraction: NotRequired[float]
    """Share of every prompt that is cached already, 0 to 1."""
    sessions: NotRequired[SessionsIn | None]
    """Requests as turns of sessions, which prompts and what is cached of them follow from."""
    thinking_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Hidden tokens at the beginning of every reply, before the first that is shown: a distribution, or a number for
    all alike. Beside ``output_tokens``, independent of them; null where all of a reply is shown.
    """
    images: NotRequired[ImagesIn | None]
    """Images in every prompt. Null: none. One of ``images``, ``video`` and ``audio`` at most."""
    video: NotRequired[VideoIn | None]
    """Videos in every prompt; null for none."""
    audio: NotRequired[AudioIn | None]
    """Of a model: what it listens with. Of traffic: recordings in every prompt; null for none."""
    structured_fraction: NotRequired[float]
    """Share of the requests whose replies are held to a grammar, 0 to 1. JSON by a schema, calls of tools, regular
    expressions: whatever an engine's grammars hold replies to.
    """
    token_ids_fraction: NotRequired[float]
    """Share of the items that are sent as token ids instead of texts, 0 to 1; of models that embed. Of models that
    embed: the others are texts, which the engine tokenises.
    """
    name: str
    """Its name."""
    requests_per_s: NotRequired[float | None]
    """Rate, requests a second."""
    share_fraction: NotRequired[float | None]
    """Share of the workload's requests, 0 to 1; in answers, of what the plan serves of the class."""
    targets: NotRequired[TargetsIn | None]
    """Upper limits of latencies by percentile, ms; what is left out is not limited."""


class TrafficIn(TypedDict):
    """Requests and how many of them arrive each second. Null where as many as possible are to be served (objective
    throughput): each such workload then counts alike.
    """
    prompt_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Prompt lengths in tokens: a distribution, or a number for all alike. Null where ``sessions`` are stated."""
    output_tokens: FixedLength | UniformLength | LognormalLength | HistogramLength
    """Reply lengths in tokens: a distribution, or a number for all alike; 1 of models that embed."""
    shared_prefix_fraction: NotRequired[float]
    """Share of every prompt that is cached already, 0 to 1."""
    sessions: NotRequired[SessionsIn | None]
    """Requests as turns of sessions, which prompts and what is cached of them follow from."""
    thinking_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Hidden tokens at the beginning of every reply, before the first that is shown: a distribution, or a number for
    all alike. Beside ``output_tokens``, independent of them; null where all of a reply is shown.
    """
    images: NotRequired[ImagesIn | None]
    """Images in every prompt. Null: none. One of ``images``, ``video`` and ``audio`` at most."""
    video: NotRequired[VideoIn | None]
    """Videos in every prompt; null for none."""
    audio: NotRequired[AudioIn | None]
    """Of a model: what it listens with. Of traffic: recordings in every prompt; null for none."""
    structured_fraction: NotRequired[float]
    """Share of the requests whose replies are held to a grammar, 0 to 1. JSON by a schema, calls of tools, regular
    expressions: whatever an engine's grammars hold replies to.
    """
    token_ids_fraction: NotRequired[float]
    """Share of the items that are sent as token ids instead of texts, 0 to 1; of models that embed. Of models that
    embed: the others are texts, which the engine tokenises.
    """
    requests_per_s: NotRequired[float | None]
    """Rate, requests a second."""


class TrafficShape(TypedDict):
    """Lengths of requests: ``prompt_tokens``, or ``sessions`` that they follow from. ``shared_prefix_fraction``: share
    of every prompt that is already cached.
    """
    prompt_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Prompt lengths in tokens: a distribution, or a number for all alike. Null where ``sessions`` are stated."""
    output_tokens: FixedLength | UniformLength | LognormalLength | HistogramLength
    """Reply lengths in tokens: a distribution, or a number for all alike; 1 of models that embed."""
    shared_prefix_fraction: NotRequired[float]
    """Share of every prompt that is cached already, 0 to 1."""
    sessions: NotRequired[SessionsIn | None]
    """Requests as turns of sessions, which prompts and what is cached of them follow from."""
    thinking_tokens: NotRequired[FixedLength | UniformLength | LognormalLength | HistogramLength | None]
    """Hidden tokens at the beginning of every reply, before the first that is shown: a distribution, or a number for
    all alike. Beside ``output_tokens``, independent of them; null where all of a reply is shown.
    """
    images: NotRequired[ImagesIn | None]
    """Images in every prompt. Null: none. One of ``images``, ``video`` and ``audio`` at most."""
    video: NotRequired[VideoIn | None]
    """Videos in every prompt; null for none."""
    audio: NotRequired[AudioIn | None]
    """Of a model: what it listens with. Of traffic: recordings in every prompt; null for none."""
    structured_fraction: NotRequired[float]
    """Share of the requests whose replies are held to a grammar, 0 to 1. JSON by a schema, calls of tools, regular
    expressions: whatever an engine's grammars hold replies to.
    """
    token_ids_fraction: NotRequired[float]
    """Share of the items that are sent as token ids instead of texts, 0 to 1; of models that embed. Of models that
    embed: the others are texts, which the engine tokenises.
    """


class TrainedOut(TypedDict):
    """What every training plan does. runs: how often all jobs are done over the horizon, at ``hours_per_run`` of the
    plan that takes longest; runs_per_month_at_most: back to back.
    """
    jobs: list[str]
    """What is to be trained."""
    tokens_per_run: float
    """Tokens trained on in one run, a count."""
    hours_per_run: float
    """Hours from the beginning of a run to its end, a count."""
    runs: float
    """Measured runs: how many, or each of them."""
    runs_per_month_at_most: float
    """Runs a month, back to back."""


class TrainingAnchorIn(TypedDict):
    """A measured run of the same model, device, method and precision: what it was off, others are corrected by."""
    devices: int
    """How many accelerators."""
    tokens_per_s_per_device: float
    """Tokens trained on in a second, for each device."""
    sequence_tokens: NotRequired[int | None]
    """Tokens of one packed sequence."""
    global_batch_sequences: NotRequired[int | None]
    """Sequences of one optimizer step, over all devices."""
    micro_batch_sequences: NotRequired[int | None]
    """Sequences that one replica computes at a time."""
    layout: NotRequired[TrainingLayoutIn]
    """How the model is spread over devices."""
    sharding: NotRequired[Literal["zero1", "zero3"] | None]
    """What replicas share out among them: `zero1` the optimizer's states, `zero3` weights and gradients too (FSDP).
    """
    recompute: NotRequired[Literal["none", "selective", "full"] | None]
    """What the backward pass computes again instead of keeping it: `none`, `selective` or `full`."""


class TrainingBesideOut(TypedDict):
    """The fleet beside the jobs. usd: of fleet and jobs. joint_saving_at_most_usd: no plan of both together costs so
    much less, for the fleet's part alone costs no less than its own bound; null where none is stored. Of the fleet
    amounts are in present value.
    """
    fleet: str
    """Nodes by kind or offer."""
    fleet_usd: str
    """The fleet alone, US dollars of present value."""
    usd: str
    """US dollars over the horizon, not discounted unless it says so."""
    joint_saving_at_most_usd: str | None
    """No plan of fleet and jobs together costs so many US dollars less."""


class TrainingChoiceOut(TypedDict):
    """A layout as fast as the chosen one within 5 %, which the model cannot tell from it."""
    layout: TrainingLayoutOut
    """How the model is spread over devices."""
    tokens_per_s_per_device: float
    """Tokens trained on in a second, for each device."""
    peak_gib: float
    """Memory on the fullest device at its fullest, GiB."""
    verdict: Literal["fits", "tight", "does_not_fit"]
    """`pass`, `flag`, `fail` or `skipped`."""


class TrainingCommitmentOut(TypedDict):
    """Nodes paid for a whole term, or bought, whichever jobs hold them; ``usd`` is of all of it, of bought ones less
    what they are sold for. used_fraction: of their hours, by the jobs. due_at_start_usd: of bought ones, what is
    paid at once. lines: what ``usd`` of bought ones is made of; sales are negative.
    """
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    commitment: str
    """How it is rented: on demand, spot, reserved for a term, capacity block, or bought."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    term_months: int
    """Months the commitment or lease runs, a count."""
    usd: str
    """US dollars over the horizon, not discounted unless it says so."""
    used_fraction: float
    """Share of the commitment's node-hours inside the horizon that is used, 0 to 1."""
    present_usd: NotRequired[str | None]
    """Present value, US dollars."""
    due_at_start_usd: NotRequired[str | None]
    """Paid at once for bought nodes, US dollars."""
    lines: NotRequired[dict[str, str] | None]
    """Cost lines; together they are the total."""


class TrainingDeploymentOut(TypedDict):
    """Files that start the plan's jobs; the same plan gives the same bytes."""
    recommendation: str
    """Id of a stored recommendation."""
    target: str
    """What the files are for: vllm, sglang, compose, kubernetes, …"""
    generator_version: str
    """Version of what wrote the files: it goes up when it writes others."""
    files: list[DeploymentFileOut]
    """Files, each with its path and text."""
    notes: list[DeploymentNoteOut]
    """Remarks."""


class TrainingEstimateIn(TypedDict):
    """One run on so many devices."""
    llm: str
    """Id of the language model."""
    method: Literal["pretrain", "full", "lora", "qlora", "dpo"]
    """Which method. dpo: preferences, in pairs of a chosen and a rejected sequence, each beside a frozen reference
    model.
    """
    adapters: NotRequired[Literal["lora", "qlora"] | None]
    """Low-rank adapters over the model, one named by every request. Of method dpo: what is trained; null: every
    weight.
    """
    reference: NotRequired[Literal["computed", "precomputed"] | None]
    """Of method dpo: the reference's log-probabilities are computed with each step (null), or once before all of them.
    """
    precision: NotRequired[str]
    """Number formats of weights and KV cache. Of the matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8."""
    sequence_tokens: NotRequired[int | None]
    """Tokens of one packed sequence. Tokens of a packed sequence; null: what the stack takes unless told."""
    global_batch_sequences: NotRequired[int | None]
    """Sequences of one optimizer step, over all devices. Sequences of one optimizer step; null: one micro-batch a
    device.
    """
    micro_batch_sequences: NotRequired[int | None]
    """Sequences that one replica computes at a time."""
    layout: NotRequired[TrainingLayoutIn]
    """How the model is spread over devices."""
    sharding: NotRequired[Literal["zero1", "zero3"] | None]
    """What replicas share out among them: `zero1` the optimizer's states, `zero3` weights and gradients too (FSDP).
    """
    recompute: NotRequired[Literal["none", "selective", "full"] | None]
    """What the backward pass computes again instead of keeping it: `none`, `selective` or `full`."""
    optimizer: NotRequired[Literal["adamw", "adamw_8bit", "sgd"] | None]
    """Which optimizer updates the weights; its states take memory."""
    stack: NotRequired[str | None]
    """Training software whose constants hold. Software by its usual name (megatron-bridge 26.04, torchtitan, maxtext,
    hf-trl); null or unknown: the usual one for the method on the device.
    """
    adapter_rank: NotRequired[int | None]
    """Rank of the low-rank adapters that are trained, on every linear matrix of the layers; null: the stack's usual
    one.
    """
    device: str
    """Id of the accelerator."""
    node: NotRequired[str | None]
    """Id of the machine type. The machine that holds the devices; null: the best networked one of the catalog that
    does.
    """
    devices: int
    """How many accelerators."""
    devices_per_node: NotRequired[int | None]
    """Accelerators in one node, a count."""
    anchors: NotRequired[list[TrainingAnchorIn]]
    """Measured runs of the same model, device, method and precision: the prediction is corrected by what it was off
    for them.
    """


class TrainingEstimatedOut(TypedDict):
    """``does_not_fit``: the figures say how fast it would be if memory held it."""
    outcome: Literal["estimated", "does_not_fit"]
    """How it ended."""
    detail: str
    """The same in words."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    evidence: list[str]
    """Ids of the runs that the prediction rests on."""
    tokens_per_s_per_device: Interval
    """Tokens trained on in a second, for each device."""
    step_s: Interval
    """Time between entries, s."""
    mfu_fraction: Interval
    """Model FLOPs utilisation: useful operations over the device's dense rate, 0 to 1."""
    mfu_convention: str
    """Which operations the utilisation counts, and over which rate."""
    memory: TrainingMemoryOut
    """What fills a device's memory."""
    layout: TrainingLayoutOut
    """How the model is spread over devices."""
    shortlist: list[TrainingChoiceOut]
    """Layouts within 5 % of the fastest, best first: the prediction does not tell them apart."""
    considered: int
    """How many layouts, or columns, were compared."""
    terms: list[TrainingTermOut]
    """Parts of the time of a step; they sum to it."""
    stack: str
    """Training software whose constants hold."""
    sequence_tokens: int
    """Tokens of one packed sequence."""
    global_batch_sequences: int
    """Sequences of one optimizer step, over all devices."""
    cautions: list[str]
    """What to know before acting on the answer."""


class TrainingEstimatesIn(TypedDict):
    """Runs to predict. One bad case does not spoil the rest."""
    estimates: list[TrainingEstimateIn]
    """One for each deployment, in the order asked."""


class TrainingEstimatesOut(TypedDict):
    """In the order asked."""
    estimates: list[TrainingEstimatedOut | TrainingUnsupportedOut]
    """One for each deployment, in the order asked."""


class TrainingFrontOut(TypedDict):
    """What ending a job sooner costs: the price of its deadline."""
    job: str
    """Name of the job."""
    points: list[TrainingPointOut]
    """Ways to do the job that no other is both cheaper and sooner than, soonest first."""


class TrainingJobIn(TypedDict):
    """One model to train: on ``tokens``, or on ``samples`` of a sequence each (dpo: of two), ``epochs`` times."""
    llm: str
    """Id of the language model."""
    method: Literal["pretrain", "full", "lora", "qlora", "dpo"]
    """Which method. dpo: preferences, in pairs of a chosen and a rejected sequence, each beside a frozen reference
    model.
    """
    adapters: NotRequired[Literal["lora", "qlora"] | None]
    """Low-rank adapters over the model, one named by every request. Of method dpo: what is trained; null: every
    weight.
    """
    reference: NotRequired[Literal["computed", "precomputed"] | None]
    """Of method dpo: the reference's log-probabilities are computed with each step (null), or once before all of them.
    """
    precision: NotRequired[str]
    """Number formats of weights and KV cache. Of the matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8."""
    sequence_tokens: NotRequired[int | None]
    """Tokens of one packed sequence. Tokens of a packed sequence; null: what the stack takes unless told."""
    global_batch_sequences: NotRequired[int | None]
    """Sequences of one optimizer step, over all devices. Sequences of one optimizer step; null: one micro-batch a
    device.
    """
    micro_batch_sequences: NotRequired[int | None]
    """Sequences that one replica computes at a time."""
    layout: NotRequired[TrainingLayoutIn]
    """How the model is spread over devices."""
    sharding: NotRequired[Literal["zero1", "zero3"] | None]
    """What replicas share out among them: `zero1` the optimizer's states, `zero3` weights and gradients too (FSDP).
    """
    recompute: NotRequired[Literal["none", "selective", "full"] | None]
    """What the backward pass computes again instead of keeping it: `none`, `selective` or `full`."""
    optimizer: NotRequired[Literal["adamw", "adamw_8bit", "sgd"] | None]
    """Which optimizer updates the weights; its states take memory."""
    stack: NotRequired[str | None]
    """Training software whose constants hold. Software by its usual name (megatron-bridge 26.04, torchtitan, maxtext,
    hf-trl); null or unknown: the usual one for the method on the device.
    """
    adapter_rank: NotRequired[int | None]
    """Rank of the low-rank adapters that are trained, on every linear matrix of the layers; null: the stack's usual
    one.
    """
    name: str
    """Its name."""
    tokens: NotRequired[float | None]
    """Tokens that one epoch trains on, a count; or state `samples`."""
    samples: NotRequired[int | None]
    """How many sequences there are to train on."""
    epochs: NotRequired[float]
    """How often all of it is trained on."""
    deadline: NotRequired[str | None]
    """When the job must be done, RFC 3339 with offset."""
    max_usd: NotRequired[str | None]
    """The most it may cost in all, US dollars."""
    max_devices: NotRequired[int]
    """At most so many devices over all matching offers, a count."""


class TrainingLayoutIn(TypedDict):
    """Parallel degrees of a run; the fastest that memory holds is searched for those that are not stated."""
    tensor_parallel: NotRequired[int | None]
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: NotRequired[int | None]
    """Stages over which layers are dealt out, a count."""
    virtual_pipeline: NotRequired[int | None]
    """Interleaved parts of each pipeline stage's layers."""
    context_parallel: NotRequired[int | None]
    """Over how many devices each sequence is split."""
    expert_parallel: NotRequired[int | None]
    """Devices over which the experts of a mixture are dealt out, a count."""
    data_parallel: NotRequired[int | None]
    """Copies within one replica that share its load."""


class TrainingLayoutOut(TypedDict):
    """How the devices share the work."""
    tensor_parallel: int
    """Devices over which every layer is cut, a count."""
    pipeline_parallel: int
    """Stages over which layers are dealt out, a count."""
    virtual_pipeline: int
    """Interleaved parts of each pipeline stage's layers."""
    context_parallel: int
    """Over how many devices each sequence is split."""
    expert_parallel: int
    """Devices over which the experts of a mixture are dealt out, a count."""
    data_parallel: int
    """Copies within one replica that share its load."""
    micro_batch_sequences: int
    """Sequences that one replica computes at a time."""
    sharding: Literal["zero1", "zero3"]
    """What replicas share out among them: `zero1` the optimizer's states, `zero3` weights and gradients too (FSDP).
    """
    recompute: Literal["none", "selective", "full"]
    """What the backward pass computes again instead of keeping it: `none`, `selective` or `full`."""
    recomputed_layers_fraction: float
    """Share of the layers whose whole forward pass is done again: 1 for all, less where the software recomputes as
    many as memory asks for and keeps the rest.
    """


class TrainingLimitsIn(TypedDict):
    """What may be rented."""
    devices: NotRequired[list[str] | None]
    """How many accelerators."""
    providers: NotRequired[list[str] | None]
    """Providers, by id; null: all."""
    regions: NotRequired[list[str] | None]
    """Regions, as the catalog has them; null: all."""
    commitments: NotRequired[list[Literal["on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront", "capacity_block", "purchase"]]]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to."""
    offers: NotRequired[dict[str, OfferLimitIn]]
    """Offers, by id; or how many of them. Offers by name, with the most nodes of each that all jobs together may hold
    at a time.
    """
    sourcing: NotRequired[SourcingIn | Literal["any"]]
    """The buyer's policy about sellers, places and prices; `any` lifts it."""
    max_usd: NotRequired[str | None]
    """The most it may cost in all, US dollars."""
    spot_preemptions_per_node_hour: NotRequired[float | None]
    """How often spot capacity is taken back, for each node and hour; needed where spot is allowed."""


class TrainingLineOut(TypedDict):
    """What one job rents, when, and how it runs on it."""
    job: str
    """Name of the job."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    provider: str
    """Id of the seller."""
    region: str
    """Region, as the catalog has it."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    devices: int
    """How many accelerators."""
    starts_at: str
    """When it begins, RFC 3339 with offset; of a request null: now, and never before then, or before `price_as_of`
    where that is stated.
    """
    finishes_at: str
    """When it is expected to be done, RFC 3339 with offset."""
    daily_hours: NotRequired[list[int]]
    """Hours of each day at which it runs, 0 to 23 in the time of the fleet's demand or, beside ``serving``, in UTC;
    empty: all.
    """
    duration_days: Interval
    """How long it takes, days."""
    goodput_fraction: float
    """Share of the time that advances training, failures, restarts and checkpoints taken off, 0 to 1."""
    tokens_per_s_per_device: Interval
    """Tokens trained on in a second, for each device."""
    mfu_fraction: Interval
    """Model FLOPs utilisation: useful operations over the device's dense rate, 0 to 1."""
    layout: TrainingLayoutOut
    """How the model is spread over devices."""
    memory: TrainingMemoryOut
    """What fills a device's memory."""
    basis: Literal["measured", "corrected", "borrowed", "analytical"]
    """What the prediction rests on: `measured`, `corrected`, `borrowed` or `analytical`, from surest to least sure.
    """
    evidence: list[str]
    """Ids of the runs that the prediction rests on."""
    stack: str
    """Training software whose constants hold."""
    sequence_tokens: int
    """Tokens of one packed sequence."""
    global_batch_sequences: int
    """Sequences of one optimizer step, over all devices."""
    usd_per_node_hour: NotRequired[str | None]
    """Rent of a node, US dollars an hour. Null in plans stored before it was stated."""
    stated_on: NotRequired[str | None]
    """The day for which the source states the price. By its source; null for one's own, for nodes that are paid for
    already and in plans stored before it was stated.
    """
    price_age_days: NotRequired[int | None]
    """At the instant that prices are of; null for one's own."""
    ask_for_quote: NotRequired[bool]
    """Older than ``limits.sourcing.max_price_age_days``."""
    usd: str
    """What the job's machines cost, in whole hours of every node, US dollars."""
    usd_low: str
    """The same at the fast end of the interval, US dollars."""
    usd_high: str
    """The same at the slow end of the interval, US dollars."""


class TrainingLogIn(TypedDict):
    """What a training programme wrote: its rate and peak of memory are read from it."""
    tool: Literal["torchtitan", "megatron", "hf_trainer"]
    """Which programme wrote it."""
    content: str
    """The log as it was written: TorchTitan's or Megatron's output, or what the Hugging Face Trainer printed or saved
    at the end.
    """


class TrainingMemoryOut(TypedDict):
    """By part, on the fullest device."""
    weights_gib: float
    """Memory of the weights on the fullest device, GiB."""
    gradients_gib: float
    """Memory of the gradients on the fullest device, GiB."""
    optimizer_gib: float
    """Memory of master weights and the optimizer's states on the fullest device, GiB."""
    activations_gib: float
    """Memory of intermediate results on the fullest device, GiB."""
    logits_gib: float
    """Memory of the output head's results and their gradient on the device that has them, GiB."""
    reserved_gib: float
    """Memory kept back by the driver and the engine on the fullest device, GiB."""
    peak_gib: float
    """Memory on the fullest device at its fullest, GiB."""
    available_gib: float
    """Memory of a device, GiB."""
    verdict: Literal["fits", "tight", "does_not_fit"]
    """`pass`, `flag`, `fail` or `skipped`."""


class TrainingPlanSummaryOut(TypedDict):
    """A line of the list."""
    id: str
    """Its id."""
    created_at: str
    """When it was made, RFC 3339."""
    outcome: str
    """How it ended."""
    jobs: list[str]
    """Names of the jobs."""
    llms: list[str]
    """Ids of the language models."""
    usd: str | None
    """What all jobs cost, US dollars; null where there is no plan."""


class TrainingPointOut(TypedDict):
    """A way to do a job that no other is both cheaper and sooner than."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    duration_days: float
    """How long it takes, days."""
    usd: str
    """What the job's machines cost, US dollars."""


class TrainingRecommendationIn(TypedDict):
    """Jobs that share offers and a budget."""
    jobs: list[TrainingJobIn]
    """What is to be trained."""
    limits: NotRequired[TrainingLimitsIn]
    """What the plan must stay within; in answers, limits by their path in the request."""
    beside_fleet: NotRequired[str | None]
    """A stored fleet (POST /v1/fleets): jobs may use the nodes that it has reserved or bought at the hours of the day
    at which it leaves them idle, and share the quotas of its request. Its month 0 begins with the plan.
    """
    serving: NotRequired[str | None]
    """What is served beside training jobs; a recommendation's id in requests. A stored recommendation, served from the
    plan's beginning until the last deadline by its plan or one of its alternatives: whichever makes serving and
    training together cheapest within what offers have. Its cost counts against ``limits.max_usd`` of the plan.
    """
    serving_hourly_profile: NotRequired[list[float] | None]
    """What is served in each hour of the day (UTC) over the recommendation's rate: 24 shares, 0 to 1. Nodes rented by
    the hour are given back when they are not needed; jobs may use the others then, at no further cost. Null: as
    much all day.
    """
    own: NotRequired[list[OwnSiteIn]]
    """Places of your own in which machines may be bought. Places where machines may be bought, at the plan's
    beginning, as fleets over time have them. What is minimised is then present value; budgets are of what is paid,
    less what machines are sold for.
    """
    own_months: NotRequired[int | None]
    """Months after the beginning at which bought machines are sold, or at the end of their life if that comes first.
    Months after the beginning at which bought machines are sold at their value then, or at the end of their life if
    that comes first; null: the months until the last deadline, 12 where a job has none.
    """
    discount_rate_percent_per_year: NotRequired[float | None]
    """Rate at which payments are weighed, per cent a year; null: 0, or the catalog's cost of capital where machines
    may be bought. Null: 0, or with ``own`` the catalog's cost of capital of its operator.
    """
    starts_at: NotRequired[str | None]
    """When it begins, RFC 3339 with offset; of a request null: now, and never before then, or before `price_as_of`
    where that is stated.
    """
    price_as_of: NotRequired[str | None]
    """The instant that prices are of, RFC 3339; null in requests is now."""
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together."""


class TrainingRecommendationOut(TypedDict):
    """The same with its address."""
    outcome: Literal["optimal", "feasible", "infeasible"]
    """How it ended."""
    solve: TrainingSolveOut
    """How the answer was found and what is proven."""
    plan: list[TrainingLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    serving: NotRequired[TrainingServingOut | None]
    """What is served beside training jobs; a recommendation's id in requests. Null where nothing is served beside the
    jobs, or there is no plan.
    """
    commitments: NotRequired[list[TrainingCommitmentOut]]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to. What is paid for a term,
    or bought, rather than by the hour; lines on it cost nothing more.
    """
    beside: NotRequired[TrainingBesideOut | None]
    """The fleet beside the jobs, with what planning both at once could save at most."""
    own: NotRequired[list[OwnUsedOut]]
    """Places of your own in which machines may be bought. What owning was taken to cost, place by place."""
    left_out: NotRequired[list[CommitmentLeftOutOut]]
    """What was asked for and the catalog does not know: it is in no plan and no proof. Machines that were not offered
    to the plan, and the figure they lack.
    """
    discount: NotRequired[DiscountOut]
    """The rate at which later payments count less, and where it is from."""
    fronts: list[TrainingFrontOut]
    """For each job, what ending it sooner costs."""
    conflicts: list[str]
    """Limits or entries that contradict each other."""
    relaxations: list[TrainingRelaxationOut]
    """Single changes that make a plan possible, each confirmed by simulation."""
    cautions: list[str]
    """What to know before acting on the answer."""
    inputs: InputsOut
    """What the answer was computed from: the same request against the same inputs gives the same answer."""
    training_digest: str
    """SHA-256 of the catalog's files about training."""
    id: str
    """Its id."""
    link: str
    """Address to hand on; its id cannot be guessed."""
    created_at: str
    """When it was made, RFC 3339."""


class TrainingRelaxationOut(TypedDict):
    """One change that would make a plan of the job possible, with what it then costs."""
    job: str
    """Name of the job."""
    limit: str
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    relaxing_to: str
    """What the limit would become; `any` lifts a choice of places."""
    usd: str
    """What the job then costs, US dollars."""


class TrainingRunIn(TypedDict):
    """A run that was measured: ``tokens_per_s_per_device``, ``step_s`` or a ``log`` says how fast."""
    llm: str
    """Id of the language model."""
    method: Literal["pretrain", "full", "lora", "qlora", "dpo"]
    """Which method. dpo: preferences, in pairs of a chosen and a rejected sequence, each beside a frozen reference
    model.
    """
    adapters: NotRequired[Literal["lora", "qlora"] | None]
    """Low-rank adapters over the model, one named by every request. Of method dpo: what is trained; null: every
    weight.
    """
    reference: NotRequired[Literal["computed", "precomputed"] | None]
    """Of method dpo: the reference's log-probabilities are computed with each step (null), or once before all of them.
    """
    precision: NotRequired[str]
    """Number formats of weights and KV cache. Of the matrix products: bf16, fp16, fp8, mxfp8, nvfp4 or int8."""
    sequence_tokens: NotRequired[int | None]
    """Tokens of one packed sequence. Tokens of a packed sequence; null: what the stack takes unless told."""
    global_batch_sequences: NotRequired[int | None]
    """Sequences of one optimizer step, over all devices. Sequences of one optimizer step; null: one micro-batch a
    device.
    """
    micro_batch_sequences: NotRequired[int | None]
    """Sequences that one replica computes at a time."""
    layout: NotRequired[TrainingLayoutIn]
    """How the model is spread over devices."""
    sharding: NotRequired[Literal["zero1", "zero3"] | None]
    """What replicas share out among them: `zero1` the optimizer's states, `zero3` weights and gradients too (FSDP).
    """
    recompute: NotRequired[Literal["none", "selective", "full"] | None]
    """What the backward pass computes again instead of keeping it: `none`, `selective` or `full`."""
    optimizer: NotRequired[Literal["adamw", "adamw_8bit", "sgd"] | None]
    """Which optimizer updates the weights; its states take memory."""
    stack: NotRequired[str | None]
    """Training software whose constants hold. Software by its usual name (megatron-bridge 26.04, torchtitan, maxtext,
    hf-trl); null or unknown: the usual one for the method on the device.
    """
    adapter_rank: NotRequired[int | None]
    """Rank of the low-rank adapters that are trained, on every linear matrix of the layers; null: the stack's usual
    one.
    """
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    tokens_per_s_per_device: NotRequired[float | None]
    """Tokens a second that each device trained on, evaluation and checkpoints left out."""
    step_s: NotRequired[float | None]
    """Median time of one optimizer step, s; says how fast with the tokens of a sequence and the sequences of a step.
    """
    peak_memory_gib: NotRequired[float | None]
    """Most memory that a device had reserved, GiB; null where it was not measured."""
    log: NotRequired[TrainingLogIn | None]
    """What the training programme wrote; the rate and the peak of memory are read from it, past the first logged
    steps.
    """


class TrainingRunOut(TypedDict):
    """A stored run. Later estimates of its model, device, method, precision and software are corrected by it."""
    id: str
    """Its id."""
    link: str
    """Address to hand on; its id cannot be guessed."""
    recorded_at: str
    """When it was stored, RFC 3339."""
    status: Literal["accepted", "retracted"]
    """Its state."""
    llm: str
    """Id of the language model."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    method: Literal["pretrain", "full", "lora", "qlora", "dpo"]
    """Which method."""
    precision: str
    """Number formats of weights and KV cache."""
    stack: str
    """Training software whose constants hold."""
    sequence_tokens: int
    """Tokens of one packed sequence."""
    global_batch_sequences: int
    """Sequences of one optimizer step, over all devices."""
    layout: TrainingLayoutIn
    """How the model is spread over devices."""
    tokens_per_s_per_device: float
    """Tokens a second that each device trained on."""
    predicted_tokens_per_s_per_device: float
    """Tokens a second and device that the model predicts of it now. By the constants alone, without any anchor."""
    error_fraction: float
    """Predicted over measured rate, less one: a share, above 0 where the prediction was too fast."""
    peak_memory_gib: float | None
    """Most memory that a device had reserved, GiB; null where it was not measured."""
    steps: int | None
    """Logged steps that the rate is the median of; null where it was stated."""


class TrainingServedNodesOut(TypedDict):
    """``nodes_by_hour``: those that serve, in UTC; empty: all of them all day."""
    offer: str
    """Id of the offer: provider, instance, region and commitment."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer."""
    nodes_by_hour: NotRequired[list[int]]
    """Nodes in each hour of the day, counts."""


class TrainingServingOut(TypedDict):
    """Which of a recommendation's plans serves beside the jobs. why: the alternative's own reason; null: its plan.
    usd_apart: what serving and jobs would cost if serving took its cheapest plan first; null where it leaves the
    jobs too little.
    """
    recommendation: str
    """Id of a stored recommendation."""
    why: str | None
    """What is different, or why, in words."""
    nodes: list[TrainingServedNodesOut]
    """Nodes (machines), a count; in changes, which ones by offer."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none."""
    usd: str
    """US dollars over the horizon, not discounted unless it says so."""
    usd_apart: str | None
    """What both cost planned one after the other, US dollars."""
    considered: int
    """How many layouts, or columns, were compared."""


class TrainingSolveOut(TypedDict):
    """How the plan was found. usd: of all jobs and ``commitments``, and of ``serving`` where it is planned with them;
    it and its bound are in present value, which is that of ``discount``. undiscounted_usd: as it is paid.
    """
    status: Literal["proven_optimal", "feasible", "proven_infeasible", "no_plan_found"]
    """Its state."""
    usd: str | None
    """What all jobs cost, US dollars."""
    bound_usd: str | None
    """What every plan costs at least over the horizon, US dollars of present value, by the optimiser's proof."""
    undiscounted_usd: NotRequired[str | None]
    """US dollars as they are paid, not in present value."""
    candidates: int
    """Ways to run a workload on a device (layout, precision) that were looked at, a count."""
    seconds: float
    """How long the answer took, s."""


class TrainingTermOut(TypedDict):
    """One term of the time of a step; the terms sum to it."""
    term: str
    """Which part of a step's time."""
    time_s: float
    """Time, seconds."""
    time_fraction: float
    """Share of the step's time, 0 to 1."""


class TrainingUnsupportedOut(TypedDict):
    """It cannot run, or a figure is missing. ``reason`` is a stable slug: unknown_llm, batch_not_divisible,
    figure_missing, …
    """
    outcome: Literal["unsupported"]
    """How it ended."""
    reason: str
    """Why, as a stable slug or in words."""
    detail: str
    """The same in words."""
    close_matches: list[str]
    """Known names that are near."""


class TrainingWhyNotIn(TypedDict):
    """A device, a provider or an offer that the plan does without, and which job is meant; null: every job."""
    device: NotRequired[str | None]
    """Id of the accelerator."""
    provider: NotRequired[str | None]
    """Id of the seller."""
    offer: NotRequired[str | None]
    """Id of the offer: provider, instance, region and commitment."""
    job: NotRequired[str | None]
    """Name of the job."""


class TrainingWhyNotOut(TypedDict):
    """What the jobs would cost there: solved again with the same prices, dates and measured runs."""
    kind: Literal["device", "provider", "offer"]
    """Which kind it is."""
    name: str
    """Its name."""
    in_plan: bool
    """Whether the plan has it already."""
    excluded_by: list[str]
    """Limits of the request that leave it out; it is priced as if they did not. Limits of the request that keep it
    out; the answer is without them.
    """
    outcome: Literal["optimal", "feasible", "infeasible"]
    """How it ended."""
    usd: str | None
    """What the jobs' machines cost there, US dollars; null where there is no plan."""
    extra_usd: str | None
    """Cost above the stored plan's, US dollars; null where there is no such plan. Above what the stored plan costs.
    """
    plan: list[TrainingLineOut]
    """Lines of the plan: what runs where; empty where there is none."""
    commitments: NotRequired[list[TrainingCommitmentOut]]
    """Kinds of commitment that may be used; null: every kind. In answers: what to commit to. What is paid for a term,
    or bought; lines on it cost nothing more.
    """
    reasons: list[str]
    """Why, each in words. Why there is no plan there."""
    seconds: float
    """How long the answer took, s."""


class UncertaintyOut(TypedDict):
    """``cheapest_fraction``: share of draws in which this alternative has the lowest net present value.
    stated_in_middle_half: whether the net present value at typical inputs lies between p25 and p75.
    """
    draws: int
    """Random draws, a count."""
    seed: int
    """Start of the random draws: the same seed gives the same draws."""
    npv_usd: SpreadOut
    """Net present value over the horizon, US dollars."""
    total_usd: SpreadOut
    """Total over the horizon, US dollars."""
    usd_per_million_tokens: SpreadOut | None
    """The whole cost over prompt and output tokens together, US dollars a million."""
    cheapest_fraction: float
    """Share of draws in which this alternative has the lowest net present value, 0 to 1."""
    stated_in_middle_half: bool
    """Whether the stated case lies between the quarter and three quarters of the draws."""


class UniformLength(TypedDict):
    """Whole numbers, each from ``low`` to ``high`` equally likely."""
    distribution: Literal["uniform"]
    """Which form the distribution has."""
    low: int
    """Shortest, tokens."""
    high: int
    """Longest, tokens."""


class UnmeteredOut(TypedDict):
    """Offers that are left out for a figure: of one node type, or of one provider's region, whose grid nobody names.
    """
    node: str | None
    """Id of the machine type."""
    provider: str | None
    """Id of the seller."""
    region: str | None
    """Region, as the catalog has it."""
    reason: Literal["figure_missing"]
    """Why, as a stable slug or in words."""
    figure: str
    """The figure that nobody publishes."""
    offers: int
    """Offers, by id; or how many of them."""


class UnpricedOut(TypedDict):
    """A commitment of ``term_years`` on a machine that is rented, of which no price is known. Neither does this say
    that the provider has none, nor that a plan has weighed it. The lists are of the regions where the machine has a
    price of any kind.
    """
    id: str
    """Its id."""
    provider: str
    """Id of the seller."""
    instance: str
    """The provider's name of the machine."""
    node: str
    """Id of the machine type."""
    device: str
    """Id of the accelerator."""
    devices: int
    """How many accelerators."""
    term_years: int
    """Years the commitment runs, a count."""
    detail: str
    """The same in words."""
    regions_without: list[str]
    """Regions where the term has none."""
    regions_with: list[str]
    """Regions where the term has a price."""
    price_as_of: str
    """The instant that prices are of, RFC 3339; null in requests is now."""


class UnreachedOut(TypedDict):
    """A limit without a plan: there is none, or it was not found in time. Null is no limit at all."""
    limit: float | None
    """Which limit, by its path in the request; on a front, the value it was solved at."""
    outcome: Literal["infeasible", "not_in_time"]
    """How it ended."""
    reasons: list[MissOut]
    """Why, each in words."""


class UnsupportedOut(TypedDict):
    """It cannot run. ``reason`` is a stable slug: unknown_llm, unknown_device, figure_missing, …"""
    partition: NotRequired[str | None]
    """Profile of the instance it runs on; null for whole devices."""
    node: NotRequired[str | None]
    """Id of the machine type."""
    layout: LayoutIn | None
    """How the model is spread over devices."""
    precision: PrecisionIn
    """Number formats of weights and KV cache."""
    engine: DraftingEngineIn
    """The serving engine."""
    disaggregated: NotRequired[DisaggregatedIn | None]
    """Prefill and decode in pools of their own; null for replicas that do both."""
    outcome: Literal["unsupported"]
    """How it ended."""
    reason: str
    """Why, as a stable slug or in words."""
    detail: str
    """The same in words."""
    close_matches: list[str]
    """Known names that are near."""


class UsedInputOut(TypedDict):
    """One input of the cost model with the range that draws are taken from; ``stated`` ones have none."""
    input: str
    """Which figure."""
    low: float
    """Lower end: of a predicted quantity, nine of ten measured values lie between low and high."""
    typical: float
    """The figure used, in `unit`."""
    high: float
    """Upper end: of a predicted quantity, nine of ten measured values lie between low and high."""
    stated: bool
    """Whether the request states it."""


class VideoIn(TypedDict):
    """Videos in every prompt, all alike; their tokens come on top of ``prompt_tokens``, as many as the model makes of
    the frames that are sampled.
    """
    per_request: NotRequired[int]
    """How many of them a request carries."""
    seconds: float
    """How long the answer took, s."""
    frames_per_s: float
    """Frames that are sampled a second. At which frames are sampled, not at which it was recorded."""
    width_px: int
    """Width of an image or a frame as it is sent, pixels."""
    height_px: int
    """Height of an image or a frame as it is sent, pixels."""


class VisionOut(TypedDict):
    """A vision encoder: patches of ``patch_px`` pixels a side, ``merge``² of which become a token of the model.
    Figures that it does not have are 0. ``most_tiles``: of ``image_px`` a side, into which an image is cut;
    ``projector``: width of its projectors, where that is not the patches'.
    """
    layers: int
    """Layers, a count."""
    hidden: int
    """Width of the model's hidden state."""
    heads: int
    """Query heads, a count."""
    intermediate: int
    """Width inside a dense layer; 0 for mixtures."""
    gated: bool
    """Whether the layer has a gate beside its first matrix."""
    patch_px: int
    """Side of a patch, pixels."""
    merge: int
    """Patches a side that become one token."""
    image_px: int
    """Side to which every image is resized, pixels; 0: it keeps its own."""
    least_px: int
    """Fewest pixels, in all, that an image is resized to."""
    most_px: int
    """Most pixels, in all, that an image is resized to."""
    tokens: int
    """Length, tokens. Of every image, where their number is fixed."""
    extra_projectors: int
    """Further projections to the model's width, from layers in between."""
    window_patches: int
    """Patches that a layer which looks within windows attends to; 0: all layers look at all."""
    full_layers: int
    """Layers that look at all of an image."""
    weights: float
    """Number format of the weights; in requests, those the plan may choose from."""
    most_tiles: NotRequired[int]
    """Most tiles that an image is cut into; 0 where it is not."""
    projector: NotRequired[int]
    """Width of the first projectors; 0: that of the patches that become a token."""
    clip_frames: NotRequired[int]
    """Frames of a video that one patch reaches over; 0 where it is not known to take video."""
    least_clip_px: NotRequired[int]
    """To no fewer pixels is a video resized, all frames together; 0: each frame like an image."""
    most_clip_px: NotRequired[int]
    """To no more pixels is a video resized, all frames together; 0: each frame like an image."""
    least_frames: NotRequired[int]
    """Fewest frames that are sampled of a video; 0: any number."""
    most_frames: NotRequired[int]
    """Most frames that are sampled of a video; 0: any number."""


class WantedListOut(TypedDict):
    """The most decisive first; empty when everything in the plan has been measured closely enough to decide nothing.
    """
    items: list[MeasurementWantedOut]
    """The entries of this page."""


class WantedOut(TypedDict):
    """A figure not stated, at either end of its catalog range: what that does to the lead of the cheapest alternative
    over the runner-up (of a single alternative, to its net present value). ``state``: where the request takes it.
    """
    input: str
    """Which figure."""
    state: str | None
    """Where it stands: queued, running, succeeded, failed, cancelled or expired."""
    low: float | None
    """Lower end: of a predicted quantity, nine of ten measured values lie between low and high."""
    typical: float | None
    """The figure used, in `unit`."""
    high: float | None
    """Upper end: of a predicted quantity, nine of ten measured values lie between low and high."""
    lead_usd_at_low: str
    """The lead of the cheapest alternative with the figure at its lower end, US dollars."""
    lead_usd_at_high: str
    """The lead of the cheapest alternative with the figure at its upper end, US dollars."""
    effect_usd: str
    """Difference between both ends, US dollars of net present value."""


class WantedTraffic(TypedDict):
    """Lengths to send."""
    prompt_tokens: MeasuredFixed | MeasuredUniform | MeasuredLognormal | MeasuredHistogram | MeasuredMean
    """Prompt lengths in tokens."""
    output_tokens: MeasuredFixed | MeasuredUniform | MeasuredLognormal | MeasuredHistogram | MeasuredMean
    """Reply lengths in tokens, 1 of models that embed; of comparisons, a count over the horizon."""


class WhyNotAnswerOut(TypedDict):
    """One thing. excluded_by: limits of the request that leave it out; it is priced as if they did not. forced_in: at
    least one replica on it, all else free. only: the named workload on nothing else (null without one).
    """
    kind: Literal["device", "offer", "provider", "precision", "layout", "partition"]
    """Which kind it is."""
    name: str
    """Its name."""
    in_plan: bool
    """Whether the plan has it already."""
    excluded_by: list[str]
    """Limits of the request that leave it out; it is priced as if they did not."""
    forced_in: SolvedOut
    """The cheapest plan with at least one replica on it, all else free."""
    only: SolvedOut | None
    """The cheapest plan in which the named workload runs on nothing else; null without a workload."""
    reasons: list[MissOut]
    """Why, each in words."""
    limits: list[str]
    """What the plan must stay within; in answers, limits by their path in the request. Limits of the request that
    together leave no plan with it, where its candidates could serve.
    """


class WhyNotIn(TypedDict):
    """Things the plan does without. workload: whose replicas are meant; null is anybody's."""
    devices: NotRequired[list[str]]
    """Accelerators that are meant, by id."""
    offers: NotRequired[list[str]]
    """Offers that are meant, by id."""
    providers: NotRequired[list[str]]
    """Providers that are meant, by id."""
    precisions: NotRequired[list[PrecisionFilterIn]]
    """Number formats that are meant."""
    layouts: NotRequired[list[LayoutFilterIn]]
    """Ways to split a replica that are meant."""
    partitions: NotRequired[list[str]]
    """Profiles into which devices can be split. Profiles of split devices."""
    workload: NotRequired[str | None]
    """Name of the workload; null where it is about all of them."""
    time_limit_s: NotRequired[float]
    """How long it may take at most, s, all solves together. For all solves of this call together."""


class WhyNotOut(TypedDict):
    base: BaseOut
    """The recommendation's plan as it is now: what the answers are compared with."""
    answers: list[WhyNotAnswerOut]
    """One answer for each thing asked about, in the order asked."""
    seconds: float
    """How long the answer took, s."""


class WinsBelowOut(TypedDict):
    """From which price machines that nobody sells would be the cheapest plan, taken alone."""
    node: str
    """Id of the machine type."""
    nodes: int
    """Nodes (machines), a count; in changes, which ones by offer. So many serve the request."""
    usd_per_hour: str
    """Price, US dollars an hour; null where there is none. Of one node, US dollars an hour."""
    best_usd_per_hour: str
    """Of the best plan of what is sold, devices that were not asked for included; US dollars an hour."""


class WithoutOut(TypedDict):
    """The cheapest plan without one device or offer of the plan. indispensable: there is none within the percentage;
    null where that is not known: not answered in time, or a gap leaves it open.
    """
    kind: Literal["device", "offer"]
    """Which kind it is."""
    name: str
    """Its name."""
    indispensable: bool | None
    """Whether no plan within the percentage does without it; null where that is not known."""
    solved: SolvedOut
    """The changed request's plan, and what it costs more or less."""


class WorkloadIn(TypedDict):
    """One stream of requests to one model: ``traffic``, or ``traffic_classes`` where they are of several kinds."""
    name: str
    """What to call it in answers."""
    llm: str
    """Id of the language model."""
    context_tokens: NotRequired[int | None]
    """Longest context served, prompt and reply together, tokens; null: the longest that the traffic produces. Longest
    context to be served, prompt and reply together; null means the longest that the traffic produces, as far as the
    model takes it. Everywhere the same: in plans, estimates and the settings handed to engines.
    """
    over_context: NotRequired[Literal["clip", "refuse"]]
    """Requests longer than the context end there (`clip`) or are an error (`refuse`)."""
    traffic: NotRequired[TrafficIn | None]
    """Lengths of requests, and where it matters how many come."""
    traffic_classes: NotRequired[list[TrafficClassIn] | None]
    """Kinds of requests, where they are of several."""
    requests_per_s: NotRequired[float | None]
    """Rate, requests a second. Of all traffic classes together, where they state shares of it."""
    targets: NotRequired[TargetsIn]
    """Upper limits of latencies by percentile, ms; what is left out is not limited."""
    precision: NotRequired[PrecisionChoiceIn]
    """Number formats of weights and KV cache."""
    engines: NotRequired[list[str] | None]
    """Serving engines, by name. Serving engines to choose among, like formats; null: each device's own, which is vLLM
    wherever it runs.
    """
    utilisation_limit_fraction: NotRequired[float]
    """How busy replicas may be planned, 0 to 1."""
    min_replicas: NotRequired[int]
    """At least so many replicas, a count."""
    regions: NotRequired[PlacesIn]
    """Regions, as the catalog has them; null: all."""
    providers: NotRequired[PlacesIn]
    """Providers, by id; null: all."""
    network_ms_by_region: NotRequired[dict[str, float] | None]
    """Round trip between the users and each region, ms. Round trip between the users and each region in which an offer
    may be used; counts towards TTFT and e2e.
    """
    priority: NotRequired[int]
    """Larger is more important. Where not everyone can be served (``on_shortage``), lower ones are shed first."""
    drafting: NotRequired[StatedDraftIn | None]
    """How engines may draft, where a plan with it costs less; null: not at all. Its acceptance is that of this
    traffic, as measured.
    """
    adapters: NotRequired[AdaptersIn | None]
    """Low-rank adapters over the model, one named by every request. Tenants or tasks that share the base: every
    replica serves all of them. Null: the model as published.
    """
    host_cache_gib: NotRequired[float | list[float]]
    """Memory of the host that caches of prefixes may take beside each device, GiB; 0 for none. One size, or several to
    choose among, each beside none: taken where a plan with it costs less, on nodes that have as much for each
    device, by vLLM and SGLang, for what requests of sessions leave in the cache.
    """
    disk_cache_gib: NotRequired[float]
    """Of the node's local disks, what caches of prefixes may take for each device under host memory, GiB; 0 for none.
    Under each size of host memory, beside none: taken where a plan with it costs less, on nodes whose local disks
    are that large and are read at a rate that is stated, here or by their documentation.
    """
    disk_read_gbytes_per_s: NotRequired[float | None]
    """At which each device's share of the local disks is read, 10⁹ bytes a second, as measured; null: the documented
    rate of the node, shared by its devices.
    """
    roles: NotRequired[list[Literal["aggregated", "disaggregated"]]]
    """Which roles replicas may have: `aggregated`, `disaggregated`. ``disaggregated`` admits prefill and decode in
    pools of their own, on unlike devices of one provider and region.
    """
