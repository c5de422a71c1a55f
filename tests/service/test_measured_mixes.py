"""Requests of several kinds on one engine, as measured on hardware: predictions from fits on one kind at a time hold."""

import gzip
import json
import statistics

from service.corrections.snapshot import correction_set
from solver.corrections.applied import configuration_correction
from solver.prediction.streams import estimate_mixed
from solver.replay.streams import RequestStream
from tests.bench.measured_mixes import MIXES, configuration_of, measured_ms, predicted_ms, traffic_of
from tests.whole_catalog import whole_catalog


def test_the_measured_mixes_are_predicted() -> None:
    catalog = whole_catalog()
    errors: dict[str, list[float]] = {}
    for path in sorted(MIXES.glob("*.json.gz")):
        configuration = configuration_of(catalog, path)
        correction = configuration_correction(correction_set(catalog.corrections[-1]), configuration)
        for name, run in json.loads(gzip.decompress(path.read_bytes())).items():
            assert all(one["failed"] == 0 for one in run["classes"]), name
            streams = [RequestStream(traffic_of(one), one["requests_per_s"]) for one in run["classes"]]
            found = estimate_mixed(configuration, streams, correction)
            for one, predicted in zip(run["classes"], found.streams, strict=True):
                expected = predicted_ms(predicted)
                for metric, value in measured_ms(one).items():
                    errors.setdefault(metric, []).append(abs(expected[metric][0] / value - 1.0))
    means = {metric: statistics.fmean(values) for metric, values in errors.items()}
    assert len(errors["TPOT mean"]) >= 11
    assert means["TPOT mean"] < 0.08, means
    assert means["TTFT mean"] < 0.15, means
    assert means["TTFT p95"] < 0.12, means
