"""Keeping turns of a session, or prompts that begin alike, to one replica, where a plan's predictions count on it."""

from dataclasses import dataclass

from catalog.engine_routers import EngineRouterRow, read_engine_routers
from service.deployments.files import Files
from service.deployments.launch import PORT
from service.deployments.plan import DeploymentPlan, ReplicaKind
from service.deployments.words import Variable, Word, shell_command, shell_comment

SESSION_HEADER = "x-session-id"
LONGEST_CLIENT_AFFINITY_S = 86_400
"""The most that a Kubernetes Service takes (ClientIPConfig of the core/v1 API)."""
KEPT = ("sticky", "prefix_aware")
LISTENS_AT = "8080"


@dataclass(frozen=True, slots=True)
class Affinity:
    """routing: ``sticky`` or ``prefix_aware``. replicas: of all kinds that serve the workload."""

    workload: str
    routing: str
    kinds: tuple[ReplicaKind, ...]

    @property
    def replicas(self) -> int:
        return sum(kind.line.replicas for kind in self.kinds)


def affinities(plan: DeploymentPlan) -> dict[str, Affinity]:
    """By workload: those whose sessions are kept to one of several replicas."""
    found: dict[str, Affinity] = {}
    for kind in plan.kinds:
        sessions = kind.workload.traffic.sessions if kind.workload.traffic is not None else None
        if sessions is None or sessions.routing not in KEPT or kind.line.workload in found:
            continue
        name = kind.line.workload
        kinds = tuple(k for k in plan.kinds if k.line.workload == name and k.line.serves_requests_per_s > 0)
        found[name] = Affinity(name, sessions.routing, kinds)
    return {name: one for name, one in found.items() if one.replicas > 1}


def is_hashed(plan: DeploymentPlan, kind: ReplicaKind) -> bool:
    """Are its sessions told apart by their header, each kept to one replica?"""
    one = affinities(plan).get(kind.line.workload)
    return one is not None and one.routing == "sticky"


def pods_name(kind: ReplicaKind) -> str:
    """The Service that names each replica by itself, rather than one address for all."""
    return f"{kind.name}-pods"


def affinity_notes(plan: DeploymentPlan, files: Files) -> None:
    """Says of each workload what its prediction counts on, for targets that start no router."""
    for one in affinities(plan).values():
        files.note(
            f"sessions of {one.workload}",
            f"what is found in caches was predicted with {one.routing} routing over {one.replicas} replicas: put a router before them that "
            "does so (target router)",
        )


def router_scripts(plan: DeploymentPlan, files: Files) -> None:
    """A script that starts the engine's own router before each workload whose sessions are kept, where one is documented."""
    for one in affinities(plan).values():
        about = f"sessions of {one.workload}"
        if one.routing == "sticky":
            files.note(
                about,
                f"clients state the session in the header {SESSION_HEADER}; envoy.yaml keeps each to one replica by it",
            )
        else:
            files.note(
                about,
                "envoy.yaml does not look into prompts: it sends a turn to where fewest are in progress; the script does",
            )
        if len(one.kinds) > 1:
            files.note(
                f"engine's router of {one.workload}",
                "none: it would load replicas of different kinds alike, not by their weights",
            )
            continue
        (kind,) = one.kinds
        row = read_engine_routers().get(kind.line.engine)
        words = None if row is None else row.words(one.routing)
        if row is None or words is None:
            files.note(
                f"engine's router of {one.workload}",
                f"none for {kind.line.engine} is known that does {one.routing} routing",
            )
            continue
        files.add(f"{kind.name}.router.sh", _script(plan, one, kind, row, words))
        files.note(f"{kind.name}.router.sh", _told(row, one.routing))


def _told(row: EngineRouterRow, routing: str) -> str:
    text = f"starts {row.name}, instead of Envoy, where it may get, list and watch the pods of NAMESPACE. It was not started here"
    if routing != "sticky":
        return text
    if row.needs_header:
        return f"{text}; clients send {SESSION_HEADER}"
    return f"{text}; it keeps prompts that begin alike together unless that loads one replica far above the others"


def _script(
    plan: DeploymentPlan, one: Affinity, kind: ReplicaKind, row: EngineRouterRow, words: tuple[str, ...]
) -> str:
    filled: dict[str, Word] = {
        "{listen}": Variable("PORT"), "{namespace}": Variable("NAMESPACE"), "{port}": str(PORT),
        "{selector}": f"clusterwright/serves={kind.name}", "{header}": SESSION_HEADER,
    }  # fmt: skip
    lines = [
        "#!/bin/sh",
        shell_comment(
            f"{plan.recommendation}: workload {one.workload}, {one.routing} routing over {one.replicas} replicas"
        ),
        shell_comment(f"{row.name}; options: {row.provenance.source}"),
        "set -eu",
        f': "${{PORT:={LISTENS_AT}}}"',
        ': "${NAMESPACE:=default}"',
        "exec " + shell_command(filled.get(word, word) for word in words),
    ]
    return "\n".join(lines) + "\n"
