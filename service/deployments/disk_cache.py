"""Where engines keep the cache of prefixes on the local disks of a node."""

import math
from functools import cache
from pathlib import Path

from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError
from solver.units import bytes_from_gib

TRIMMER = "trim_kv_cache.py"
"""A file written beside those of engines whose tier of files has no bound of its own."""

HOST_FOLDER = "/mnt/kv-cache"
"""On the machine: to be on its local disks, with no more room than caches may take."""
FOLDERS = {"vllm": HOST_FOLDER, "sglang": "/tmp/hicache"}
"""As each engine sees it. SGLang's is where it writes unless SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR says otherwise
(mem_cache/hicache_storage.py)."""


def folder(kind: ReplicaKind) -> str | None:
    """The folder of one kind's engine; None where nothing is kept on disk."""
    return FOLDERS.get(kind.line.engine) if kind.settings.disk_cache_gib else None


@cache
def trimmer() -> str:
    """The script that keeps a folder below a size."""
    return Path(__file__).with_name(TRIMMER).read_text(encoding="utf-8")


def trim_words(kind: ReplicaKind) -> list[str]:
    """Options of the trimmer for a machine's folder, which its replicas share; empty where the engine bounds its own."""
    if kind.line.engine != "vllm" or not kind.settings.disk_cache_gib:
        return []
    most = math.floor(bytes_from_gib(kind.settings.disk_cache_gib * kind.machine.devices))
    return ["--folder", FOLDERS["vllm"], "--bytes", str(most)]


def folder_note(kind: ReplicaKind) -> tuple[str, str] | None:
    """What to make before a kind is started, by name."""
    where = folder(kind)
    if where is None:
        return None
    bound = (
        f"vLLM deletes nothing there, so {TRIMMER} deletes what was used longest ago once all devices of "
        "a machine together hold more; mount it with relatime, not noatime, and with a tenth to spare"
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
