"""Which stored name a typed one means: as it is written, in any case, or as people, drivers and model hubs write it."""

import re
from collections.abc import Iterable, Mapping

from service.wire.device_names import match_device

TUNED = re.compile(r"(?:-(?:instruct|it|chat|base|hf))+$")
"""Tunings that leave a model's shape, and so its plan, what it is."""


def name_meant(name: str, known: Iterable[str]) -> str:
    """The one known name that is ``name`` but for its case; ``name`` itself where there is none, or more than one.

    >>> name_meant("AWS", ["aws", "azure"]), name_meant("mars", ["aws"])
    ('aws', 'mars')
    """
    names = frozenset(known)
    if name in names:
        return name
    found = [one for one in names if one.lower() == name.lower()]
    return found[0] if len(found) == 1 else name


def device_name_meant(name: str, memory_gib_by_id: Mapping[str, float | None]) -> str:
    """
    >>> device_name_meant("H100", {"h100-sxm": 80.0, "h100-pcie": 80.0})
    'h100-sxm'
    """
    if name in memory_gib_by_id:
        return name
    return match_device(name.lower(), memory_gib_by_id) or name


def llm_name_meant(name: str, hub_names_by_id: Mapping[str, str | None]) -> str:
    """By its id or its name on Hugging Face, with or without the organisation and a tuning of the same shape.

    >>> known = {"llama-3.1-70b": "meta-llama/Llama-3.1-70B", "llama-3.1-8b": None}
    >>> llm_name_meant("meta-llama/Llama-3.1-70B-Instruct", known), llm_name_meant("Llama-3.1-8B", known)
    ('llama-3.1-70b', 'llama-3.1-8b')
    >>> llm_name_meant("DeepSeek-R1-Distill-Llama-70B", known)
    'DeepSeek-R1-Distill-Llama-70B'
    """
    if name in hub_names_by_id:
        return name
    wanted = _plain(name)
    found = {one for one, hub in hub_names_by_id.items() if wanted in (_plain(one), _plain(hub or one))}
    return found.pop() if len(found) == 1 else name


def _plain(name: str) -> str:
    return TUNED.sub("", name.lower().rsplit("/", 1)[-1]).removeprefix("meta-")
