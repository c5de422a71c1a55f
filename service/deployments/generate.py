"""Targets, and the answer for one of them: a pure function of the plan."""

from collections.abc import Callable
from functools import partial

from service.deployments.affinity import affinity_notes
from service.deployments.benchmark import benchmark_files
from service.deployments.commands import engine_scripts
from service.deployments.compose import compose_files
from service.deployments.dstack import dstack_files
from service.deployments.dynamo import dynamo_files
from service.deployments.files import Files
from service.deployments.kserve import kserve_files
from service.deployments.kubernetes import kubernetes_files
from service.deployments.plan import DeploymentPlan
from service.deployments.readiness import readiness
from service.deployments.router import router_files
from service.deployments.skypilot import skypilot_files
from service.deployments.words import shell_command
from service.wire.deployments import DeploymentOut

GENERATOR_VERSION = "4"
"""Goes up when the same plan gives other bytes."""

Generator = Callable[[DeploymentPlan, str | None], Files]


def _scripts(plan: DeploymentPlan, version: str | None, target: str, engine: str) -> Files:
    return engine_scripts(plan, target, engine, version)


TARGETS: dict[str, Generator] = {
    "vllm": partial(_scripts, target="vllm", engine="vllm"),
    "sglang": partial(_scripts, target="sglang", engine="sglang"),
    "trtllm": partial(_scripts, target="trtllm", engine="tensorrt-llm"),
    "llama-cpp": partial(_scripts, target="llama-cpp", engine="llama.cpp"),
    "compose": compose_files,
    "kubernetes": kubernetes_files,
    "kserve": kserve_files,
    "dynamo": dynamo_files,
    "skypilot": skypilot_files,
    "dstack": dstack_files,
    "router": lambda plan, _version: router_files(plan),
    "benchmark": lambda plan, _version: benchmark_files(plan),
}


def generate(plan: DeploymentPlan, target: str, version: str | None, ramp: float | None = None) -> DeploymentOut:
    """The files of a target. ramp: requests per second that demand may rise by in a minute. Raises TargetCannotExpressError."""
    files = TARGETS[target](plan, version)
    if target != "router":
        affinity_notes(plan, files)
    return DeploymentOut(
        recommendation=plan.recommendation,
        target=target,
        generator_version=GENERATOR_VERSION,
        engine_versions=files.versions,
        files=files.written(),
        notes=files.noted(),
        readiness=readiness(plan, ramp),
        check=check_command(plan),
    )


def check_command(plan: DeploymentPlan) -> str:
    """Drives one replica at its planned rate; the result uploads, and is compared with the prediction."""
    workload = plan.kinds[0].line.workload if plan.kinds else ""
    return shell_command(
        ["clusterwright", "agent", "bench", "--endpoint", "http://127.0.0.1:8000",
         "--recommendation", plan.recommendation, "--workload", workload]
    )  # fmt: skip
