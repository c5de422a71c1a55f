"""How one process of an engine is started, and which release of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.engine_adapters import read_engine_adapters
from catalog.engine_options import EngineOptions, read_engine_options, read_engine_releases
from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, Word
from service.wire.adapters import ALL_MODULES

PORT = 8000
MASTER = Variable("MASTER_ADDR")
DRAFTING_OPTION = "--speculative-config"
ADAPTER_OPTION = "--enable-lora"


@dataclass(frozen=True, slots=True)
class Launch:
    """words: the command line. image: None where no image is known to hold the engine for these devices.

    variables: names that must be set, with what they are. config: a file that the variable CONFIG names.
    """

    engine: str
    version: str
    words: tuple[Word, ...]
    image: str | None
    variables: tuple[tuple[str, str], ...] = ()
    config: str | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """Where a process runs. rank: of its node among those of its replica, None where it has one node only.

    follows: whether it is any rank but the first. master: the first rank's address.
    """

    port: Word = str(PORT)
    rank: Word | None = None
    follows: bool = False
    master: Word = MASTER


def release_options(kind: ReplicaKind, engine: str, version: str | None) -> EngineOptions:
    """The options of the release to deploy: the one asked for, the one planned for, or the default.

    Raises PartError where its options are not known.
    """
    known = read_engine_options().get(engine, {})
    planned = kind.line.engine_settings.version if kind.line.engine_settings and kind.line.engine == engine else None
    wanted = version or planned or read_engine_releases()[engine].default
    if wanted not in known:
        raise PartError(kind.part, f"the options of {engine} {wanted} are not known; known are {', '.join(known)}")
    return known[wanted]


def checked_launch(kind: ReplicaKind, options: EngineOptions, words: list[Word]) -> Launch:
    """The launch, once the release is seen to know every option. Raises PartError where it does not."""
    check_options(kind, options, words)
    if (kind.settings.max_context_tokens or 0) > kind.model.context_tokens:
        raise PartError(
            kind.part,
            f"its context is beyond the {kind.model.context_tokens} tokens of {kind.model.llm}, and how {options.engine} is told to scale "
            "positions is not written here",
        )
    if kind.settings.speculative is not None and DRAFTING_OPTION not in words:
        raise PartError(
            kind.part,
            f"it drafts, and how {options.engine} is told to is not written here: only vLLM's n-gram look-up is",
        )
    if kind.settings.api_servers > 1 and options.engine != "vllm":
        raise PartError(
            kind.part,
            f"it counts on {kind.settings.api_servers} processes that answer, and how {options.engine} is told to is not known here",
        )
    if kind.workload.adapters is not None and ADAPTER_OPTION not in words:
        raise PartError(kind.part, f"it serves adapters, and how {options.engine} is told to is not written here")
    return Launch(options.engine, options.version, tuple(words), release_image(kind, options))


def adapter_words(kind: ReplicaKind, in_batch: str, on_host: str) -> list[Word]:
    """Slots, rank and modules of the adapters as the plan reserved memory for them; the adapters themselves are loaded by whoever
    has them, with the engine's own call. in_batch, on_host: the options for how many are kept there."""
    asked = kind.workload.adapters
    if asked is None:
        return []
    row = read_engine_adapters().get(kind.line.engine)
    rank = asked.largest_rank if row is None else row.padded(asked.largest_rank)
    words: list[Word] = [ADAPTER_OPTION, in_batch, str(asked.slots or asked.count), "--max-lora-rank", str(rank)]
    words += [on_host, str(asked.count)]
    if set(asked.target_modules) != set(ALL_MODULES):
        words += ["--lora-target-modules", *dict.fromkeys(asked.target_modules)]
    return words


def release_image(kind: ReplicaKind, options: EngineOptions) -> str | None:
    """The image of the release for the kind's devices."""
    release = read_engine_releases()[options.engine]
    return release.image.format(version=options.version) if kind.machine.vendor in release.vendors else None


def check_options(kind: ReplicaKind, options: EngineOptions, words: Sequence[Word]) -> None:
    """Raises PartError for an option, or a value, that the release does not know."""
    for word, value in zip(words, [*words[1:], ""], strict=True):
        if not isinstance(word, str) or not word.startswith("--"):
            continue
        if word not in options.options:
            raise PartError(kind.part, f"{options.engine} {options.version} has no option {word}")
        choices = options.choices.get(word)
        if choices is not None and value not in choices:
            raise PartError(kind.part, f"{options.engine} {options.version} takes no {word} {value}")


def require_engine(kind: ReplicaKind, engine: str) -> None:
    """Raises PartError where the engine is not known to run on the kind's devices."""
    if engine not in kind.machine.engines:
        reason = f"{engine} is not known to run on {kind.line.device}; known are {', '.join(kind.machine.engines)}"
        raise PartError(kind.part, reason)


def require_one_pool(kind: ReplicaKind) -> None:
    """Raises PartError for prefill and decode in pools of their own."""
    if kind.line.role != "aggregated":
        raise PartError(
            kind.part,
            "prefill and decode pools need a router that hands caches over, which these files do not start; target dynamo does",
        )


def checkpoint(kind: ReplicaKind) -> str:
    """The repository that holds the model. Raises PartError where none is known."""
    if kind.model.hugging_face_id is None:
        raise PartError(
            kind.part,
            f"no checkpoint of {kind.model.llm} is known: add the model with the repository of its weights (hugging_face_id; llms add "
            "--checkpoint ORG/NAME)",
        )
    return kind.model.hugging_face_id


def weight_words(kind: ReplicaKind, made: dict[str, list[Word]]) -> list[Word]:
    """Options that give the planned weights from the published checkpoint.

    made: formats an engine makes from 16-bit weights. Raises PartError where it neither is the published one nor is made.
    """
    wanted, native = kind.line.precision.weights, kind.model.native_weights
    if wanted == native and native not in ("bf16", "fp16", "fp32"):
        return []  # the checkpoint says so itself
    if native in ("bf16", "fp16", "fp32") and wanted in made:
        return made[wanted]
    reason = (
        f"no checkpoint of {kind.model.llm} in {wanted} is known (published in {native}), and the engine makes none"
    )
    raise PartError(kind.part, reason)
