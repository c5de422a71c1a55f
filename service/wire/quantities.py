"""Names, numbers, money and intervals as they appear in JSON."""

import datetime as dt
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from service.wire.field_descriptions import describe_fields
from service.wire.json_types import with_json_types

MOST_FIELDS = 1_000


class Described(BaseModel):
    """Fields say what they are and in which unit: what their name means everywhere, and the docstring under them."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        schema = handler(core_schema)
        describe_fields(cls, handler.resolve_ref_schema(schema))
        return schema


class Request(Described):
    """Base of request shapes: a misspelt field is refused, not ignored, and so is a value of another JSON type than its field's."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return with_json_types(handler(source), cls)

    @model_validator(mode="before")
    @classmethod
    def _not_thousands_of_fields(cls, value: Any) -> Any:
        """Each unknown one would be an error of its own."""
        if isinstance(value, dict) and len(value) > MOST_FIELDS:
            raise ValueError(f"an object with {len(value)} fields; none here has so many")
        return value


class Answer(Described):
    """Base of response shapes."""


SLUG_PATTERN = r"^[a-z0-9][a-z0-9.\-_]*$"
PART_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9.\-_]*$"
Slug = Annotated[str, Field(pattern=SLUG_PATTERN, max_length=120)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
"""A reference to something stored; whether it exists is checked against the database."""

LARGEST = 1e9
SMALLEST = 1e-9
"""Reciprocals and ratios of what is smaller leave the range of floating point."""


def _none_or_some(fraction: float) -> float:
    """
    >>> _none_or_some(0.0), _none_or_some(1e-9)
    (0.0, 1e-09)
    """
    if 0.0 < fraction < SMALLEST:
        raise ValueError(f"must be 0 or at least {SMALLEST:g}")
    return fraction


Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), AfterValidator(_none_or_some)]
HostCacheGib = Annotated[float, Field(ge=0, le=100_000, allow_inf_nan=False)]
DiskRate = Annotated[float, Field(ge=SMALLEST, le=1_000, allow_inf_nan=False)]
DiskCacheGib = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
PositiveFraction = Annotated[float, Field(ge=SMALLEST, le=1, allow_inf_nan=False)]
PositiveNumber = Annotated[float, Field(ge=SMALLEST, le=LARGEST, allow_inf_nan=False)]
"""From a thousand-millionth to a thousand million: enough for any rate, latency or power a plan may ask for."""
TokenCount = Annotated[int, Field(ge=1, le=10_000_000)]


def at_most(count: int, things: str) -> BeforeValidator:
    """Looks at a list's length before its entries: ten thousand wrong entries are one error, not ten thousand."""

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > count:
            raise ValueError(f"at most {count} {things} in one request; these are {len(value)}")
        return value

    return BeforeValidator(check)


def decimal_text(value: Any) -> Any:
    if isinstance(value, int | float):
        raise ValueError('money is a JSON string holding a decimal, such as "12.480000"')
    if isinstance(value, str):
        try:
            return Decimal(value)
        except InvalidOperation:
            raise ValueError(f"{value[:40]!r} is not a decimal number") from None
    return value


UsdIn = Annotated[
    Decimal,
    BeforeValidator(decimal_text, json_schema_input_type=str),
    Field(gt=0, le=10_000_000, max_digits=14, decimal_places=6, allow_inf_nan=False),
]
"""A positive amount of US dollars in a request, at most six decimal places."""


UsdOrNothingIn = Annotated[
    Decimal,
    BeforeValidator(decimal_text, json_schema_input_type=str),
    Field(ge=0, le=10_000_000, max_digits=14, decimal_places=6, allow_inf_nan=False),
]
"""The same, or nothing: machines that are paid for."""


def usd_text(amount: Decimal) -> str:
    """
    >>> usd_text(Decimal("41.76"))
    '41.760000'
    """
    return f"{amount:.6f}"


Usd = Annotated[Decimal, PlainSerializer(usd_text, return_type=str), Field(allow_inf_nan=False)]
"""An amount of US dollars in an answer: a string with six decimal places."""


FIRST_YEAR, LAST_YEAR = 1970, 9000


def _in_utc(value: dt.datetime) -> dt.datetime:
    if value.tzinfo is None:
        raise ValueError("a time stamp needs its offset: 2026-11-21T00:00:00Z")
    if not FIRST_YEAR <= value.year <= LAST_YEAR:
        raise ValueError(f"a time stamp of the years {FIRST_YEAR} to {LAST_YEAR} is needed")
    return value.astimezone(dt.UTC)


Instant = Annotated[dt.datetime, AfterValidator(_in_utc)]

Basis = Literal["measured", "corrected", "borrowed", "analytical"]
WeightFormat = Literal[
    "fp32", "tf32", "bf16", "fp16", "fp8", "int8", "int4", "int4_g32", "nf4", "mxfp4", "nvfp4", "q8_0", "q4_k_m",
]  # fmt: skip
KvCacheFormat = Literal["fp32", "bf16", "fp16", "fp8", "int8"]
Commitment = Literal[
    "on_demand", "spot", "reserved_1y", "reserved_1y_no_upfront", "reserved_3y", "reserved_3y_no_upfront",
    "capacity_block", "purchase",
]  # fmt: skip

PERCENTILES = ("mean", "p50", "p90", "p95", "p99")


def _computed_percentile(name: str) -> str:
    if name not in PERCENTILES:
        raise ValueError(f"{name[:20]!r} is not computed; the statistics computed are {', '.join(PERCENTILES)}")
    return name


PercentileName = Annotated[str, AfterValidator(_computed_percentile)]


class Interval(Answer):
    """A predicted quantity with the interval that holds nine of ten measured values."""

    expected: float
    low: float
    high: float

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low <= self.expected <= self.high:
            raise ValueError(f"low {self.low} <= expected {self.expected} <= high {self.high} does not hold")
        return self


class Percentiles(Answer):
    """Statistics over requests."""

    mean: Interval
    p50: Interval
    p90: Interval
    p95: Interval
    p99: Interval


class ProvenanceOut(Answer):
    """Where figures come from. ``exceptions`` gives fields whose source or check differs from the row's."""

    source: str
    retrieved_on: dt.date
    checked: str
    exceptions: dict[str, str]
    notes: str
