"""Which host a measured run was made on."""

from catalog.read import Catalog
from service.corrections.measurements import catalog_priors, host_of, measurements


def test_a_visit_is_a_host_and_a_campaign_without_visits_is_one(catalog: Catalog) -> None:
    for file in catalog.benchmarks:
        for run in file.runs:
            told = f"campaign {file.campaign}" if run.session is None else f"visit {run.session}"
            assert host_of(file, run) == told


def test_no_host_has_two_kinds_of_devices(catalog: Catalog) -> None:
    found: dict[str, set[str]] = {}
    for run in measurements(catalog, catalog.benchmarks, catalog_priors(catalog)):
        found.setdefault(run.host, set()).add(run.configuration.device.id)
    assert len(found) > 10
    assert all(len(devices) == 1 for devices in found.values())
