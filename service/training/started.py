"""One job of a stored training plan, as files start it: with which programme, and what is said beside them."""

from dataclasses import dataclass

from service.training.said import tokens_of
from service.wire.training_plans import TrainingJobIn, TrainingLineOut
from solver.llm_shape import LlmShape

TRL, TORCHTITAN, MEGATRON = "TRL", "TorchTitan", "Megatron-LM"
"""What files start."""


@dataclass(frozen=True)
class Started:
    """One job of the plan with what it rents. hub: the checkpoint it begins from, null in pre-training or where none is known."""

    job: TrainingJobIn
    line: TrainingLineOut
    shape: LlmShape
    hub: str | None
    sequence_tokens: int
    global_batch_sequences: int

    @property
    def name(self) -> str:
        return "".join(c if c.isalnum() or c in "-_" else "-" for c in self.job.name)

    @property
    def devices_a_node(self) -> int:
        return self.line.devices // self.line.nodes

    @property
    def accumulated(self) -> int:
        """Micro-batches of one step on one replica."""
        layout = self.line.layout
        return max(1, self.global_batch_sequences // (layout.data_parallel * layout.micro_batch_sequences))

    @property
    def steps(self) -> int:
        return max(1, round(tokens_of(self.job) / (self.sequence_tokens * self.global_batch_sequences)))


def usual_programme(stack: str) -> str:
    """What a plan's own software is started with; of software without files here, the Trainer.

    >>> [usual_programme(one) for one in ("megatron-2026-06", "torchtitan", "transformers", "maxtext")]
    ['Megatron-LM', 'TorchTitan', 'TRL', 'TRL']
    """
    if stack.startswith("megatron"):
        return MEGATRON
    return TORCHTITAN if stack.startswith("torchtitan") else TRL


def _begins_from(started: Started, programme: str) -> str:
    if started.job.method != "pretrain":
        return f"begins from {started.hub}" if started.hub else "the catalog names no checkpoint: put it in its place"
    if programme == TRL:
        return f"begins from {started.hub or started.job.llm}: {TRL} loads weights. Megatron and TorchTitan begin from random ones"
    return "random weights"


def notes_of(started: Started, programme: str) -> dict[str, str]:
    """What is left to whoever starts the files, and how they differ from what was planned, by what it is about."""
    layout, stack = started.line.layout, started.line.stack
    told = {
        "DATA": "where the training data is: a data set's name or a path that every node sees",
        "OUTPUT": "where checkpoints go: a path that every node sees",
        f"checkpoint of {started.name}": _begins_from(started, programme),
        f"measure {started.name}": "upload the log of the first minutes to POST /v1/benchmarks/training-runs: what remains"
        " of the plan is then predicted from it",
    }  # fmt: skip
    if usual_programme(stack) != programme or (programme == TRL and not stack.startswith("transformers")):
        told[f"speed of {started.name}"] = (
            f"predicted for {stack}: rates and memory under {programme} will differ; measure them"
        )
    if programme != MEGATRON and 0.0 < layout.recomputed_layers_fraction < 1.0:
        told[f"recomputing of {started.name}"] = (
            f"the plan recomputes {layout.recomputed_layers_fraction:.0%} of the layers; {programme} all of them, which is slower "
            "and takes less memory"
        )
    if programme == MEGATRON:
        told["LEARNING_RATE"] = "its learning rate, which changes no time and is not known here"
    if programme == TORCHTITAN:
        told["TorchTitan"] = "read at commit 000204a4a8bf; later ones are configured in Python, under the same names"
    if started.line.daily_hours:
        told[f"hours of {started.name}"] = (
            f"runs at the hours {started.line.daily_hours} of each day alone: stop it after a checkpoint and start it again"
        )
    if started.line.nodes > 1:
        told["HEAD"] = "the address of the first node, which the others reach on port 29500"
    return told
