"""What engines document to load: names that exist, one row for a pair, families that the engine runs on."""

from collections import Counter

from catalog.engine_formats import ANY_FAMILY, read_engine_formats
from solver.precision import KV_CACHE_BYTES, WEIGHT_FORMATS
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()
ROWS = read_engine_formats()


def test_every_format_is_known() -> None:
    for row in ROWS:
        assert set(row.weights) <= set(WEIGHT_FORMATS), row
        assert set(row.kv_cache) <= set(KV_CACHE_BYTES), row
        assert set(row.widened) <= set(row.weights), row


def test_families_run_the_engine_and_stand_in_one_row() -> None:
    pairs = {
        (engine, device.family)
        for device in CATALOG.devices.values()
        for engine in (*device.engines, *device.past_engines)
    }
    stated = [(row.engine, family) for row in ROWS for family in row.families if family != ANY_FAMILY]
    assert not [pair for pair, times in Counter(stated).items() if times > 1]
    assert {family for _, family in stated} <= {device.family for device in CATALOG.devices.values()}
    assert {engine for engine, _ in stated} <= {engine for engine, _ in pairs}


def test_what_is_loaded_unquantised_is_there() -> None:
    for row in ROWS:
        assert {"bf16", "fp16"} & set(row.weights)
        assert "bf16" in row.kv_cache
