"""KServe: an LLMInferenceService for each line of the plan, or for the two pools of a workload."""

import re
from decimal import Decimal
from typing import Any

from service.deployments.collect import made_of_each
from service.deployments.disk_cache import require_no_disk_cache
from service.deployments.engines import image_of
from service.deployments.files import Files, engine_notes
from service.deployments.kubernetes import hf_token, node_selector, resource_name
from service.deployments.launch import Launch, check_options, checkpoint, release_image, release_options
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.vllm import server_words, vllm_options
from service.deployments.words import Word, yaml_documents

LEAST_RELEASE = "0.20"
"""Of KServe: its configuration of the container hands ``args`` on to ``vllm serve`` (config/llmisvcconfig)."""
PLAIN = re.compile(r"[A-Za-z0-9_.,:=/+-]+")
"""Words that a shell reads as they are: KServe's configuration hands them to one."""
MODEL_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
TRANSFER = '--kv-transfer-config \'{{"kv_connector":"NixlConnector","kv_role":"{role}"}}\''
ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}


def kserve_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    mains = [kind for kind in plan.kinds if kind.line.role != "prefill"]
    made_of_each("kserve", plan.kinds, lambda kind: _checked(plan, kind, version))
    for kind, document in zip(
        mains, made_of_each("kserve", mains, lambda k: _service(plan, k, version, files)), strict=True
    ):
        files.add(f"{kind.name}.kserve.yaml", yaml_documents([document]))
    files.note("KServe", f"release {LEAST_RELEASE} or later, with its LLMInferenceService controller and a gateway")
    files.note(
        "Secret hf-token", "key token: read where a repository asks for one; make it yourself, it is never written here"
    )
    files.note("runAsNonRoot", "the engine's own image starts as root, which KServe's configuration would refuse")
    if any("scaling" in _scale(kind) for kind in plan.kinds):
        files.note(
            "scaling",
            "the Workload Variant Autoscaler must run in the cluster; variantCost is USD an hour of a replica",
        )
    if any(kind.line.role != "aggregated" for kind in plan.kinds):
        files.note("NIXL", "caches are handed over by it: the image must hold it, and the pools need RDMA between them")
    return files


def _service(plan: DeploymentPlan, kind: ReplicaKind, version: str | None, files: Files) -> dict[str, Any]:
    line = kind.line
    spec: dict[str, Any] = {
        "model": {"uri": f"hf://{checkpoint(kind)}", "name": kind.model.llm},
        **_workload(kind, version, files),
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
    }
    if line.role == "decode":
        spec["prefill"] = _workload(_prefill_of(plan, kind), version, files)
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {
            "name": kind.name,
            "annotations": {"clusterwright/workload": line.workload, "clusterwright/offer": line.offer},
        },
        "spec": spec,
    }


def _prefill_of(plan: DeploymentPlan, decode: ReplicaKind) -> ReplicaKind:
    return next(k for k in plan.kinds if k.line.workload == decode.line.workload and k.line.role == "prefill")


def _checked(plan: DeploymentPlan, kind: ReplicaKind, version: str | None) -> dict[str, Any]:
    """Raises PartError, also where a pool has not exactly one other pool to hand caches over to."""
    roles = sorted(k.line.role for k in plan.kinds if k.line.workload == kind.line.workload and k.line.role in ROLES)
    if kind.line.role in ROLES and roles != ["decode", "prefill"]:
        raise PartError(kind.part, "a service has one pool for prefill and one for decode")
    return _workload(kind, version, Files())


def _workload(kind: ReplicaKind, version: str | None, files: Files) -> dict[str, Any]:
    """Replicas, layout and pod of one line. Raises PartError."""
    if kind.nodes > 1:
        raise PartError(
            kind.part, f"KServe's workers over nodes are data-parallel ranks; this replica spans {kind.nodes}"
        )
    if not MODEL_NAME.fullmatch(kind.model.llm):
        raise PartError(kind.part, "KServe hands the model's name to a shell, which would read this one otherwise")
    launch = _launch(kind, version)
    files.use(launch)
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    container: dict[str, Any] = {
        "name": "main",
        "image": image_of(kind, launch),
        "args": [word for word in launch.words if isinstance(word, str)],
        "resources": {"limits": {resource_name(kind): str(kind.devices)}},
        "securityContext": {"runAsNonRoot": False},
    }
    if kind.line.role in ROLES:
        value = TRANSFER.format(role=ROLES[kind.line.role])
        host = {"fieldRef": {"fieldPath": "status.podIP"}}
        container["env"] = [
            {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": host},
            {"name": "VLLM_ADDITIONAL_ARGS", "value": value},
        ]
    return {
        **_scale(kind),
        "parallelism": {"tensor": kind.line.layout.tensor_parallel},
        "template": {
            "nodeSelector": node_selector(kind, files),
            "initContainers": [{"name": "storage-initializer", "env": [hf_token()]}],
            "containers": [container],
        },
    }


def _scale(kind: ReplicaKind) -> dict[str, Any]:
    """A fixed number, or from the workload's fewest to the plan's, with what a replica costs an hour."""
    line = kind.line
    least = min(line.replicas, kind.workload.min_replicas)
    if least == line.replicas or line.role != "aggregated" or line.serves_requests_per_s <= 0:
        return {"replicas": line.replicas}
    cost = (Decimal(line.usd_per_hour) / line.replicas).quantize(Decimal("0.000001"))
    wva = {"variantCost": f"{cost:f}", "hpa": {}}
    return {"scaling": {"minReplicas": max(1, least), "maxReplicas": line.replicas, "wva": wva}}


def _launch(kind: ReplicaKind, version: str | None) -> Launch:
    """What KServe's own command does not say: all but the model, its name, the port and tensor parallelism."""
    require_no_disk_cache(kind, "KServe")
    options = release_options(kind, "vllm", version)
    words = [*vllm_options(kind), *server_words(kind)]
    check_options(kind, options, words)
    if words[:1] == ["--tensor-parallel-size"]:
        words = words[2:]
    if not all(isinstance(word, str) and PLAIN.fullmatch(word) for word in words):
        raise PartError(kind.part, "KServe hands options to a shell, which would read one of these otherwise")
    return Launch("vllm", options.version, tuple[Word, ...](words), release_image(kind, options))
