"""The files of an answer as they come together, with what is left to whoever uses them."""

from dataclasses import dataclass, field

from service.deployments.disk_cache import folder_note
from service.deployments.launch import Launch
from service.deployments.plan import ReplicaKind
from service.wire.deployments import DeploymentFileOut, DeploymentNoteOut


@dataclass
class Files:
    """files: content by path. notes: by what they are about, each once. versions: of the engines used."""

    files: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, content: str) -> None:
        if path in self.files:
            raise ValueError(f"two files are called {path}")
        self.files[path] = content

    def note(self, about: str, text: str) -> None:
        self.notes.setdefault(about, text)

    def use(self, launch: Launch) -> None:
        self.versions[launch.engine] = launch.version

    def written(self) -> list[DeploymentFileOut]:
        return [DeploymentFileOut(path=path, content=content) for path, content in self.files.items()]

    def noted(self) -> list[DeploymentNoteOut]:
        return [DeploymentNoteOut(about=about, text=text) for about, text in self.notes.items()]


def commitment_note(kind: ReplicaKind, files: Files) -> None:
    """Says of a line under contract that tools which rent by the hour start it as on demand."""
    if kind.line.commitment not in ("on_demand", "spot"):
        files.note(
            f"commitment of {kind.name}",
            f"{kind.line.commitment} is a contract with the provider; it is started as on demand",
        )


def engine_notes(kind: ReplicaKind, launch: Launch) -> list[tuple[str, str]]:
    """What to know of an engine's command beside the command."""
    notes = []
    if launch.engine != kind.line.engine:
        notes.append(
            (
                kind.part,
                f"predicted for {kind.line.engine}: latencies and rates of {launch.engine} will differ; measure them",
            )
        )
    if (disk := folder_note(kind)) is not None:
        notes.append(disk)
    if kind.line.precision.weights == "fp8" and kind.model.native_weights != "fp8":
        notes.append((f"weights of {kind.name}", "the engine makes fp8 from the 16-bit checkpoint as it loads"))
    if kind.model.hugging_face_id is not None:
        notes.append(
            (
                f"checkpoint of {kind.name}",
                f"{kind.model.hugging_face_id}, as the catalog names it; a base model has no chat template. Another of the same shape, "
                "such as one tuned to follow instructions, takes its place in the command and runs as fast",
            )
        )
    if kind.line.engine_settings is not None and kind.line.engine_settings.max_context_tokens is not None:
        tokens = kind.line.engine_settings.max_context_tokens
        notes.append(
            (
                f"context of {kind.name}",
                f"{tokens} tokens, prompt and answer together, as the workload was planned; the engine refuses longer requests. "
                "A longer context leaves the cache room for fewer: plan again with context_tokens",
            )
        )
    if kind.line.engine_settings is not None and kind.line.engine_settings.speculative is not None:
        drafting = kind.line.engine_settings.speculative
        notes.append(
            (
                f"drafting of {kind.name}",
                f"the plan counts on {100 * drafting.acceptance_fraction:g} % of drafted tokens being accepted, as was stated: set the "
                "look-up as it was when that was measured, since longest match and kind of text decide it",
            )
        )
    return notes
