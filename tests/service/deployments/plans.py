"""Plans to deploy, made by hand: one of each shape a plan can have."""

from dataclasses import replace
from typing import Any

from service.deployments.plan import DeploymentPlan, DeviceMemory, Machine, ServedModel, replica_kinds
from service.wire.plan_lines import FleetNodesOut, PlanLineOut
from service.wire.recommendations import WorkloadIn

MACHINES = {
    "aws:p5.48xlarge:us-east-1:on_demand": Machine(
        "aws-p5.48xlarge", 8, "h100-sxm", "NVIDIA", ("vllm", "sglang", "tensorrt-llm", "llama.cpp"), "p5.48xlarge", True
    ),
    "tensorwave:MI300X:us:on_demand": Machine(
        "tensorwave-mi300x", 1, "mi300x", "AMD", ("vllm", "sglang"), "MI300X", False
    ),
    "own:rack 1:cellar:purchase": Machine(
        "hgx-h200-8", 8, "h200-sxm", "NVIDIA", ("vllm", "sglang", "tensorrt-llm"), "rack 1", True
    ),
    "gcp:a2:us-central1:spot": Machine(
        "gcp-a2", 4, "a100-sxm-80", "NVIDIA", ("vllm", "sglang"), "a2-highgpu-4g", True
    ),
}  # fmt: skip
MODELS = {
    "llama-3.1-70b": ServedModel("llama-3.1-70b", "meta-llama/Llama-3.1-70B", "bf16", False, 131_072),
    "qwen3-30b-a3b": ServedModel("qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", "bf16", True, 40_960),
    "deepseek-v3": ServedModel("deepseek-v3", "deepseek-ai/DeepSeek-V3", "fp8", True, 163_840),
    "llama-3.2-1b": ServedModel("llama-3.2-1b", "meta-llama/Llama-3.2-1B", "bf16", False, 131_072),
    "own-model": ServedModel("own-model", None, "bf16", False, 131_072),
}
AWS, AMD, OWN, SPOT = MACHINES


def line(workload: str, offer: str, **given: Any) -> PlanLineOut:
    """A line of a plan."""
    provider, _, region, commitment = offer.split(":")
    layout = {"tensor_parallel": 1, "pipeline_parallel": 1, "data_parallel": 1, "expert_parallel": 1} | given.pop(
        "layout", {}
    )
    replicas = given.pop("replicas", 2)
    settings = {"name": "vllm", "max_context_tokens": 8192} | given.pop("engine_settings", {})
    stated: dict[str, Any] = {
        "workload": workload,
        "offer": offer,
        "provider": provider,
        "region": region,
        "commitment": commitment,
        "node": MACHINES[offer].node,
        "device": MACHINES[offer].device,
        "engine": "vllm",
        "nodes": 1,
        "replicas": replicas,
        "layout": layout,
        "precision": {"weights": "bf16", "kv_cache": "bf16"},
        "engine_settings": settings,
        "max_concurrency": 100,
        "serves_requests_per_s": 12.5,
        "utilisation_fraction": 0.8,
        "predicted": None,
        "basis": "analytical",
        "usd_per_hour": "10.000000",
    }
    return PlanLineOut.model_validate(stated | given)


def workload(name: str, llm: str = "llama-3.1-70b", **given: Any) -> WorkloadIn:
    stated = {
        "name": name,
        "llm": llm,
        "traffic": {
            "requests_per_s": 10.0,
            "prompt_tokens": {"distribution": "fixed", "tokens": 1000},
            "output_tokens": {"distribution": "fixed", "tokens": 200},
        },
    }
    return WorkloadIn.model_validate(stated | given)


def plan(workloads: list[WorkloadIn], lines: list[PlanLineOut], *, spare_nodes: int = 0) -> DeploymentPlan:
    """With nodes enough for all replicas of an offer, and the spares."""
    kinds = replica_kinds(lines, {w.name: w for w in workloads}, MACHINES, MODELS)
    memory = DeviceMemory(80e9, 40e9, 25e9, 100_000)
    kinds = tuple(replace(kind, memory=None if kind.line.partition else memory) for kind in kinds)
    fleet = []
    for offer in dict.fromkeys(one.offer for one in lines):
        machine = MACHINES[offer]
        devices = 0.0
        for kind in (k for k in kinds if k.line.offer == offer):
            partition = kind.line.partition
            share = 1 if partition is None else 1 / partition.instances_per_device
            devices += kind.line.replicas * max(
                kind.devices * share, kind.nodes * machine.devices if kind.nodes > 1 else 0
            )
        nodes = int(-(-devices // machine.devices)) + spare_nodes
        fleet.append(
            FleetNodesOut(
                offer=offer, node=machine.node, device=machine.device, nodes=nodes, usd_per_hour="10.000000"
            )  # as on the wire
        )
    return DeploymentPlan("rec_01", kinds, tuple(fleet), MACHINES, spare_nodes)


PARTITION = {
    "profile": "1g.10gb",
    "instances_per_device": 7,
    "memory_gib": 9.625,
    "launch": ["nvidia-smi -i GPU -mig 1", "nvidia-smi mig -i GPU -cgi 1g.10gb -C", "nvidia-smi -L", "ENGINE"],
}


LOOK_UP = {
    "method": "ngram",
    "draft_tokens": 4,
    "acceptance_fraction": 0.6,
    "draft_step_fraction": 0.0,
    "draft_cost_source": "test",
}


CHATS: dict[str, Any] = {
    "requests_per_s": 10.0,
    "output_tokens": 200,
    "sessions": {"turns": 5, "user_tokens": 100, "think_time_s": 20.0, "system_prompt_tokens": 1000},
}


def shapes() -> dict[str, DeploymentPlan]:
    """By what is special about them."""
    return {
        "one device": plan(
            [workload("chat")],
            [line("chat", AWS, precision={"weights": "fp8", "kv_cache": "fp8"}, replicas=3)],
            spare_nodes=1,
        ),
        "several nodes": plan(
            [workload("big", "deepseek-v3")],
            [line("big", OWN, layout={"tensor_parallel": 8, "pipeline_parallel": 2},
                  precision={"weights": "fp8", "kv_cache": "bf16"})],
        ),
        "mixed fleet": plan(
            [workload("chat"), workload("聊天 & \"rag\"\n$(reboot)", "qwen3-30b-a3b")],
            [
                line("chat", AWS, layout={"tensor_parallel": 4}),
                line("chat", SPOT, layout={"tensor_parallel": 2}, replicas=1),
                line("聊天 & \"rag\"\n$(reboot)", AWS, layout={"tensor_parallel": 2, "expert_parallel": 2}, replicas=1),
            ],
        ),
        "split devices": plan(
            [workload("small", "llama-3.2-1b")], [line("small", SPOT, partition=PARTITION, replicas=9)]
        ),
        "other vendor": plan([workload("chat")], [line("chat", AMD)]),
        "two pools": plan(
            [workload("chat")],
            [line("chat", AWS, role="prefill", replicas=2), line("chat", AWS, role="decode", replicas=1)],
        ),
        "eight-bit cache": plan(
            [workload("chat")],
            [line("chat", AWS, layout={"tensor_parallel": 2}, precision={"weights": "bf16", "kv_cache": "fp8"})],
        ),
        "quantised file": plan(
            [workload("chat")], [line("chat", AWS, engine="llama.cpp", precision={"weights": "q4_k_m", "kv_cache": "fp16"},
                                      engine_settings={"name": "llama.cpp", "max_sequences": 32})]
        ),
        "drafts": plan([workload("chat")], [line("chat", AWS, engine_settings={"speculative": LOOK_UP})]),
        "drafts with heads": plan(
            [workload("chat")], [line("chat", AWS, engine_settings={"speculative": LOOK_UP | {"method": "head"}})]
        ),
        "sessions": plan([workload("chat", traffic=CHATS)], [line("chat", AWS, replicas=3)]),
        "sessions by prefix": plan(
            [workload("chat", traffic=CHATS | {"sessions": CHATS["sessions"] | {"routing": "prefix_aware"}})],
            [line("chat", AWS, engine="sglang", engine_settings={"name": "sglang"})],
        ),
        "sessions on two kinds": plan(
            [workload("chat", traffic=CHATS)],
            [line("chat", AWS, serves_requests_per_s=30.0), line("chat", OWN, replicas=1, serves_requests_per_s=10.0)],
        ),
        "no checkpoint": plan([workload("own", "own-model")], [line("own", AWS)]),
        "format nobody published": plan(
            [workload("chat")], [line("chat", AWS, precision={"weights": "nvfp4", "kv_cache": "bf16"})]
        ),
    }  # fmt: skip
