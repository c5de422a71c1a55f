"""SkyPilot: one service for each line of the plan."""

from typing import Any

from service.deployments.collect import made_of_each
from service.deployments.disk_cache import require_no_disk_cache
from service.deployments.engines import image_of, planned_launch
from service.deployments.files import Files, commitment_note, engine_notes
from service.deployments.launch import PORT, Where, require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import shell_command, yaml_documents

CLOUDS = {"aws": "aws", "azure": "azure", "lambda": "lambda"}
"""Providers whose instance types SkyPilot calls as they do, by provider; SkyPilot's name of the provider."""
READY_WITHIN_S = 3600


def skypilot_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    for kind, task in zip(
        plan.kinds, made_of_each("skypilot", plan.kinds, lambda k: _task(k, version, files)), strict=True
    ):
        files.add(f"{kind.name}.sky.yaml", yaml_documents([task]))
    files.note("HF_TOKEN", "given with --secret HF_TOKEN where a repository asks for one; never written down")
    return files


def _task(kind: ReplicaKind, version: str | None, files: Files) -> dict[str, Any]:
    line = kind.line
    require_one_pool(kind)
    cloud = CLOUDS.get(line.provider)
    if cloud is None:
        raise PartError(kind.part, f"what SkyPilot calls the instances of {line.provider} is not known here")
    if kind.nodes > 1:
        raise PartError(kind.part, f"a replica of a SkyPilot service is one node; this one spans {kind.nodes}")
    if line.partition is not None or kind.devices != kind.machine.devices:
        raise PartError(kind.part, "each replica of a SkyPilot service has an instance of its own; these share one")
    commitment_note(kind, files)
    require_no_disk_cache(kind, "SkyPilot")
    launch = planned_launch(kind, version, Where())
    files.use(launch)
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    resources = {
        "infra": f"{cloud}/{line.region}" if kind.machine.named_place else cloud,
        "instance_type": kind.machine.instance,
        "use_spot": line.commitment == "spot",
        "image_id": f"docker:{image_of(kind, launch)}",
        "ports": PORT,
    }
    service: dict[str, Any] = {"readiness_probe": {"path": "/health", "initial_delay_seconds": READY_WITHIN_S}}
    least = min(line.replicas, kind.workload.min_replicas)
    if least < line.replicas and line.serves_requests_per_s > 0:
        service["replica_policy"] = {
            "min_replicas": least,
            "max_replicas": line.replicas,
            "target_qps_per_replica": kind.requests_per_s,
        }
    else:
        service["replicas"] = line.replicas
    return {
        "name": kind.name,
        "resources": resources,
        "service": service,
        "secrets": {"HF_TOKEN": None},
        "run": shell_command(launch.words),
    }
