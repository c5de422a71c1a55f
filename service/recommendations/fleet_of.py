"""The nodes a stored plan rents, by offer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OfferNodes:
    offer: str
    node: str
    device: str
    nodes: int


def fleet_of(result: Mapping[str, Any]) -> dict[str, OfferNodes]:
    """By offer id. Plans stored before ``fleet`` was part of the answer state nodes by line only: a node that several
    lines share is counted for each, as it was shown.

    >>> line = {"offer": "o", "node": "n", "device": "d", "nodes": 2}
    >>> fleet_of({"plan": [line, line]})["o"].nodes
    4
    >>> fleet_of({"fleet": [line | {"nodes": 3}], "plan": [line, line]})["o"].nodes
    3
    """
    if result.get("fleet"):
        return {f["offer"]: OfferNodes(f["offer"], f["node"], f["device"], f["nodes"]) for f in result["fleet"]}
    found: dict[str, OfferNodes] = {}
    for line in result["plan"]:
        before = found[line["offer"]].nodes if line["offer"] in found else 0
        found[line["offer"]] = OfferNodes(line["offer"], line["node"], line["device"], before + line["nodes"])
    return found
