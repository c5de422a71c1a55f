"""Worked numbers in docstrings hold, all of them."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r'^\s*(?:r?""")?>>> ', re.MULTILINE)
MODULES = [
    (".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), count)
    for folder in ("catalog", "service", "solver", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != Path(__file__) and (count := len(EXAMPLE.findall(path.read_text())))
]


@pytest.mark.parametrize(("name", "count"), MODULES, ids=[name for name, _ in MODULES])
def test_every_example_is_found_and_holds(name: str, count: int) -> None:
    """Found: those of what is no function, class or method of the module would never be run."""
    done = doctest.testmod(importlib.import_module(name))
    assert done.failed == 0
    assert done.attempted == count
