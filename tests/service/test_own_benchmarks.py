"""The project's own measured runs are plausible by its own checks, and none is faster than the roofline."""

import json
from functools import partial

import pytest

from catalog.benchmark_rows import DEFAULT_ROOT
from service.benchmarks.intake import canonical_run, check
from service.benchmarks.names import CatalogNames
from service.benchmarks.plausibility import quarantine_reasons
from service.benchmarks.predict import Predictions
from service.database import Database
from service.wire.benchmarks import BenchmarkUpload
from tests.conftest import FixedClock

FILES = sorted(DEFAULT_ROOT.glob("*_vllm-*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_run_is_accepted(seeded_template: object, file: object) -> None:
    database = Database(f"sqlite:///{seeded_template}")
    clock = FixedClock()
    clock.advance(days=9)  # some runs were measured after the day of the tests' clock
    predictions = Predictions()
    known = CatalogNames().fresh(database)
    refused = {}
    with database.reading() as session:
        for run in json.loads(file.read_text())["runs"]:  # type: ignore[attr-defined]
            upload = BenchmarkUpload.model_validate_json(json.dumps(run["benchmark"]))
            (checked,) = check(canonical_run(upload), clock(), known, partial(predictions, session))
            if reasons := quarantine_reasons(checked.checks):
                refused[run["id"]] = reasons
    database.close()
    assert refused == {}
    assert len(FILES) >= 16
