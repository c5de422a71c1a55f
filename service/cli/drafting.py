"""How engines may draft, as ``--draft`` states it."""

import argparse
from typing import Any

from service.cli.exit_codes import CommandError, ExitCode
from service.cli.numbers import number

DRAFT_METAVAR = "METHOD:TOKENS:ACCEPTANCE:COST"
DRAFT_HELP = (
    "engines may draft (in plans: where that is cheaper): ngram or head, tokens drafted a step, share of them accepted, and seconds "
    "of drafting one over seconds of a decode step, such as ngram:4:0.6:0; in estimates draft_model:4:0.6:LLM[:FORMAT] too"
)
MODEL = "draft_model"
STATED = "stated on the command line"


def drafting(text: str) -> dict[str, Any]:
    """Raises CommandError for what has another form.

    >>> drafting("ngram:4:0.6:0")["acceptance_fraction"]
    0.6
    >>> drafting("draft_model:4:0.6:qwen3-0.6b:fp8")["draft_weights"]
    'fp8'
    """
    try:
        method, tokens, acceptance, cost, *weights = text.split(":")
        drafts = {"method": method, "draft_tokens": int(tokens), "acceptance_fraction": number(acceptance)}
        if method == MODEL and len(weights) <= 1:
            return drafts | {"draft_llm": cost} | ({"draft_weights": weights[0]} if weights else {})
        if weights:
            raise ValueError(text)
        return drafts | {"draft_step_fraction": number(cost), "draft_cost_source": STATED}
    except (ValueError, argparse.ArgumentTypeError):
        raise CommandError(f"--draft {text[:80]!r}: {DRAFT_HELP}", ExitCode.bad_input) from None
