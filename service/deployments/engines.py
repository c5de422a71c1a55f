"""The engines whose command lines are known here."""

from collections.abc import Callable

from service.deployments.launch import Launch, Where
from service.deployments.llama_cpp import llama_cpp_launch
from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.sglang import sglang_launch
from service.deployments.trtllm import trtllm_launch
from service.deployments.vllm import vllm_launch

Launcher = Callable[[ReplicaKind, str | None, Where], Launch]
LAUNCHERS: dict[str, Launcher] = {
    "vllm": vllm_launch,
    "sglang": sglang_launch,
    "tensorrt-llm": trtllm_launch,
    "llama.cpp": llama_cpp_launch,
}


def planned_launch(kind: ReplicaKind, version: str | None, where: Where) -> Launch:
    """With the engine the plan was made for. Raises PartError where its command line is not known."""
    if kind.line.engine not in LAUNCHERS:
        raise PartError(kind.part, f"it was planned for {kind.line.engine}, whose command line is not known here")
    return LAUNCHERS[kind.line.engine](kind, version, where)


def image_of(kind: ReplicaKind, launch: Launch) -> str:
    """Raises PartError where no image is known."""
    if launch.image is None:
        raise PartError(kind.part, f"no image of {launch.engine} for devices of {kind.machine.vendor} is known")
    return launch.image
