"""Targets that are an engine: one script a replica kind, and one for each further node of a replica."""

from functools import partial

from service.deployments.collect import made_of_each
from service.deployments.disk_cache import TRIMMER, trim_words, trimmer
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
    if any(engine == kind.line.engine and trim_words(kind) for kind in plan.kinds):
        files.add(TRIMMER, trimmer())
    files.note("PORT", f"where the server listens; {PORT} unless set")
    for kind in plan.kinds:
        if _shares_a_machine(kind):
            most = min(kind.machine.devices // kind.devices, kind.line.replicas)
            files.note(
                f"REPLICA of {kind.name}",
                f"0 to {most - 1}, one of each on a machine: adds itself to PORT and chooses the devices",
            )
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
            f"start it {line.replicas} times in all, each on {_devices(kind)} of its own; {_chosen_by(kind)}"
        ),
        shell_comment(f"{launch.engine} {launch.version}"),
        "set -eu",
        *_place(kind),
    ]
    lines += [f': "${{{name}:?{text}}}"' for name, text in launch.variables]
    if launch.config is not None:
        lines.append(f': "${{CONFIG:=$(dirname "$0")/{kind.name}.yaml}}"')
    if rank is not None:
        lines.append(': "${MASTER_ADDR:?address of the node that runs rank 0}"')
    if line.partition is not None:
        lines += [shell_comment(command) for command in ("once a device:", *line.partition.launch[:3])]
        lines.append(': "${CUDA_VISIBLE_DEVICES:?the MIG-… id of an instance}"')
    if launch.engine == kind.line.engine and (options := trim_words(kind)):
        lines.append(f'python3 "$(dirname "$0")/{TRIMMER}" {shell_command(options)} --pid $$ &')
    return "\n".join([*lines, "exec " + shell_command(launch.words)]) + "\n"


def _shares_a_machine(kind: ReplicaKind) -> bool:
    """Do several replicas stand on one machine, told apart by a number?"""
    return (
        kind.line.replicas > 1
        and kind.line.partition is None
        and kind.machine.vendor.lower() == "nvidia"
        and kind.machine.devices >= 2 * kind.devices
    )


def _chosen_by(kind: ReplicaKind) -> str:
    if not _shares_a_machine(kind):
        return "CUDA_VISIBLE_DEVICES chooses"
    most = kind.machine.devices // kind.devices
    return f"REPLICA=0 to {min(most, kind.line.replicas) - 1} on one machine chooses devices and port"


def _place(kind: ReplicaKind) -> list[str]:
    """Where a replica listens and on which devices, so that those on one machine get what is their own."""
    if not _shares_a_machine(kind):
        return [f': "${{PORT:={PORT}}}"']
    first, last = f"$((REPLICA * {kind.devices}))", f"$((REPLICA * {kind.devices} + {kind.devices - 1}))"
    return [
        f': "${{PORT:={PORT}}}"',
        ': "${REPLICA:=0}"',
        "PORT=$((PORT + REPLICA))",
        f"export CUDA_VISIBLE_DEVICES=$(seq -s, {first} {last})",
    ]


def _devices(kind: ReplicaKind) -> str:
    if kind.line.partition is not None:
        return f"one instance {kind.line.partition.profile}"
    if kind.nodes > 1:
        return f"{kind.nodes} nodes"
    return f"{kind.devices} device{'s' if kind.devices > 1 else ''}"
