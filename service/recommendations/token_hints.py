"""Makers who sell tokens of a model on their own machines: what to turn to where the machines themselves are not sold."""

import datetime as dt
import re

from service.api_prices.stored import api_prices
from service.wire.plan_explained import ByTokenOut

ON_THEIR_OWN = frozenset({"groq", "cerebras", "sambanova"})
"""Makers whose shops serve on the machines they make, by their own account; of others that sell tokens nobody says on what."""


def by_token(vendor: str, llm: str, day: dt.date) -> list[ByTokenOut]:
    """What the device's maker asks for tokens of the model, as far as it serves it on that day; cheapest replies first.

    The maker's own shop is the seller of its name; a model is the one asked for where its name begins with the catalog's.
    """
    if vendor.lower() not in ON_THEIR_OWN:
        return []
    found = [
        row
        for row in api_prices().rows.values()
        if row.provider == vendor.lower()
        and row.usd_per_million_output_tokens is not None
        and row.usd_per_million_output_tokens > 0
        and row.serves_on(day)
        and _names(row.model, llm)
    ]
    return [
        ByTokenOut(
            id=row.id,
            usd_per_million_input_tokens=row.usd_per_million_input_tokens,
            usd_per_million_output_tokens=row.usd_per_million_output_tokens,
            seen_on=row.seen_on,
        )
        for row in sorted(found, key=lambda row: (row.usd_per_million_output_tokens or 0, row.id))
        if row.usd_per_million_output_tokens is not None
    ]


def _names(model: str, llm: str) -> bool:
    """Whether an API's name of a model is that of the catalog's llm.

    >>> _names("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"), _names("llama-3.1-80b", "llama-3.1-8b")
    (True, False)
    """
    name = re.sub(r"^meta-", "", model.rsplit("/", 1)[-1].lower())
    return re.match(re.escape(llm.lower()) + r"(?![a-z0-9.])", name) is not None
