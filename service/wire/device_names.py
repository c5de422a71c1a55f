"""Which catalog device a driver's or a tool's name for it means."""

import re
from collections.abc import Mapping

_NOISE = {
    "nvidia", "amd", "intel", "google", "apple", "tesla", "quadro", "geforce", "instinct", "radeon", "generation",
    "graphics", "gpu", "accelerator", "edition", "blackwell", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr7",
    "tensor", "core", "cloud",
}  # fmt: skip
_FORM_FACTORS = {"sxm", "pcie", "nvl", "oam", "server", "ws"}
_DEFAULT_FORM_FACTORS = ("sxm", "oam")
"""Drivers name the module form without saying so: "NVIDIA H200" is SXM, the others are "H200 NVL", "H100 PCIe"."""
MEMORY_TOLERANCE = 0.15
"""Names carry marketed gigabytes, drivers report what is left in gibibytes."""


def match_device(
    name: str, memory_gib_by_id: Mapping[str, float | None], memory_gib: float | None = None
) -> str | None:
    """The one catalog id that ``name`` means, None when there is none or more than one.

    >>> known = {"h200-sxm": 140.0, "h200-nvl": 140.0, "a100-sxm-40": 40.0, "a100-sxm-80": 80.0, "rtx-6000-ada": 48.0}
    >>> match_device("NVIDIA H200", known), match_device("NVIDIA H200 NVL", known)
    ('h200-sxm', 'h200-nvl')
    >>> match_device("NVIDIA A100-SXM4-80GB", known), match_device("NVIDIA RTX 6000 Ada Generation", known)
    ('a100-sxm-80', 'rtx-6000-ada')
    >>> match_device("NVIDIA A100", known) is None
    True
    """
    if name in memory_gib_by_id:
        return name
    core, forms, named_gb = _parts(name)
    candidates = []
    for device_id, memory in memory_gib_by_id.items():
        words, known_forms, _ = _parts(device_id)
        if not core or words - _capacity(words, memory) != core - _capacity(core, memory):
            continue
        if forms and not forms & known_forms:
            continue
        stated = memory_gib or (named_gb if named_gb and named_gb < 400 else None)
        if stated and memory and abs(stated - memory) > MEMORY_TOLERANCE * memory:
            continue
        candidates.append((device_id, known_forms))
    if len(candidates) > 1 and not forms:
        modules = [c for c in candidates if c[1] & set(_DEFAULT_FORM_FACTORS)]
        candidates = modules or candidates
    return candidates[0][0] if len(candidates) == 1 else None


def _parts(name: str) -> tuple[set[str], set[str], float | None]:
    """Words that name the chip, words that name its form, and the gigabytes the name states."""
    core: set[str] = set()
    forms: set[str] = set()
    gigabytes = None
    for word in re.findall(r"[a-z0-9]+", name.lower().replace("workstation", "ws")):
        capacity = re.fullmatch(r"(\d+)(?:gb|gib)", word)
        form = re.fullmatch(r"(sxm|nvl)\d*", word)
        if capacity:
            gigabytes = float(capacity[1])
        elif form:
            forms.add(form[1])
        elif word in _FORM_FACTORS:
            forms.add(word)
        elif word not in _NOISE:
            core.add(word)
    return core, forms, gigabytes


def _capacity(words: set[str], memory_gib: float | None) -> set[str]:
    """Words that are the device's memory size: ids tell variants apart by it ("a100-sxm-80")."""
    if memory_gib is None:
        return set()
    return {w for w in words if w.isdigit() and abs(float(w) - memory_gib) <= MEMORY_TOLERANCE * memory_gib}
