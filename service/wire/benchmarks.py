"""Measured results on the wire: the canonical form that agents upload and that every importer produces.

Numbers are strict: a string is not a number, NaN and infinity are refused, nothing measured is negative.
Latencies are in milliseconds. TTFT runs from sending a request to its first token, E2E to its last;
TPOT of a request is (E2E − TTFT) / (output tokens − 1); ITL is the gap between successive chunks.
Statistics are over requests (ITL: over gaps).
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from service.wire.quantities import SMALLEST, Answer, Instant, KvCacheFormat, Request, Slug, WeightFormat


def _measurable(value: float) -> float:
    if 0.0 < value < SMALLEST:
        raise ValueError(f"is above zero and below {SMALLEST:g}: no measurement is so fine")
    return value


Measure = Annotated[float, Field(strict=True, ge=0, le=1e12, allow_inf_nan=False), AfterValidator(_measurable)]
"""A measured quantity: finite, not negative."""
Rate = Annotated[float, Field(strict=True, ge=SMALLEST, le=1e12, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=0, le=10**12)]
Degree = Annotated[int, Field(strict=True, ge=1, le=65_536)]
Tokens = Annotated[int, Field(strict=True, ge=0, le=100_000_000)]


def _storable(value: str) -> str:
    if "\x00" in value:
        raise ValueError("holds a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is not text") from None
    return value


Text = Annotated[str, AfterValidator(_storable)]
Words = Annotated[Text, Field(max_length=4_000)]


class MeasuredFixed(Request):
    """Every request has the same length."""

    distribution: Literal["fixed"] = "fixed"
    tokens: Tokens


class MeasuredUniform(Request):
    """Whole numbers drawn uniformly from [low, high]."""

    distribution: Literal["uniform"] = "uniform"
    low: Tokens
    high: Tokens

    @model_validator(mode="after")
    def _ordered(self) -> "MeasuredUniform":
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class MeasuredLognormal(Request):
    """Lognormal by its mean and 95th percentile."""

    distribution: Literal["lognormal"] = "lognormal"
    mean: Rate
    p95: Rate


class MeasuredBin(Request):
    """``share`` of the requests have ``tokens`` tokens."""

    tokens: Tokens
    share: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]


class MeasuredHistogram(Request):
    """Lengths as they were, by share."""

    distribution: Literal["histogram"] = "histogram"
    histogram: Annotated[list[MeasuredBin], Field(min_length=1, max_length=10_000)]

    @model_validator(mode="after")
    def _whole(self) -> "MeasuredHistogram":
        total = sum(b.share for b in self.histogram)
        if abs(total - 1.0) > 1e-6:
            raise ValueError(f"shares sum to {total:.6g}, not to 1")
        return self


class MeasuredMean(Request):
    """Only the mean length is known: what most tools write. Comparable with a prediction only approximately."""

    distribution: Literal["mean"] = "mean"
    mean: Measure


MeasuredLengths = Annotated[
    MeasuredFixed | MeasuredUniform | MeasuredLognormal | MeasuredHistogram | MeasuredMean,
    Field(discriminator="distribution"),
]


class MeasuredTraffic(Request):
    """Shape of the requests that were sent; a part that is unknown is null."""

    prompt_tokens: MeasuredLengths | None = None
    output_tokens: MeasuredLengths | None = None
    shared_prefix_fraction: Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)] = 0.0


class MeasuredClosedLoad(Request):
    """``concurrency`` clients, each sending its next request when the last is answered."""

    kind: Literal["closed"] = "closed"
    concurrency: Annotated[int, Field(strict=True, ge=1, le=10**9)]
    requests: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = None
    range: Words | None = None
    """What part of the run the results cover, in words."""


class MeasuredOpenLoad(Request):
    """Requests arrive at a rate, whether or not earlier ones are answered."""

    kind: Literal["open"] = "open"
    requests_per_s: Rate
    requests: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = None
    arrivals: Literal["poisson", "constant", "other"] = "poisson"
    max_concurrency: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = None
    """Cap on requests in flight, where the generator had one."""
    range: Words | None = None


MeasuredLoad = Annotated[MeasuredClosedLoad | MeasuredOpenLoad, Field(discriminator="kind")]


class MeasuredLayout(Request):
    """How the deployment was spread over devices. Left empty for a single device, all degrees are 1."""

    tensor_parallel: Degree | None = None
    pipeline_parallel: Degree | None = None
    data_parallel: Degree | None = None
    expert_parallel: Degree | None = None


class MeasuredPrecision(Request):
    """Number formats of the weights and of the KV cache."""

    weights: WeightFormat | None = None
    kv_cache: KvCacheFormat | None = None


class MeasuredEngine(Request):
    """The serving engine, its version and the arguments it was started with."""

    name: Slug
    version: Annotated[Text, Field(max_length=200)] | None = None
    arguments: Annotated[tuple[Annotated[Text, Field(max_length=2_000)], ...], Field(max_length=500)] = ()


class AgentIdentity(Request):
    """Which agent measured."""

    id: Annotated[Text, Field(max_length=200)]
    version: Annotated[Text, Field(max_length=100)] | None = None


class ImportContext(Request):
    """What the tool's file does not say. Every field may be left out when the file has it."""

    device: Slug | None = None
    devices: Degree | None = None
    node: Slug | None = None
    llm: Slug | None = None
    layout: MeasuredLayout = MeasuredLayout()
    precision: MeasuredPrecision = MeasuredPrecision()
    engine: MeasuredEngine | None = None
    driver: Annotated[Text, Field(max_length=200)] | None = None
    measured_at: Instant | None = None
    agent: AgentIdentity | None = None
    power_w_mean: Measure | None = None
    """Mean board power over the run, summed over the devices."""
    notes: Words = ""


class BenchmarkContext(ImportContext):
    """What was measured: hardware, model, layout, precision, engine."""

    device: Slug
    devices: Degree
    llm: Slug
    engine: MeasuredEngine


class Statistics(Request):
    """One latency over all requests, in milliseconds. What was not measured is null."""

    mean: Measure | None = None
    p50: Measure | None = None
    p90: Measure | None = None
    p95: Measure | None = None
    p99: Measure | None = None

    @property
    def empty(self) -> bool:
        return all(value is None for value in (self.mean, self.p50, self.p90, self.p95, self.p99))


def _nothing_as_empty(value: Any) -> Any:
    return {} if value is None else value


Latency = Annotated[Statistics, BeforeValidator(_nothing_as_empty)]
"""Statistics of one latency; null is read as not measured."""


class BenchmarkResults(Request):
    """What came out of the run."""

    completed: Count | None = None
    failed: Count | None = None
    duration_s: Rate | None = None
    requests_per_s: Measure | None = None
    output_tokens_per_s: Measure | None = None
    """All output tokens of the deployment over the wall time of the run, ramp-up and drain included."""
    input_tokens_per_s: Measure | None = None
    ttft_ms: Latency = Statistics()
    tpot_ms: Latency = Statistics()
    itl_ms: Latency = Statistics()
    e2e_ms: Latency = Statistics()

    @model_validator(mode="after")
    def _something(self) -> "BenchmarkResults":
        rates = (self.output_tokens_per_s, self.requests_per_s, self.input_tokens_per_s)
        latencies = (self.ttft_ms, self.tpot_ms, self.itl_ms, self.e2e_ms)
        if all(rate is None for rate in rates) and all(latency.empty for latency in latencies):
            raise ValueError("states neither a throughput nor a latency")
        return self


class BenchmarkUpload(Request):
    """One measured run, canonical form: the body of POST /v1/benchmarks."""

    context: BenchmarkContext
    load: MeasuredLoad | None = None
    traffic: MeasuredTraffic = MeasuredTraffic()
    results: BenchmarkResults


class BenchmarkImport(Request):
    """A tool's own output and what it does not say: the body of POST /v1/benchmarks/import."""

    context: ImportContext = ImportContext()
    tool: Annotated[str, Field(max_length=64)] = "auto"
    """``auto`` detects the tool by content; a name insists on one."""
    payload: Any
    """The tool's file, as JSON or as text."""


Verdict = Literal["pass", "flag", "fail", "skipped"]


class PlausibilityCheck(Answer):
    """One check of a result against arithmetic or physics, with the figures it compared."""

    name: str
    verdict: Verdict
    message: str


BenchmarkStatus = Literal["accepted", "quarantined", "retracted"]


class BenchmarkReceipt(Answer):
    """The answer to an upload. ``reasons`` says why a result is quarantined, ``warnings`` what is odd about it."""

    id: str
    status: BenchmarkStatus
    reasons: list[str]
    warnings: list[str]
    predicted_over_measured: dict[str, float] | None
    """Predicted over measured at the time of upload; null where the service has no prediction to compare."""


class ImportReceipt(BenchmarkReceipt):
    """The answer to an import: the first run at the top, and every run of the file in ``runs``.

    ``status`` and ``reasons`` at the top cover the whole file: quarantined as soon as one run is.
    """

    tool: str
    runs: list[BenchmarkReceipt]


class BenchmarkEvent(Answer):
    """Something decided about a stored result after its upload. Events are appended, never changed."""

    action: Literal["release", "retract"]
    reason: str
    actor: str
    recorded_at: Instant


class BenchmarkDecision(Request):
    """The body of POST /v1/benchmarks/{id}/release and /retract."""

    reason: Annotated[Text, Field(min_length=3, max_length=2_000)]


class Comparison(Answer):
    """Predicted over measured under one correction set; null without a prediction."""

    correction_set: int | None
    predicted_over_measured: dict[str, float] | None


class StoredBenchmark(BenchmarkReceipt):
    """A stored result: what was uploaded, in canonical form, and what was decided about it."""

    tool: str
    digest: str
    recorded_at: Instant
    benchmark: BenchmarkUpload
    before: Comparison
    """As predicted when it was uploaded."""
    after: Comparison
    """As predicted now, by the newest correction set."""
    checks: list[PlausibilityCheck]
    events: list[BenchmarkEvent]


class BenchmarkSummary(Answer):
    """A stored result in a list."""

    id: str
    status: BenchmarkStatus
    device: str
    devices: int
    llm: str
    engine: str
    engine_version: str | None
    tool: str
    measured_at: Instant | None
    recorded_at: Instant
    output_tokens_per_s: float | None
    ttft_ms_mean: float | None
    tpot_ms_mean: float | None
    reasons: list[str]
