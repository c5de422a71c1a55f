"""Targets that are an engine: one script a replica kind, and one for each further node of a replica."""

from functools import partial

from service.deployments.collect import made_of_each
from service.deployments.engines import LAUNCHERS
from service.deployments.files import Files, engine_notes
from service.deployments.launch import PORT, Launch, Where, require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.words import Variable, shell_command, shell_comment

FROM_REPOSITORIES = ("vllm", "sglang", "tensorrt-llm")
"""Engines that fetch the weights themselves."""


def engine_scripts(plan: DeploymentPlan, target: str, engine: str, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    scripts = made_of_each(target, plan.kinds, partial(_scripts, engine=engine, version=version))
    for kind, ranks in zip(plan.kinds, scripts, strict=True):
        for rank, launch in enumerate(ranks):
            suffix = "" if len(ranks) == 1 else f".rank-{rank}"
            files.add(f"{kind.name}{suffix}.sh", _script(plan, kind, launch, rank if len(ranks) > 1 else None))
        if ranks[0].config is not None:
            files.add(f"{kind.name}.yaml", ranks[0].config)
        for name, text in ranks[0].variables:
            files.note(f"{name} of {kind.name}", text)
        files.use(ranks[0])
        if engine == "tensorrt-llm":
            files.note(f"model of {kind.name}", f"requests name it {kind.model.hugging_face_id}: it has no other name")
        for about, text in engine_notes(kind, ranks[0]):
            files.note(about, text)
    files.note("PORT", f"where the server listens; {PORT} unless set")
    if engine in FROM_REPOSITORIES:
        files.note(
            "HF_TOKEN", "read by the engine from the environment where a repository asks for one; never written down"
        )
    if any(kind.nodes > 1 for kind in plan.kinds):
        files.note("MASTER_ADDR", "address of the node that runs rank 0, as the other nodes reach it")
    return files


def _scripts(kind: ReplicaKind, engine: str, version: str | None) -> list[Launch]:
    require_one_pool(kind)
    launcher = LAUNCHERS[engine]
    if kind.nodes == 1:
        return [launcher(kind, version, Where(port=Variable("PORT")))]
    return [
        launcher(kind, version, Where(port=Variable("PORT"), rank=str(rank), follows=rank > 0))
        for rank in range(kind.nodes)
    ]


def _script(plan: DeploymentPlan, kind: ReplicaKind, launch: Launch, rank: int | None) -> str:
    line = kind.line
    lines = [
        "#!/bin/sh",
        shell_comment(f"{plan.recommendation}: workload {line.workload}, offer {line.offer}, node {line.node}"),
        shell_comment(
            f"start it {line.replicas} times in all, each on {_devices(kind)} of its own; CUDA_VISIBLE_DEVICES chooses"
        ),
        shell_comment(f"{launch.engine} {launch.version}"),
        "set -eu",
        f': "${{PORT:={PORT}}}"',
    ]
    lines += [f': "${{{name}:?{text}}}"' for name, text in launch.variables]
    if launch.config is not None:
        lines.append(f': "${{CONFIG:=$(dirname "$0")/{kind.name}.yaml}}"')
    if rank is not None:
        lines.append(': "${MASTER_ADDR:?address of the node that runs rank 0}"')
    if line.partition is not None:
        lines += [shell_comment(command) for command in ("once a device:", *line.partition.launch[:3])]
        lines.append(': "${CUDA_VISIBLE_DEVICES:?the MIG-… id of an instance}"')
    return "\n".join([*lines, "exec " + shell_command(launch.words)]) + "\n"


def _devices(kind: ReplicaKind) -> str:
    if kind.line.partition is not None:
        return f"one instance {kind.line.partition.profile}"
    if kind.nodes > 1:
        return f"{kind.nodes} nodes"
    return f"{kind.devices} device{'s' if kind.devices > 1 else ''}"
