"""The command line of llama.cpp's server for one replica of a plan."""

from service.deployments.launch import Launch, Where, checked_launch, release_options, require_engine
from service.deployments.plan import ReplicaKind
from service.deployments.refusals import PartError
from service.deployments.words import Variable, Word

FILE_TYPES = {"fp32": "F32", "fp16": "F16", "bf16": "BF16", "q8_0": "Q8_0", "q4_k_m": "Q4_K_M"}
"""What a file's type is called, by format."""
CACHE = {"fp32": "f32", "fp16": "f16", "bf16": "bf16"}


def llama_cpp_launch(kind: ReplicaKind, version: str | None, where: Where) -> Launch:
    """What the prediction assumed, as options. Raises PartError for what llama.cpp cannot be told.

    The whole cache is reserved at the start and, by ``--kv-unified``, shared by all slots: ``--ctx-size`` is the plan's cache.
    Divided among the slots instead, each request would hold the memory of the longest. The file is the variable MODEL: which
    repository has it is in no catalog.
    """
    require_engine(kind, "llama.cpp")
    settings, precision = kind.settings, kind.line.precision
    if where.rank is not None:
        raise PartError(kind.part, "llama.cpp spreads a model over nodes in another way than the one planned")
    if kind.memory is None:
        raise PartError(
            kind.part, "how the plan divides a device's memory is not known, and llama.cpp reserves it whole"
        )
    if precision.weights not in FILE_TYPES:
        raise PartError(kind.part, f"llama.cpp has no files with weights in {precision.weights} as planned")
    if precision.kv_cache not in CACHE:
        raise PartError(kind.part, f"llama.cpp has no key-value cache in {precision.kv_cache}")
    words: list[Word] = ["llama-server", "--model", Variable("MODEL"), "--alias", kind.model.llm]
    words += ["--host", "0.0.0.0", "--port", where.port, "--n-gpu-layers", "all", "--split-mode", _split(kind)]
    words += ["--ctx-size", str(kind.memory.kv_cache_tokens), "--kv-unified", "--parallel", str(settings.max_sequences)]
    words += ["--batch-size", str(settings.max_batched_tokens)]
    words += ["--cache-type-k", CACHE[precision.kv_cache], "--cache-type-v", CACHE[precision.kv_cache]]
    launch = checked_launch(kind, release_options(kind, "llama.cpp", version), words)
    what = f"path of the GGUF file of the model in {FILE_TYPES[precision.weights]}"
    return Launch(launch.engine, launch.version, launch.words, launch.image, variables=(("MODEL", what),))


def _split(kind: ReplicaKind) -> str:
    """How the model lies on the devices. Raises PartError for layouts that llama.cpp does not have."""
    layout = kind.line.layout
    if layout.data_parallel > 1 or layout.expert_parallel > 1:
        raise PartError(kind.part, "llama.cpp has neither data- nor expert-parallel ranks")
    if layout.tensor_parallel > 1 and layout.pipeline_parallel > 1:
        raise PartError(kind.part, "llama.cpp cuts a model by tensors or by layers, not by both")
    if layout.tensor_parallel > 1:
        return "tensor"
    return "layer" if layout.pipeline_parallel > 1 else "none"
