"""What the electricity of offers emits: the grid of their region, stated by the request or found in the catalog."""

from collections.abc import Iterable, Mapping
from functools import cache

from catalog.read_grids import GridCatalog, read_grids
from service.problems import FieldError, unknown_name
from service.tco.prepare import cost_catalog
from service.wire.pareto import GridOut
from solver.hardware import Offer

EFFECTIVENESS, TYPICAL_HALL = "power_usage_effectiveness", "modern"


@cache
def grid_catalog() -> GridCatalog:
    """Read once: the files do not change while the service runs."""
    return read_grids()


def grids_of(offers: Iterable[Offer], stated: Mapping[str, float]) -> dict[tuple[str, str], GridOut]:
    """By (provider, region), where the grid is known. stated: kg CO2e per kWh by region, before the catalog's."""
    hall = cost_catalog().find(EFFECTIVENESS, TYPICAL_HALL)
    found: dict[tuple[str, str], GridOut] = {}
    for place in sorted({(offer.provider, offer.region) for offer in offers}):
        known = grid_catalog().find(*place)
        own = None if known is None else known[0].power_usage_effectiveness
        if (known is None and place[1] not in stated) or (own is None and hall is None):
            continue
        sources = []
        if place[1] in stated:
            grid, kg = None, stated[place[1]]
            sources.append("grid_kg_co2e_per_kwh: the request")
        else:
            assert known is not None
            grid, kg = known[1].name, known[1].kg_co2e_per_kwh
            sources.append(f"grid_kg_co2e_per_kwh: {known[1].provenance.source} (year {known[1].year})")
            sources.append(f"region: {known[0].provenance.source} ({known[0].provenance.checked})")
        if own is not None and known is not None:
            effectiveness = own
            sources.append(f"{EFFECTIVENESS}: {known[0].provenance.source}")
        else:
            assert hall is not None
            effectiveness = hall.typical
            sources.append(f"{EFFECTIVENESS}: a typical modern hall; {hall.source} ({hall.as_of}, {hall.checked})")
        found[place] = GridOut(
            provider=place[0],
            region=place[1],
            place=None if known is None else known[0].place,
            grid=grid,
            grid_kg_co2e_per_kwh=kg,
            power_usage_effectiveness=effectiveness,
            sources=sources,
        )
    return found


def kg_by_offer(offers: Iterable[Offer], grids: Mapping[tuple[str, str], GridOut]) -> dict[str, float]:
    """kg CO2e per kWh that a node of each offer draws: the grid's, times what the hall draws for each kWh of its nodes."""
    placed = ((offer.id, grids.get((offer.provider, offer.region))) for offer in offers)
    return {
        offer: grid.grid_kg_co2e_per_kwh * grid.power_usage_effectiveness for offer, grid in placed if grid is not None
    }


def unknown_regions(stated: Mapping[str, float], regions: Iterable[str]) -> list[FieldError]:
    known = sorted(set(regions))
    return [
        FieldError(unknown_name("region", region, known), pointer=f"/grid_kg_co2e_per_kwh_by_region/{region}")
        for region in stated
        if region not in known
    ]
