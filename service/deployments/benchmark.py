"""The load that the plan was made for, driven against one replica of each kind; results upload and are compared."""

from service.deployments.collect import made_of_each
from service.deployments.files import Files
from service.deployments.launch import require_one_pool
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, Word, shell_command, shell_comment


def benchmark_files(plan: DeploymentPlan) -> Files:
    """Raises TargetCannotExpressError."""
    files = Files()
    kinds = [kind for kind in plan.kinds if kind.line.serves_requests_per_s > 0]
    for kind, words in zip(kinds, made_of_each("benchmark", kinds, lambda k: bench_words(plan, k)), strict=True):
        lines = [
            "#!/bin/sh",
            shell_comment(f"{plan.recommendation}: one replica of {kind.line.workload} at its planned rate"),
            *(shell_comment(text) for text in targets(kind)),
            shell_comment("options given are passed on, such as --requests 1000 or --records FILE"),
            "set -eu",
            ': "${ENDPOINT:=http://127.0.0.1:8000}"',
            'exec ' + shell_command(words) + ' "$@"',
        ]  # fmt: skip
        files.add(f"{kind.name}.bench.sh", "\n".join(lines) + "\n")
    files.note("ENDPOINT", "address of the replica; http://127.0.0.1:8000 unless set")
    files.note("CLUSTERWRIGHT_URL", "where results are uploaded, with CLUSTERWRIGHT_TOKEN where the service has tokens")
    return files


def bench_words(plan: DeploymentPlan, kind: ReplicaKind) -> list[Word]:
    """Raises PartError for traffic that the driver does not make."""
    require_one_pool(kind)
    if "\0" in kind.line.workload:
        raise PartError(kind.part, "no command line can hold the workload's name")
    traffic = kind.workload.traffic
    if traffic is None:
        raise PartError(kind.part, "the driver sends requests of one kind; the workload has traffic classes")
    if traffic.sessions is not None:
        raise PartError(kind.part, "the driver sends prompts that share nothing; the workload's are turns of sessions")
    if traffic.shared_prefix_fraction > 0:
        raise PartError(kind.part, "the driver sends prompts that share nothing; the workload's share a prefix")
    if kind.line.partition is not None:
        raise PartError(kind.part, "only whole devices are measured; the replica has an instance of a split one")
    return [
        "clusterwright", "agent", "bench", "--endpoint", Variable("ENDPOINT"), "--model", kind.model.llm,
        "--recommendation", plan.recommendation, "--workload", kind.line.workload, "--device", kind.line.device,
        "--rate", f"{kind.requests_per_s:.6g}",
    ]  # fmt: skip


def targets(kind: ReplicaKind) -> list[str]:
    """What is to be met, in words."""
    stated = kind.workload.targets
    named = (
        ("TTFT", stated.ttft_ms),
        ("TPOT", stated.tpot_ms),
        ("end to end", stated.e2e_ms),
        ("TTFAT", stated.ttfat_ms),
    )
    return [f"target: {name} {which} <= {limit:g} ms" for name, by in named for which, limit in by.items()]
