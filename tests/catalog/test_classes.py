"""Classes of providers and devices, and places that regions name, in the shipped catalog."""

from collections import Counter

from catalog.read_grids import read_grids
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()
CLASS_OF_CATEGORY = {
    "datacenter_gpu": {"datacentre"}, "workstation_gpu": {"workstation"}, "consumer_gpu": {"consumer"},
    "tpu": {"datacentre"}, "trainium": {"datacentre"}, "gaudi": {"datacentre"}, "lpu": {"datacentre"},
    "wafer_scale": {"datacentre"}, "dataflow": {"datacentre"}, "risc_v": {"datacentre", "workstation"},
    "cpu": {"datacentre", "workstation"}, "unified_memory": {"workstation", "consumer"}, "edge": {"edge"},
    "npu": {"consumer", "edge"}, "other": {"datacentre", "edge"},
}  # fmt: skip


def test_a_devices_class_fits_its_category() -> None:
    for device in CATALOG.devices.values():
        assert CATALOG.device_lines[device.id].device_class in CLASS_OF_CATEGORY[device.category], device.id


def test_every_class_is_there_and_sourced() -> None:
    lines = CATALOG.device_lines.values()
    assert {line.device_class for line in lines} == {"datacentre", "workstation", "consumer", "edge"}
    assert {row.provider_class for row in CATALOG.providers.values()} == {"hyperscaler", "specialist", "marketplace"}
    for row in (*lines, *CATALOG.providers.values()):
        assert len(row.provenance.source) >= 8, row.id


def test_the_hyperscalers() -> None:
    found = {row.id for row in CATALOG.providers.values() if row.provider_class == "hyperscaler"}
    assert found == {"aws", "azure", "gcp", "oci"}


def test_words_that_name_no_place_never_name_one() -> None:
    """A word that is no place for one provider is none for another."""
    nowhere = {word.lower() for row in CATALOG.providers.values() for word in row.no_place}
    assert {"us", "all", "global", "marketplace", "eu"} <= nowhere
    for row in CATALOG.providers.values():
        assert not nowhere & {region.lower() for region in row.places}, row.id


def test_places_agree_with_the_grids() -> None:
    compared = 0
    for (provider, region), row in read_grids().regions.items():
        if provider in CATALOG.providers and region in CATALOG.providers[provider].places:
            assert CATALOG.providers[provider].places[region] == row.place
            compared += 1
    assert compared > 90


def test_hyperscalers_name_their_places_and_marketplaces_do_not() -> None:
    named = Counter(
        (CATALOG.providers[o.provider].class_in(o.region), o.region in CATALOG.providers[o.provider].places)
        for o in CATALOG.offers.values()
    )
    assert named["hyperscaler", True] > 3000
    assert named["marketplace", True] == 0


def test_community_clouds_are_marketplaces() -> None:
    runpod = CATALOG.providers["runpod"]
    assert (runpod.class_in("global"), runpod.class_in("secure")) == ("marketplace", "specialist")
