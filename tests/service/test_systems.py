"""docs/systems.md is current, and no system that ships loses a cell unnoticed."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.bench.systems import DOCUMENT, plan_of, systems, written

WITHOUT_PLAN = 9
"""Shipping or legacy devices in the document without a plan, at most."""
PLANNED_FRACTION = 0.9
"""Of those that ship."""
WITHOUT_ESTIMATE = 6
"""Shipping devices without an estimate, at most."""


def test_the_document_is_current(app: FastAPI, client: TestClient) -> None:
    told = written(DOCUMENT.read_text())
    found = systems(app, client)
    assert [row.device for row in found] == list(told)
    for row in found:
        cells = told[row.device]
        row.plan = cells["plan"]
        assert row.cells == tuple(cells.values()), "run python -m tests.bench.systems > docs/systems.md"
    for device in ("h100-sxm", "m4-max"):
        row = next(one for one in found if one.device == device)
        assert plan_of(client, row) == told[device]["plan"]


@pytest.mark.parametrize("column", ["figures", "engine", "estimate", "offer", "plan"])
def test_every_empty_cell_has_its_reason(column: str) -> None:
    for device, cells in written(DOCUMENT.read_text()).items():
        assert cells[column], device
        assert not cells[column].startswith("no") or cells[column].startswith("no: "), device


def test_what_ships_has_a_plan() -> None:
    shipping = [one for one in written(DOCUMENT.read_text()).values() if one["status"] in ("shipping", "legacy")]
    without = [one["device"] for one in shipping if one["plan"].startswith("no")]
    assert len(without) <= WITHOUT_PLAN, without
    sold = [one for one in shipping if one["status"] == "shipping"]
    planned = [one["device"] for one in sold if not one["plan"].startswith("no")]
    assert len(planned) >= PLANNED_FRACTION * len(sold)
    assert sum(one["estimate"].startswith("no") for one in sold) <= WITHOUT_ESTIMATE
