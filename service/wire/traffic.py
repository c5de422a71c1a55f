"""Token lengths, traffic and load."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from service.wire.quantities import Fraction, PositiveNumber, Request, TokenCount

MOST_BINS = 1_000


class FixedLength(Request):
    distribution: Literal["fixed"]
    tokens: TokenCount


class UniformLength(Request):
    """Whole numbers, each from ``low`` to ``high`` equally likely."""

    distribution: Literal["uniform"]
    low: TokenCount
    high: TokenCount

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self


class LognormalLength(Request):
    distribution: Literal["lognormal"]
    mean: Annotated[float, Field(ge=1, le=10_000_000, allow_inf_nan=False)]
    p95: Annotated[float, Field(ge=1, le=10_000_000, allow_inf_nan=False)]


class HistogramBin(Request):
    tokens: TokenCount
    share: Annotated[float, Field(ge=1e-9, le=1, allow_inf_nan=False)]


class HistogramLength(Request):
    """Shares that sum to 1, one for each token count."""

    distribution: Literal["histogram"]
    histogram: Annotated[tuple[HistogramBin, ...], Field(min_length=1, max_length=MOST_BINS)]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        total = sum(b.share for b in self.histogram)
        if abs(total - 1.0) > 1e-6:
            raise ValueError(f"shares sum to {total:.6g}, not to 1")
        if len({b.tokens for b in self.histogram}) != len(self.histogram):
            raise ValueError("a token count occurs twice")
        return self


def _length_as_typed(value: Any) -> Any:
    """A number is that length for all; ``mean`` with ``p95``, ``low`` with ``high`` and ``tokens`` say which form they are.

    >>> _length_as_typed(1000), _length_as_typed({"mean": 1200, "p95": 4000})
    ({'distribution': 'fixed', 'tokens': 1000}, {'mean': 1200, 'p95': 4000, 'distribution': 'lognormal'})
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"distribution": "fixed", "tokens": value}
    if isinstance(value, bool | str | list | tuple):
        raise ValueError('this must be a number, or an object such as {"mean": 1200, "p95": 4000}')
    if isinstance(value, dict) and "distribution" not in value:
        for form, fields in FORMS.items():
            if value.keys() == fields:
                return value | {"distribution": form}
    return value


FORMS = {
    "fixed": {"tokens"}, "uniform": {"low", "high"}, "lognormal": {"mean", "p95"}, "histogram": {"histogram"},
}  # fmt: skip
Lengths = Annotated[
    Annotated[FixedLength | UniformLength | LognormalLength | HistogramLength, Field(discriminator="distribution")],
    BeforeValidator(_length_as_typed),
]
"""Token lengths: one of four distributions, or a number for all alike."""


OverContext = Literal["clip", "refuse"]
"""What becomes of requests longer than the context: an engine ends them there (``clip``), or they are an error."""


THINKING_IS_AGGREGATED = "hidden tokens are modelled on replicas that prefill and decode; pools of their own are not"
ANSWERS_FOLLOW_HIDDEN_TOKENS = (
    "ttfat_ms is the time to the first token after hidden ones: state traffic.thinking_tokens, or limit ttft_ms"
)
IMAGES_ARE_AGGREGATED = (
    "images, video and audio are modelled on replicas that prefill and decode; pools of their own are not"
)
SESSIONS_ARE_AGGREGATED = "sessions are modelled on replicas that prefill and decode; pools of their own are not"
MOST_TURNS = 1_000
MOST_THINK_S = 604_800.0


class SessionsIn(Request):
    """Requests that are turns of sessions, each with the whole session so far as the beginning of its prompt.

        prompt of turn t = system prompt + document + user₁ + reply₁ + … + user_t

    What replicas find of that in their cache of prefixes is simulated. A session ends early where its next turn would not fit
    into the context.
    """

    turns: Lengths
    """Turns of a session, a count where other lengths have tokens; on average and at the 95th percentile, or as a histogram."""
    user_tokens: Lengths
    think_time_s: Annotated[float, Field(ge=0, le=MOST_THINK_S, allow_inf_nan=False)]
    system_prompt_tokens: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    system_prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    document_tokens: Annotated[int, Field(ge=0, le=10_000_000)] = 0
    documents: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    routing: Literal["sticky", "random", "least_loaded", "prefix_aware"] = "sticky"
    replicas: Annotated[int, Field(ge=1, le=100)] | None = None
    """Among how many replicas turns are spread; null with ``sticky``, and in a recommendation for as many as its plan has."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if _longest(self.turns) > MOST_TURNS:
            raise ValueError(f"sessions have at most {MOST_TURNS} turns here")
        if self.routing == "sticky" and self.replicas is not None:
            raise ValueError(
                "replicas is for random routing, and others that spread a session; one that stays finds as much among any number"
            )
        return self


def _longest(lengths: FixedLength | UniformLength | LognormalLength | HistogramLength) -> float:
    """What no length is far above."""
    match lengths:
        case FixedLength():
            return lengths.tokens
        case UniformLength():
            return lengths.high
        case LognormalLength():
            return lengths.p95
        case HistogramLength():
            return max(one.tokens for one in lengths.histogram)


class ImagesIn(Request):
    """Images in every prompt, all of one size; their tokens come on top of ``prompt_tokens``, as many as the model makes of them."""

    per_request: Annotated[int, Field(ge=1, le=1_000)] = 1
    width_px: Annotated[int, Field(ge=1, le=100_000)]
    height_px: Annotated[int, Field(ge=1, le=100_000)]


class VideoIn(Request):
    """Videos in every prompt, all alike; their tokens come on top of ``prompt_tokens``, as many as the model makes of the frames that
    are sampled."""

    per_request: Annotated[int, Field(ge=1, le=100)] = 1
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
    frames_per_s: Annotated[float, Field(gt=0, le=240, allow_inf_nan=False)]
    """At which frames are sampled, not at which it was recorded."""
    width_px: Annotated[int, Field(ge=1, le=100_000)]
    height_px: Annotated[int, Field(ge=1, le=100_000)]


class AudioIn(Request):
    """Recordings in every prompt, all of one length; their tokens come on top of ``prompt_tokens``, as many as the model makes of them."""

    per_request: Annotated[int, Field(ge=1, le=100)] = 1
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class TrafficShape(Request):
    """Lengths of requests: ``prompt_tokens``, or ``sessions`` that they follow from. ``shared_prefix_fraction``: share of every
    prompt that is already cached."""

    prompt_tokens: Lengths | None = None
    """Null where ``sessions`` are stated."""
    output_tokens: Lengths
    shared_prefix_fraction: Fraction = 0.0
    sessions: SessionsIn | None = None
    thinking_tokens: Lengths | None = None
    """Beside ``output_tokens``, independent of them; null where all of a reply is shown."""
    images: ImagesIn | None = None
    """Null: none. One of ``images``, ``video`` and ``audio`` at most."""
    video: VideoIn | None = None
    audio: AudioIn | None = None
    structured_fraction: Fraction = 0.0
    """JSON by a schema, calls of tools, regular expressions: whatever an engine's grammars hold replies to."""
    token_ids_fraction: Fraction = 0.0
    """Of models that embed: the others are texts, which the engine tokenises."""

    @model_validator(mode="after")
    def _prompts_once(self) -> Self:
        if (self.prompt_tokens is None) == (self.sessions is None):
            raise ValueError("state either prompt_tokens or sessions, which prompts follow from")
        if self.sessions is not None and self.shared_prefix_fraction > 0.0:
            raise ValueError("what is shared follows from sessions; shared_prefix_fraction is for prompts without them")
        if self.sessions is not None and self.thinking_tokens is not None:
            raise ValueError("hidden tokens in sessions are not modelled: state thinking_tokens or sessions")
        if sum(one is not None for one in (self.images, self.video, self.audio)) > 1:
            raise ValueError("images, video and audio in one prompt are not modelled: state one of them")
        if self.media is not None and self.sessions is not None:
            raise ValueError(f"{self.media_field} in sessions are not modelled: state {self.media_field} or sessions")
        return self

    @property
    def media(self) -> ImagesIn | VideoIn | AudioIn | None:
        """What prompts carry beside text."""
        return self.images or self.video or self.audio

    @property
    def media_field(self) -> str:
        """The field that states it."""
        return "audio" if self.audio else "video" if self.video else "images"


class TrafficIn(TrafficShape):
    """Requests and how many of them arrive each second.

    Null where as many as possible are to be served (objective throughput): each such workload then counts alike.
    """

    requests_per_s: PositiveNumber | None = None


class ClosedLoad(Request):
    """``concurrency`` clients, each sends its next request when the last is answered; all start at once."""

    kind: Literal["closed"]
    concurrency: Annotated[int, Field(ge=1, le=100_000)]
    requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class OpenLoad(Request):
    """Poisson arrivals."""

    kind: Literal["open"]
    requests_per_s: PositiveNumber
    requests: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


Load = Annotated[ClosedLoad | OpenLoad, Field(discriminator="kind")]
