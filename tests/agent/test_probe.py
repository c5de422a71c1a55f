"""Reading what the vendors' tools print."""

import json

from service.agent.probe import parse_amd_smi, parse_apple, parse_nvidia, parse_rocm_smi, parse_topology
from service.wire.device_names import match_device

KNOWN = {
    "h200-sxm": 140.4, "h200-nvl": 140.4, "h100-sxm": 79.6, "h100-pcie": 79.6, "h100-nvl": 93.6,
    "a100-sxm-40": 39.4, "a100-sxm-80": 79.3, "a100-pcie-80": 79.3, "l40s": 44.7, "l4": 22.5, "t4": 15.0,
    "gh200-96": 94.5, "gh200-144": 140.0, "b200-sxm": 178.4, "rtx-4090": 24.0, "rtx-6000-ada": 48.0,
    "rtx-pro-6000-server": 95.6, "rtx-pro-6000-ws": 95.6, "mi300x": 192.0, "mi325x": 256.0,
}  # fmt: skip


def test_eight_h200() -> None:
    rows = "\n".join(f"{n}, NVIDIA H200, 143771, 580.159.04, 700.00, 700.00, 5, 16, 1980, Disabled" for n in range(8))
    devices = parse_nvidia(rows)
    assert [d.index for d in devices] == list(range(8))
    assert {match_device(d.name, KNOWN, d.memory_gib) for d in devices} == {"h200-sxm"}


def test_what_a_board_does_not_tell_stays_unknown() -> None:
    [device] = parse_nvidia("0, NVIDIA GB10, [N/A], 580.95, [N/A], [N/A], [N/A], [N/A], 3003, [N/A]")
    assert (device.memory_gib, device.power_limit_w, device.pcie_generation) == (None, None, None)


def test_names_that_drivers_use() -> None:
    for name, memory_gib, expected in (
        ("NVIDIA H100 80GB HBM3", 79.6, "h100-sxm"),
        ("NVIDIA H100 PCIe", 79.6, "h100-pcie"),
        ("NVIDIA H100 NVL", 93.6, "h100-nvl"),
        ("NVIDIA A100-SXM4-40GB", 39.4, "a100-sxm-40"),
        ("NVIDIA A100 80GB PCIe", 79.3, "a100-pcie-80"),
        ("NVIDIA GH200 480GB", 94.5, "gh200-96"),
        ("NVIDIA B200", 178.4, "b200-sxm"),
        ("Tesla T4", 15.0, "t4"),
        ("NVIDIA L40S", 44.7, "l40s"),
        ("NVIDIA GeForce RTX 4090", 24.0, "rtx-4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", 95.6, "rtx-pro-6000-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 95.6, "rtx-pro-6000-ws"),
        ("AMD Instinct MI300X", 192.0, "mi300x"),
        ("NVIDIA Frobnicator", 10.0, None),
    ):
        assert match_device(name, KNOWN, memory_gib) == expected, name


def test_topology_of_four() -> None:
    table = (
        "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\x1b[0m\n"
        "GPU0\t X \tNV18\tNV18\tNV18\tPIX\t0-31\n"
        "GPU1\tNV18\t X \tNV18\tSYS\tNODE\t0-31\n"
        "GPU2\tNV18\tNV18\t X \tNV18\tNODE\t0-31\n"
        "GPU3\tNV18\tSYS\tNV18\t X \tNODE\t0-31\n"
        "\nLegend:\n  X    = Self\n"
    )
    assert parse_topology(table) == {
        "0-1": "NV18", "0-2": "NV18", "0-3": "NV18", "1-2": "NV18", "1-3": "SYS", "2-3": "NV18",
    }  # fmt: skip
    assert parse_topology("") == {}


def test_amd_both_tools() -> None:
    static = [
        {
            "gpu": 0,
            "asic": {"market_name": "AMD Instinct MI300X"},
            "vram": {"size": {"value": 196592, "unit": "MB"}},
            "limit": {"max_power": {"value": 750, "unit": "W"}},
            "driver": {"version": "6.10.5"},
        }
    ]
    [device] = parse_amd_smi(json.dumps(static))
    assert (device.name, round(device.memory_gib or 0), device.power_limit_w) == ("AMD Instinct MI300X", 192, 750.0)
    assert parse_amd_smi(json.dumps({"gpu_data": static})) == [device]
    rocm = {
        "card0": {
            "Card Series": "AMD Instinct MI300X",
            "VRAM Total Memory (B)": "206141652992",
            "Max Graphics Package Power (W)": "750.0",
        },
        "system": {"Driver version": "6.10.5"},
    }
    [by_rocm] = parse_rocm_smi(json.dumps(rocm))
    assert (by_rocm.driver, by_rocm.power_limit_w) == ("6.10.5", 750.0)
    assert parse_rocm_smi("not json") == parse_amd_smi("not json") == []


def test_apple() -> None:
    text = json.dumps({"SPHardwareDataType": [{"chip_type": "Apple M3 Ultra", "physical_memory": "512 GB"}]})
    [device] = parse_apple(text)
    assert (device.name, device.memory_gib) == ("Apple M3 Ultra", 512.0)
