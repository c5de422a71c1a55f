"""Dynamo: one graph a workload, with prefill and decode workers where the plan has pools of their own."""

import json
from itertools import groupby
from typing import Any

from catalog.engine_options import EngineOptions, read_engine_options, read_engine_releases
from service.deployments.collect import made_of_each
from service.deployments.disk_cache import require_no_disk_cache
from service.deployments.engines import image_of
from service.deployments.files import Files, engine_notes
from service.deployments.kubernetes import hf_token, node_selector, resource_name
from service.deployments.launch import Launch, check_options, checkpoint, release_image
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.vllm import vllm_options
from service.deployments.words import Word, kubernetes_words, label_name, yaml_documents

TRANSFER = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"}, separators=(",", ":"))
"""Both pools hand caches over by NIXL (docs/kubernetes/dgd-guide.md of the releases read)."""
POOL_SHARED_MEMORY = "16Gi"
"""That page's, for workers that hand caches over."""


def dynamo_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError. version: of vLLM; the release of Dynamo is the newest that carries it."""
    files = Files()
    order = list(dict.fromkeys(kind.line.workload for kind in plan.kinds))
    ordered = sorted(plan.kinds, key=lambda kind: order.index(kind.line.workload))
    components = made_of_each("dynamo", ordered, lambda kind: _worker(plan, kind, version, files))
    made = list(zip(ordered, components, strict=True))
    for number, (workload, pairs) in enumerate(groupby(made, key=lambda pair: pair[0].line.workload), 1):
        name, workers = label_name(workload, number), list(pairs)
        files.add(f"{name}.dynamo.yaml", yaml_documents([_graph(name, workload, workers)]))
        files.note(f"address of {name}", f"Service {name}-frontend, port 8000")
    files.note("Dynamo Platform", "its operator must run in the cluster: it makes pods and Services of these resources")
    files.note(
        "Secret hf-token", "key token: read where a repository asks for one; make it yourself, it is never written here"
    )
    if any(kind.line.role != "aggregated" for kind in plan.kinds):
        files.note("network", "caches are handed over by NIXL: without RDMA between the pools it falls back to TCP")
    if any(kind.nodes > 1 for kind in plan.kinds):
        files.note("several nodes", "the cluster needs Grove, or LeaderWorkerSet with Volcano, for workers over nodes")
    return files


def _graph(name: str, workload: str, workers: list[tuple[ReplicaKind, dict[str, Any]]]) -> dict[str, Any]:
    image = workers[0][1]["podTemplate"]["spec"]["containers"][0]["image"]
    frontend = {
        "name": "frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}},
    }
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name, "annotations": {"clusterwright/workload": workload}},
        "spec": {"backendFramework": "vllm", "components": [frontend, *(component for _, component in workers)]},
    }


def _worker(plan: DeploymentPlan, kind: ReplicaKind, version: str | None, files: Files) -> dict[str, Any]:
    _require_one_share(plan, kind)
    role = "worker" if kind.line.role == "aggregated" else kind.line.role
    launch, release = _launch(kind, version)
    if kind.devices % kind.nodes:
        raise PartError(kind.part, f"{kind.devices} devices do not divide over {kind.nodes} nodes")
    files.use(launch)
    files.versions["dynamo"] = release
    planned = kind.settings.version
    if kind.line.engine == "vllm" and planned not in (None, launch.version):
        files.note(
            f"version of {kind.name}",
            f"Dynamo {release} carries vllm {launch.version}; the plan was made for {planned}",
        )
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    container = {
        "name": "main",
        "image": image_of(kind, launch),
        "command": kubernetes_words(launch.words),
        "env": [hf_token()],
        "resources": {"limits": {resource_name(kind): str(kind.devices // kind.nodes)}},
    }
    return {
        "name": role,
        "type": role,
        "replicas": kind.line.replicas,
        **({"multinode": {"nodeCount": kind.nodes}} if kind.nodes > 1 else {}),
        **({"sharedMemorySize": POOL_SHARED_MEMORY} if kind.line.role != "aggregated" else {}),
        "podTemplate": {"spec": {"nodeSelector": node_selector(kind, files), "containers": [container]}},
    }


def _require_one_share(plan: DeploymentPlan, kind: ReplicaKind) -> None:
    """Raises PartError for a workload whose requests are to be shared out unevenly: the frontend does not."""
    alike = [one for one in plan.kinds if one.line.workload == kind.line.workload and one.line.role == kind.line.role]
    if len(alike) > 1:
        raise PartError(
            kind.part,
            f"a graph shares requests out evenly, and the plan gives {len(alike)} kinds of replicas shares of their own",
        )
    roles = {one.line.role for one in plan.kinds if one.line.workload == kind.line.workload}
    if roles not in ({"aggregated"}, {"prefill", "decode"}):
        raise PartError(kind.part, "a graph has both pools for all requests of a workload, or none")


def _launch(kind: ReplicaKind, version: str | None) -> tuple[Launch, str]:
    """The worker's command with the release of Dynamo. Raises PartError."""
    require_no_disk_cache(kind, "Dynamo")
    if kind.settings.api_servers > 1:
        raise PartError(
            kind.part,
            f"it counts on {kind.settings.api_servers} processes that answer, and Dynamo's own frontend answers in the place of vLLM's",
        )
    dynamo = _release(kind, version)
    carried = dynamo.carries["vllm"]
    engine = read_engine_options()["vllm"].get(carried)
    if engine is None:
        raise PartError(
            kind.part, f"the options of vllm {carried}, which Dynamo {dynamo.version} carries, are not known"
        )
    words: list[Word] = ["python3", "-m", "dynamo.vllm", "--model", checkpoint(kind)]
    words += ["--served-model-name", kind.model.llm, *vllm_options(kind)]
    if kind.line.role != "aggregated":
        words += ["--disaggregation-mode", kind.line.role, "--kv-transfer-config", TRANSFER]
    both = EngineOptions(
        "dynamo",
        dynamo.version,
        dynamo.source,
        dynamo.options | engine.options,
        engine.choices | dynamo.choices,
    )
    check_options(kind, both, words)
    return Launch("vllm", carried, tuple(words), release_image(kind, dynamo)), dynamo.version


def _release(kind: ReplicaKind, version: str | None) -> EngineOptions:
    """The newest that carries the vLLM asked for or planned for; else the default, where none is asked for."""
    known = read_engine_options()["dynamo"]
    settings = kind.line.engine_settings
    planned = settings.version if settings is not None and kind.line.engine == "vllm" else None
    carrying = [one for one in known.values() if one.carries.get("vllm") == (version or planned)]
    if carrying:
        return carrying[-1]
    if version is not None:
        listed = ", ".join(f"{one.carries['vllm']} ({one.version})" for one in known.values())
        raise PartError(kind.part, f"no release of Dynamo read here carries vllm {version}; known are {listed}")
    return known[read_engine_releases()["dynamo"].default]
