"""Kubernetes manifests: a Deployment, or a LeaderWorkerSet where a replica spans nodes, and what goes with it."""

import re
from typing import Any

from service.deployments.affinity import LONGEST_CLIENT_AFFINITY_S, is_hashed, pods_name
from service.deployments.collect import made_of_each
from service.deployments.disk_cache import HOST_FOLDER, folder, trim_words, trimmer
from service.deployments.engines import image_of, planned_launch
from service.deployments.files import Files, engine_notes
from service.deployments.launch import PORT, Launch, Where, require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, kubernetes_words, yaml_documents

NODE_LABELS = {"aws", "azure", "gcp", "oci"}
"""Providers whose nodes carry the instance type's own name in the well-known label."""
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
REGION_LABEL = "topology.kubernetes.io/region"
OFFER_LABEL = "clusterwright/offer"
NAME_LABEL = "app.kubernetes.io/name"
RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
METRIC = "clusterwright_requests_per_second"
STARTUP_CHECKS, CHECK_SECONDS = 360, 10
"""An hour: weights are loaded, and on the first start downloaded, before a server is ready."""


def kubernetes_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    written = made_of_each("kubernetes", plan.kinds, lambda kind: _manifests(plan, kind, version, files))
    for kind, documents in zip(plan.kinds, written, strict=True):
        files.add(f"{kind.name}.yaml", yaml_documents(documents))
    files.add("adapter-rule.yaml", yaml_documents([adapter_rule()]))
    files.note(
        "Secret hf-token", "key token: read where a repository asks for one; make it yourself, it is never written here"
    )
    files.note(
        "adapter-rule.yaml",
        f"values for the Helm chart prometheus-adapter: it serves {METRIC}, by which the replicas are scaled",
    )
    for kind in plan.kinds:
        if kind.line.serves_requests_per_s > 0 and kind.workload.min_replicas < kind.line.replicas:
            files.note(
                f"minReplicas of {kind.name}",
                f"{kind.workload.min_replicas}, the workload's min_replicas, to {kind.line.replicas}, the plan's for the load asked "
                f"for. Set it to {kind.line.replicas} to have all of them at any time; "
                "fewer save money only where a node that falls empty is given back",
            )
    if plan.kinds:
        first = plan.kinds[0].name
        files.note("check", f"reaches a Service of the cluster by: kubectl port-forward service/{first} 8000:80")
    if any(kind.nodes > 1 for kind in plan.kinds):
        files.note("LeaderWorkerSet", "the cluster needs the LeaderWorkerSet controller (leaderworkerset.x-k8s.io/v1)")
    return files


def _manifests(plan: DeploymentPlan, kind: ReplicaKind, version: str | None, files: Files) -> list[dict[str, Any]]:
    require_one_pool(kind)
    if kind.nodes == 1:
        launch = planned_launch(kind, version, Where())
        workload = _deployment(kind, launch, files)
    else:
        launch = planned_launch(kind, version, _rank("0", follows=False))
        follower = planned_launch(kind, version, _rank(Variable("LWS_WORKER_INDEX"), follows=True))
        workload = _leader_worker_set(kind, launch, follower, files)
    files.use(launch)
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    documents = [workload, _service(kind), _pods_service(kind)]
    if is_hashed(plan, kind):
        documents[1] = _by_client(documents[1])
        files.note(
            f"Service {kind.name}",
            "keeps a client's address to one replica for a day, all that a Service can do for sessions: users behind one proxy share an "
            f"address. A router (target router) reaches the replicas by {pods_name(kind)} and tells sessions apart",
        )
    if kind.line.serves_requests_per_s > 0:
        documents.append(_autoscaler(kind, workload))
    if kind.line.replicas > 1:
        documents.append(_disruption_budget(plan, kind))
    return documents


def _rank(rank: str | Variable, *, follows: bool) -> Where:
    return Where(rank=rank, follows=follows, master=Variable("LWS_LEADER_ADDRESS"))


def _labels(kind: ReplicaKind) -> dict[str, str]:
    return {NAME_LABEL: kind.name, "app.kubernetes.io/managed-by": "clusterwright"}


def _metadata(kind: ReplicaKind) -> dict[str, Any]:
    line = kind.line
    notes = {
        "clusterwright/workload": line.workload,
        "clusterwright/offer": line.offer,
        "clusterwright/node": line.node,
    }
    return {"name": kind.name, "labels": _labels(kind), "annotations": notes}


def _deployment(kind: ReplicaKind, launch: Launch, files: Files) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(kind),
        "spec": {
            "replicas": kind.line.replicas,
            "selector": {"matchLabels": {NAME_LABEL: kind.name}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": _pod(kind, launch, files, serves=True, devices=kind.devices),
        },
    }


def _leader_worker_set(kind: ReplicaKind, leader: Launch, follower: Launch, files: Files) -> dict[str, Any]:
    if kind.devices % kind.nodes:
        raise PartError(kind.part, f"{kind.devices} devices do not divide over {kind.nodes} nodes")
    devices = kind.devices // kind.nodes
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": _metadata(kind),
        "spec": {
            "replicas": kind.line.replicas,
            "leaderWorkerTemplate": {
                "size": kind.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _pod(kind, leader, files, serves=True, devices=devices),
                "workerTemplate": _pod(kind, follower, files, serves=False, devices=devices),
            },
        },
    }


def _pod(kind: ReplicaKind, launch: Launch, files: Files, *, serves: bool, devices: int) -> dict[str, Any]:
    labels = _labels(kind) | ({"clusterwright/serves": kind.name} if serves else {})
    container: dict[str, Any] = {
        "name": "engine",
        "image": image_of(kind, launch),
        "command": kubernetes_words(launch.words),
        "env": [hf_token()],
        "resources": {"limits": {resource_name(kind): str(devices)}},
        "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
    }
    volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    if folder(kind):
        container["volumeMounts"].append({"name": "kv-cache", "mountPath": folder(kind)})
        volumes.append({"name": "kv-cache", "hostPath": {"path": HOST_FOLDER, "type": "DirectoryOrCreate"}})
    beside: list[dict[str, Any]] = []
    if options := trim_words(kind):
        beside.append(
            {
                "name": "kv-cache-trim",
                "image": image_of(kind, launch),
                "command": kubernetes_words(["python3", "-c", trimmer(), *options]),
                "volumeMounts": [{"name": "kv-cache", "mountPath": folder(kind)}],
            }
        )
    if serves:
        health = {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": CHECK_SECONDS}
        container["ports"] = [{"name": "http", "containerPort": PORT}]
        container["startupProbe"] = health | {"failureThreshold": STARTUP_CHECKS}
        container["readinessProbe"] = health
    return {
        "metadata": {"labels": labels},
        "spec": {
            "nodeSelector": node_selector(kind, files),
            "containers": [container, *beside],
            "volumes": volumes,
        },
    }


def hf_token() -> dict[str, Any]:
    """The environment's entry that reads the token of a model repository from a secret, where there is one."""
    return {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}},
    }


def resource_name(kind: ReplicaKind) -> str:
    """What the vendor's device plugin calls a device. Raises PartError where that is not known."""
    name = RESOURCES.get(kind.machine.vendor)
    if name is None:
        raise PartError(kind.part, f"no device plugin for devices of {kind.machine.vendor} is known here")
    if kind.line.partition is None:
        return name
    if kind.machine.vendor != "NVIDIA":
        raise PartError(kind.part, f"how a device plugin calls instances of {kind.line.device} is not known here")
    return f"nvidia.com/mig-{kind.line.partition.profile.replace('+', '.')}"


def node_selector(kind: ReplicaKind, files: Files) -> dict[str, str]:
    """Labels of the offer's nodes: the provider's own where they are known, else one that operators set."""
    line = kind.line
    if line.partition is not None:
        commands = "; ".join(line.partition.launch[:3])
        files.note(
            f"instances of {kind.name}",
            f"{line.partition.profile}, {line.partition.instances_per_device} a device: the device plugin's strategy must be"
            f" mixed; devices are split by the MIG manager or by: {commands}",
        )
    if line.provider in NODE_LABELS and LABEL_VALUE.fullmatch(kind.machine.instance):
        labels = {INSTANCE_LABEL: kind.machine.instance}
        if kind.machine.named_place and LABEL_VALUE.fullmatch(line.region):
            labels[REGION_LABEL] = line.region
        if line.commitment != "spot":
            return labels
    else:
        labels = {}
    value = re.sub(r"[^A-Za-z0-9._-]", ".", line.offer)[:63].strip("._-")
    labels[OFFER_LABEL] = value
    files.note(
        f"{OFFER_LABEL}={value}", f"label the nodes of offer {line.offer}: no label of the provider tells them apart"
    )
    return labels


def _service(kind: ReplicaKind) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": kind.name, "labels": _labels(kind)},
        "spec": {
            "selector": {"clusterwright/serves": kind.name},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        },
    }


def _by_client(service: dict[str, Any]) -> dict[str, Any]:
    """The Service, with each client's address kept to one replica."""
    kept = {
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": LONGEST_CLIENT_AFFINITY_S}},
    }
    return service | {"spec": service["spec"] | kept}


def _pods_service(kind: ReplicaKind) -> dict[str, Any]:
    """A name that resolves to every replica that is ready, for routers that choose among them."""
    service = _service(kind)
    named = {"name": pods_name(kind), "labels": _labels(kind)}
    return service | {"metadata": named, "spec": service["spec"] | {"clusterIP": "None"}}


def _autoscaler(kind: ReplicaKind, workload: dict[str, Any]) -> dict[str, Any]:
    """From the workload's fewest replicas to the plan's; each is to serve what the plan gives it."""
    most = kind.line.replicas
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": kind.name, "labels": _labels(kind)},
        "spec": {
            "scaleTargetRef": {"apiVersion": workload["apiVersion"], "kind": workload["kind"], "name": kind.name},
            "minReplicas": min(most, kind.workload.min_replicas),
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": METRIC},
                        "target": {"type": "AverageValue", "averageValue": milli(kind.requests_per_s)},
                    },
                }
            ],
        },
    }


def milli(value: float) -> str:
    """A Kubernetes quantity, rounded down to thousandths, at least one.

    >>> milli(2.5)
    '2500m'
    """
    return f"{max(1, int(value * 1000))}m"


def _disruption_budget(plan: DeploymentPlan, kind: ReplicaKind) -> dict[str, Any]:
    """As many replicas may be drained at once as stand on the nodes that the plan survives without; at least one."""
    on_a_node = max(1, kind.machine.devices // kind.devices)
    away = min(kind.line.replicas - 1, max(1, plan.spare_nodes * on_a_node))
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": kind.name, "labels": _labels(kind)},
        "spec": {"maxUnavailable": away, "selector": {"matchLabels": {"clusterwright/serves": kind.name}}},
    }


def adapter_rule() -> dict[str, Any]:
    """Requests a second that a pod finishes, from the engine's own counter, as a metric of pods."""
    return {
        "rules": {
            "custom": [
                {
                    "seriesQuery": 'vllm:request_success_total{namespace!="",pod!=""}',
                    "resources": {"overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}},
                    "name": {"as": METRIC},
                    "metricsQuery": "sum(rate(<<.Series>>{<<.LabelMatchers>>}[2m])) by (<<.GroupBy>>)",
                }
            ]
        }
    }
