"""Where rented machines stand: the grid of their provider's region, before the buyer's."""

from functools import cache

from catalog.read_grids import GridCatalog, read_grids
from service.tco.defaults import Default, Origin
from solver.tco.figures import exactly

CARBON, EFFECTIVENESS = "grid_kg_co2e_per_kwh", "power_usage_effectiveness"


@cache
def grids() -> GridCatalog:
    """Read once: the files do not change while the service runs."""
    return read_grids()


def place_of(offer: str) -> tuple[str, str]:
    """
    >>> place_of("aws:p5.48xlarge:us-east-1:on_demand")
    ('aws', 'us-east-1')
    """
    parts = offer.split(":")
    return parts[0], parts[-2] if len(parts) >= 3 else ""


def standing_there(offer: str | None) -> dict[str, Default]:
    """Carbon of the grid and power usage effectiveness of the halls of an offer's region; empty where nobody says."""
    found = None if offer is None else grids().find(*place_of(offer))
    if found is None:
        return {}
    region, grid = found
    carbon = Origin(grid.provenance.source, str(grid.year), grid.provenance.checked)
    there = {
        CARBON: Default(exactly(grid.kg_co2e_per_kwh), "kg CO2e per kWh", (carbon,), f"{region.place}: {grid.name}")
    }
    if region.power_usage_effectiveness is not None:
        origin = Origin(region.provenance.source, region.provenance.retrieved_on.isoformat(), region.provenance.checked)
        there[EFFECTIVENESS] = Default(exactly(region.power_usage_effectiveness), "ratio", (origin,), region.place)
    return there
