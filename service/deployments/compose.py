"""Compose files: one for each kind of host, with its replicas as services."""

from typing import Any

from service.deployments.collect import made_of_each
from service.deployments.disk_cache import HOST_FOLDER, TRIMMER, folder, trim_words, trimmer
from service.deployments.engines import image_of, planned_launch
from service.deployments.files import Files, engine_notes
from service.deployments.launch import PORT, Where, require_one_pool
from service.deployments.placement import Host, Placed, place
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError, TargetCannotExpressError
from service.deployments.words import compose_words, yaml_documents

CACHE_VOLUME = "model-cache"
HEALTH = "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=5)"
START_PERIOD = "60m"
"""Weights are loaded, and on the first start downloaded, before a server is healthy."""


def compose_files(plan: DeploymentPlan, version: str | None) -> Files:
    """Raises TargetCannotExpressError."""
    made_of_each("compose", plan.kinds, require_one_pool)
    try:
        hosts = place(plan)
    except PartError as error:
        raise TargetCannotExpressError("compose", [error.refusal]) from None
    files = Files()
    alike: dict[str, list[Host]] = {}
    for host in (h for h in hosts if h.placed):
        (text,) = made_of_each("compose", [host], lambda one: _host_file(one, version, files))
        alike.setdefault(text, []).append(host)
    for number, (text, group) in enumerate(alike.items(), 1):
        path = f"compose.host-{number}.yaml"
        files.add(path, text)
        files.note(
            path, f"for {len(group)} host{'s' if len(group) > 1 else ''} of offer {group[0].offer}: start it on each"
        )
    if any(trim_words(placed.kind) for host in hosts for placed in host.placed):
        files.add(TRIMMER, trimmer())
    spares = sum(not host.placed for host in hosts)
    if spares:
        files.note("spares", f"{spares} hosts of the plan stand by without replicas")
    files.note("HF_TOKEN", "handed on from the host's environment where it is set; never written down")
    return files


def _host_file(host: Host, version: str | None, files: Files) -> str:
    services: dict[str, Any] = {}
    for number, placed in enumerate(host.placed):
        services[f"{placed.kind.name}-{number + 1}"] = _service(placed, PORT + number, version, files)
    trimmed = next((placed.kind for placed in host.placed if trim_words(placed.kind)), None)
    if trimmed is not None:
        services["kv-cache-trim"] = _trimmer(trimmed, version)
    return yaml_documents([{"services": services, "volumes": {CACHE_VOLUME: {}}}])


def _trimmer(kind: ReplicaKind, version: str | None) -> dict[str, Any]:
    """Beside the engines of a host, whose folder they share: keeps it below its size, with the Python of their image."""
    return {
        "image": image_of(kind, planned_launch(kind, version, Where())),
        "entrypoint": [],
        "command": compose_words(["python3", f"/{TRIMMER}", *trim_words(kind)]),
        "volumes": [f"./{TRIMMER}:/{TRIMMER}:ro", f"{HOST_FOLDER}:{folder(kind)}"],
        "restart": "unless-stopped",
    }


def _service(placed: Placed, port: int, version: str | None, files: Files) -> dict[str, Any]:
    kind = placed.kind
    launch = planned_launch(kind, version, Where())
    image = image_of(kind, launch)
    files.use(launch)
    for about, text in engine_notes(kind, launch):
        files.note(about, text)
    if placed.instance is None:
        devices = [str(number) for number in placed.devices]
    else:
        variable = f"MIG_{placed.devices[0]}_{placed.instance}"
        devices = [f"${{{variable}:?}}"]
        launch_commands = "; ".join(kind.line.partition.launch[:3]) if kind.line.partition else ""
        files.note(variable, f"id MIG-… of instance {placed.instance} on device {placed.devices[0]}: {launch_commands}")
    return {
        "image": image,
        "entrypoint": [],
        "command": compose_words(launch.words),
        "environment": {"HF_TOKEN": None},
        "ports": [f"{port}:{PORT}"],
        "volumes": [
            f"{CACHE_VOLUME}:/root/.cache/huggingface",
            *([f"{HOST_FOLDER}:{folder(kind)}"] if folder(kind) else []),
        ],
        "ipc": "host",
        "restart": "unless-stopped",
        "healthcheck": {
            "test": ["CMD", "python3", "-c", HEALTH],
            "interval": "10s",
            "timeout": "10s",
            "retries": 3,
            "start_period": START_PERIOD,
        },
        "deploy": {
            "resources": {
                "reservations": {"devices": [{"driver": "nvidia", "device_ids": devices, "capabilities": ["gpu"]}]}
            }
        },
        "labels": {
            "clusterwright.workload": kind.line.workload.replace("$", "$$"),
            "clusterwright.offer": kind.line.offer.replace("$", "$$"),
        },
    }
