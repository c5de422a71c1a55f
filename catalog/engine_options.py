"""Which options the command line of an engine has, by version: ``engines/``, written by ``engine_snapshot``."""

import json
import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).with_name("engines")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """One release. choices: the values of options whose values were found beside them. source: the release read.

    released: a date, where the version does not say how old it is. carries: versions of the engines inside, by engine.
    """

    engine: str
    version: str
    source: str
    options: frozenset[str]
    choices: dict[str, frozenset[str]]
    released: str = ""
    carries: dict[str, str] = field(default_factory=dict)


@lru_cache(maxsize=1)
def read_engine_options() -> dict[str, dict[str, EngineOptions]]:
    """Every release that is written down, by engine and version, oldest first.

    >>> "--max-num-seqs" in read_engine_options()["vllm"]["0.24.0"].options
    True
    """
    found: dict[str, dict[str, EngineOptions]] = {}
    for path in FOLDER.glob("*.json"):
        row = json.loads(path.read_text(encoding="utf-8"))
        found.setdefault(row["engine"], {})[row["version"]] = EngineOptions(
            row["engine"],
            row["version"],
            row["source"],
            frozenset(row["options"]),
            {option: frozenset(values) for option, values in row["choices"].items()},
            row.get("released", ""),
            row.get("carries", {}),
        )
    return {
        engine: dict(sorted(found[engine].items(), key=lambda item: (item[1].released, _age(item[0]), item[0])))
        for engine in sorted(found)
    }


@dataclass(frozen=True, slots=True)
class EngineRelease:
    """default: the version deployed unless another is asked for. image: with ``{version}`` to be filled in."""

    engine: str
    default: str
    image: str
    vendors: tuple[str, ...]


@lru_cache(maxsize=1)
def read_engine_releases() -> dict[str, EngineRelease]:
    """By engine."""
    rows = tomllib.loads((FOLDER / "releases.toml").read_text(encoding="utf-8"))["release"]
    return {
        row["engine"]: EngineRelease(row["engine"], row["default"], row["image"], tuple(row["vendors"])) for row in rows
    }


def _age(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.lstrip("b").split(".") if part.isdigit())
