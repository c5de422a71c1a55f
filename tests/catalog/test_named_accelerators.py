"""Every accelerator that the project's background documents name has a row, if only to say what nobody published."""

import pytest

from tests.bench.named_systems import NAMED
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()

UNPUBLISHED = ["sohu", "openai-custom", "rain-ai", "lightmatter-envise", "lightelligence-pace", "groq-lpu-next"]
"""Named and announced, with neither bandwidth nor a matrix rate published."""


@pytest.mark.parametrize("name", NAMED)
def test_a_named_accelerator_has_its_rows(name: str) -> None:
    assert set(NAMED[name]) <= set(CATALOG.devices)


@pytest.mark.parametrize("device_id", UNPUBLISHED)
def test_what_nobody_published_is_listed_not_guessed(device_id: str) -> None:
    device = CATALOG.devices[device_id]
    assert device.status == "announced"
    assert {"memory_bandwidth_gb_per_s", "dense_bf16_tflop_per_s"} <= set(device.missing)
    rates = [getattr(device, field) for field in type(device).model_fields if field.startswith(("dense_", "sparse_"))]
    assert not any(rates)


def test_nothing_that_is_offered_lacks_what_planning_needs() -> None:
    offered = {CATALOG.nodes[offer.node].device for offer in CATALOG.offers.values()}
    for device_id in offered:
        assert not {"memory_gib", "memory_bandwidth_gb_per_s", "dense_bf16_tflop_per_s"} & set(
            CATALOG.devices[device_id].missing
        ), device_id
