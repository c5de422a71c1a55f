"""What a stored request asks for, in a line: how a list tells one from another, and what a plan is a plan of."""

from collections.abc import Mapping
from typing import Any

from service.figures import unrounded


def asked_for(workload: Mapping[str, Any]) -> str:
    """A stored workload's traffic and targets, as a list tells one request from another.

    >>> asked_for({"traffic": {"requests_per_s": 20.0}, "targets": {"ttft_ms": {"p95": 800.0}, "tpot_ms": {}}})
    '20 requests/s, TTFT p95 ≤ 800 ms'
    >>> asked_for({"traffic": {"requests_per_s": 25_000.0}, "targets": {"e2e_ms": {"p95": 120_000.0}}})
    '25000 requests/s, E2E p95 ≤ 120000 ms'
    """
    traffic, classes = workload.get("traffic"), workload.get("traffic_classes")
    rate = f"{len(classes or ())} traffic classes"
    if traffic:
        amount = traffic["requests_per_s"]
        rate = "as many requests as fit" if amount is None else f"{unrounded(amount)} requests/s"
    bounds = [
        f"{metric.removesuffix('_ms').upper()} {percentile} ≤ {unrounded(limit)} ms"
        for metric, by_percentile in workload["targets"].items()
        if metric.endswith("_ms")
        for percentile, limit in by_percentile.items()
    ]
    return ", ".join([rate, *bounds])


def asked_in_full(workload: Mapping[str, Any]) -> str:
    """The same with the model and the lengths of requests, so that a plan says what it serves.

    >>> output = {"distribution": "lognormal", "mean": 300, "p95": 900}
    >>> traffic = {"requests_per_s": 2.0, "prompt_tokens": {"distribution": "fixed", "tokens": 512}, "output_tokens": output}
    >>> asked_in_full({"llm": "qwen3-8b", "traffic": traffic, "targets": {"ttft_ms": {"p95": 800.0}}})
    'qwen3-8b, prompts of 512 tokens, replies of 300 (p95 900), 2 requests/s, TTFT p95 ≤ 800 ms'
    >>> thinking = traffic | {"thinking_tokens": {"distribution": "fixed", "tokens": 2000}}
    >>> asked_in_full({"llm": "qwen3-8b", "traffic": thinking, "adapters": {"count": 20, "slots": 8}, "targets": {}})
    'qwen3-8b with 20 adapters, prompts of 512 tokens, 2,000 hidden tokens before replies of 300 (p95 900), 2 requests/s'
    """
    traffic = workload.get("traffic")
    lengths = [_asked_of(traffic), _answered_with(traffic)] if traffic else []
    return ", ".join([workload["llm"] + _with_adapters(workload), *lengths, asked_for(workload)])


def _answered_with(traffic: Mapping[str, Any]) -> str:
    """Replies, and what is generated before them unseen, which takes as long and costs as much a token."""
    hidden, replies = traffic.get("thinking_tokens"), f"replies of {_lengths(traffic['output_tokens'])}"
    return f"{_lengths(hidden, ' hidden tokens')} before {replies}" if hidden else replies


def _with_adapters(workload: Mapping[str, Any]) -> str:
    adapters = workload.get("adapters")
    return f" with {adapters['count']:,} adapter{'' if adapters['count'] == 1 else 's'}" if adapters else ""


def _asked_of(traffic: Mapping[str, Any]) -> str:
    """What is sent: prompts, or turns of sessions and how they are routed.

    >>> two = {"distribution": "fixed", "tokens": 2}
    >>> _asked_of({"sessions": {"turns": two, "user_tokens": two, "routing": "least_loaded", "replicas": None}})
    'sessions of 2 turns, each adding 2 tokens, routed least_loaded'
    """
    sessions = traffic.get("sessions")
    if sessions is None:
        return f"prompts of {_lengths(traffic['prompt_tokens'], ' tokens')}"
    over = f" over {sessions['replicas']} replicas" if sessions["replicas"] else ""
    turns, added = _lengths(sessions["turns"], " turns"), _lengths(sessions["user_tokens"], " tokens")
    return f"sessions of {turns}, each adding {added}, routed {sessions['routing']}{over}"


def _lengths(tokens: Mapping[str, Any], unit: str = "") -> str:
    """
    >>> _lengths({"distribution": "uniform", "low": 100, "high": 1200}), _lengths({"distribution": "histogram"})
    ('100 to 1,200', 'lengths of a histogram')
    """
    match tokens["distribution"]:
        case "fixed":
            return f"{tokens['tokens']:,g}{unit}"
        case "uniform":
            return f"{tokens['low']:,g} to {tokens['high']:,g}{unit}"
        case "lognormal":
            return f"{tokens['mean']:,g}{unit} (p95 {tokens['p95']:,g})"
        case _:
            return "lengths of a histogram"
