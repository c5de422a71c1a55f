"""Board power while a run lasts, read from `nvidia-smi`."""

from __future__ import annotations

import math
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

QUERY = "index,power.draw,clocks.current.sm"


@dataclass(frozen=True)
class PowerSample:
    """One reading of one board."""

    at_s: float
    device_index: int
    power_w: float
    sm_clock_mhz: float | None


def parse_power_line(line: str, at_s: float) -> PowerSample | None:
    """One line of `nvidia-smi --query-gpu=index,power.draw,clocks.current.sm --format=csv,noheader,nounits`.

    A board that cannot tell its power prints `[N/A]`: such a line is no sample.

    >>> parse_power_line("1, 642.31, 1965", at_s=2.0)
    PowerSample(at_s=2.0, device_index=1, power_w=642.31, sm_clock_mhz=1965.0)
    >>> parse_power_line("0, [N/A], 1965", at_s=2.0)
    """
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 3 or not fields[0].isdigit():
        return None
    try:
        power_w = float(fields[1])
    except ValueError:
        return None
    try:
        sm_clock_mhz: float | None = float(fields[2])
    except ValueError:
        sm_clock_mhz = None
    return PowerSample(at_s, int(fields[0]), power_w, sm_clock_mhz)


def mean_power_w(samples: Sequence[PowerSample], from_s: float, to_s: float) -> dict[int, float]:
    """Mean power of each board over the samples taken in a span of time, by device index.

    >>> mean_power_w([PowerSample(1, 0, 100, None), PowerSample(2, 0, 300, None), PowerSample(9, 0, 0, None)], 0, 5)
    {0: 200.0}
    """
    by_device: dict[int, list[float]] = {}
    for sample in samples:
        if from_s <= sample.at_s <= to_s:
            by_device.setdefault(sample.device_index, []).append(sample.power_w)
    return {device: math.fsum(values) / len(values) for device, values in sorted(by_device.items())}


class PowerSampler:
    """Reads the power of the named boards at an interval, from entering the context to leaving it.

    One `nvidia-smi` is kept running and read line by line: starting it anew for every sample costs more
    processor time than the load generator itself. Without `nvidia-smi` there are simply no samples.
    """

    def __init__(self, device_indices: Sequence[int] | None = None, interval_s: float = 1.0) -> None:
        self.samples: list[PowerSample] = []
        self._command = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]
        self._command += [f"--loop-ms={round(interval_s * 1e3)}"]
        if device_indices is not None:
            self._command += ["-i", ",".join(str(index) for index in device_indices)]
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
            )
        except OSError:  # no NVIDIA driver here: power stays unknown, which the record then says
            return self
        self._reader = threading.Thread(target=self._read, name="power", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is None or self._reader is None:
            return
        self._process.terminate()
        self._reader.join(timeout=5.0)
        self._process.wait(timeout=5.0)

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            sample = parse_power_line(line, time.perf_counter())
            if sample is not None:
                self.samples.append(sample)

    def mean_w(self, from_s: float, to_s: float) -> dict[int, float]:
        """Mean power by device index between two readings of `time.perf_counter()`; empty when none was sampled."""
        return mean_power_w(self.samples, from_s, to_s)
