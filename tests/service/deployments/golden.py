"""The files of every shape of plan and target, as they are meant to be.

    python -m tests.service.deployments.golden

writes them anew after an intended change.
"""

import json
from pathlib import Path
from typing import Any

from service.deployments.generate import TARGETS, generate
from service.deployments.refusals import TargetCannotExpressError
from tests.service.deployments.plans import shapes

GOLDEN = Path(__file__).with_name("golden.json")


def answers() -> dict[str, dict[str, Any]]:
    """By shape and target: the answer, or what cannot be expressed."""
    found: dict[str, dict[str, Any]] = {}
    for shape, plan in shapes().items():
        found[shape] = {}
        for target in TARGETS:
            try:
                made = generate(plan, target, None).model_dump(
                    mode="json", exclude={"readiness"}
                )  # the same for each target
                made["files"] = {file["path"]: file["content"].split("\n") for file in made["files"]}
                found[shape][target] = made
            except TargetCannotExpressError as refused:
                found[shape][target] = {"cannot_express": refused.extra["cannot_express"]}
    return found


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(answers(), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
