"""What a refused body was probably meant to be: the near name of an unknown field, the route that a file belongs to."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

BELONGS = (
    ({"architectures", "model_type"},
     'this looks like a Hugging Face config.json: post it to /v1/llms as {"id": "a-name-of-yours", "config": …}'),
    ({"request_throughput", "output_throughput", "mean_ttft_ms", "request_latencies", "benchmarks"},
     'this looks like a benchmark tool\'s own output: post it to /v1/benchmarks/import as {"context": {"device": …}, "payload": …}'),
    ({"context", "results"}, "this looks like a measured run: post it to /v1/benchmarks"),
    ({"estimates"}, "this looks like deployments to predict: post it to /v1/estimates"),
    ({"payload"}, "this looks like a tool's file with its context: post it to /v1/benchmarks/import"),
    ({"horizon"}, "this looks like demand over time: post it to /v1/fleets"),
    ({"workloads"}, "this looks like workloads to plan: post it to /v1/recommendations"),
)  # fmt: skip
"""Fields that say what a document is, and where it belongs; the first that fits is said."""


def belongs_elsewhere(body: Any, known_fields: frozenset[str]) -> str | None:
    """One sentence, where the body is plainly another route's: none of its telling fields is a field here.

    >>> belongs_elsewhere({"model_type": "llama"}, frozenset({"workloads"}))[:40]
    'this looks like a Hugging Face config.js'
    >>> belongs_elsewhere({"workloads": []}, frozenset({"workloads"})) is None
    True
    """
    if not isinstance(body, dict):
        return None
    for telling, sentence in BELONGS:
        if (telling & body.keys()) - known_fields and not known_fields & body.keys():
            return sentence
    return None


def near_field(model: type[BaseModel] | None, loc: tuple[Any, ...]) -> str:
    """
    >>> from service.wire.recommendations import RecommendationIn
    >>> near_field(RecommendationIn, ("workloads", 0, "trafic"))
    "; did you mean 'traffic'?"
    >>> near_field(RecommendationIn, ("colour",))
    '; known: workloads, limits, objective, current, price_as_of, time_limit_s, gap_fraction, alternatives, on_shortage'
    """
    if model is None:
        return ""
    here = {model}
    for step in loc[:-1]:
        found = {
            inner for one in here for name, field in one.model_fields.items() if name == step for inner in models_in(field.annotation)
        }  # fmt: skip
        here = found or here
    names = list(dict.fromkeys(name for one in here for name in one.model_fields))
    close = difflib.get_close_matches(str(loc[-1])[:80], names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if len(names) <= MOST_NAMES else ""


MOST_NAMES = 12


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Every model that stands in a type, however deep in unions, tuples and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def body_model(scope: Mapping[str, Any]) -> type[BaseModel] | None:
    """The model of the body that the request's route takes."""
    field = getattr(scope.get("route"), "body_field", None)
    annotation = getattr(getattr(field, "field_info", None), "annotation", None)
    return next(models_in(annotation), None)
