"""Where engines keep the cache of prefixes on the local disks of a node."""

from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError

HOST_FOLDER = "/mnt/kv-cache"
"""On the machine: to be on its local disks, with no more room than caches may take."""
FOLDERS = {"vllm": HOST_FOLDER, "sglang": "/tmp/hicache"}
"""As each engine sees it. SGLang's is where it writes unless SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR says otherwise
(mem_cache/hicache_storage.py)."""


def folder(kind: ReplicaKind) -> str | None:
    """The folder of one kind's engine; None where nothing is kept on disk."""
    return FOLDERS.get(kind.line.engine) if kind.settings.disk_cache_gib else None


def folder_note(kind: ReplicaKind) -> tuple[str, str] | None:
    """What to make before a kind is started, by name."""
    where = folder(kind)
    if where is None:
        return None
    bound = (
        "vLLM deletes nothing there, so make it a file system of no more than that"
        if kind.line.engine == "vllm"
        else "SGLang deletes what was used longest ago"
    )
    text = f"a folder on the local disks, for {kind.settings.disk_cache_gib:g} GiB of each device; {bound}"
    return f"{where} of {kind.name}", text


def require_no_disk_cache(kind: ReplicaKind, target: str) -> None:
    """Raises PartError where files of the target would keep the cache on whatever disk a container has."""
    if kind.settings.disk_cache_gib:
        raise PartError(
            kind.part,
            f"how {target} mounts the local disks for its cache is not written here; targets commands, compose and kubernetes do",
        )
