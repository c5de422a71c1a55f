"""The measured runs that ship with the catalog: files → rows.

A file of ``benchmarks/`` holds one configuration: what its runs share, and a list of runs. The ``benchmark`` of a run
is a body of ``POST /v1/benchmarks`` as it stands; who seeds or fits from it validates it as an upload would be.
"""

import datetime as dt
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from catalog.rows import Checked, NotNegative, Positive, Row

DEFAULT_ROOT = Path(__file__).resolve().parent / "benchmarks"

Quality = Literal["clean", "stalled"]
"""``stalled``: the engine fell silent for longer than any step takes, compiling a kernel at its first use."""


class BenchmarkFilesError(Exception):
    """The files of measured runs do not hold together. ``problems`` names every one, with file and run."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"{len(problems)} problem(s) in the measured runs:\n" + "\n".join(f"  {p}" for p in problems))


class EngineReport(Row):
    """What the engine said of itself in its log when it started."""

    weights_gib_per_device: Positive
    kv_cache_tokens: int = Field(gt=0)
    """What fits into the KV cache of one replica, over all its devices."""
    kv_cache_gib_per_device: Positive | None = None
    cuda_graphs_gib_per_device: NotNegative | None = None
    max_batched_tokens: int = Field(gt=0)
    async_scheduling: bool | None = None
    attention_backend: str | None = None
    model_runner: str | None = None
    moe_backend: str | None = None
    fp8_linear_kernel: str | None = None
    all_reduce_backends: tuple[str, ...] | None = None


class BenchmarkRow(Row):
    """One measured run."""

    id: str = Field(min_length=3, max_length=40)
    """Of the upload that a new database has of it."""
    quality: Quality
    seed: int | None
    """Of prompts, lengths and arrivals."""
    session: int | None
    neighbour_starting_s: NotNegative | None
    """How long another server of the same host was starting during the run."""
    stalled_s: NotNegative | None
    preemptions: int | None
    power_w_by_device: tuple[Positive, ...] | None
    benchmark: dict[str, Any]
    """A body of ``POST /v1/benchmarks``."""


class BenchmarkFile(Row):
    """One configuration of one campaign, and its runs."""

    id: str = Field(min_length=3)
    source: str = Field(min_length=3)
    retrieved_on: dt.date
    checked: Checked
    campaign: str
    group: str
    """Short name of the configuration; runs of one group are left out of a fit together."""
    server_command: str
    server_environment: str
    engine_reported: EngineReport
    runs: tuple[BenchmarkRow, ...] = Field(min_length=1)


def read_benchmark_files(root: Path = DEFAULT_ROOT) -> tuple[BenchmarkFile, ...]:
    """Read every file of measured runs, in order of name.

    Raises ``BenchmarkFilesError`` naming every malformed file and every run id that appears twice.
    """
    problems: list[str] = []
    files: list[BenchmarkFile] = []
    owners: dict[str, str] = {}
    for path in sorted(root.glob("*.json")):
        try:
            file = BenchmarkFile.model_validate_json(path.read_bytes())
        except ValidationError as error:
            problems += [f"{path.name}: {'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
            continue
        for run in file.runs:
            if run.id in owners:
                problems.append(f"{path.name}: run {run.id!r} is also in {owners[run.id]}")
            owners[run.id] = path.name
        files.append(file)
    if problems:
        raise BenchmarkFilesError(problems)
    return tuple(files)


def read_request_records(path: Path) -> Mapping[str, Mapping[str, list[float | None]]]:
    """The requests of a configuration's runs: run id → column → one value a request.

    Columns: ``sent_s`` from the start of the run, ``prompt_tokens``, ``output_tokens``, ``ttft_ms``, ``e2e_ms``.
    Raises OSError when the file is absent: the first campaign kept no request records.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records: dict[str, dict[str, list[float | None]]] = json.load(file)
    return records
