"""Compares what is installed with uv.lock: `python -m tests.hostile.installed`, in an environment made by `make`."""

import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "uv.lock"
NOT_LOCKED = {"pip", "setuptools"}
"""Of the virtual environment itself; both come with Python."""


def differing() -> tuple[int, list[str]]:
    """How many packages are installed, and those whose version is not the locked one."""
    locked: dict[str, set[str]] = {}
    for package in tomllib.loads(LOCK.read_text(encoding="utf-8"))["package"]:
        locked.setdefault(package["name"], set()).add(package["version"])
    found, wrong = 0, []
    for one in distributions():
        name = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
        if name in NOT_LOCKED:
            continue
        found += 1
        if one.version not in locked.get(name, set()):
            wrong.append(f"{name} {one.version}, locked {sorted(locked.get(name, set()))}")
    return found, wrong


def main() -> None:
    found, wrong = differing()
    print(f"{found} packages installed, {len(wrong)} not at the locked version")
    for line in wrong:
        print(f"  {line}")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
