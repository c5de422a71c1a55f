"""What is installed is what uv.lock locks: requirements/ says the same, with every hash, and nothing is installed otherwise."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK: dict[str, Any] = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))
PACKAGES = {package["name"]: package for package in LOCK["package"]}
VERSIONS = {(package["name"], package["version"]): package for package in LOCK["package"]}
"""Some have several, for different versions of Python."""
PROJECT = PACKAGES["clusterwright"]
GROUPS = ("build", "dev", "fuzz", "lock")
PIN = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)(?: ; [^\\]+)?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def exported(name: str) -> dict[tuple[str, str], set[str]]:
    """Hashes by package and version; every line of the file is one of them."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert not PIN.sub("", text).strip(), "a line that is not a pin with hashes"
    return {(m[1], m[2]): set(re.findall(r"sha256:[0-9a-f]{64}", m[3])) for m in PIN.finditer(text)}


def reached(dependencies: list[dict[str, Any]]) -> set[str]:
    """Names of everything the dependencies need, on any platform."""
    found: set[str] = set()
    waiting = [(d["name"], tuple(d.get("extra", ()))) for d in dependencies]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        name, extras = here
        found.add(name)
        package = PACKAGES[name]
        more = list(package.get("dependencies", ()))
        for extra in extras:
            more += package.get("optional-dependencies", {}).get(extra, ())
        waiting += [(d["name"], tuple(d.get("extra", ()))) for d in more]
    return found


@pytest.mark.parametrize("name", ["service", *GROUPS])
def test_requirements_are_what_is_locked(name: str) -> None:
    needed = PROJECT["dependencies"] if name == "service" else PROJECT["dev-dependencies"][name]
    pins = exported(name)
    names = reached(needed)
    assert set(pins) == {key for key in VERSIONS if key[0] in names}
    for key, hashes in pins.items():
        locked = VERSIONS[key]
        files = [*locked.get("wheels", ()), *([locked["sdist"]] if "sdist" in locked else [])]
        assert hashes == {file["hash"] for file in files}


@pytest.mark.parametrize("file", ["Makefile", "Dockerfile"])
def test_nothing_is_installed_without_hashes(file: str) -> None:
    """But the project itself, from this checkout."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"(?:-m pip|/pip) (?:install|wheel)[^&\n]*", text)
    assert len(commands) >= 4
    for command in commands:
        own = "--no-deps" in command and ("--no-build-isolation" in command or "--no-index" in command)
        assert "--require-hashes" in command or own, command


def test_compose_has_no_secret_of_its_own() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert not re.findall(r"PASSWORD:-", text)
    assert re.findall(r"POSTGRES_PASSWORD:\?", text)
    assert "token create" not in text.partition("services:")[2]
