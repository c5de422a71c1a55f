"""The catalog's prices of API tokens, as this process read them."""

from functools import cache

from catalog.read_api_prices import ApiPrices, read_api_prices


@cache
def api_prices() -> ApiPrices:
    """Read once: the files do not change while the service runs."""
    return read_api_prices()
