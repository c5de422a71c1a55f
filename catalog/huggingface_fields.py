"""Reading a ``config.json`` that anybody may have written: every field is typed, bounded and named when it is bad."""

from collections.abc import Mapping
from typing import Any

_ABSENT = object()


class ConfigError(ValueError):
    """The config does not describe a language model this catalog can plan. ``field`` names what is missing or wrong."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class Fields:
    """Typed access to one JSON object. Each reader takes the spellings in use, best first.

    A field that is null counts as absent, as Hugging Face writes it.
    """

    def __init__(self, values: object, where: str = "config") -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(where, f"expected a JSON object, got {type(values).__name__}")
        self._values: Mapping[str, Any] = values
        self.where = where

    def _first(self, names: tuple[str, ...]) -> tuple[str, Any]:
        for name in names:
            if self._values.get(name) is not None:
                return name, self._values[name]
        return names[0], _ABSENT

    def has(self, *names: str) -> bool:
        return self._first(names)[1] is not _ABSENT

    def integer(
        self, *names: str, default: int | None = None, low: int = 1, high: int = 10**9, called: str | None = None
    ) -> int:
        """The first of ``names`` that is present; ``called`` names the quantity where all are absent.

        >>> Fields({"num_local_experts": 8}).integer("num_experts", "num_local_experts")
        8
        """
        name, value = self._first(names)
        if value is _ABSENT:
            if default is not None:
                return default
            name = called or name
            others = [n for n in names if n != name]
            raise ConfigError(name, "missing" + (f" (also looked for {', '.join(others)})" if others else ""))
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(name, f"expected a whole number, got {value!r:.60}")
        if not low <= value <= high:
            raise ConfigError(name, f"{value} is outside {low}..{high}")
        return value

    def number(self, name: str, low: float = 0.0, high: float = 1e12) -> float:
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ConfigError(name, f"expected a number in {low:g}..{high:g}, got {value!r:.60}")
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        name, value = self._first(names)
        if value is _ABSENT:
            return default
        if not isinstance(value, bool):
            raise ConfigError(name, f"expected true or false, got {value!r:.60}")
        return value

    def text(self, *names: str, default: str | None = None) -> str:
        name, value = self._first(names)
        if value is _ABSENT and default is not None:
            return default
        if not isinstance(value, str):
            raise ConfigError(name, "missing" if value is _ABSENT else f"expected text, got {value!r:.60}")
        return value

    def items(self, name: str, length: int | None = None, at_least: int | None = None) -> list[Any]:
        """A list of exactly ``length`` (or at least so many) entries; [] when absent."""
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise ConfigError(name, f"expected a list, got {type(value).__name__}")
        if length is not None and len(value) != length:
            raise ConfigError(name, f"expected {length} entries, one a layer, got {len(value)}")
        if at_least is not None and len(value) < at_least:
            raise ConfigError(name, f"expected at least {at_least} entries, one a layer, got {len(value)}")
        return value

    def integers(self, name: str) -> list[int]:
        values = self.items(name)
        if any(isinstance(v, bool) or not isinstance(v, int) for v in values):
            raise ConfigError(name, "expected a list of whole numbers")
        return values

    def part(self, *names: str) -> "Fields | None":
        """A nested object, or None."""
        name, value = self._first(names)
        return None if value is _ABSENT else Fields(value, name)

    def names(self) -> list[str]:
        return [str(k) for k in self._values]
