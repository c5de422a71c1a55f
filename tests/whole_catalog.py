"""The catalog's files, read once by every process of the tests."""

from functools import cache

from catalog.read import Catalog, read_catalog


@cache
def whole_catalog() -> Catalog:
    return read_catalog()
