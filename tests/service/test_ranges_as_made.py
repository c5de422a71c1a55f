"""The ranges in force beyond those of constants are what ``clusterwright calibrate --intervals`` makes today: of a model that moved they
are made anew."""

import tomllib

import pytest

from catalog.read import DEFAULT_ROOT, read_catalog
from service.corrections.intervals import as_toml, fitted_intervals
from service.corrections.measurements import catalog_priors

FILE = DEFAULT_ROOT / "constants" / "intervals.toml"
WITHIN = 0.02
"""Of an end: files keep two digits after the point."""


def test_ranges_in_force_are_those_that_the_command_makes() -> None:
    catalog = read_catalog()
    in_file = tomllib.loads(FILE.read_text(encoding="utf-8"))["constant"]
    day = max(row["provenance"]["retrieved_on"] for row in in_file)
    made = tomllib.loads(as_toml(fitted_intervals(catalog), day))["constant"]
    subjects = ("name", "device", "family", "engine")
    assert [[row.get(key) for key in subjects] for row in in_file] == [
        [row.get(key) for key in subjects] for row in made
    ]
    for kept, found in zip(in_file, made, strict=True):
        ends = [(kept[end], found[end]) for end in ("low", "high")]
        assert all(was == pytest.approx(now, rel=WITHIN) for was, now in ends), (kept["name"], ends)
    stated = {(prior.name, prior.low, prior.high) for prior in catalog_priors(catalog)}
    assert all((row["name"], row["low"], row["high"]) in stated for row in in_file)
