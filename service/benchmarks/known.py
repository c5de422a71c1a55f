"""The names that an upload may use."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The catalog's names: devices with their memory and power limit, models with their Hugging Face ids."""

    device_memory_gib: Mapping[str, float | None]
    hugging_face_ids: Mapping[str, str | None]
    device_power_limit_w: Mapping[str, float | None] = field(default_factory=dict)
    nodes: frozenset[str] = frozenset()
