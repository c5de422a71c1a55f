"""The shipped catalog release: every figure sourced, dense below sparse, everything within what physics and markets allow."""

import datetime as dt
import re
from collections import Counter
from decimal import Decimal

import pytest

from catalog.rows import DeviceRow, NodeRow, PartitionRow, PriceRow, Row
from tests.whole_catalog import whole_catalog

CATALOG = whole_catalog()
DEVICES = list(CATALOG.devices.values())
NODES = list(CATALOG.nodes.values())

BANDWIDTH_GB_PER_S = {"hbm": (400, 25_000), "gddr": (30, 2_000), "unified": (20, 900), "host": (100, 1_000)}
"""Lowest and highest plausible memory bandwidth by kind of memory; on-chip SRAM is bounded below only."""

BF16_TFLOP_PER_S = {
    "datacenter_gpu": (50, 5_000), "workstation_gpu": (50, 600), "consumer_gpu": (25, 250), "tpu": (50, 2_500),
    "trainium": (150, 700), "gaudi": (400, 1_900), "lpu": (100, 300), "dataflow": (500, 1_000), "risc_v": (50, 400),
    "cpu": (5, 600), "unified_memory": (2, 40), "edge": (0.4, 300), "other": (50, 900),
}  # fmt: skip

USD_PER_ACCELERATOR_HOUR = (0.05, 60.0)  # list prices of GB200 in small regions reach 54


def by_day(price: PriceRow) -> dt.date:
    return price.valid_from


def ids(rows: list[DeviceRow]) -> list[str]:
    return [row.id for row in rows]


def check_exceptions(row_id: str, row_type: type[Row], exceptions: dict[str, str]) -> None:
    for field, text in exceptions.items():
        assert field in row_type.model_fields or " " in field, f"{row_id}: {field}"
        assert len(text) > 3, f"{row_id}: {field}"


class TestSize:
    def test_at_least_250_machine_types(self) -> None:
        assert len(CATALOG.nodes) >= 250

    def test_at_least_2000_prices(self) -> None:
        assert len(CATALOG.prices) >= 2000

    def test_every_kind_of_machine_is_there(self) -> None:
        kinds = {node.kind for node in NODES}
        assert kinds == set(NodeRow.model_fields["kind"].annotation.__args__)

    def test_every_category_of_device_is_there(self) -> None:
        categories = {device.category for device in DEVICES}
        assert categories == set(DeviceRow.model_fields["category"].annotation.__args__)


class TestProvenance:
    def test_every_row_names_its_source(self) -> None:
        sourced = {device.id: device.provenance for device in DEVICES}
        sourced |= {node.id: node.provenance for node in NODES}
        sourced |= {region: row.provenance for region, row in CATALOG.energy.items()}
        for name, provenance in sourced.items():
            assert len(provenance.source) >= 8, name
            assert provenance.retrieved_on.year == 2026, name

    def test_every_exception_is_about_a_field_or_says_what(self) -> None:
        for device in DEVICES:
            check_exceptions(device.id, DeviceRow, device.provenance.exceptions)
        for node in NODES:
            check_exceptions(node.id, NodeRow, node.provenance.exceptions)

    def test_every_price_names_its_source(self) -> None:
        assert all(len(price.source) >= 20 for price in CATALOG.prices)

    def test_recalled_or_placeholder_prices_are_never_of_high_confidence(self) -> None:
        doubtful = [p for p in CATALOG.prices if "recalled" in p.source or "median of a few" in p.source]
        assert len(doubtful) > 10
        assert {price.confidence for price in doubtful} == {"low"}


class TestPartitions:
    """Profiles of the MIG User Guide: an instance has about a seventh (a quarter) of the compute for each g of its name."""

    @pytest.mark.parametrize("row", CATALOG.partitions, ids=lambda row: f"{row.device} {row.profile}")
    def test_figures_agree_with_the_name_of_the_profile(self, row: PartitionRow) -> None:
        named = re.fullmatch(r"(\d)g\.(\d+)gb", row.profile)
        assert named is not None
        compute, memory = named.groups()
        parts = 7 if row.device_slices == 8 else 4
        share = row.multiprocessors / row.device_multiprocessors
        assert 0.84 * int(compute) / parts <= share <= 1.45 * int(compute) / parts
        assert 0.84 * int(memory) <= row.memory_gib <= int(memory)
        assert row.instances <= row.device_slices // row.slices
        assert len(row.provenance.source) > 20

    def test_the_devices_most_rented_in_parts_have_them(self) -> None:
        assert {"a100-sxm-80", "h100-sxm", "h200-sxm", "b200-sxm"} <= {row.device for row in CATALOG.partitions}

    def test_exceptions_are_about_fields(self) -> None:
        for row in CATALOG.partitions:
            check_exceptions(row.device, PartitionRow, row.provenance.exceptions)


class TestDevices:
    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_dense_is_below_sparse(self, device: DeviceRow) -> None:
        for sparse_field in [field for field in DeviceRow.model_fields if field.startswith("sparse_")]:
            dense = getattr(device, sparse_field.replace("sparse_", "dense_"))
            sparse = getattr(device, sparse_field)
            if dense is None or sparse is None:
                continue
            low, high = 1.95, 2.05
            if device.vendor == "AWS":
                high = 4.0  # Trainium2 prunes 16 to 4 at bf16
            if sparse_field == "sparse_fp4_tflop_per_s" and device.architecture in (
                "Blackwell Ultra",
                "Rubin",
                "Grace Blackwell Ultra",
            ):
                low = 1.25  # their dense fp4 rate was raised, the sparse one was not
            assert low <= sparse / dense <= high, (sparse_field, dense, sparse)

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_bandwidth_is_plausible_for_its_memory(self, device: DeviceRow) -> None:
        bandwidth = device.memory_bandwidth_gb_per_s
        if bandwidth is None:
            assert "memory_bandwidth_gb_per_s" in device.missing
        elif device.memory_class == "sram":
            assert bandwidth >= 10_000
        else:
            assert device.memory_class is not None
            low, high = BANDWIDTH_GB_PER_S[device.memory_class]
            assert low <= bandwidth <= high

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_matrix_rate_is_plausible_for_its_category(self, device: DeviceRow) -> None:
        rate = device.dense_bf16_tflop_per_s or device.dense_fp16_tflop_per_s
        if rate is None:
            assert "dense_bf16_tflop_per_s" in device.missing
        else:
            low, high = BF16_TFLOP_PER_S[device.category]
            assert low <= rate <= high

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_rates_rise_as_numbers_shrink(self, device: DeviceRow) -> None:
        rates = [device.dense_fp32_tflop_per_s, device.dense_bf16_tflop_per_s, device.dense_fp8_tflop_per_s]
        stated = [rate for rate in [*rates, device.dense_fp4_tflop_per_s] if rate is not None]
        assert stated == sorted(stated)

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_what_the_driver_shows_is_near_what_is_sold(self, device: DeviceRow) -> None:
        if device.memory_gib is not None and device.memory_gb_marketed is not None:
            assert 0.90 <= device.memory_gib / device.memory_gb_marketed <= 1.0

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_power_is_stated_with_its_basis_or_missing(self, device: DeviceRow) -> None:
        if device.power_limit_w is None:
            assert "power_limit_w" in device.missing
        else:
            assert device.power_basis
            assert 1 <= device.power_limit_w <= 30_000

    @pytest.mark.parametrize("device", DEVICES, ids=ids(DEVICES))
    def test_a_named_link_has_a_rate_or_says_it_is_missing(self, device: DeviceRow) -> None:
        stated = device.link_one_direction_gb_per_s is not None
        assert stated <= bool(device.link_name)
        assert not device.link_name or stated or "link_one_direction_gb_per_s" in device.missing
        assert device.link_domain_devices == 1 or device.link_name

    def test_one_family_one_architecture_line(self) -> None:
        vendors: dict[str, set[str]] = {}
        for device in DEVICES:
            vendors.setdefault(device.family, set()).add(device.vendor)
        shared = {family for family, names in vendors.items() if len(names) > 1}
        assert shared == {"npu", "fpga"}

    def test_announced_devices_are_refused_by_name(self) -> None:
        for device in DEVICES:
            if device.status == "announced" and device.id != "b100-sxm":
                assert device.missing, device.id


class TestNodes:
    def test_pcie_cards_share_no_scale_up_domain_unless_a_bridge_is_stated(self) -> None:
        for node in NODES:
            if node.kind == "pcie_server" and node.link_domain_devices > 1:
                said = f"{node.name} {node.provenance.notes}".lower()
                assert "bridge" in said or "nvlink" in said, node.id

    def test_memory_and_processors_are_plausible(self) -> None:
        for node in NODES:
            if node.vcpus:
                assert 1 <= node.vcpus / node.devices <= 400, node.id
            if node.host_memory_gib:
                assert 5 <= node.host_memory_gib / node.devices <= 600, node.id

    def test_network_is_at_most_1600_gbit_per_s_a_device(self) -> None:
        for node in NODES:
            if node.network_gbit_per_s is not None:
                assert 5 <= node.network_gbit_per_s / node.devices <= 1600, node.id

    def test_an_8_way_box_of_h100s_joins_all_eight(self) -> None:
        for name in ("aws-p5.48xlarge", "azure-standard_nd96isr_h100_v5", "gcp-a3-megagpu-8g", "hgx-h100-8"):
            node = CATALOG.nodes[name]
            assert (node.device, node.devices, node.link_domain_devices) == ("h100-sxm", 8, 8)
        assert CATALOG.nodes["aws-p5.48xlarge"].network_gbit_per_s == 3200


class TestOffersAndPrices:
    def test_price_of_an_accelerator_hour_is_plausible(self) -> None:
        low, high = USD_PER_ACCELERATOR_HOUR
        for price in CATALOG.prices:
            assert price.usd_per_hour is not None
            node = CATALOG.nodes[CATALOG.offers[price.offer].node]
            per_device = price.usd_per_hour / node.devices
            assert Decimal(str(low)) <= per_device <= Decimal(str(high)), (price.offer, per_device)

    def test_spot_and_reserved_never_cost_more_than_on_demand(self) -> None:
        latest = {price.offer: price for price in sorted(CATALOG.prices, key=lambda price: price.valid_from)}
        compared = 0
        for offer_id, price in latest.items():
            stem, commitment = offer_id.rsplit(":", 1)
            on_demand = latest.get(f"{stem}:on_demand")
            if commitment != "on_demand" and on_demand:
                compared += 1
                assert price.usd_per_hour is not None
                assert on_demand.usd_per_hour is not None
                assert price.usd_per_hour <= on_demand.usd_per_hour, offer_id
        assert compared > 500

    def test_every_commitment_of_the_price_lists_is_there(self) -> None:
        counts = Counter(offer.commitment for offer in CATALOG.offers.values())
        assert counts["on_demand"] > 1500
        assert counts["reserved_1y_no_upfront"] > 500
        assert counts["reserved_3y_no_upfront"] > 300
        assert counts["spot"] > 300
        assert {"reserved_1y", "reserved_3y", "capacity_block"} <= set(counts)

    def test_no_price_is_from_the_future_of_its_reading(self) -> None:
        assert all(price.valid_from <= price.retrieved_on for price in CATALOG.prices)

    def test_a_known_price(self) -> None:
        """p5.48xlarge in us-east-1: AWS price list of 2026-07-20, seen unchanged on 2026-11-09 for 8 × 6.88."""
        steps = {p.valid_from: p for p in CATALOG.prices if p.offer == "aws:p5.48xlarge:us-east-1:on_demand"}
        assert [str(day) for day in sorted(steps)] == ["2026-07-20", "2026-11-09"]
        assert {p.usd_per_hour for p in steps.values()} == {Decimal("55.04")}

    def test_a_capacity_block_that_rose(self) -> None:
        """p5.48xlarge in us-east-2 by capacity block: 39.33 in 2024, 41.528 on 2026-07-22; the earlier step stays."""
        offer = "aws:p5.48xlarge:us-east-2:capacity_block"
        assert [p.usd_per_hour for p in sorted((p for p in CATALOG.prices if p.offer == offer), key=by_day)] == [
            Decimal("39.33"), Decimal("41.528"),
        ]  # fmt: skip

    def test_a_known_commitment(self) -> None:
        """a3-highgpu-8g in us-central1: on demand, one year and three years, as Google lists them."""
        newest = {p.offer: p.usd_per_hour for p in sorted(CATALOG.prices, key=by_day)}
        stem = "gcp:a3-highgpu-8g:us-central1"
        on_demand = newest[f"{stem}:on_demand"]
        assert on_demand is not None
        for commitment, ratio in (("reserved_1y_no_upfront", 0.694), ("reserved_3y_no_upfront", 0.439)):
            price = newest[f"{stem}:{commitment}"]
            assert price is not None
            assert float(price / on_demand) == pytest.approx(ratio, abs=0.005)


class TestEnergy:
    def test_tariffs_are_plausible_and_inside_their_range(self) -> None:
        assert len(CATALOG.energy) >= 15
        for row in CATALOG.energy.values():
            assert row.low_usd_per_kwh is not None
            assert row.high_usd_per_kwh is not None
            assert Decimal("0.02") <= row.low_usd_per_kwh <= row.usd_per_kwh <= row.high_usd_per_kwh <= Decimal("0.40")

    def test_carbon_is_sourced_where_stated_and_never_zero(self) -> None:
        stated = [row for row in CATALOG.energy.values() if row.grid_kg_co2e_per_kwh is not None]
        assert len(stated) >= 10
        for row in stated:
            assert row.grid_kg_co2e_per_kwh is not None
            assert 0.01 < row.grid_kg_co2e_per_kwh < 1.0
            assert "grid_kg_co2e_per_kwh" in row.provenance.exceptions
