"""Processor time of tests by folder, file and test: ``python -m pytest -p tests.processor_time``.

The clock on the wall says what else the machine did; user and system seconds of a test and of the processes it started and waited for
say what it costs. They are counted from one report to the next, so a file's fixtures are in the tests that made or closed them.
"""

import datetime as dt
import os
import platform
import time
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

SHOWN = int(os.environ.get("SHOWN", "20"))
"""Lines of each table."""
PROPERTY = "processor_s"


def spent_s() -> float:
    """Processor seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


class ProcessorTime:
    """Counts in whichever process runs the tests; adds up in the one that reports."""

    def __init__(self) -> None:
        self.last_s = spent_s()
        self.began = time.monotonic()
        self.by_test: Counter[str] = Counter()
        self.processes_s: list[float] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report = yield
        now_s = spent_s()
        report.user_properties.append((PROPERTY, now_s - self.last_s))
        self.last_s = now_s
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self) -> None:
        self.last_s = spent_s()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.by_test[report.nodeid] += sum(value for name, value in report.user_properties if name == PROPERTY)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.processes_s.append(getattr(node, "workeroutput", {}).get(PROPERTY, 0.0))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[PROPERTY] = spent_s()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tables; what collecting and importing took is what the processes spent beyond the tests."""
        files, folders = Counter[str](), self._folders()
        for test, seconds in self.by_test.items():
            files[test.split("::")[0]] += seconds
        tests_s = folders.total()
        processes_s = sum(self.processes_s) or spent_s()
        line = terminalreporter.write_line
        line(
            f"processor seconds, {os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}"
        )
        for title, counted in (("folder", folders), ("file", files), ("test", self.by_test)):
            line(f"  by {title}")
            for name, seconds in counted.most_common(SHOWN):
                line(f"{seconds:10.1f}  {name}")
        line(f"{tests_s:10.1f}  {len(self.by_test)} tests of {len(files)} files")
        line(f"{processes_s - tests_s:10.1f}  starting and collecting in {len(self.processes_s) or 1} processes")
        line(f"{processes_s:10.1f}  together")
        self.keep(terminalreporter, processes_s)

    def keep(self, terminalreporter: pytest.TerminalReporter, processes_s: float) -> None:
        """What a run of all tests took, for the page of figures (tests/bench): of a part nothing is kept."""
        config = terminalreporter.config
        if list(config.args) != ["tests"] or config.option.keyword or config.option.markexpr:
            return
        dearest = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self._folders().most_common(4))
        found = {
            "date": dt.date.today().isoformat(),
            "seconds": time.monotonic() - self.began,
            "processor_s": processes_s,
            "tests": len(self.by_test),
            "failed": len(terminalreporter.stats.get("failed", [])) + len(terminalreporter.stats.get("error", [])),
            "load": os.getloadavg()[0],
            "note": f"processor seconds by folder: {dearest}",
        }
        assert config.cache is not None
        config.cache.set("clusterwright/last_run", found)

    def _folders(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for test, seconds in self.by_test.items():
            found["/".join(test.split("::")[0].split("/")[:2])] += seconds
        return found


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime())
