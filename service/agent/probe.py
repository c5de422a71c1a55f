"""``agent probe``: which accelerators are in this machine, and how they are joined.

Asks the vendors' own tools, each with a time limit; what a tool does not say stays unknown. Parsing is separate from
asking, so that it can be tested without the hardware.
"""

from __future__ import annotations

import csv
import io
import json
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MIB_PER_GIB = 1024.0
ASK_WITHIN_S = 30.0
NVIDIA_QUERY = (
    "index,name,memory.total,driver_version,power.limit,power.max_limit,pcie.link.gen.max,pcie.link.width.max,"
    "clocks.max.sm,mig.mode.current"
)


@dataclass(frozen=True)
class FoundDevice:
    """One accelerator as its driver names it."""

    kind: str
    """nvidia, amd, tpu, apple, cpu."""
    index: int
    name: str
    memory_gib: float | None = None
    driver: str | None = None
    power_limit_w: float | None = None
    power_max_w: float | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None
    sm_clock_mhz: float | None = None
    partitioned: bool = False
    """MIG is on: the device shows less than it has."""
    catalog_id: str | None = None


@dataclass
class HostProbe:
    """A machine: its accelerators, and the link between each pair as nvidia-smi prints it (NV18, PIX, SYS …)."""

    hostname: str
    operating_system: str
    devices: list[FoundDevice] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def probe() -> HostProbe:
    """Ask every vendor's tool; a machine without accelerators is its processor."""
    found = HostProbe(platform.node(), f"{platform.system()} {platform.release()} {platform.machine()}")
    if (
        answer := _ask(found, "nvidia-smi", f"--query-gpu={NVIDIA_QUERY}", "--format=csv,noheader,nounits")
    ) is not None:
        found.devices += parse_nvidia(answer)
        if len(found.devices) > 1:
            found.links = parse_topology(_ask(found, "nvidia-smi", "topo", "-m") or "")
    if (answer := _ask(found, "amd-smi", "static", "--json")) is not None:
        found.devices += parse_amd_smi(answer)
    elif (answer := _ask(found, "rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showmaxpower",
                         "--showdriverversion", "--json")) is not None:  # fmt: skip
        found.devices += parse_rocm_smi(answer)
    if not found.devices:
        found.devices += tpus(Path("/dev"))
    if not found.devices and platform.system() == "Darwin":
        found.devices += parse_apple(_ask(found, "system_profiler", "SPHardwareDataType", "-json") or "{}")
    if not found.devices:
        found.devices.append(processor(_read(Path("/proc/cpuinfo")), _read(Path("/proc/meminfo"))))
    return found


def _ask(found: HostProbe, *command: str) -> str | None:
    """What a tool prints; None when it is not there. A tool that fails is a problem worth telling."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=ASK_WITHIN_S, check=False)
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        found.problems.append(f"{command[0]}: {error}")
        return None
    if answer.returncode != 0:
        found.problems.append(f"{command[0]} failed: {(answer.stderr or answer.stdout).strip()[:200]}")
        return None
    return answer.stdout


def parse_nvidia(table: str) -> list[FoundDevice]:
    """Rows of ``nvidia-smi --query-gpu=… --format=csv,noheader,nounits``.

    >>> [d] = parse_nvidia("0, NVIDIA H200, 143771, 580.159.04, 700.00, 700.00, 5, 16, 1980, Disabled")
    >>> d.name, round(d.memory_gib, 1), d.power_limit_w, d.pcie_generation, d.partitioned
    ('NVIDIA H200', 140.4, 700.0, 5, False)
    """
    devices = []
    for row in csv.reader(io.StringIO(table), skipinitialspace=True):
        if len(row) < 10 or not row[0].strip().isdigit():
            continue
        memory_mib = _number(row[2])
        devices.append(
            FoundDevice(
                kind="nvidia",
                index=int(row[0]),
                name=row[1].strip(),
                memory_gib=None if memory_mib is None else memory_mib / MIB_PER_GIB,
                driver=row[3].strip() or None,
                power_limit_w=_number(row[4]),
                power_max_w=_number(row[5]),
                pcie_generation=_whole(row[6]),
                pcie_lanes=_whole(row[7]),
                sm_clock_mhz=_number(row[8]),
                partitioned=row[9].strip() == "Enabled",
            )
        )
    return devices


def parse_topology(table: str) -> dict[str, str]:
    """Links between GPUs from ``nvidia-smi topo -m``, by "0-1".

    >>> parse_topology("\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t X \\tNV18\\t0-31\\nGPU1\\tNV18\\t X \\t0-31")
    {'0-1': 'NV18'}
    """
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in table.splitlines()]
    header = next((line.split() for line in lines if line.split()[:1] == ["GPU0"] and "GPU0" in line.split()), None)
    if header is None:
        return {}
    columns = [int(name[3:]) for name in header if re.fullmatch(r"GPU\d+", name)]
    links = {}
    for line in lines[lines.index(next(x for x in lines if x.split() == header)) + 1 :]:
        cells = line.split()
        if not cells or not re.fullmatch(r"GPU\d+", cells[0]):
            continue
        row = int(cells[0][3:])
        for column, link in zip(columns, cells[1:], strict=False):
            if row < column:
                links[f"{row}-{column}"] = link
    return links


def parse_amd_smi(text: str) -> list[FoundDevice]:
    """Devices of ``amd-smi static --json``, which has been a list, or an object holding ``gpu_data``."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    rows = value.get("gpu_data", []) if isinstance(value, dict) else value
    return [_amd(row, number) for number, row in enumerate(rows) if isinstance(row, dict)]


def _amd(row: Mapping[str, Any], number: int) -> FoundDevice:
    asic, vram = row.get("asic") or {}, row.get("vram") or {}
    size = vram.get("size") if isinstance(vram, dict) else None
    amount = _number(str(size.get("value"))) if isinstance(size, dict) else None
    unit = str(size.get("unit", "MB")).upper() if isinstance(size, dict) else "MB"
    limit = (row.get("limit") or {}).get("max_power") if isinstance(row.get("limit"), dict) else None
    bus = row.get("bus") if isinstance(row.get("bus"), dict) else {}
    driver = row.get("driver") if isinstance(row.get("driver"), dict) else {}
    return FoundDevice(
        kind="amd",
        index=_whole(str(row.get("gpu"))) or number,
        name=str(asic.get("market_name") or "AMD"),
        memory_gib=None if amount is None else amount if unit.startswith("G") else amount / MIB_PER_GIB,
        driver=str(driver.get("version")) if driver and driver.get("version") else None,
        power_limit_w=_number(str(limit.get("value"))) if isinstance(limit, dict) else None,
        pcie_lanes=_whole(str(bus.get("max_pcie_width"))) if bus else None,
    )


def parse_rocm_smi(text: str) -> list[FoundDevice]:
    """Devices of ``rocm-smi … --json``: one object a card, keys in words."""
    try:
        value = json.loads(text)
    except ValueError:
        return []
    driver = (value.get("system") or {}).get("Driver version") if isinstance(value, dict) else None
    devices = []
    for card, row in sorted(value.items()):
        if not re.fullmatch(r"card\d+", card) or not isinstance(row, dict):
            continue
        memory_bytes = _number(str(row.get("VRAM Total Memory (B)")))
        devices.append(
            FoundDevice(
                kind="amd",
                index=int(card[4:]),
                name=str(row.get("Card Series") or row.get("Card series") or row.get("Card Model") or "AMD"),
                memory_gib=None if memory_bytes is None else memory_bytes / 2**30,
                driver=driver,
                power_limit_w=_number(str(row.get("Max Graphics Package Power (W)"))),
            )
        )
    return devices


def tpus(dev: Path) -> list[FoundDevice]:
    """Google's accelerators show as /dev/accel* or /dev/vfio/*; only the VM's type names the generation."""
    nodes = sorted(dev.glob("accel[0-9]*")) or sorted((dev / "vfio").glob("[0-9]*"))
    return [FoundDevice(kind="tpu", index=number, name="Google TPU") for number, _ in enumerate(nodes)]


def parse_apple(text: str) -> list[FoundDevice]:
    """The chip and its unified memory from ``system_profiler SPHardwareDataType -json``."""
    try:
        hardware = (json.loads(text).get("SPHardwareDataType") or [{}])[0]
    except (ValueError, IndexError, AttributeError):
        return []
    chip = hardware.get("chip_type")
    memory = re.match(r"([\d.]+)\s*GB", str(hardware.get("physical_memory", "")))
    if not chip:
        return []
    return [FoundDevice(kind="apple", index=0, name=str(chip), memory_gib=float(memory[1]) if memory else None)]


def processor(cpuinfo: str, meminfo: str) -> FoundDevice:
    """The processor as an accelerator of last resort.

    >>> processor("model name : AMD EPYC 9575F", "MemTotal: 1048576 kB")
    FoundDevice(kind='cpu', index=0, name='AMD EPYC 9575F', memory_gib=1.0, driver=None, power_limit_w=None, \
power_max_w=None, pcie_generation=None, pcie_lanes=None, sm_clock_mhz=None, partitioned=False, catalog_id=None)
    """
    name = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)
    return FoundDevice(
        kind="cpu",
        index=0,
        name=name[1].strip() if name else platform.processor() or platform.machine(),
        memory_gib=int(memory[1]) / 2**20 if memory else None,
    )


def lines(found: HostProbe) -> Sequence[str]:
    """The probe for a person."""
    told = [f"{found.hostname}, {found.operating_system}"]
    for device in found.devices:
        facts = [
            f"{device.memory_gib:.1f} GiB" if device.memory_gib else None,
            f"driver {device.driver}" if device.driver else None,
            f"limit {device.power_limit_w:.0f} W" if device.power_limit_w else None,
            f"PCIe {device.pcie_generation} x{device.pcie_lanes}" if device.pcie_generation else None,
            "MIG on" if device.partitioned else None,
            f"catalog: {device.catalog_id}" if device.catalog_id else "not in the catalog by this name",
        ]
        told.append(f"  {device.kind} {device.index}: {device.name} · " + " · ".join(f for f in facts if f))
    if found.links:
        kinds = sorted(set(found.links.values()))
        told.append(f"  links: {', '.join(kinds)}")
    return told + [f"  problem: {problem}" for problem in found.problems]


def _number(text: str) -> float | None:
    try:
        return float(text.strip())
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
