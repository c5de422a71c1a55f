"""GET /v1/devices, /v1/nodes, /v1/llms."""

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from catalog.read import Catalog


def walk(client: TestClient, path: str, limit: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    parameters: dict[str, Any] = {"limit": limit}
    while True:
        page = client.get(path, params=parameters).json()
        assert len(page["items"]) <= limit
        items.extend(page["items"])
        if page["next"] is None:
            return items
        parameters["next"] = page["next"]


class TestGetDevices:
    def test_pages_hold_every_device_once_in_order(self, client: TestClient, catalog: Catalog) -> None:
        ids = [d["id"] for d in walk(client, "/v1/devices", 17)]
        assert ids == sorted(catalog.devices)

    def test_shows_the_row_with_its_source(self, client: TestClient, catalog: Catalog) -> None:
        shown = client.get("/v1/devices/h200-sxm").json()
        row = catalog.devices["h200-sxm"].model_dump(mode="json")
        own = [p.model_dump(mode="json", exclude={"device"}) for p in catalog.partitions if p.device == "h200-sxm"]
        assert len(own) == 4
        line = catalog.device_lines["h200-sxm"]
        assert line.provenance.source in shown.pop("device_class_source")
        assert shown == row | {"partitions": own, "device_class": "datacentre"}

    @pytest.mark.parametrize("vendor", ["amd", "AMD"])
    def test_filters_do_not_look_at_case(self, client: TestClient, vendor: str) -> None:
        found = client.get("/v1/devices", params={"vendor": vendor, "device_class": "consumer"}).json()["items"]
        assert [device["id"] for device in found] == ["rx-7900-xtx"]

    def test_filters(self, client: TestClient, catalog: Catalog) -> None:
        found = client.get("/v1/devices", params={"vendor": "AMD", "status": "shipping", "limit": 500}).json()["items"]
        assert {d["id"] for d in found} == {
            d.id for d in catalog.devices.values() if d.vendor == "AMD" and d.status == "shipping"
        }
        assert found

    def test_unknown_names_close_matches(self, client: TestClient) -> None:
        answer = client.get("/v1/devices/h200-smx")
        assert answer.status_code == 404
        assert "h200-sxm" in answer.json()["close_matches"]

    @pytest.mark.parametrize(
        "parameters", [{"limit": 0}, {"limit": 501}, {"limit": "many"}, {"next": "!"}, {"next": "AA"}]
    )
    def test_bad_paging_names_the_parameter(self, client: TestClient, parameters: dict[str, Any]) -> None:
        answer = client.get("/v1/devices", params=parameters)
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["parameter"] == next(iter(parameters))


class TestGetProviders:
    def test_pages_hold_every_provider(self, client: TestClient, catalog: Catalog) -> None:
        assert [p["id"] for p in walk(client, "/v1/providers", 7)] == sorted(catalog.providers)

    def test_shows_the_row_with_its_source(self, client: TestClient, catalog: Catalog) -> None:
        assert client.get("/v1/providers/runpod").json() == catalog.providers["runpod"].model_dump(mode="json")

    def test_filters_by_class(self, client: TestClient) -> None:
        found = client.get("/v1/providers", params={"provider_class": "hyperscaler"}).json()["items"]
        assert [p["id"] for p in found] == ["aws", "azure", "gcp", "oci"]

    def test_unknown_names_close_matches(self, client: TestClient) -> None:
        answer = client.get("/v1/providers/azur")
        assert answer.status_code == 404
        assert answer.json()["close_matches"] == ["azure"]


class TestGetNodes:
    def test_pages_hold_every_node(self, client: TestClient, catalog: Catalog) -> None:
        assert [n["id"] for n in walk(client, "/v1/nodes", 100)] == sorted(catalog.nodes)

    def test_filters_by_device(self, client: TestClient, catalog: Catalog) -> None:
        found = client.get("/v1/nodes", params={"device": "h100-sxm", "limit": 500}).json()["items"]
        assert {n["id"] for n in found} == {n.id for n in catalog.nodes.values() if n.device == "h100-sxm"}

    def test_unknown_is_404(self, client: TestClient) -> None:
        assert client.get("/v1/nodes/hgx-h2000-8").status_code == 404


class TestGetLlms:
    def test_pages_hold_every_model(self, client: TestClient, catalog: Catalog) -> None:
        assert [m["id"] for m in walk(client, "/v1/llms", 40)] == sorted(catalog.llms)

    def test_sizes_of_a_known_model(self, client: TestClient) -> None:
        shown = client.get("/v1/llms/llama-3.1-70b").json()
        # Meta's published 70.6 billion parameters; 2 · 80 layers · 8 KV heads · 128 · 2 bytes = 327,680.
        assert shown["total_weights"] == pytest.approx(70.6e9, rel=0.001)
        assert shown["weight_bytes"]["bf16"] == pytest.approx(2 * 70.6e9, rel=0.002)
        assert shown["kv_cache_bytes_per_token"]["bf16"] == 327_680
        assert shown["kv_cache_bytes_per_token"]["fp8"] == 163_840

    def test_unknown_names_close_matches(self, client: TestClient) -> None:
        answer = client.get("/v1/llms/llama-3.1-70")
        assert answer.status_code == 404
        assert "llama-3.1-70b" in answer.json()["close_matches"]


class TestApiPrices:
    def test_by_model_page_by_page_with_sources(self, client: TestClient) -> None:
        asked = {"model": "LLAMA-3.3-70b", "limit": 10}
        first = client.get("/v1/api-prices", params=asked).json()
        assert len(first["items"]) == 10
        second = client.get("/v1/api-prices", params={**asked, "next": first["next"]}).json()
        ids = [row["id"] for row in (*first["items"], *second["items"])]
        assert ids == sorted(set(ids))
        assert all("llama3370b" in re.sub(r"\W", "", row["model"].lower()) for row in first["items"])
        assert all(row["source"] and row["seen_on"] >= "2026-10-01" for row in first["items"])

    def test_a_model_is_found_however_its_name_is_punctuated(self, client: TestClient) -> None:
        spelt = ("llama-3.3-70b", "Llama 3.3 70B", "llama-3_3-70b")
        totals = {client.get("/v1/api-prices", params={"model": name, "limit": 1}).json()["total"] for name in spelt}
        assert len(totals) == 1
        assert totals.pop() >= 10

    def test_by_seller(self, client: TestClient) -> None:
        rows = client.get("/v1/api-prices", params={"provider": "Novita", "limit": 500}).json()["items"]
        assert {row["provider"] for row in rows} == {"novita"}
        assert client.get("/v1/api-prices", params={"provider": "nobody"}).json() == {
            "items": [],
            "next": None,
            "total": 0,
        }
