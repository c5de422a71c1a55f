"""The compiler's file is given back, and the simulation goes on without it."""

import subprocess
import sys

import pytest

from service.process_memory import forget_compiler

PROGRAM = """
from service.process_memory import forget_compiler, hold_together
hold_together()
from solver.engine.compile import compile_simulation
import numba
def mapped():
    import re
    text = open("/proc/self/smaps").read()
    return sum(
        int(re.search(r"^Rss: +([0-9]+)", part, re.M)[1])
        for part in re.split(r"\\n(?=[0-9a-f]+-[0-9a-f]+ )", text) if "libllvmlite" in part.partition("\\n")[0]
    )
compile_simulation()
before = mapped()
assert forget_compiler() > 0
after = mapped()
compile_simulation()
print(before, after, numba.njit(lambda x: 2.0 * x)(3.0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mappings are read where Linux lists them")
def test_what_is_mapped_of_the_compiler_goes_and_comes_back_when_it_is_asked() -> None:
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    before, after, doubled = done.stdout.split()
    assert int(after) < 0.3 * int(before), "most of what was mapped is read-only"
    assert float(doubled) == 6.0


def test_without_a_compiler_there_is_nothing_to_forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.process_memory.COMPILER", "no such library")
    assert forget_compiler() == 0
