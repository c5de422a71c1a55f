"""dstack: one service a workload, each line of the plan a group of its replicas."""

from itertools import groupby
from typing import Any

from service.deployments.collect import made_of_each
from service.deployments.disk_cache import require_no_disk_cache
from service.deployments.engines import image_of, planned_launch
from service.deployments.files import Files, commitment_note, engine_notes
from service.deployments.launch import PORT, Where, require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import shell_command, yaml_documents

BACKENDS = {"aws": "aws", "azure": "azure", "gcp": "gcp", "lambda": "lambda"}
"""Providers whose instance types dstack calls as they do, by provider; dstack's name of the provider."""
GPUS = {
    "a100-sxm-40": "A100", "a100-sxm-80": "A100", "a10g": "A10G", "b200-sxm": "B200", "h100-sxm": "H100",
    "h200-sxm": "H200", "l4": "L4", "l40s": "L40S",
}  # fmt: skip
"""Names of devices in dstack's catalog (gpuhunt)."""


def dstack_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    groups = made_of_each("dstack", plan.kinds, lambda kind: _group(kind, version, files))
    made = sorted(zip(plan.kinds, groups, strict=True), key=lambda pair: _first(plan, pair[0]))
    for _, same in groupby(made, key=lambda pair: pair[0].line.workload):
        pairs = list(same)
        first = pairs[0][0]
        files.add(f"{first.name}.dstack.yml", yaml_documents([_service([k for k, _ in pairs], [g for _, g in pairs])]))
        if len({kind.line.offer for kind, _ in pairs}) > 1:
            files.note(
                f"offers of {first.line.workload}",
                "dstack takes backends, regions and instance types for a service as a whole and chooses among them by group",
            )
    files.note("HF_TOKEN", "handed on from the environment of dstack apply; never written down")
    return files


def _first(plan: DeploymentPlan, kind: ReplicaKind) -> tuple[int, int]:
    kinds = list(plan.kinds)
    return next(n for n, k in enumerate(kinds) if k.line.workload == kind.line.workload), kinds.index(kind)


def _group(kind: ReplicaKind, version: str | None, files: Files) -> dict[str, Any]:
    line = kind.line
    require_one_pool(kind)
    if line.provider not in BACKENDS:
        raise PartError(kind.part, f"what dstack calls the instances of {line.provider} is not known here")
    if line.device not in GPUS:
        raise PartError(kind.part, f"what dstack calls {line.device} is not known here")
    if kind.nodes > 1:
        raise PartError(kind.part, f"a replica of a dstack service is one node; this one spans {kind.nodes}")
    if line.partition is not None or kind.devices != kind.machine.devices:
        raise PartError(kind.part, "each replica of a dstack service takes a whole instance; these share one")
    commitment_note(kind, files)
    require_no_disk_cache(kind, "dstack")
    launch = planned_launch(kind, version, Where())
    files.use(launch)
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    least = min(line.replicas, kind.workload.min_replicas)
    scales = least < line.replicas and line.serves_requests_per_s > 0
    group: dict[str, Any] = {
        "name": kind.name,
        "replicas": f"{least}..{line.replicas}" if scales else line.replicas,
        "resources": {"gpu": {"name": GPUS[line.device], "count": kind.devices}},
        "spot_policy": "spot" if line.commitment == "spot" else "on-demand",
        "image": image_of(kind, launch),
        "commands": [shell_command(launch.words)],
    }
    if scales:
        group["scaling"] = {"metric": "rps", "target": kind.requests_per_s}
    return group


def _service(kinds: list[ReplicaKind], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Where it may run: the union over the groups."""
    places = sorted({kind.line.region for kind in kinds if kind.machine.named_place})
    everywhere = any(not kind.machine.named_place for kind in kinds)
    return {
        "type": "service",
        "name": kinds[0].name,
        "port": PORT,
        "model": kinds[0].model.llm,
        "env": ["HF_TOKEN"],
        "probes": [{"type": "http", "url": "/health"}],
        "backends": sorted({BACKENDS[kind.line.provider] for kind in kinds}),
        **({} if everywhere else {"regions": places}),
        "instance_types": sorted({kind.machine.instance for kind in kinds}),
        "groups": groups,
    }
