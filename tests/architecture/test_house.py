"""The picture of the house in docs/ is the house."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "house.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:solver|service|catalog|tests)/[\w/.*]+)`", PAGE)))


def test_every_room_is_on_the_page() -> None:
    rooms = {
        f"{path.parent.relative_to(ROOT)}/"
        for package in ("solver", "service")
        for path in (ROOT / package).rglob("*/__init__.py")
    }
    assert len(rooms) > 40
    assert rooms - set(NAMED) == set()


def test_everything_on_the_page_is_there() -> None:
    missing = [name for name in NAMED if not (list(ROOT.glob(name)) if "*" in name else (ROOT / name).exists())]
    assert not missing


def test_what_lies_at_the_top_of_the_solver_is_named() -> None:
    nouns = {path.stem for path in (ROOT / "solver").glob("*.py")} - {"__init__"}
    said = PAGE.split("At its top lie the nouns")[1].split(".\n")[0]
    assert nouns == set(re.findall(r"`(\w+)`", said))
