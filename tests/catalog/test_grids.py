"""The grids that regions stand on: files hold together, and what they say is plausible."""

from pathlib import Path

import pytest

from catalog.read_grids import GridCatalogError, read_grids
from tests.whole_catalog import whole_catalog

GRIDS = read_grids()


def test_every_region_is_one_of_the_offers_and_every_grid_is_used() -> None:
    offered = {(offer.provider, offer.region) for offer in whole_catalog().offers.values()}
    assert set(GRIDS.regions) <= offered
    assert {row.grid for row in GRIDS.regions.values()} == set(GRIDS.grids)


def test_intensities_are_between_hydro_and_lignite_and_of_one_year() -> None:
    assert all(0.005 < grid.kg_co2e_per_kwh < 1.2 for grid in GRIDS.grids.values())
    assert len({grid.year for grid in GRIDS.grids.values()}) == 1, "grids of different years do not compare"


@pytest.mark.parametrize(
    ("cleaner", "dirtier"),
    [("se", "de"), ("fr", "gb"), ("ca-qc", "us-mida-pjm"), ("fi", "pl"), ("us-nw-bpat", "us-nw-pace")],
)
def test_known_order(cleaner: str, dirtier: str) -> None:
    assert GRIDS.grids[cleaner].kg_co2e_per_kwh < GRIDS.grids[dirtier].kg_co2e_per_kwh


def test_a_sellers_country_is_not_a_place() -> None:
    assert all(GRIDS.find(provider, "us") is None for provider in ("lambda", "coreweave", "crusoe", "together"))


def test_every_fault_is_named(tmp_path: Path) -> None:
    (tmp_path / "grids.toml").write_text("""
[provenance]
source = "somewhere"
retrieved_on = 2026-01-01
checked = "read"
[[grid]]
id = "aa"
name = "A"
kg_co2e_per_kwh = -1
year = 2023
[[grid]]
id = "bb"
name = "B"
kg_co2e_per_kwh = 0.1
year = 2023
[[grid]]
id = "bb"
name = "B again"
kg_co2e_per_kwh = 0.2
year = 2023
""")
    (tmp_path / "regions.toml").write_text("""
[[region]]
provider = "p"
region = "r"
place = "somewhere"
grid = "cc"
[region.provenance]
source = "somewhere"
retrieved_on = 2026-01-01
checked = "read"
""")
    with pytest.raises(GridCatalogError) as found:
        read_grids(tmp_path)
    text = "\n".join(found.value.errors)
    assert len(found.value.errors) == 3, text
    assert "aa: kg_co2e_per_kwh" in text
    assert "bb: stated twice" in text
    assert "no grid 'cc'" in text
