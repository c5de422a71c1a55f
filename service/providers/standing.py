"""What an offer inherits from its provider: how it is sold, and whether its region says where the machine stands."""

from collections.abc import Mapping
from typing import NamedTuple

from service.providers.tables import ProviderTable


class SellerStanding(NamedTuple):
    """provider_class: None where the catalog knows no such provider."""

    provider_class: str | None
    named_place: bool


def standing(provider: str, region: str, known: Mapping[str, ProviderTable]) -> SellerStanding:
    """Of an offer of ``provider`` in ``region``. known: every provider's row, by id.

    A region names a place unless its provider's row says it names none; a word that names none for any provider
    ("all", "global") names none for a provider without a row.
    """
    row = known.get(provider)
    if row is not None:
        sold = row.row["region_classes"].get(region, row.provider_class)
        if region in row.row["places"]:
            return SellerStanding(sold, named_place=True)
    else:
        sold = None
    nowhere = {word.lower() for one in known.values() for word in one.row["no_place"]}
    return SellerStanding(sold, named_place=region.lower() not in nowhere)
